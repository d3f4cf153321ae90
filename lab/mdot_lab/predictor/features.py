"""Computes an operator's analytic quantities, and scaled features, from the predictor's inputs.

This module is part of the exported graph, as is operators.py. Operators come without BatchNormalization
(normalisation.py). Shapes: P operators, each with the batch of the row (one batch for all in the exported graph).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from mdot_lab.predictor import normalisation, tables
from mdot_lab.predictor.normalisation import Normalisation
from mdot_lab.predictor.operators import FP32_BYTES, Operators, column, log1p, odd, up_to, where_type

TILE_COLUMNS, TILE_ROWS = 32, 32
"""Minimum tile of a matmul: smaller results cost as much."""
TILE_DEPTH = 8
"""Sum elements per fp16 tensor-core instruction."""

MATMUL_TYPES = ("Conv", "ConvTranspose", "Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention", "LSTM", "GRU", "RNN")
"""Types whose FLOPs run on tensor cores if the GPU has them, and in tiles otherwise."""

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Recurrence matrices. Width and height equal the state size."""

CONVOLUTIONS = ("Conv", "ConvTranspose")

KEPT_IN_FP32 = ("LayerNormalization", "GroupNormalization", "InstanceNormalization", "RMSNormalization", "Softmax",
                "LogSoftmax", "Exp", "Log", "Pow", "Reciprocal", "Softplus", "CumSum", "ReduceProd", "ReduceL1", "ReduceL2")
"""Types computed by autocast in fp32: it widens inputs, and readers narrow the results again."""

RECURRENCES = tuple(GATES)
POOLS = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool")
NORMALISATIONS = ("BatchNormalization", "LayerNormalization", "GroupNormalization", "InstanceNormalization",
                  "RMSNormalization", "Softmax", "LogSoftmax")

ROWS = ("Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention", "LayerNormalization", "Softmax")
"""Row-wise types, independent of feature-map layout."""


class Work(NamedTuple):
    """An operator's work on a GPU at a batch, and properties that determine kernels."""

    flops: Tensor       # [P, 3], by phase, as counted
    padded: Tensor      # [P, 3], including the padding of dense tiles
    bytes: Tensor       # [P, 3], fp32
    scores: Tensor      # [P, 1], bytes of an attention's scores, fp32: written and read again without fused kernels
    norm_bytes: Tensor  # [P, 2], of the normalisation, forward and backward, fp32
    norm_per_plane: Tensor  # [P, 1], inverse channels on feature maps, 0 elsewhere; unused without normalisation
    serial: Tensor      # [P, 3], sequential steps of a recurrence
    launches: Tensor    # [P, 3], least number of launched kernels
    is_matmul: Tensor   # [P, 1], as all fields below
    is_convolution: Tensor
    is_kept_in_fp32: Tensor
    has_layout: Tensor      # works on feature maps, if the job has any (has_maps)
    has_scores: Tensor      # attention
    is_grouped: Tensor
    is_depthwise: Tensor
    is_winograd: Tensor     # suits Winograd's algorithm, outside tensor cores
    learns: Tensor      # has parameters, which the optimizer updates
    grouping: Tensor        # [P, GROUPING], inputs for the share of groups without a dedicated NHWC kernel
    lacks_kernel: Tensor    # grouped, and cuDNN lacks an NHWC kernel for its window or group width
    idle: Tensor            # [P, 3], the fallback kernel's factor on FLOPs per phase
    converted: Tensor       # [P, 3], fp32 bytes that conversions move in NHWC and half precision
    compulsory: Tensor      # [P, 3], least fp32 bytes that a separate kernel moves
    summed_rows: Tensor     # [P, 1], rows over which a LayerNormalization sums its parameters' gradients
    cast: Tensor            # [P, 1], parameters converted by autocast to half precision, and gradients back


class Shape(NamedTuple):
    """The dimensions of an operator's matmul within one group; ones for operators without a matmul. [P, 1]"""

    inputs: Tensor      # channels of the input
    outputs: Tensor     # channels of the result
    window: Tensor      # positions that one result reads


