"""Finds the number of samples in the example inputs."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.utils import _pytree as pytree

from mdot.library.errors import InvalidArgumentError
from mdot.trace.graph import Graph


class SequenceFirst:
    """A run's first module with [length, batch, channels]: a recurrence or attention without batch_first."""

    batch: int | None = None
    module: str = ""

    def see(self, module: nn.Module, path: str, args: tuple[Any, ...]) -> None:
        takes_length_first = isinstance(module, (nn.RNNBase, nn.MultiheadAttention)) and not module.batch_first
        if self.batch is not None or not takes_length_first or not args:
            return
        if isinstance(args[0], torch.Tensor) and args[0].ndim == 3:
            self.batch, self.module = int(args[0].shape[1]), path


@contextlib.contextmanager
def watch(model: nn.Module) -> Iterator[SequenceFirst]:
    """Observes the modules that run."""
    seen = SequenceFirst()
    path = {module: name for name, module in model.named_modules()}
    hook = hooks.register_module_forward_pre_hook(
        lambda module, args: seen.see(module, path.get(module) or type(module).__name__, args)
    )
    try:
        yield seen
    finally:
        hook.remove()


def leading_dimensions(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """The first tensor's first two dimensions, or the length of a list of images with three dimensions each."""
    first = next(iter([*args, *kwargs.values()]), None)
    if isinstance(first, (list, tuple)) and first and all(isinstance(t, torch.Tensor) and t.ndim == 3 for t in first):
        return (len(first),)
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor) and leaf.ndim > 0:
            return tuple(leaf.shape[:2])
    if any(isinstance(leaf, int) for leaf in pytree.tree_leaves((args, kwargs))):
        raise InvalidArgumentError("the example inputs hold numbers but no tensor; pass tensors, for example torch.zeros(8, 256)")
    raise InvalidArgumentError("no example input has a batch dimension; pass the number of samples as batch=")


def other_than(batch: int) -> int:
    """A larger prime without a common divisor, so that sizes are multiples of it by chance only."""
    return next(n for n in range(max(batch + 3, 7), 4 * batch + 32) if all(n % k for k in range(2, n)) and batch % n)


