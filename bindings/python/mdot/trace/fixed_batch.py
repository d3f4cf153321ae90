"""Runs a program that holds the number of samples as a constant, for example `x.view(32, 24)`, at another batch."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Sequence

import torch
from torch.overrides import TorchFunctionMode

_SIZES = frozenset({"size", "shape", "sizes", "repeats", "dims"})
"""Arguments with the sizes of a result, by their names in the schemas of ATen."""
_ROWS = frozenset({"start", "end", "length", "split_size", "split_sizes", "chunks", "sections", "indices"})
"""Arguments with places or numbers of rows."""
_COUNTS = _ROWS | {"n", "m", "N", "steps", "row", "col", "num_classes", "minlength", "num_samples", "window_length", "repeats"}
"""Arguments with numbers of rows or columns."""
_SELF = ("self", "input", "tensor")


class FixedBatch(TorchFunctionMode):
    """A first size that is `batch` becomes `other`, and one that is a multiple of it becomes the same multiple if the call
    fails. Of functions without an operand, as `torch.eye(32, 32)`, each argument that is the batch changes. With
    `everywhere`, every size counts, and multiples need no failure. With `observes`, nothing changes, but `found` names the
    calls with such a size. The schemas of ATen's operators tell which arguments are sizes (_SIZES, _COUNTS). Calls by
    PyTorch itself stay as they are."""

    def __init__(self, batch: int, other: int, everywhere: bool = False, observes: bool = False) -> None:
        super().__init__()
        self.batch, self.other, self.everywhere, self.observes = batch, other, everywhere, observes
        self.found: dict[str, None] = {}

    def __enter__(self) -> Any:
        self._depth = torch._C._len_torch_dispatch_stack()
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not _names(func, name) or not self._is_above(func):
            return func(*args, **kwargs)
        if name == "__getitem__":
            return func(args[0], self._rows(*args))
        bound = _bind(func, name, args, kwargs)
        if bound is None:
            return func(*args, **kwargs)
        sure, unsure = self._changes(name, bound)
        if sure:
            self.found[name] = None
        if not sure and not unsure or self.observes:
            return func(*args, **kwargs)
        if not sure:
            try:
                return func(*args, **kwargs)
            except RuntimeError:
                pass
        return _call(func, args, kwargs, {**unsure, **sure})

    def _is_above(self, func: Any) -> bool:
        """Does the program call, rather than PyTorch itself?"""
        if torch._C._len_torch_dispatch_stack() < self._depth:
            return False
        frame: Any = sys._getframe(2)
        while frame is not None and (frame.f_code is getattr(func, "__code__", None) or _module(frame) == "torch.overrides"):
            frame = frame.f_back
        return frame is not None and _module(frame).partition(".")[0] != "torch"

    def _of(self, size: Any) -> Any:
        """A size, or a multiple of it, at the other batch."""
        is_multiple = type(size) is int and size != 0 and size % self.batch == 0
        return size // self.batch * self.other if is_multiple else size

    def _has_samples(self, tensor: Any, axis: int = 0) -> bool:
        """Is the axis of a tensor made of all samples?"""
        return isinstance(tensor, torch.Tensor) and -tensor.ndim <= axis < tensor.ndim and tensor.shape[axis] % self.other == 0

    def _changes(self, name: str, bound: dict[str, tuple[Any, Any]]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """New values by place: those that are the batch, and multiples that may be chance."""
        tensor = next((bound[key][1] for key in _SELF if key in bound), None)
        is_maker = not isinstance(tensor, torch.Tensor) or name.startswith("new_")
        axis = bound["dim"][1] if "dim" in bound else 0
        sure: dict[Any, Any] = {}
        unsure: dict[Any, Any] = {}
        for key, (place, value) in bound.items():
            is_list = isinstance(value, (list, tuple))
            if key == "pad" and is_list:
                made: Any = self._padded(tensor, value)
            elif key == "size" and name == "interpolate":
                made = self._spatial(tensor, value)
            elif key in _SIZES and is_list:
                made = self._sizes(value, is_maker)
                if made == tuple(value) and len(value) > 0 and self._of(value[0]) != value[0]:
                    unsure[place] = (self._of(value[0]), *value[1:])
            elif key in _COUNTS and type(value) is int and (is_maker or key == "repeats"):
                made = self.other if value == self.batch else self._of(value) if self.everywhere else value
            elif key in _COUNTS and type(value) in (int, list, tuple) and axis == 0 and self._has_samples(tensor):
                made = tuple(self._row(key, n) for n in value) if is_list else self._row(key, value)
            else:
                continue
            if made != (tuple(value) if is_list else value):
                sure[place] = made
        return sure, unsure

    def _row(self, key: str, value: Any) -> Any:
        return self._of(value) if key in _ROWS or value == self.batch else value

    def _sizes(self, sizes: Sequence[Any], is_maker: bool) -> tuple[Any, ...]:
        made = list(sizes)
        for i, size in enumerate(sizes):
            if size == self.batch and (i == 0 or is_maker or self.everywhere):
                made[i] = self.other
            elif i == 0 and self.everywhere:
                made[i] = self._of(size)
        return tuple(made)

    def _padded(self, tensor: Any, pad: Sequence[int]) -> tuple[int, ...]:
        """Padding by as many places as samples."""
        return tuple(
            self.other if n == self.batch and self._has_samples(tensor, tensor.ndim - 1 - i // 2) else n for i, n in enumerate(pad)
        )

    def _spatial(self, tensor: Any, sizes: Any) -> Any:
        """Sizes of the last dimensions, where those of the operand are the batch."""
        if not isinstance(sizes, (list, tuple)):
            return sizes
        axes = range(tensor.ndim - len(sizes), tensor.ndim)
        return tuple(self.other if n == self.batch and tensor.shape[axis] == self.other else n for n, axis in zip(sizes, axes))

    def _rows(self, tensor: Any, index: Any) -> Any:
        """An index with slices of rows of all samples."""
        rows = index[0] if type(index) is tuple and index else index
        if type(rows) is not slice or not self._has_samples(tensor):
            return index
        moved = slice(self._of(rows.start), self._of(rows.stop), rows.step)
        is_whole = all(n is None or n == 0 or self._of(n) != n for n in (rows.start, rows.stop))
        if not is_whole or moved == rows:
            return index
        self.found["slice"] = None
        if self.observes:
            return index
        return (moved, *index[1:]) if type(index) is tuple else moved


# ---- Arguments by name -----------------------------------------------------------------------------------------------


def _module(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", ""))


@functools.cache
def _overloads(name: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Names and types of the arguments in ATen's schemas of a function."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return tuple(tuple((one.name, str(one.type)) for one in schema.arguments if not one.kwarg_only) for schema in schemas)


@functools.cache
def _names(func: Any, name: str) -> bool:
    """Has a function sizes or numbers of rows among its arguments?"""
    if name == "__getitem__":
        return True
    known = {key for overload in _overloads(name) for key, _ in overload}
    if name in _AXES:
        known.discard("dims")
    return name == "interpolate" or "pad" in known or bool(known & (_SIZES | _COUNTS))


_AXES = frozenset({"flip", "rot90", "roll", "permute", "tensordot", "unsafe_chunk"})
"""Functions whose `dims` are numbers of axes."""


def _bind(func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, tuple[Any, Any]] | None:
    """The arguments by name: place and value. A place is a position, (position,) from which sizes follow one by one, or a
    keyword. None if no overload takes such arguments."""
    overloads = _overloads(name)
    if not overloads:
        overloads = (tuple((key, "") for key in inspect.signature(func).parameters),)
    for overload in overloads:
        found = _bind_to(overload, args, kwargs)
        if found is not None:
            return found
    return None


def _bind_to(
    overload: Sequence[tuple[str, str]], args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, tuple[Any, Any]] | None:
    found: dict[str, tuple[Any, Any]] = {}
    names = {key for key, _ in overload}
    for i, (key, kind) in enumerate(overload):
        given = next((one for one in (_SELF if key == "self" else (key,)) if one in kwargs), None)
        if i < len(args) and given is not None:
            return None
        if i >= len(args) and given is None:
            continue
        place: Any = i if i < len(args) else given
        value = args[i] if i < len(args) else kwargs[given]  # type: ignore[index]
        if kind.startswith("List[int]") and i < len(args) and type(value) is int:
            if not all(type(one) is int for one in args[i:]):
                return None
            found[key] = (i,), tuple(args[i:])
            return found
        if not _takes(kind, value):
            return None
        found[key] = place, value
    is_whole = len(args) <= len(overload) and all(key in names or key not in _SIZES | _COUNTS for key in kwargs)
    return found if is_whole else None


def _takes(kind: str, value: Any) -> bool:
    """Does an argument of this type take the value?"""
    if kind.startswith("Optional["):
        return value is None or _takes(kind[9:-1], value)
    if kind == "Tensor":
        return isinstance(value, torch.Tensor)
    if kind.startswith("List["):
        return isinstance(value, (list, tuple))
    if kind in ("int", "number", "float"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return True


def _call(func: Any, args: Sequence[Any], kwargs: dict[str, Any], changed: dict[Any, Any]) -> Any:
    """Calls a function with new values at these places."""
    positions, keywords = list(args), dict(kwargs)
    for place, value in changed.items():
        if isinstance(place, tuple):
            positions[place[0] :] = value
        elif isinstance(place, int):
            positions[place] = value
        else:
            keywords[place] = value
    return func(*positions, **keywords)