def shape(setting: Tensor) -> Shape:
    one = torch.ones_like(setting[:, :1])
    window = column(setting, "kernel_d").maximum(one) * column(setting, "kernel_h").maximum(one)
    window = window * column(setting, "kernel_w").maximum(one)
    # Only convolutions have a kernel and groups. The groups of a matmul without parameters are separate matmuls.
    convolves = column(setting, "kernel_w").minimum(one)
    groups = column(setting, "groups").maximum(one)
    split = groups * convolves + (1 - convolves)
    heads = column(setting, "head_size")        # attention: one matmul, scores times values
    inputs = (column(setting, "channels_in") / split + column(setting, "keys")).maximum(one)
    outputs = (column(setting, "channels_out") / split + heads).maximum(one)
    return Shape(inputs, outputs, window)


def grouping(setting: Tensor) -> tuple[Tensor, Tensor]:
    """[P, 1] twice, 0 or 1: a grouped convolution; a grouped convolution with one channel per group."""
    one = torch.ones_like(setting[:, :1])
    convolves = column(setting, "kernel_w").minimum(one)
    is_grouped = (column(setting, "groups") - 1).clamp(0, 1) * convolves
    single = column(setting, "channels_in") - column(setting, "groups")
    return is_grouped, is_grouped * (1 - single.clamp(0, 1))


WIDEST_DEPTHWISE = 7
NARROWEST_GROUP = 4
"""cuDNN's NHWC kernels for groups take at least so many channels of a group. dpn92 (3 channels) had .82 of its measured step
in NHWC, and dpn68 (4) 1.02."""
FALLBACK_COLUMNS, LEAST_COLUMNS = 64, 4
GROUP_WIDTHS = (4, 8, 16, 32, 64)
"""Channels per group where the share of groups without a kernel may change slope."""
GROUPING = 1 + len(GROUP_WIDTHS) + 4


def _exceeds(x: Tensor | float, most: Tensor | float) -> Tensor:
    """0 or 1, for whole numbers."""
    return (x - most).clamp(0, 1)


WINOGRAD = {"kernel_d": 1, "kernel_h": 3, "kernel_w": 3, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1}
FEW_CHANNELS = 31


def is_winograd(operators: Operators) -> Tensor:
    """[P, 1], 0 or 1: convolutions for which cuDNN has Winograd's algorithm, that is ungrouped 3x3 windows at every position.
    It is excluded for few channels, because the transformed data then outweigh the saved work."""
    is_so = where_type(operators.type, CONVOLUTIONS) * (1 - grouping(operators.setting)[0])
    for name in ("channels_in", "channels_out"):
        is_so = is_so * _exceeds(column(operators.setting, name), FEW_CHANNELS)
    for name, value in WINOGRAD.items():
        is_so = is_so * (1 - (column(operators.setting, name) - value).abs().clamp(max=1))
    return is_so


def has_maps(operators: Operators) -> Tensor:
    """[1, 1], 0 or 1: whether any convolution or pool of the job slides in two dimensions. A memory layout exists only for
    such feature maps: sequences, recurrences and one-dimensional convolutions have none."""
    slides = column(operators.setting, "kernel_h") + column(operators.setting, "stride_h") - 2
    is_window = where_type(operators.type, (*CONVOLUTIONS, *POOLS))
    return (is_window * slides.clamp(0, 1)).sum(dim=0, keepdim=True).clamp(max=1)


def group_features(setting: Tensor) -> Tensor:
    """[P, GROUPING]: a constant; the channels of a group, as hinges of the binary logarithm at GROUP_WIDTHS; the binary
    logarithm of the number of groups, and the excess over 32; and whether the channels change in number, and whether
    the window is dilated. Zeros for other operators.

    cuDNN has dedicated NHWC kernels for some grouped convolutions only. Networks with whole steps in both layouts
    show the share of the slow kernel; no single width decides alone, because the share is a smooth function of all
    of these."""
    s, groups = shape(setting), column(setting, "groups").clamp(min=1)
    is_grouped, is_depthwise = grouping(setting)
    width, count = torch.log2(s.inputs), torch.log2(groups)
    hinges = [(width - math.log2(at)).clamp(0, 1) for at in GROUP_WIDTHS]
    is_odd = (s.outputs - s.inputs).abs().clamp(max=1)
    is_dilated = _exceeds(column(setting, "dilation_w"), 1)
    found = torch.cat([torch.ones_like(width), *hinges, count.clamp(max=5) - 5, (count - 5).clamp(min=0), is_odd, is_dilated], dim=1)
    return found * is_grouped * (1 - is_depthwise)


