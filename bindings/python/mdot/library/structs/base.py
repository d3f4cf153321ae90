"""mdot_base.h, and the base classes of all structs."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_char_p, c_int, c_int64
from typing import TypeVar


class Struct(ctypes.Structure):
    """A struct of the headers."""


class Sized(Struct):
    """A struct that begins with struct_size and may grow."""


SizedType = TypeVar("SizedType", bound=Sized)


def new(kind: type[SizedType], **fields: object) -> SizedType:
    """MDOT_INIT: sets the size and leaves all fields that are not named at zero."""
    return kind(struct_size=ctypes.sizeof(kind), **fields)


class mdot_error(Struct):
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class mdot_dim_binding(Struct):
    _fields_ = [("name", c_char_p), ("value", c_int64), ("same_as", c_char_p)]
