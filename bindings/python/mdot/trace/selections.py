"""Selections by data: results whose sizes or numbers depend on computed values, such as `x[x > 0]`, nonzero and item.

A run with values notes them, and later runs on fake tensors recall them by kind, place in the program and shape, because
they may skip some, for example checks of values in the program's libraries. At another batch, as large a part of the operand is
selected, and numbers stay.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
from typing import Any, Iterator
from unittest import mock

import torch
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakIdKeyDictionary

from mdot.trace.known_calls import DataDependent, KnownContents, outside, tensors_of

_PLACES = {"nonzero", "nonzero_numpy", "argwhere", "where"}
_INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
_NUMBERS = {"_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"}
_OTHERS = {"masked_select", "unique", "_unique", "_unique2", "unique_dim", "unique_consecutive", "bincount", "nms"}


@dataclasses.dataclass
class Selection:
    kind: str
    elements: int
    """Of the first operand."""
    counts: list[int]
    """Elements that each mask selects, or the result's rows."""
    result: Any
    """The number, or the shapes and types of the results."""
    place: Any = None
    shape: tuple[int, ...] | None = None
    """Of the first operand; None for an element of a list."""


def kind_of(func: Any, args: tuple[Any, ...]) -> str | None:
    """The kind of selection, equal for all operators that a program may use for it. None: the call is no selection."""
    name: str = func._schema.name.split("::")[-1]
    if name in _PLACES:
        return "nonzero" if name != "where" or len(args) == 1 else None
    if name in _INDEXED:
        return "index" if any(_is_mask(index) for index in args[1]) else None
    if name in _NUMBERS or torch.Tag.data_dependent_output in func.tags:
        return "number"
    return name if name in _OTHERS or torch.Tag.dynamic_output_shape in func.tags else None


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)


def _shape(kind: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    operands = [index for index in args[1] if _is_mask(index)] if kind == "index" else tensors_of(args)
    return tuple(operands[0].shape) if operands else (0,)


TRACERS = ("torch", "mdot", "contextlib", "functools")
"""Modules between a program's call and its selection, which the run on fake tensors may not pass."""


def _place() -> Any:
    """The program's call: its innermost function outside PyTorch, mdot and their decorators, and the instruction there."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in TRACERS:
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


def note(found: list[Selection], func: Any, args: tuple[Any, ...], out: Any) -> None:
    """Appends the call if it is a selection."""
    kind = kind_of(func, args)
    if kind is None:
        return
    with outside():
        masks = [index for index in args[1] if _is_mask(index)] if kind == "index" else []
        rows = [result.shape[0] for result in tensors_of(out)[:1] if result.ndim > 0]
        counts = [int(mask.count_nonzero()) for mask in masks] or rows
        result = pytree.tree_map(lambda leaf: (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf, out)
    shape = _shape(kind, args)
    found.append(Selection(kind, math.prod(shape), counts, result, _place(), shape))


@contextlib.contextmanager
def noted_lists(found: list[Selection]) -> Iterator[None]:
    """Notes the numbers of `tolist`, which reads them without an operator."""
    original = torch.Tensor.tolist

    def tolist(tensor: torch.Tensor) -> Any:
        numbers = original(tensor)
        if torch._C._len_torch_dispatch_stack() == 0:  # mdot reads a constant, rather than the program
            return numbers
        place = _place()
        found.extend(Selection("number", 1, [], number, place) for number in pytree.tree_leaves(numbers))
        return numbers

    with mock.patch.object(torch.Tensor, "tolist", tolist):
        yield


class Recalled(KnownContents):
    """Known contents, and the selections of an earlier run."""

    def __init__(self, found: list[Selection]) -> None:
        super().__init__()
        self._found, self._left = found, list(found)
        self._masks: Any = WeakIdKeyDictionary()
        """Elements that a mask selects: the backward pass reads the same masks."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kind = kind_of(func, args)
        if kind is None:
            return super().run(func, args, kwargs)
        shape = _shape(kind, args)
        elements = math.prod(shape)
        one = self._next(kind, shape)
        if one is None:
            raise DataDependent[1](func)
        known = self._compute(func, args, kwargs)
        if known is not None:
            return self._pretend(known)
        if kind == "number":
            return one.result
        counts = [round(count * elements / one.elements) if one.elements else count for count in one.counts]
        if kind == "index":
            return func(args[0], self._places(args[1], counts), *args[2:], **kwargs)
        if kind == "nonzero":
            is_matrix = func._schema.name.split("::")[-1] in ("nonzero", "argwhere")
            shape = (counts[0], args[0].ndim) if is_matrix else (counts[0],)
            made = [torch.empty(shape, dtype=torch.int64) for _ in range(1 if is_matrix else args[0].ndim)]
            return made[0] if is_matrix else made
        return self._resized(one, elements, counts[0])

    def _next(self, kind: str, shape: tuple[int, ...]) -> Selection | None:
        """The next selection at this place, of equal shape if one is left, or else of as many dimensions. A backward pass
        repeats earlier ones, in gradients and checkpointed regions. A replayed run has other places: there the next one counts."""
        place, is_backward = _place(), torch._C._current_autograd_node() is not None
        alike = [one for one in (self._found if is_backward else self._left) if one.kind == kind]
        here = [one for one in alike if one.place == place and (one.shape is None or len(one.shape) == len(shape))]
        if is_backward or all(one.place != place for one in self._found):
            here = here or alike
        if not here:
            return None
        chosen = next((one for one in here if one.shape in (None, shape)), here[0])
        if not is_backward:
            del self._left[next(i for i, one in enumerate(self._left) if one is chosen)]
        return chosen

    def _places(self, indices: Any, counts: list[int]) -> list[Any]:
        """Places in the dimensions of each mask."""
        made: list[Any] = []
        left = iter(counts)
        for index in indices:
            if _is_mask(index):
                count = self._masks.setdefault(index, next(left))
                made += [torch.empty(count, dtype=torch.int64) for _ in range(index.ndim)]
            else:
                made.append(index)
        return made

    def _resized(self, one: Selection, elements: int, count: int) -> Any:
        extents = {one.elements: elements, one.counts[0]: count}

        def make(leaf: Any) -> Any:
            shape, dtype = leaf
            return torch.empty([extents.get(n, n) for n in shape], dtype=dtype)

        is_leaf = lambda leaf: isinstance(leaf, tuple) and len(leaf) == 2 and isinstance(leaf[1], torch.dtype)  # noqa: E731
        return pytree.tree_map(make, one.result, is_leaf=is_leaf)