def idle(setting: Tensor) -> Tensor:
    """[P, 3]: the factor of cuDNN's fallback kernels on the FLOPs of each phase. The gradients' kernels fill tiles with
    the channels of one group: 4 to 5 TFLOP/s for every number of groups, 2 with 32 channels and 1 with 16. In the
    forward phase, narrow groups are as fast as wide ones: for example, inference of resnext26ts, 32 channels in 2 to
    16 groups, takes three quarters of the time in NCHW."""
    s = shape(setting)
    data, weight = (up_to(torch.ceil(x / LEAST_COLUMNS) * LEAST_COLUMNS, FALLBACK_COLUMNS) for x in (s.inputs, s.outputs))
    return torch.cat([torch.ones_like(data), data, weight], dim=1)


VECTOR_CHANNELS, IMAGE_CHANNELS = 8, 4
CONVERTED_NORMALISATIONS = ("GroupNormalization", "InstanceNormalization")
PADDING_PASSES, NORMALISATION_PASSES = 6.0, 3.0
"""Passes at the full bandwidth that conversions take for each phase, fitted to the ratio of NHWC to NCHW in 600 training networks
with PyTorch 1.12, together with normalisation.CHANNELS_OF_TILE. They are 5.3 to 6.6 and 2.8 to 3.2 without a family."""


def converted(operators: Operators, load: Tensor) -> Tensor:
    """[P, 3]: fp32 bytes that conversions move in NHWC and half precision. `load`: of the samples, [P, PHASE_LOAD_COUNT]

    Tensor cores read vectors of 8 channels. cuDNN pads tensors with another number of channels, and cuts results, in kernels of
    their own: rexnet and pruned networks take 1.2 to 1.5 times as long as by their work, in NHWC alone. Images have kernels.
    PyTorch 1 normalises groups in NCHW: it converts operands, and the next convolution converts results."""
    read, written = load[:, 1:2], load[:, 2:3]
    channels_in, channels_out = (column(operators.setting, name) for name in ("channels_in", "channels_out"))
    is_padded = where_type(operators.type, CONVOLUTIONS) * (1 - grouping(operators.setting)[0])
    odd_read = odd(channels_in, VECTOR_CHANNELS) * _exceeds(channels_in, IMAGE_CHANNELS)
    padded = is_padded * (read * odd_read + written * odd(channels_out, VECTOR_CHANNELS)) * (load[:, 0::3] > 0).to(read.dtype)
    both = torch.cat([read + written, read + written, torch.zeros_like(read)], dim=1)
    return PADDING_PASSES * padded + NORMALISATION_PASSES * where_type(operators.type, CONVERTED_NORMALISATIONS) * both


def summed_rows(operators: Operators, load: Tensor) -> Tensor:
    """[P, 1]: Work.summed_rows. `load`: of the samples, [P, PHASE_LOAD_COUNT]"""
    rows = load[:, 2:3] / (FP32_BYTES * column(operators.setting, "extent").clamp(min=1))
    return where_type(operators.type, ("LayerNormalization",)) * (load[:, 6:7] > 0).to(rows.dtype) * rows


def is_kernel(types: Tensor) -> Tensor:
    """[P, 1], 0 or 1: reads and writes memory, whatever the neighbours are."""
    return where_type(types, (*MATMUL_TYPES, *POOLS, *NORMALISATIONS))


def _compulsory(operators: Operators, moved: Tensor) -> Tensor:
    """[P, 3]: bytes that a kernel must move if it keeps every element on the chip that it has read. Matmuls, pools and
    normalisations read operands and write results. Gradients of the others may be views or run in a neighbour's
    kernel, and the weights' gradients may share a read with the data's."""
    is_matmul = where_type(operators.type, MATMUL_TYPES)
    return moved * torch.cat([is_kernel(operators.type), is_matmul, torch.zeros_like(is_matmul)], dim=1)


def _rows_apart(setting: Tensor) -> Tensor:
    """[P, 1]: rows per matmul in a batched matmul, where matmuls do not share a tile; a whole tile for other operators,
    which have many rows."""
    convolves = column(setting, "kernel_w").clamp(max=1)
    is_batched = column(setting, "groups").clamp(max=1) * (1 - convolves)       # MatMul without parameters
    rows = column(setting, "size_out") * is_batched + column(setting, "queries")
    return rows + TILE_ROWS * (1 - rows.clamp(max=1))


