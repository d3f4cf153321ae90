"""Finds the number of samples in the example inputs."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from typing import Any, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules import module as hooks
from torch.utils import _pytree as pytree

from mdot.library.errors import InvalidArgumentError
from mdot.trace.graph import Graph, Value
from mdot.trace.known_calls import MOST_KNOWN


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
    return _prime_from(max(batch + 3, 7))


def far_from(batch: int) -> int:
    """A multiple that is much larger, beyond usual thresholds: programs that halve a batch, or work on parts of it, are
    regular at multiples."""
    return batch * max(4, -(-64 // batch))


def far_prime(batch: int) -> int:
    """A prime beyond usual thresholds. A program whose sizes are regular there is regular everywhere (is_regular)."""
    return _prime_from(far_from(batch))


def _prime_from(least: int) -> int:
    return next(n for n in range(least, 2 * least) if all(n % k for k in range(2, math.isqrt(n) + 1)))


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
        wanted = extent // batch * other
        if leaf.numel() // extent * wanted > MOST_KNOWN:  # its content does not matter
            return torch.empty((*leaf.shape[:axis], wanted, *leaf.shape[axis + 1 :]), dtype=leaf.dtype, device="meta")
        return leaf.detach().index_select(axis, torch.arange(wanted, device=leaf.device) % extent)

    made = pytree.tree_map(resize, tree)
    return made if found else None


_METHODS = ("view", "reshape", "expand", "repeat", "tile", "broadcast_to", "new_zeros", "new_ones", "new_empty", "new_full")
_MAKERS = ("zeros", "ones", "empty", "full", "rand", "randn", "arange", "eye", "randperm", "tril_indices", "triu_indices")
_OF_TENSORS = ("reshape", "tile", "broadcast_to", "repeat_interleave")
_LISTS = frozenset({"zeros", "ones", "empty", "rand", "randn", "full", "new_zeros", "new_ones", "new_empty", "new_full", "eye",
                    "tril_indices", "triu_indices"})  # fmt: skip
"""Methods of tensors, and functions without and with a tensor before, whose arguments are sizes. In calls of _LISTS, each
argument that is the batch counts, as in `torch.eye(32, 32)`."""


class FixedBatch:
    """Lets a module that holds the number of samples as a constant, for example `x.view(32, 24)` or `x[:32]`, run at another
    batch: a first size that is `batch` becomes `other`, and one that is a multiple of it becomes the same multiple if the
    call fails. With `everywhere`, every size counts, and multiples need no failure. With `observes`, nothing changes, but
    `found` names the calls with such a size. The functions are replaced, because modes are off while the backward pass
    recomputes a checkpointed region. Calls by PyTorch below a dispatch mode stay as they are."""

    def __init__(self, batch: int, other: int, everywhere: bool = False, observes: bool = False) -> None:
        self.batch, self.other, self.everywhere, self.observes = batch, other, everywhere, observes
        self.found: dict[str, None] = {}

    def __enter__(self) -> None:
        self._depth = torch._C._len_torch_dispatch_stack()
        self._own: list[tuple[Any, str, Any]] = []
        for name in _METHODS:
            self._replace(torch.Tensor, name, self._changed(getattr(torch.Tensor, name), 1))
        for place, names in ((0, _MAKERS), (1, _OF_TENSORS), (2, ("linspace",))):
            for name in names:
                self._replace(torch, name, self._changed(getattr(torch, name), place))
        self._replace(torch.Tensor, "repeat_interleave", self._changed(torch.Tensor.repeat_interleave, 1))
        self._replace(torch.Tensor, "__getitem__", self._sliced(torch.Tensor.__getitem__))
        for name in ("narrow", "split", "chunk"):
            self._replace(torch.Tensor, name, self._part(getattr(torch.Tensor, name)))
            self._replace(torch, name, self._part(getattr(torch, name)))
        self._replace(functional, "one_hot", self._one_hot(functional.one_hot))
        self._replace(functional, "pad", self._padded(functional.pad))

    def _replace(self, place: Any, name: str, made: Any) -> None:
        self._own.append((place, name, vars(place).get(name)))
        setattr(place, name, made)

    def __exit__(self, *reason: Any) -> None:
        for place, name, own in reversed(self._own):
            if own is None:
                delattr(place, name)  # the method is that of a base class
            else:
                setattr(place, name, own)

    def _of(self, size: Any) -> Any:
        """A size, or a multiple of it, at the other batch."""
        is_multiple = type(size) is int and size != 0 and size % self.batch == 0
        return size // self.batch * self.other if is_multiple else size

    def _is_above(self) -> bool:
        """Does the program call, rather than PyTorch itself?"""
        if sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] == "torch":
            return False
        return torch._C._len_torch_dispatch_stack() >= self._depth

    def _has_samples(self, tensor: Any, axis: int = 0) -> bool:
        """Is the axis of a tensor made of all samples?"""
        return isinstance(tensor, torch.Tensor) and tensor.ndim > 0 and tensor.shape[axis] % self.other == 0

    def _follows(self, name: str) -> bool:
        """Does a call with the batch as a number change?"""
        self.found[name] = None
        return not self.observes

    def _changed(self, func: Any, place: int) -> Any:
        """`place` is the position of the first size."""

        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            is_list = len(args) > place and isinstance(args[place], (tuple, list))
            sizes = args[place] if is_list else args[place:]
            first = sizes[0] if sizes else None
            if self.everywhere:
                follows = [i == 0 or size == self.batch or func.__name__ == "arange" for i, size in enumerate(sizes)]
            else:
                follows = [i == 0 or (size == self.batch and func.__name__ in _LISTS) for i, size in enumerate(sizes)]
            changed = tuple(self._of(size) if moves else size for moves, size in zip(follows, sizes))
            if not self._is_above() or changed == tuple(sizes):
                return func(*args, **kwargs)
            others = (*args[:place], changed, *args[place + 1 :]) if is_list else (*args[:place], *changed)
            if self.everywhere or any(type(size) is int and size == self.batch for size in sizes):
                return func(*(others if self._follows(func.__name__) else args), **kwargs)
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
            if type(rows) is slice and self._is_above() and self._has_samples(tensor):
                moved = slice(self._of(rows.start), self._of(rows.stop), rows.step)
                is_whole = all(n is None or n == 0 or self._of(n) != n for n in (rows.start, rows.stop))
                if is_whole and moved != rows and self._follows("slice"):
                    index = (moved, *index[1:]) if type(index) is tuple else moved
            return func(tensor, index)

        return call

    def _part(self, func: Any) -> Any:
        """The arguments of narrow (axis, start, length), split (size or sizes, axis) and chunk (count, axis) for rows of all
        samples."""

        @functools.wraps(func)
        def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            axis = kwargs.get("dim", args[0] if func.__name__ == "narrow" and args else args[1] if len(args) > 1 else 0)
            if self._is_above() and axis == 0 and self._has_samples(tensor):
                own = args
                args = tuple([self._of(n) for n in one] if isinstance(one, (list, tuple)) else self._of(one) for one in args)
                args = args if args != own and self._follows(func.__name__) else own
            return func(tensor, *args, **kwargs)

        return call

    def _one_hot(self, func: Any) -> Any:
        """As many classes as samples, of labels without a content."""

        @functools.wraps(func)
        def call(tensor: torch.Tensor, num_classes: int = -1) -> Any:
            if num_classes == self.batch and self._is_above() and self._has_samples(tensor) and self._follows("one_hot"):
                num_classes = self.other
            return func(tensor, num_classes)

        return call

    def _padded(self, func: Any) -> Any:
        """Padding by as many places as samples."""

        @functools.wraps(func)
        def call(tensor: torch.Tensor, pad: Any, *args: Any, **kwargs: Any) -> Any:
            axes = [tensor.ndim - 1 - i // 2 for i in range(len(pad))]
            moved = [self.other if n == self.batch and self._has_samples(tensor, axis) else n for axis, n in zip(axes, pad)]
            if self._is_above() and moved != list(pad) and self._follows("pad"):
                pad = moved
            return func(tensor, pad, *args, **kwargs)

        return call


_SELECTIONS = frozenset({"Gather", "GatherElements", "GatherND", "Slice", "Split"})


def loses_samples(first: Graph, other: Graph, batch: int, count: int) -> bool:
    """Has a step of the program at `count` samples results for `batch` samples, although it reads all? For example,
    `x[torch.arange(32)]` or `for i in range(32)` in a program for a batch of 32."""
    for one, two in zip(first.nodes, other.nodes):
        if one.op != two.op:
            return False
        a, b = one.inputs[0] if one.inputs else None, two.inputs[0] if two.inputs else None
        c, d = one.outputs[0] if one.outputs else None, two.outputs[0] if two.outputs else None
        if a is None or b is None or c is None or d is None or not a.shape or not c.shape:
            continue
        index = one.inputs[1] if len(one.inputs) > 1 else None
        if one.op not in _SELECTIONS or (one.op == "Gather" and index is not None and index.shape == ()):
            continue
        axes = list(zip(a.shape, b.shape, c.shape, d.shape))
        if len(a.shape) != len(c.shape) or one.op.startswith("Gather"):
            axes = axes[:1] if one.op.startswith("Gather") else []
        moved = [(w, x, y, z) for w, x, y, z in axes if w != y or x != z]
        for w, x, y, z in moved if len(moved) == 1 else []:
            if w % batch == 0 and x * batch == w * count and 0 < y == z <= w and y % batch == 0:
                return True
    return batch > 2 and any(count > rows == batch for rows in _single_rows(other, count))


def _single_rows(graph: Graph, count: int) -> list[int]:
    """For each value whose first axis has `count` samples: the number of calls that read a single row."""
    found: dict[Value, int] = {}
    for node in graph.nodes:
        value, made = (values[0] if values else None for values in (node.inputs, node.outputs))
        if value is None or made is None or value.shape[:1] != (count,):
            continue
        index = node.inputs[1] if len(node.inputs) > 1 else None
        is_element = node.op == "Gather" and node.attributes.get("axis", 0) == 0 and index is not None and index.shape == ()
        if is_element or (node.op == "Slice" and made.shape == (1, *value.shape[1:])):
            found[value] = found.get(value, 0) + 1
    return list(found.values())


def is_regular(first: Graph, other: Graph, batch: int, count: int) -> bool:
    """Do the sizes at both batches determine all work as a polynomial? The steps are equal, each dimension is constant or
    proportional to the batch, a tensor has at most two proportional ones, and no step reads or writes tensors of three
    degrees. `count` is a prime much larger than `batch`: sizes that are halved, rounded or limited differ there."""
    if not has_equal_steps(first, other):
        return False
    for one, two in zip(first.nodes, other.nodes):
        degrees: set[int] = set()
        values = list(zip((*one.inputs, *one.outputs), (*two.inputs, *two.outputs)))
        for a, b in values:
            if (a is None) != (b is None):
                return False
            if a is None or b is None:
                continue
            degree = _degree(a.shape, b.shape, batch, count)
            if degree is None:
                return False
            degrees |= {degree} if a.count > 1 else set()
        if len(degrees) > 2:
            return False
    return True


def _degree(shape: tuple[int, ...], other: tuple[int, ...], batch: int, count: int) -> int | None:
    """The degree in the batch of a tensor's size, from its shapes at two batches; None if a dimension has another kind."""
    if len(shape) != len(other):
        return None
    degree = 0
    for a, b in zip(shape, other):
        if a == b:
            continue
        power = next((n for n in (1, 2) if a * count**n == b * batch**n), None)
        if power is None:
            return None
        degree += power
    return degree if degree <= 2 else None


def has_equal_steps(one: Graph, other: Graph) -> bool:
    return [node.op for node in one.nodes] == [node.op for node in other.nodes]


def has_equal_shapes(one: Graph, other: Graph) -> bool:
    """Have all results the same shapes, and the constants the same size?"""
    if one.constant_elements != other.constant_elements:
        return False
    shapes = [[value.shape for node in graph.nodes for value in node.outputs if value is not None] for graph in (one, other)]
    return shapes[0] == shapes[1]


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
