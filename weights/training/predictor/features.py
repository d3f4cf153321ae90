"""What a predictor reads → what its parts work on: the physics of an operator, and scaled descriptions of it.

Part of the exported graph, as operators.py. Operators come without their BatchNormalization (normalisation.py). Shapes: P
operators, each with the batch of the row that it belongs to (one batch for all in the exported graph).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from predictor import normalisation, tables
from predictor.normalisation import Normalisation
from predictor.operators import FP32_BYTES, Operators, column, log1p, odd, up_to, where_type

TILE_COLUMNS, TILE_ROWS = 32, 32
"""Of a product that is computed at a time, at least: fewer cost as much."""
TILE_DEPTH = 8
"""Elements of the sum that fp16 tensor-core instructions take at a time."""

PRODUCTS = ("Conv", "ConvTranspose", "Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention", "LSTM", "GRU", "RNN")
"""Types whose FLOPs run on tensor cores where there are some, and otherwise are tiled."""

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""Matrices of a recurrence, each as wide and as high as its state."""

CONVOLUTIONS = ("Conv", "ConvTranspose")

KEPT_IN_FP32 = ("LayerNormalization", "GroupNormalization", "InstanceNormalization", "RMSNormalization", "Softmax",
                "LogSoftmax", "Exp", "Log", "Pow", "Reciprocal", "Softplus", "CumSum", "ReduceProd", "ReduceL1", "ReduceL2")
"""Types that autocast computes in fp32: it widens what they read, and what reads them narrows it again."""

ROWS = ("Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention", "LayerNormalization", "Softmax")
"""Types that work on rows: how maps are laid out in memory does not reach them."""


class Work(NamedTuple):
    """What a GPU has to do for an operator at a batch, and what decides how it does it."""

    flops: Tensor       # [P, 3], by phase, as counted
    padded: Tensor      # [P, 3], as dense products' tiles compute them
    bytes: Tensor       # [P, 3], fp32
    scores: Tensor      # [P, 1], bytes of an attention's scores, fp32: written and read again without fused kernels
    norm_bytes: Tensor  # [P, 2], of the normalisation, forward and backward, fp32
    serial: Tensor      # [P, 3], steps of a recurrence, of which each waits for the one before
    launches: Tensor    # [P, 3], kernels that the host starts, at least
    is_product: Tensor  # [P, 1], as all below
    is_convolution: Tensor
    is_kept_in_fp32: Tensor
    has_layout: Tensor
    has_scores: Tensor      # attention
    is_grouped: Tensor
    is_depthwise: Tensor
    is_winograd: Tensor     # may be computed by Winograd's algorithm, outside tensor cores
    learns: Tensor      # parameters, which an optimizer steps over
    lacks_kernel: Tensor    # [P, 2], of its own in NHWC, before PyTorch 1.12 and with it
    idle: Tensor            # [P, 3], by how much what computes it then multiplies the FLOPs of each phase


class Shape(NamedTuple):
    """The matrix product behind an operator, within one group; ones where there is none. [P, 1]"""

    inputs: Tensor      # channels of the data
    outputs: Tensor     # channels of the result
    window: Tensor      # positions that a result reads


def shape(setting: Tensor) -> Shape:
    one = torch.ones_like(setting[:, :1])
    window = column(setting, "kernel_d").maximum(one) * column(setting, "kernel_h").maximum(one)
    window = window * column(setting, "kernel_w").maximum(one)
    # Only convolutions have a kernel and groups; groups of a product without parameters are products of their own.
    convolves = column(setting, "kernel_w").minimum(one)
    groups = column(setting, "groups").maximum(one)
    split = groups * convolves + (1 - convolves)
    heads = column(setting, "head_size")        # attention: one of its products, scores times values
    inputs = (column(setting, "channels_in") / split + column(setting, "keys")).maximum(one)
    outputs = (column(setting, "channels_out") / split + heads).maximum(one)
    return Shape(inputs, outputs, window)


def grouping(setting: Tensor) -> tuple[Tensor, Tensor]:
    """[P, 1] twice, 0 or 1: a convolution in groups; one with a single channel a group."""
    one = torch.ones_like(setting[:, :1])
    convolves = column(setting, "kernel_w").minimum(one)
    is_grouped = (column(setting, "groups") - 1).clamp(0, 1) * convolves
    single = column(setting, "channels_in") - column(setting, "groups")
    return is_grouped, is_grouped * (1 - single.clamp(0, 1))


PACKED_GROUPS, PACKED_CHANNELS, ALWAYS_PACKED = 32, 32, 8
WIDEST_DEPTHWISE = 7
FALLBACK_COLUMNS, LEAST_COLUMNS = 64, 4


def _exceeds(x: Tensor, most: Tensor | float) -> Tensor:
    """0 or 1, of whole numbers."""
    return (x - most).clamp(0, 1)


