"""What a predictor reads → what its parts work on: the physics of an operator, and scaled descriptions of it.

Everything here is also part of the exported graph, so it uses only what ONNX and mdot have, and takes logarithms early: loads
reach 1e15. Shapes: P operators, each with the batch of the row that it belongs to (one batch for all in the exported graph).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from predictor import tables

TILE_COLUMNS = 32
"""Columns of a product that tensor cores compute at a time, at least: fewer cost as much."""
TILE_DEPTH = 8
"""Elements of the sum that fp16 tensor-core instructions take at a time."""

PRODUCTS = ("Conv", "ConvTranspose", "ConvInteger", "Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention",
            "LSTM", "GRU", "RNN")
"""Types whose FLOPs run on tensor cores where there are some."""

FP32_BYTES, HALF_BYTES = 4.0, 2.0


class Operators(NamedTuple):
    """The inputs that describe operators, one row each."""

    type: Tensor        # i64 [P]
    setting: Tensor     # [P, settings]
    load: Tensor        # [P, LOAD_COUNT]


class Work(NamedTuple):
    """What a GPU has to do for an operator at a batch, and what decides how it does it."""

    flops: Tensor       # [P, 3], by phase, as counted
    padded: Tensor      # [P, 3], as tensor cores compute them
    bytes: Tensor       # [P, 3], fp32
    is_product: Tensor  # [P, 1], as all below
    is_grouped: Tensor
    is_depthwise: Tensor
    is_normalised: Tensor
    launches: Tensor    # kernels that the host starts, at least


def column(setting: Tensor, name: str) -> Tensor:
    i = tables.settings().index(name)
    return setting[:, i:i + 1]


def _up_to(x: Tensor, multiple: int) -> Tensor:
    return torch.ceil(x / multiple) * multiple / x


class Shape(NamedTuple):
    """The matrix product behind an operator, within one group; ones where there is none. [P, 1]"""

    inputs: Tensor      # channels of the data
    outputs: Tensor     # channels of the result
    window: Tensor      # positions that a result reads
    groups: Tensor


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
    return Shape(inputs, outputs, window, groups)


def grouping(setting: Tensor) -> tuple[Tensor, Tensor]:
    """[P, 1] twice, 0 or 1: a convolution in groups; one with a single channel a group."""
    one = torch.ones_like(setting[:, :1])
    convolves = column(setting, "kernel_w").minimum(one)
    is_grouped = (column(setting, "groups") - 1).clamp(0, 1) * convolves
    single = column(setting, "channels_in") - column(setting, "groups")
    return is_grouped, is_grouped * (1 - single.clamp(0, 1))


def padding(setting: Tensor) -> Tensor:
    """[P, 3]: by how much tensor cores multiply the FLOPs of each phase."""
    s = shape(setting)
    rows_out, rows_in = _up_to(s.outputs, TILE_COLUMNS), _up_to(s.inputs, TILE_COLUMNS)
    forward = rows_out * _up_to(s.inputs * s.window, TILE_DEPTH)
    data = rows_in * _up_to(s.outputs * s.window, TILE_DEPTH)
    weight = rows_out * _up_to(s.inputs * s.window, TILE_COLUMNS)
    return torch.cat([forward, data, weight], dim=1)


def _is_product(types: Tensor) -> Tensor:
    table = torch.tensor([[float(name in PRODUCTS)] for name in tables.operator_types()])
    return table[types]


OPTIMIZER_LAUNCHES = 2


def _launches(operators: Operators, moved: Tensor, is_normalised: Tensor) -> Tensor:
    """A kernel for each phase that moves something, two with a normalisation; the optimizer's where there are parameters."""
    phases = (moved > 0).to(moved.dtype).sum(dim=1, keepdim=True)
    learns = (operators.load[:, -1:] > 0).to(moved.dtype)
    return phases * (1 + is_normalised) + OPTIMIZER_LAUNCHES * learns


def work(operators: Operators, batch: Tensor, use_padding: bool = True) -> Work:
    """`batch`: [P, 1], or one for all."""
    half = tables.PHASE_LOAD_COUNT
    at_batch = operators.load[:, :half] * batch + operators.load[:, half:2 * half]
    flops, moved = at_batch[:, 0::3], at_batch[:, 1::3] + at_batch[:, 2::3]
    is_normalised = column(operators.setting, "normalised")
    return Work(flops, flops * padding(operators.setting) if use_padding else flops, moved, _is_product(operators.type),
                *grouping(operators.setting), is_normalised, _launches(operators, moved, is_normalised))


def _log(x: Tensor) -> Tensor:
    return torch.log(x + 1)


def configuration_features(setting: Tensor) -> Tensor:
    """[P, c]: the settings, and what products care about: sizes within a group and how they fit tiles."""
    s = shape(setting)
    inputs, outputs = torch.log(s.inputs), torch.log(s.outputs)
    fits = [torch.log(_up_to(x, multiple)) for x in (s.inputs, s.outputs) for multiple in (8, 32, 128)]
    alone = [(1 - torch.log(x)).clamp(min=0) for x in (s.inputs, s.outputs)]     # one channel a group: depthwise
    # NHWC kernels take so many channels at a time, depthwise ones 16: what does not divide goes another, slower way
    channels = (column(setting, "channels_in"), column(setting, "channels_out"))
    odd = [(torch.ceil(x / multiple) * multiple - x).clamp(0, 1) for x in channels for multiple in (2, 8, 16, 32)]
    return torch.cat([_log(setting), inputs, outputs, *fits, *alone, *odd], dim=1)


def load_features(load: Tensor) -> Tensor:
    """[P, l]: logarithms of the loads of one sample, of parameters, and FLOPs a byte."""
    logs = _log(load)
    per_sample = logs[:, :tables.PHASE_LOAD_COUNT]
    return torch.cat([logs, per_sample[:, 0::3] - per_sample[:, 2::3]], dim=1)


BATCH_FEATURES = 3 * len(tables.PHASES)


def batch_features(w: Work) -> Tensor:
    """[P, b]: how much work there is at this batch, which decides how well it fills a GPU."""
    return torch.cat([_log(w.flops), _log(w.bytes), _log(w.padded) - _log(w.bytes)], dim=1)
