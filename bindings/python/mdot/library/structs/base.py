"""mdot_base.h, and the base classes of all structs."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_char_p, c_int, c_int64
from typing import Any, TypeVar

from mdot.library.errors import InvalidArgumentError


class Struct(ctypes.Structure):
    """A struct of the headers."""


class Sized(Struct):
    """A struct that begins with struct_size and may grow."""


SizedType = TypeVar("SizedType", bound=Sized)


def new(kind: type[SizedType], **fields: object) -> SizedType:
    """MDOT_INIT: sets the size and leaves all fields that are not named at zero. InvalidArgumentError names a field whose
    value is of another type, or beyond the field's range."""
    struct = kind(struct_size=ctypes.sizeof(kind))
    for name, value in fields.items():
        try:
            setattr(struct, name, value)
            kept = getattr(struct, name)  # of a float, the nearest number
            fits = not isinstance(value, int) or not isinstance(kept, int) or kept == value
        except (TypeError, OverflowError):
            fits = False
        if not fits:
            raise InvalidArgumentError(f"{name} must be a {_of_field(kind, name)}, not {value!r:.60}")
    return struct


def _of_field(kind: type[Sized], name: str) -> str:
    type_of: Any = {field[0]: field[1] for field in kind._fields_}[name]
    bits = 8 * ctypes.sizeof(type_of)
    if not isinstance(getattr(kind(), name), int):
        return "number" if type_of is ctypes.c_double else "valid value"
    lowest = type_of(-1).value < 0
    return f"whole number from {-(2 ** (bits - 1)) if lowest else 0} to {2 ** (bits - lowest) - 1}"


class mdot_error(Struct):
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class mdot_dim_binding(Struct):
    _fields_ = [("name", c_char_p), ("value", c_int64), ("same_as", c_char_p)]