def resized(tree: Any, batch: int, other: int) -> Any:
    """The inputs with another number of samples; None if no tensor has the batch as a dimension. The first dimension
    is a multiple of the batch, or the second one is the batch."""
    found = False

    def resize(leaf: Any) -> Any:
        nonlocal found
        if not isinstance(leaf, torch.Tensor) or leaf.ndim == 0:
            return leaf
        axis = 0 if leaf.shape[0] > 0 and leaf.shape[0] % batch == 0 else 1
        if axis == 1 and (leaf.ndim < 2 or leaf.shape[1] != batch):
            return leaf
        found = True
        extent = leaf.shape[axis]
        index = torch.arange(extent // batch * other, device=leaf.device) % extent
        return leaf.detach().index_select(axis, index)

    made = pytree.tree_map(resize, tree)
    return made if found else None


_METHODS = ("view", "reshape", "expand", "repeat", "tile", "broadcast_to", "new_zeros", "new_ones", "new_empty", "new_full")
_MAKERS = ("zeros", "ones", "empty", "full", "rand", "randn", "arange", "eye")
_OF_TENSORS = ("reshape", "tile", "broadcast_to")
"""Methods of tensors, and functions without and with a tensor before, whose arguments are sizes."""


class FixedBatch:
    """Lets a module that holds the number of samples as a constant, for example `x.view(32, 24)` or `x[:32]`, run at another
    batch: a first size that is `batch` becomes `other`, and one that is a multiple of it becomes the same multiple if the
    call fails. With `everywhere`, every size counts, and multiples need no failure. The functions are replaced, because
    modes are off while the backward pass recomputes a checkpointed region. Calls by PyTorch below a dispatch mode stay as
    they are."""

    def __init__(self, batch: int, other: int, everywhere: bool = False) -> None:
        self.batch, self.other, self.everywhere = batch, other, everywhere

    def __enter__(self) -> None:
        self._depth = torch._C._len_torch_dispatch_stack()
        self._own: list[tuple[Any, str, Any]] = []
        for name in _METHODS:
            self._replace(torch.Tensor, name, self._changed(getattr(torch.Tensor, name), 1))
        for place, names in ((0, _MAKERS), (1, _OF_TENSORS)):
            for name in names:
                self._replace(torch, name, self._changed(getattr(torch, name), place))
        self._replace(torch.Tensor, "__getitem__", self._sliced(torch.Tensor.__getitem__))
        self._replace(torch.Tensor, "narrow", self._part(torch.Tensor.narrow))
        self._replace(torch.Tensor, "split", self._part(torch.Tensor.split))

    def _replace(self, place: Any, name: str, made: Any) -> None:
        self._own.append((place, name, vars(place).get(name)))
        setattr(place, name, made)

    def __exit__(self, *reason: Any) -> None:
        for place, name, own in self._own:
            if own is None:
                delattr(place, name)  # the method is that of a base class
            else:
                setattr(place, name, own)

    def _of(self, size: Any) -> Any:
        """A size, or a multiple of it, at the other batch."""
        is_multiple = type(size) is int and size != 0 and size % self.batch == 0
        return size // self.batch * self.other if is_multiple else size

    def _is_above(self) -> bool:
        return torch._C._len_torch_dispatch_stack() >= self._depth

    def _changed(self, func: Any, place: int) -> Any:
        """`place` is the position of the first size."""

        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            is_list = len(args) > place and isinstance(args[place], (tuple, list))
            sizes = args[place] if is_list else args[place:]
            first = sizes[0] if sizes else None
            if self.everywhere:
                follows = [i == 0 or size == self.batch or func.__name__ == "arange" for i, size in enumerate(sizes)]
                changed = tuple(self._of(size) if moves else size for moves, size in zip(follows, sizes))
            else:
                changed = (self._of(first), *sizes[1:])
            if not self._is_above() or changed == tuple(sizes):
                return func(*args, **kwargs)
            others = (*args[:place], changed, *args[place + 1 :]) if is_list else (*args[:place], *changed)
            if first == self.batch or self.everywhere:
                return func(*others, **kwargs)
            try:
                return func(*args, **kwargs)
            except RuntimeError:
                return func(*others, **kwargs)

        return call

    def _sliced(self, func: Any) -> Any:
        """Slices of rows of all samples."""

        @functools.wraps(func)
        def call(tensor: torch.Tensor, index: Any) -> Any:
            rows = index[0] if type(index) is tuple and index else index
            if type(rows) is slice and self._is_above() and tensor.ndim > 0 and tensor.shape[0] % self.other == 0:
                rows = slice(self._of(rows.start), self._of(rows.stop), rows.step)
                index = (rows, *index[1:]) if type(index) is tuple else rows
            return func(tensor, index)

        return call

    def _part(self, func: Any) -> Any:
        """The arguments of narrow (axis, start, length) and split (size or sizes, axis) for rows of all samples."""

        @functools.wraps(func)
        def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            axis = kwargs.get("dim", args[0] if func.__name__ == "narrow" and args else args[1] if len(args) > 1 else 0)
            if self._is_above() and axis == 0 and tensor.ndim > 0 and tensor.shape[0] % self.other == 0:
                args = tuple([self._of(n) for n in one] if isinstance(one, (list, tuple)) else self._of(one) for one in args)
            return func(tensor, *args, **kwargs)

        return call


def loses_samples(first: Graph, other: Graph, batch: int, count: int) -> bool:
    """Has a step of the program at `count` samples results for `batch` samples, although it reads all? For example,
    `x[torch.arange(32)]` in a program for a batch of 32."""
    for one, two in zip(first.nodes, other.nodes):
        if one.op != two.op:
            return False
        a, b = one.inputs[0] if one.inputs else None, two.inputs[0] if two.inputs else None
        c, d = one.outputs[0] if one.outputs else None, two.outputs[0] if two.outputs else None
        if a is None or b is None or c is None or d is None or not a.shape or not c.shape:
            continue
        axes = list(zip(a.shape, b.shape, c.shape, d.shape))
        if len(a.shape) != len(c.shape) or one.op.startswith("Gather"):
            axes = axes[:1] if one.op.startswith("Gather") else []
        moved = [(w, x, y, z) for w, x, y, z in axes if w != y or x != z]
        for w, x, y, z in moved if len(moved) == 1 else []:
            if w % batch == 0 and x * batch == w * count and 0 < y == z <= w and y % batch == 0:
                return True
    return False


def choose(dimensions: tuple[int, ...], seen: SequenceFirst) -> tuple[int, list[str]]:
    """The first dimension, or the second one if it is the batch in a module with the sequence first. Returns the batch
    and notes for the user."""
    if len(dimensions) < 2 or seen.batch != dimensions[1] or seen.batch == dimensions[0]:
        return dimensions[0], []
    note = (
        f"the batch is {seen.batch}, the second dimension of the input, because {seen.module} takes the sequence first; "
        "pass batch= if the number of samples differs"
    )
    return dimensions[1], [note]


def other_lengths(length: int) -> tuple[int, int]:
    """Two shorter lengths, because positions are often limited. Multiples of 16, if they are long enough."""
    step = 16 if length >= 64 else 1
    return max(length // (2 * step), 1) * step, max(3 * length // (4 * step), 1) * step


def at_length(tree: Any, batch: int, length: int, other: int) -> Any:
    """The inputs at another length. All dimensions of this extent change, apart from the batch."""
    found = False

    def resize(leaf: Any) -> Any:
        nonlocal found
        if not isinstance(leaf, torch.Tensor):
            return leaf
        axes = [axis for axis, extent in enumerate(leaf.shape) if extent == length]
        if batch == length and axes:  # the first of equal ones is the batch
            del axes[0]
        for axis in axes:
            found = True
            leaf = leaf.detach().index_select(axis, torch.arange(other, device=leaf.device) % length)
        return leaf

    made = pytree.tree_map(resize, tree)
    if not found:
        raise InvalidArgumentError(f"no example input has a dimension of length={length}; pass the number of tokens or frames")
    return made
