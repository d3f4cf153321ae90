"""Finds the number of samples in the example inputs, and how sizes grow with it."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.utils import _pytree as pytree

from mdot.library.errors import InvalidArgumentError
from mdot.trace.graph import Graph, Node, Value
from mdot.trace.known_calls import MOST_KNOWN
from mdot.trace.work import einsum


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
    raise InvalidArgumentError("no example input has a batch dimension; pass the number of samples as batch=")


def other_than(batch: int) -> int:
    """A larger prime without a common divisor, so that sizes are multiples of it by chance only."""
    return _prime_from(max(batch + 3, 7))


def below(batch: int) -> int | None:
    """The largest smaller prime; None if there is none without a common divisor."""
    return next((n for n in range(batch - 1, 1, -1) if _prime_from(n) == n and batch % n != 0), None)


def far_from(batch: int) -> int:
    """A multiple that is much larger, beyond usual thresholds: programs that halve a batch, or work on parts of it, are
    regular at multiples."""
    return batch * max(4, -(-64 // batch))


def far_prime(batch: int) -> int:
    """A prime beyond usual thresholds. A program whose sizes are regular there is regular everywhere (is_regular)."""
    return _prime_from(far_from(batch))


def _prime_from(least: int) -> int:
    return next(n for n in range(least, 2 * least) if all(n % k for k in range(2, math.isqrt(n) + 1)))


def resized(tree: Any, batch: int, other: int, *, exact: bool = False) -> Any:
    """The inputs with another number of samples; None if no tensor has the batch as a dimension. The batch is the first
    dimension, or a factor of it, or the second dimension. It is a factor of the second dimension only beside a tensor with as
    many rows that has the batch there: words of bags beside their offsets. `exact` leaves factors alone: a table of positions
    may have an even number of rows."""
    found = False
    leaves = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.ndim > 1]
    rows = {leaf.shape[0] for leaf in leaves if leaf.shape[1] == batch and leaf.shape[0] % batch != 0}

    def resize(leaf: Any) -> Any:
        nonlocal found
        if not isinstance(leaf, torch.Tensor) or leaf.ndim == 0:
            return leaf
        axis = 0 if leaf.shape[0] == batch or (not exact and leaf.shape[0] > 0 and leaf.shape[0] % batch == 0) else 1
        if axis == 1 and (leaf.ndim < 2 or leaf.shape[1] != batch):
            if exact or leaf.ndim != 2 or leaf.shape[0] not in rows or leaf.shape[1] == 0 or leaf.shape[1] % batch != 0:
                return leaf
        found = True
        extent = leaf.shape[axis]
        wanted = extent // batch * other
        if leaf.numel() // extent * wanted > MOST_KNOWN:  # its content does not matter
            shape = (*leaf.shape[:axis], wanted, *leaf.shape[axis + 1 :])
            return torch.empty(shape, dtype=leaf.dtype, device="meta", requires_grad=leaf.requires_grad)
        places = torch.arange(wanted, device=leaf.device)
        made = leaf.detach().index_select(axis, places % extent)
        made = made + places // extent * extent * step if (step := _step(leaf, axis)) else made
        return made.requires_grad_(leaf.requires_grad)

    made = pytree.tree_map(resize, tree)
    return made if found else None


def _step(leaf: torch.Tensor, axis: int) -> int:
    """The distance of evenly spaced places that begin with 0, as the offsets of bags; 0 for other contents."""
    extent = leaf.shape[axis]
    if leaf.dtype not in (torch.int32, torch.int64) or leaf.device.type == "meta" or axis != leaf.ndim - 1 or extent < 2:
        return 0
    step = int(leaf.reshape(-1)[1])
    even = torch.arange(extent, dtype=leaf.dtype, device=leaf.device) * step
    return step if step > 1 and bool((leaf == even).all()) else 0


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
            if w % batch == 0 and x * batch == w * count and 0 < y <= w and y % batch == 0 and c.shape == d.shape:
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


def above_square(first: Graph, other: Graph, count: int, batch: int, axis: str = "batch") -> str | None:
    """A warning that names the first node whose work or tensors grow faster than the square of the batch, or of the length,
    for example a product of two matrices of all pairs. Its share at these batches does not matter, because it grows."""
    limit = (count / batch) ** 2.5
    for one, two in zip(first.nodes, other.nodes):
        if one.op != two.op:
            return None
        small, large = _amount(one), _amount(two)
        if large > limit * small > 0:
            return (
                f"{axis}-differs: node '{one.name}' ({one.op}) grows faster than the square of the {axis}, which a job cannot "
                f"express; trace it at the {axis} that you ask about"
            )
    return None


def _amount(node: Node) -> float:
    """FLOPs of a product, and elements of other results."""
    operand, made = (values[0] if values else None for values in (node.inputs, node.outputs))
    flops, elements = node.attributes.get("flops"), made.count if made is not None else 0
    if node.op == "Einsum":
        flops = einsum((node.attributes["equation"], node.inputs), None) or elements
    if isinstance(flops, (int, float)):
        return float(flops)
    return float(elements * operand.shape[-1] if node.op == "MatMul" and operand is not None else elements)


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
        needs_gradient = leaf.requires_grad
        axes = [axis for axis, extent in enumerate(leaf.shape) if extent == length]
        if batch == length and axes:  # the first of equal ones is the batch
            del axes[0]
        for axis in axes:
            found = True
            leaf = leaf.detach().index_select(axis, torch.arange(other, device=leaf.device) % length)
        return leaf.requires_grad_(needs_gradient) if needs_gradient else leaf

    made = pytree.tree_map(resize, tree)
    if not found:
        raise InvalidArgumentError(f"no example input has a dimension of length={length}; pass the number of tokens or frames")
    return made
