"""NeuSight: kernels are divided into tiles, tiles run in waves, and small networks predict how well a wave uses the
GPU.

Source: Forecasting GPU Performance for Deep Learning Training and Inference. ASPLOS, 2025. Code: repository
sitar-lab/NeuSight.

Published: a kernel's result is divided into tiles, which the multiprocessors process wave by wave. The time of a
wave is the FLOPs over the roofline's rate at the tile's arithmetic intensity, times a utilisation a - b / waves. A
perceptron for each kind of operator predicts a and b, here limited to a. It reads the tile's FLOPs and bytes
relative to a multiprocessor's FLOPs, bandwidth, memory and L2 cache. It is trained on measured operators of several
GPUs, and tiles are looked up among profiled ones.

Here: labels are times of whole steps, therefore the sum is trained. A convolution is the matmul that it is computed
as, and every phase of the backward pass is a separate matmul. Tiles are not profiled: the largest of TILES that the
matmul fills is used. Operators without a matmul are tiles of elements. The perceptrons also read layout and
software, and a step includes the launch of each kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import network_fitting, jobs
from mdot_lab.baselines.network_fitting import Form, Scaled, Schedule, tensor
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

TILES = (128, 64, 32, 16)
"""Rows and columns of a matmul's tile."""
LEAST_DEPTH = 512
"""Minimum part of the sum per tile if the sum is split because there are fewer tiles than multiprocessors."""
ELEMENTS = 4096
"""Elements read and written by a tile in an operator without a matmul: a block with 1024 threads processes four each."""