WINOGRAD = {"kernel_d": 1, "kernel_h": 3, "kernel_w": 3, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1}
FEW_CHANNELS = 31


def is_winograd(operators: Operators) -> Tensor:
    """[P, 1]: windows of 3x3 at every position, not in groups, 0 or 1: what cuDNN has Winograd's algorithm for. Of few channels what it
    transforms is as much as what it saves."""
    is_so = where_type(operators.type, CONVOLUTIONS) * (1 - grouping(operators.setting)[0])
    for name in ("channels_in", "channels_out"):
        is_so = is_so * _exceeds(column(operators.setting, name), FEW_CHANNELS)
    for name, value in WINOGRAD.items():
        is_so = is_so * (1 - (column(operators.setting, name) - value).abs().clamp(max=1))
    return is_so


def lacks_kernel(setting: Tensor) -> Tensor:
    """[P, 2]: whether cuDNN has no kernel of its own for a grouped convolution in NHWC, 0 or 1, before PyTorch 1.12 (cuDNN 8.2) and
    with it (8.3).

    From timm's steps on RTX 3090, NHWC against NCHW: 32 groups and more of few channels take no longer, up to as many channels as
    half the groups before 1.12, up to 32 with it, where up to 8 do so in fewer groups, too, but not with more channels out than in nor
    where windows are dilated. Depthwise windows of 9 and 11 run at .2 to .5 TFLOP/s, those of up to 7 have kernels."""
    s, groups = shape(setting), column(setting, "groups")
    is_grouped, is_depthwise = grouping(setting)
    is_too_wide = _exceeds(column(setting, "kernel_w"), WIDEST_DEPTHWISE)
    has_few, is_wide = _exceeds(torch.full_like(groups, PACKED_GROUPS), groups), _exceeds(s.inputs, PACKED_CHANNELS)
    before = torch.maximum(has_few, torch.maximum(is_wide, _exceeds(2 * s.inputs, groups)))
    is_odd = _exceeds(column(setting, "dilation_w"), 1).maximum((s.outputs - s.inputs).abs().clamp(max=1))
    since = torch.maximum((has_few * _exceeds(s.inputs, ALWAYS_PACKED)).maximum(is_wide), is_odd)
    return torch.cat([is_grouped * (x + is_depthwise * (is_too_wide - x)) for x in (before, since)], dim=1)


def idle(setting: Tensor) -> Tensor:
    """[P, 3]: by how much what cuDNN falls back to multiplies the FLOPs of each phase. Gradients' kernels fill tiles with the channels of
    one group: 4 to 5 TFLOP/s whatever the number of groups, 2 with 32 channels and 1 with 16. Forward narrow groups are no slower than
    wide ones: inference of resnext26ts, 32 channels in 2 to 16 groups, takes three quarters of its time in NCHW."""
    s = shape(setting)
    data, weight = (up_to(torch.ceil(x / LEAST_COLUMNS) * LEAST_COLUMNS, FALLBACK_COLUMNS) for x in (s.inputs, s.outputs))
    return torch.cat([torch.ones_like(data), data, weight], dim=1)


def _rows_apart(setting: Tensor) -> Tensor:
    """[P, 1]: rows of one product of many, which share no tile; a whole tile for others, whose rows are many."""
    convolves = column(setting, "kernel_w").clamp(max=1)
    is_batched = column(setting, "groups").clamp(max=1) * (1 - convolves)       # MatMul without parameters
    rows = column(setting, "size_out") * is_batched + column(setting, "queries")
    return rows + TILE_ROWS * (1 - rows.clamp(max=1))


def padding(setting: Tensor) -> Tensor:
    """[P, 3]: by how much tiles multiply the FLOPs of each phase."""
    s = shape(setting)
    columns_out, columns_in = up_to(s.outputs, TILE_COLUMNS), up_to(s.inputs, TILE_COLUMNS)
    forward = columns_out * up_to(s.inputs * s.window, TILE_DEPTH)
    data = columns_in * up_to(s.outputs * s.window, TILE_DEPTH)
    weight = columns_out * up_to(s.inputs * s.window, TILE_COLUMNS)
    return torch.cat([forward, data, weight], dim=1) * up_to(_rows_apart(setting), TILE_ROWS)


def _launches(moved: Tensor, norm: Normalisation) -> Tensor:
    """A kernel for each phase that moves something, two with a normalisation."""
    return (moved > 0).to(moved.dtype) * (1 + norm.follows)


def compiled_away(work: Work) -> Tensor:
    """[P, 3]: launches that torch.compile saves, which computes what is no product within what is read or written besides."""
    return work.launches * (1 - work.is_product)


OPTIMIZER_LAUNCHES = 2


def step_launches(work: Work) -> Tensor:
    """[P, 1]: of a whole step, the optimizer's where there are parameters."""
    return work.launches.sum(dim=1, keepdim=True) + OPTIMIZER_LAUNCHES * work.learns


