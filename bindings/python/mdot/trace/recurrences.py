"""Recurrences as one call of cuDNN, and packed sequences of which the trace knows the lengths.

The CPU composes a GRU and an RNN from an operator for each step, and PyTorch's kernels of packed sequences read lengths
in C++, where a tensor without data has none.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence

import torch
from torch import _VF

MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
"""cuDNN's numbers of the recurrences, by ATen's names."""

FUNCTIONS = {getattr(torch, name): name for name in MODES}
_GATES = {0: 1, 1: 1, 2: 4, 3: 3}

_KEPT = {0: 1, 1: 1, 2: 5, 3: 6}
"""Tensors like the state in cuDNN's reserve space for each layer, besides its result."""


# ---- Layers ----------------------------------------------------------------------------------------------------------


def run(name: str, args: Sequence[Any], numbers_in: Callable[[Any], list[int]] | None = None) -> Any:
    """torch.lstm, gru, rnn_tanh or rnn_relu, on a padded or packed sequence: one kernel for all layers. `numbers_in` reads
    the numbers of samples that the steps of a packed sequence have."""
    is_packed, mode = isinstance(args[3], (list, tuple)), MODES[name]
    sizes = (numbers_in(args[1]) if numbers_in is not None else args[1].tolist()) if is_packed else []
    x, states, weights, _, layers, dropout, train, both, *first = (args[0], *args[2:]) if is_packed else args
    state, *cell = states if isinstance(states, (list, tuple)) else (states,)
    each = len(weights) // (layers * (2 if both else 1))
    projected = state.shape[-1] if each % 2 else 0
    hidden = weights[1].shape[0] // _GATES[mode]
    out, last, last_cell, _, _ = torch.ops.aten._cudnn_rnn(
        x, list(weights), each, weights[0].detach(), state, cell[0] if cell else None, mode, hidden, projected, layers,
        bool(first and first[0]), dropout, train, both, sizes, None,
    )  # fmt: skip
    return (out, last, last_cell) if cell else (out, last)


def with_reserve(args: Sequence[Any], out: Any) -> Any:
    """The results of _cudnn_rnn, with the reserve space, which kernels without data leave empty."""
    mode, hidden, projected, layers, train, both = args[6], args[7], args[8], args[9], args[12], args[13]
    rows = out[0].numel() // out[0].shape[-1]
    width = _KEPT[mode] * hidden + (projected or hidden)
    kept = rows * (2 if both else 1) * (layers * width - (projected or hidden)) if train else 0
    return (*out[:3], out[0].new_empty(kept), out[4])


def backward(args: Sequence[Any]) -> Any:
    """The results of _cudnn_rnn_backward: the gradients of the weights share memory."""
    x, weights, state, cell, output_mask = args[0], args[1], args[4], args[5], args[-1]
    made = [torch.empty_like(one) if one is not None else None for one in (x, state, cell)]
    if not output_mask[3]:
        return (*made, [None] * len(weights))
    flat = x.new_empty(sum(weight.numel() for weight in weights))
    parts = flat.split([weight.numel() for weight in weights])
    return (*made, [part.view(weight.shape) for part, weight in zip(parts, weights)])


# ---- Packed sequences ------------------------------------------------------------------------------------------------


class _Packed(torch.autograd.Function):
    """The rows of all samples that a step has, step after step. One kernel in both directions, as in PyTorch."""

    @staticmethod
    def forward(context: Any, x: Any, sizes: Sequence[int]) -> Any:
        context.shape, context.sizes = x.shape, sizes
        return torch.cat([x[first:last, :size].flatten(0, 1) for first, last, size in _groups(sizes)])

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        made, offset = gradient.new_zeros(context.shape), 0
        for first, last, size in _groups(context.sizes):
            count = (last - first) * size
            made[first:last, :size].copy_(gradient[offset : offset + count].unflatten(0, (last - first, size)))
            offset += count
        return made, None


def _groups(sizes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """First step, last step and number of samples, for steps with equally many samples."""
    first = 0
    for step in range(1, len(sizes) + 1):
        if step == len(sizes) or sizes[step] != sizes[first]:
            yield first, step, sizes[first]
            first = step


def pack(x: Any, lengths: Any, batch_first: bool) -> tuple[Any, Any]:
    """torch._pack_padded_sequence, whose checks it repeats."""
    known = [int(length) for length in lengths.tolist()]
    x = x.transpose(0, 1) if batch_first else x
    if len(known) != x.shape[1]:
        raise RuntimeError(f"expected `len(lengths)` to be equal to batch_size, but got {len(known)} (batch_size={x.shape[1]})")
    if not known or known[-1] < 1:
        raise RuntimeError("length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(a < b for a, b in zip(known, known[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True")
    sizes = [sum(length > step for length in known) for step in range(known[0])]
    return _Packed.apply(x, sizes), torch.tensor(sizes)


def pad(data: Any, batch_sizes: Any, batch_first: bool, value: float, total_length: int) -> tuple[Any, Any]:
    """torch._pad_packed_sequence, with its operators."""
    sizes = [int(size) for size in batch_sizes.tolist()]
    if 0 < total_length < len(sizes):
        raise RuntimeError(f"expected total_length to be at least {len(sizes)}, the length of the longest sequence, not {total_length}")
    shape = (max(total_length, len(sizes)), sizes[0], *data.shape[1:])
    out, offset = torch.full(shape, value, dtype=data.dtype), 0
    for first, last, size in _groups(sizes):
        count = (last - first) * size
        out[first:last, :size].copy_(data.narrow(0, offset, count).unflatten(0, (last - first, size)))
        offset += count
    lengths = torch.tensor([sum(size > sample for size in sizes) for sample in range(sizes[0])])
    return (out.transpose(0, 1) if batch_first else out), lengths


def replacements() -> Iterator[tuple[Any, str, Any]]:
    """PyTorch's kernels of packed sequences, which the functions above replace for tensors without data."""
    for name, own in (("_pack_padded_sequence", pack), ("_pad_packed_sequence", pad)):
        yield _VF, name, own