def padding(setting: Tensor) -> Tensor:
    """[P, 3]: tile padding factor on FLOPs per phase."""
    s = shape(setting)
    columns_out, columns_in = up_to(s.outputs, TILE_COLUMNS), up_to(s.inputs, TILE_COLUMNS)
    forward = columns_out * up_to(s.inputs * s.window, TILE_DEPTH)
    data = columns_in * up_to(s.outputs * s.window, TILE_DEPTH)
    weight = columns_out * up_to(s.inputs * s.window, TILE_COLUMNS)
    return torch.cat([forward, data, weight], dim=1) * up_to(_rows_apart(setting), TILE_ROWS)


def _launches(moved: Tensor, norm: Normalisation) -> Tensor:
    """One kernel for each phase that moves data, and two if a normalisation follows."""
    return (moved > 0).to(moved.dtype) * (1 + norm.follows)


def compiled_away(work: Work) -> Tensor:
    """[P, 3]: launches that torch.compile saves, because it fuses all operators except matmuls into neighbouring reads and
    writes."""
    return work.launches * (1 - work.is_matmul)


OPTIMIZER_LAUNCHES = 2


COMPOSED_LAUNCHES = (5, 7)
"""Kernels of decomposed attention beside one fused kernel, forward and backward: matmul, scale, mask, softmax, dropout,
matmul; and gradients."""
CAST_LAUNCHES = 1
"""Kernels by which autocast converts matmul weights, and weight gradients back."""


class Launches(NamedTuple):
    """Launches per step or per phase, [P, 3] each."""

    always: Tensor          # in eager mode, with fused attention, in one precision
    compiled: Tensor        # launches among these that torch.compile saves
    composed: Tensor        # added if attention is decomposed
    cast: Tensor            # added by autocast


def launches(work: Work) -> Launches:
    nothing = torch.zeros_like(work.has_scores)
    composed = torch.cat([work.has_scores * count for count in COMPOSED_LAUNCHES] + [nothing], dim=1)
    cast = (work.cast > 0).to(work.cast.dtype) * CAST_LAUNCHES
    return Launches(work.launches, compiled_away(work), composed, torch.cat([cast, nothing, cast], dim=1))


def _steps(operators: Operators) -> Tensor:
    """[P, 3]: sequential recurrence steps per phase. Directions run concurrently, and weight gradients are matmuls over
    all steps at once. Zero if the job does not state the number of steps."""
    load = operators.load[:, :tables.PHASE_LOAD_COUNT]
    is_there = (load[:, 0::3] > 0).to(load.dtype) * torch.tensor([[1.0, 1.0, 0.0]])
    return column(operators.setting, "extent") * where_type(operators.type, GATES) * is_there


def with_states_read(operators: Operators) -> Operators:
    """Adds the reads of the recurrent matrices in every step, because the tokeniser counts them once."""
    gates = sum(count * where_type(operators.type, (name,)) for name, count in GATES.items())
    directions = column(operators.setting, "directions").clamp(min=1)
    matrices = FP32_BYTES * gates * directions * column(operators.setting, "channels_out") ** 2
    again = (_steps(operators) - 1).clamp(min=0) * matrices
    nothing, half = torch.zeros_like(again), tables.PHASE_LOAD_COUNT
    read = torch.stack([nothing, again, nothing], dim=2).flatten(1)     # in the order of LOADS, for each phase
    load = operators.load
    return operators._replace(load=torch.cat([load[:, :half], load[:, half:2 * half] + read, load[:, 2 * half:]], dim=1))


SOFTMAX_FLOPS = 5
"""FLOPs of the softmax for each score, as the tokeniser counts them. The two matmuls have 4 for each element of a head."""


def _scores(operators: Operators, flops: Tensor) -> Tensor:
    """Number of scores, from the FLOPs, because these include all windows. The attributes describe a single window."""
    head_size = column(operators.setting, "head_size")
    return head_size.clamp(max=1) * flops[:, :1] / (4 * head_size + SOFTMAX_FLOPS)


GATE_MAPS, SCALE_MAPS = 3.0, 2.0
"""Passes over the result that _reduced adds for a computed factor and for a learned one. The gradient of a factor takes
four passes in PyTorch: it reads the gradient of the result and the other factor, writes the product, and reads it
again to sum it. The tokeniser counts one of these passes for a computed factor, and two for a learned one."""
NEARLY_ONE_MAP = 1.5
"""A product that reads less than this many times the result reads one map and a broadcast factor, rather than two maps."""