DENSE, GROUPED, LINEAR, BATCHED, NORMALISATION, ELEMENTWISE = KINDS = range(6)
NORMALISATIONS = ("LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "Softmax")
TILE_FEATURES = 4


@dataclass(frozen=True)
class Settings:
    width: int = 32
    schedule: Schedule = Schedule(epochs=15, rate=6e-3)


SETTINGS = Settings()
TRIED = tuple(Settings(width, Schedule(epochs=15, rate=rate)) for width in (16, 32) for rate in (3e-3, 6e-3))


def kinds(data: Dataset) -> np.ndarray:
    """[operators] the perceptron that predicts it."""
    name = np.array(tables.operator_types())[data.type]
    groups = _setting(data, "groups")
    kind = np.full(len(name), ELEMENTWISE)
    kind[np.isin(name, NORMALISATIONS)] = NORMALISATION
    kind[np.isin(name, ("MatMul", "Einsum", "Attention", "MultiHeadAttention"))] = BATCHED
    kind[name == "Linear"] = LINEAR
    kind[np.isin(name, ("Conv", "ConvTranspose"))] = DENSE
    kind[np.isin(name, ("Conv", "ConvTranspose")) & (groups > 1)] = GROUPED
    return kind


def _setting(data: Dataset, name: str) -> np.ndarray:
    return data.setting[:, tables.settings().index(name)]


class Kernels(NamedTuple):
    """K distinct (operator, batch, phase) kernels; P uses of them by R steps."""

    kind: Tensor            # [K]
    tile: Tensor            # [K, TILE_FEATURES] logarithms, relative to a multiprocessor
    waves: Tensor           # [K]
    roofline_ms: Tensor     # [K] of all waves, at full utilisation
    of_use: Tensor          # [P] kernel
    count: Tensor           # [P]
    row: Tensor             # [P] step
    configuration: Tensor   # [R, c]


def _tile(rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest tile sides that each matmul fills, each side independently."""
    def side(extent: np.ndarray) -> np.ndarray:
        fits = [extent >= tile for tile in TILES]
        return np.select(fits, TILES, TILES[-1])

    return side(rows), side(columns)


def _matmuls(data: Dataset, kind: np.ndarray, operator: np.ndarray, batch: np.ndarray, flops: np.ndarray,
              phase: int) -> tuple[np.ndarray, ...]:
    """Rows, columns, sum extent and number of matmuls in an operator's phase."""
    of = {name: np.maximum(_setting(data, name)[operator], 1) for name in tables.settings()}
    window = of["kernel_d"] * of["kernel_h"] * of["kernel_w"]
    inputs, outputs = of["channels_in"] / of["groups"], of["channels_out"] / of["groups"]
    rows, number = of["size_out"] * batch, of["groups"]
    attends = of["head_size"] > 1
    is_batched = kind[operator] == BATCHED
    rows = np.where(is_batched, np.where(attends, of["queries"], of["size_out"]), rows)
    inputs, outputs = np.where(attends, of["head_size"], inputs), np.where(attends, of["keys"], outputs)
    number = np.where(is_batched, np.maximum(flops / (2 * rows * inputs * outputs), 1), number)
    sizes = ((rows, outputs, inputs * window), (rows, inputs, outputs * window), (inputs * window, outputs, rows))
    return (*np.maximum(sizes[phase], 1), number)


def kernels(data: Dataset, kind: np.ndarray, chosen: Steps) -> Kernels:
    gpus, of_step = np.unique(np.column_stack([chosen.gpu, chosen.is_half]), axis=0, return_inverse=True)
    parts = []
    for number, gpu in enumerate(gpus):
        rows = np.flatnonzero(of_step.reshape(-1) == number)
        parts.append(_on_gpu(data, kind, chosen.take(rows), rows, Gpu(*gpu)))
    start = np.cumsum([0] + [len(part.kind) for part in parts])
    joined = Kernels(*(torch.cat(each) for each in zip(*parts)))
    of_use = torch.cat([part.of_use + int(at) for part, at in zip(parts, start)])
    return joined._replace(of_use=of_use, configuration=tensor(chosen.configuration))


class Gpu(NamedTuple):
    """tables.MODEL_SPECS, and whether matmuls are computed in half precision."""

    compute_capability: float
    sm_count: float
    boost_mhz: float
    memory_gib: float
    memory_gbps: float
    l2_mib: float
    fp32_tflops: float
    tf32_tflops: float
    fp16_tflops: float
    is_half: float

    @property
    def matmul_tflops(self) -> float:
        return self.fp16_tflops if self.is_half else self.fp32_tflops

    @property
    def element_bytes(self) -> float:
        return 2.0 if self.is_half else 4.0


def _on_gpu(data: Dataset, kind: np.ndarray, chosen: Steps, rows: np.ndarray, gpu: Gpu) -> Kernels:
    """`rows`: the indices of the steps."""
    networks, batches, of_step = jobs.graphs(chosen)
    multisets = [data.multiset(network) for network in networks]
    operator = np.concatenate([operators for operators, _ in multisets])
    batch = np.repeat(batches, [len(operators) for operators, _ in multisets])
    pairs, of_multiset = np.unique(np.column_stack([operator, batch]), axis=0, return_inverse=True)
    made = [_of_phase(data, kind, pairs[:, 0].astype(np.int64), pairs[:, 1], phase, gpu) for phase in range(len(tables.PHASES))]
    features = np.concatenate([x for x, _ in made])
    start = np.cumsum([0] + [len(operators) for operators, _ in multisets])
    of_use, count, row = _uses(multisets, of_multiset.reshape(-1), start, of_step, [pair for _, pair in made], len(pairs))
    return Kernels(kind=torch.tensor(features[:, 0].astype(np.int64)), tile=tensor(features[:, 1:1 + TILE_FEATURES]),
                   waves=tensor(features[:, -2]), roofline_ms=tensor(features[:, -1]), of_use=torch.tensor(of_use),
                   count=tensor(count), row=torch.tensor(rows[row]), configuration=tensor(chosen.configuration))


def _of_phase(data: Dataset, kind: np.ndarray, operator: np.ndarray, batch: np.ndarray, phase: int,
              gpu: Gpu) -> tuple[np.ndarray, np.ndarray]:
    """[K, features] for the kernels of pairs with work in this phase, and the pairs [K]."""
    load = jobs.loads(data, operator, batch)[:, 3 * phase:3 * phase + 3]
    flops, moved = load[:, 0], (load[:, 1] + load[:, 2]) * gpu.element_bytes / 4
    works = moved > 0
    operator, batch, flops, moved = operator[works], batch[works], flops[works], moved[works]
    is_sized = (_setting(data, "channels_in") > 0) | (_setting(data, "head_size") > 0)
    is_matmul = (kind[operator] < NORMALISATION) & is_sized[operator]
    rows, columns, depth, number = _matmuls(data, kind, operator, batch, flops, phase)
    high, wide = _tile(rows, columns)
    tiles = number * np.ceil(rows / high) * np.ceil(columns / wide)
    tiles *= np.clip(np.floor(gpu.sm_count / tiles), 1, np.maximum(depth / LEAST_DEPTH, 1))
    tiles = np.maximum(np.where(is_matmul, tiles, np.ceil(moved / (2 * gpu.element_bytes) / ELEMENTS)), 1)
    filled = np.where(is_matmul, np.ceil(rows / high) * high / rows * np.ceil(columns / wide) * wide / columns, 1)
    waves = np.ceil(tiles / gpu.sm_count)
    tile_flops, tile_bytes = (flops * filled + 1) / tiles, moved / tiles
    rate = np.where(is_matmul, gpu.matmul_tflops, gpu.fp32_tflops) * 1e9
    bandwidth = gpu.memory_gbps * 1e6
    allowed = np.minimum(rate, tile_flops / tile_bytes * bandwidth)
    roofline_ms = waves * gpu.sm_count * tile_flops / allowed
    of_sm = np.array([1e9, 1e6, 1e9, 1e6]) / gpu.sm_count * np.array(
        [gpu.matmul_tflops, gpu.memory_gbps, gpu.memory_gib, gpu.l2_mib])
    x = np.log2(np.column_stack([tile_flops, tile_bytes, waves * tile_bytes, waves * tile_bytes]) / of_sm)
    return np.column_stack([kind[operator], x, waves, roofline_ms]), np.flatnonzero(works)


def _uses(multisets: list[tuple[np.ndarray, np.ndarray]], of_multiset: np.ndarray, start: np.ndarray, of_step: np.ndarray,
          pairs_of_phases: list[np.ndarray], pair_count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kernel, count and step for each use. `of_multiset`: pairs of all multisets, from `start` on."""
    kernel, count, row, at = [], [], [], 0
    for pairs in pairs_of_phases:
        kernel_of_pair = np.full(pair_count, -1)
        kernel_of_pair[pairs] = np.arange(at, at + len(pairs))
        at += len(pairs)
        for step, graph in enumerate(of_step):
            here = kernel_of_pair[of_multiset[start[graph]:start[graph + 1]]]
            kernel.append(here[here >= 0])
            count.append(multisets[graph][1][here >= 0])
            row.append(np.full(int((here >= 0).sum()), step))
    return np.concatenate(kernel), np.concatenate(count), np.concatenate(row)


LEAST_USE = 0.002


class NeuSight(nn.Module):
    """The perceptrons' hidden layers read the tile. The effect of the step configurations is linear in them."""

    def __init__(self, scaled: Scaled, scaled_configuration: Scaled, width: int) -> None:
        super().__init__()
        self.scaled, self.scaled_configuration = scaled, scaled_configuration
        columns = 2 * (1 + len(scaled_configuration.middle))
        self.of_kind = nn.ModuleList(network_fitting.perceptron(TILE_FEATURES, width, width, columns) for _ in KINDS)
        self.log_start_ms = nn.Parameter(torch.tensor(-6.0))

    def forward(self, part: Kernels) -> Tensor:
        x, columns = self.scaled(part.tile), self.of_kind[0][-1].out_features
        outputs = x.new_zeros(len(x), columns)
        for kind, network in enumerate(self.of_kind):
            here = torch.nonzero(part.kind == kind)[:, 0]
            outputs = outputs.index_copy(0, here, network(x[here]))
        configuration = self.scaled_configuration(part.configuration)
        factors = torch.cat([torch.ones(len(configuration), 1), configuration], dim=1)[part.row]
        most, lost = (outputs[part.of_use].unflatten(1, (2, -1)) * factors[:, None]).sum(dim=2).sigmoid().unbind(1)
        used = (most * (1 - lost / part.waves[part.of_use])).clamp(min=LEAST_USE)
        each_ms = part.count * (part.roofline_ms[part.of_use] / used + self.log_start_ms.exp())
        return torch.log(network_fitting.sum_by(each_ms, part.row, len(configuration)))


def form(data: Dataset, train: np.ndarray, settings: Settings = SETTINGS) -> Form:
    kind = kinds(data)

    def make_model(training_steps: Steps) -> nn.Module:
        tiles = kernels(data, kind, training_steps).tile.numpy()
        return NeuSight(Scaled.of(tiles), Scaled.of(training_steps.configuration), settings.width)

    return Form(settings.schedule, lambda chosen: kernels(data, kind, chosen), make_model)