def _steps(operators: Operators) -> Tensor:
    """[P, 3]: of a recurrence, those that wait for the one before, in each phase that it has. Directions run side by side, weight
    gradients are products over all steps at once. A job that does not say its steps has none."""
    load = operators.load[:, :tables.PHASE_LOAD_COUNT]
    is_there = (load[:, 0::3] > 0).to(load.dtype) * torch.tensor([[1.0, 1.0, 0.0]])
    return column(operators.setting, "extent") * where_type(operators.type, GATES) * is_there


def with_states_read(operators: Operators) -> Operators:
    """A recurrence reads the matrices of its state in every step, which the tokeniser counts once."""
    gates = sum(count * where_type(operators.type, (name,)) for name, count in GATES.items())
    directions = column(operators.setting, "directions").clamp(min=1)
    matrices = FP32_BYTES * gates * directions * column(operators.setting, "channels_out") ** 2
    again = (_steps(operators) - 1).clamp(min=0) * matrices
    nothing, half = torch.zeros_like(again), tables.PHASE_LOAD_COUNT
    read = torch.stack([nothing, again, nothing], dim=2).flatten(1)     # as LOADS, of each phase
    load = operators.load
    return operators._replace(load=torch.cat([load[:, :half], load[:, half:2 * half] + read, load[:, 2 * half:]], dim=1))


SOFTMAX_FLOPS = 5
"""Of a score, as the tokeniser counts them; its two products have 4 for each element of a head."""


def _scores(operators: Operators, flops: Tensor) -> Tensor:
    """From the FLOPs, which know of windows; the settings have those of one."""
    head_size = column(operators.setting, "head_size")
    return head_size.clamp(max=1) * flops[:, :1] / (4 * head_size + SOFTMAX_FLOPS)


def work(operators: Operators, norm: Normalisation, batch: Tensor, use_padding: bool = True) -> Work:
    """`batch`: [P, 1], or one for all."""
    half = tables.PHASE_LOAD_COUNT
    at_batch = operators.load[:, :half] * batch + operators.load[:, half:2 * half]
    flops, moved = at_batch[:, 0::3], at_batch[:, 1::3] + at_batch[:, 2::3]
    is_grouped, is_depthwise = grouping(operators.setting)
    learns, scores = (operators.load[:, -1:] > 0).to(moved.dtype), _scores(operators, flops)
    return Work(flops, flops * padding(operators.setting) if use_padding else flops, moved,
                FP32_BYTES * scores, normalisation.moved(norm, batch),
                _steps(operators), _launches(moved, norm), is_product=where_type(operators.type, PRODUCTS),
                is_convolution=where_type(operators.type, CONVOLUTIONS), is_kept_in_fp32=where_type(operators.type, KEPT_IN_FP32),
                has_layout=1 - where_type(operators.type, ROWS), has_scores=scores.clamp(max=1), is_grouped=is_grouped, is_depthwise=is_depthwise,
                is_winograd=is_winograd(operators), learns=learns, idle=idle(operators.setting),
                # computed weights, a group for each sample, are laid out as NCHW before
                lacks_kernel=lacks_kernel(operators.setting) * learns)


def configuration_features(setting: Tensor) -> Tensor:
    """[P, c]: the settings, and what products care about: sizes within a group and how they fit tiles."""
    s = shape(setting)
    inputs, outputs = torch.log(s.inputs), torch.log(s.outputs)
    fits = [torch.log(up_to(x, multiple)) for x in (s.inputs, s.outputs) for multiple in (8, 32, 128)]
    alone = [(1 - torch.log(x)).clamp(min=0) for x in (s.inputs, s.outputs)]     # one channel a group: depthwise
    # NHWC kernels take so many channels at a time, depthwise ones 16: what does not divide goes another, slower way
    channels = (column(setting, "channels_in"), column(setting, "channels_out"))
    misfits = [odd(x, multiple) for x in channels for multiple in (2, 8, 16, 32)]
    misfits += [odd(column(setting, "groups"), multiple) for multiple in (8, 32)]
    return torch.cat([log1p(setting), inputs, outputs, *fits, *alone, *misfits], dim=1)


def load_features(load: Tensor) -> Tensor:
    """[P, l]: logarithms of the loads of one sample, of parameters, and FLOPs a byte."""
    logs = log1p(load)
    per_sample = logs[:, :tables.PHASE_LOAD_COUNT]
    return torch.cat([logs, per_sample[:, 0::3] - per_sample[:, 2::3]], dim=1)


BATCH_FEATURES = 3 * len(tables.PHASES)


def batch_features(w: Work) -> Tensor:
    """[P, b]: how much work there is at this batch, which decides how well it fills a GPU."""
    return torch.cat([log1p(w.flops), log1p(w.bytes), log1p(w.padded) - log1p(w.bytes)], dim=1)