def _reduced(operators: Operators, load: Tensor) -> Tensor:
    """[P, 3]: bytes in a product's gradient that the tokeniser leaves out. Where one factor is broadcast, for example a
    channel's gate or a learned scale, the gradient is a product at result size, which is written, read and summed.
    `load`: at the batch, [P, PHASE_LOAD_COUNT]"""
    read, written = load[:, 1:2], load[:, 2:3]
    is_mul = where_type(operators.type, ("Mul",))
    learns = operators.load[:, -1:].clamp(max=1)
    has_two = _exceeds(column(operators.setting, "inputs"), 1)
    is_gate = has_two * (NEARLY_ONE_MAP * written > read).to(read.dtype) * (1 - learns)
    has_data, has_weights = ((load[:, i:i + 1] > 0).to(read.dtype) for i in (4, 7))        # neither is frozen
    nothing = torch.zeros_like(read)
    return is_mul * written * torch.cat([nothing, GATE_MAPS * is_gate * has_data, SCALE_MAPS * learns * has_weights], dim=1)


def work(operators: Operators, norm: Normalisation, batch: Tensor, has_maps: Tensor, use_padding: bool = True) -> Work:
    """Work at a batch. `batch`, and `has_maps` of the job: [P, 1], or one value for all."""
    half = tables.PHASE_LOAD_COUNT
    at_batch = operators.load[:, :half] * batch + operators.load[:, half:2 * half]
    flops, moved = at_batch[:, 0::3], at_batch[:, 1::3] + at_batch[:, 2::3]
    moved = moved + _reduced(operators, at_batch)
    is_grouped, is_depthwise = grouping(operators.setting)
    learns, scores = (operators.load[:, -1:] > 0).to(moved.dtype), _scores(operators, flops)
    is_matmul = where_type(operators.type, MATMUL_TYPES)
    has_layout = has_maps * (1 - where_type(operators.type, (*ROWS, *RECURRENCES)))
    is_too_narrow = _exceeds(NARROWEST_GROUP, shape(operators.setting).inputs)
    lacks_kernel = (is_depthwise * _exceeds(column(operators.setting, "kernel_w"), WIDEST_DEPTHWISE)
                    + is_grouped * (1 - is_depthwise) * is_too_narrow)
    return Work(flops, flops * padding(operators.setting) if use_padding else flops, moved,
                FP32_BYTES * scores, normalisation.moved(norm, batch), has_layout / norm.channels.clamp(min=1),
                _steps(operators), _launches(moved, norm), is_matmul=is_matmul,
                is_convolution=where_type(operators.type, CONVOLUTIONS),
                is_kept_in_fp32=where_type(operators.type, KEPT_IN_FP32),
                has_layout=has_layout,
                has_scores=scores.clamp(max=1), is_grouped=is_grouped,
                is_depthwise=is_depthwise, is_winograd=is_winograd(operators), learns=learns, idle=idle(operators.setting),
                # convolutions with computed weights, one group per sample, are converted to NCHW first
                grouping=group_features(operators.setting) * learns, lacks_kernel=lacks_kernel * learns,
                converted=converted(operators, operators.load[:, :half] * batch) * has_layout,
                compulsory=_compulsory(operators, moved),
                summed_rows=summed_rows(operators, operators.load[:, :half] * batch), cast=operators.load[:, -1:] * is_matmul)


def configuration_features(setting: Tensor) -> Tensor:
    """[P, c]: the attributes, the sizes within a group, and how well these fit the tiles of a matmul."""
    s = shape(setting)
    inputs, outputs = torch.log(s.inputs), torch.log(s.outputs)
    fits = [torch.log(up_to(x, multiple)) for x in (s.inputs, s.outputs) for multiple in (8, 32, 128)]
    alone = [(1 - torch.log(x)).clamp(min=0) for x in (s.inputs, s.outputs)]     # one channel per group: depthwise
    # NHWC kernels process channel blocks, depthwise kernels blocks of 16. Other channel counts take a slower kernel.
    channels = (column(setting, "channels_in"), column(setting, "channels_out"))
    misfits = [odd(x, multiple) for x in channels for multiple in (2, 8, 16, 32)]
    misfits += [odd(column(setting, "groups"), multiple) for multiple in (8, 32)]
    return torch.cat([log1p(setting), inputs, outputs, *fits, *alone, *misfits], dim=1)


def load_features(load: Tensor) -> Tensor:
    """[P, l]: logarithms of FLOPs and bytes per sample and of parameters, and FLOPs per byte."""
    logs = log1p(load)
    per_sample = logs[:, :tables.PHASE_LOAD_COUNT]
    return torch.cat([logs, per_sample[:, 0::3] - per_sample[:, 2::3]], dim=1)
