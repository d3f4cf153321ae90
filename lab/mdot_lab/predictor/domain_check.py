"""Determines whether a job lies within the measured range, and the reasons if it does not. It is computed beside the
prediction."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.predictor import batches, conditions, features, tables, training
from mdot_lab.predictor.batches import Batch
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.decode_inputs import DecodedInputs
from mdot_lab.predictor.labels import INFER, TRAIN
from mdot_lab.predictor.operators import Operators, column

UNKNOWN_FRACTION = 0.05
"""Tolerated time fraction of operators whose type is absent from training."""
LOAD_MARGIN = 0.7
"""A logarithm: an operator may be twice as large as the largest of the kind in training."""
GPU_MARGIN = 0.05
GROUP_CELLS = 10
CELL_MARGIN = 0.01
"""Added to a binary logarithm before rounding down, because a power of two may come out slightly too small."""
STEP_SLOPE = 1e3
"""Factor on a distance, so that almost all distances other than 0 become 1."""
OLDEST = 107
"""PyTorch's version of the oldest measurements."""


def step_gpu_names(data: Dataset) -> list[str]:
    """GPU models with measured whole steps."""
    return sorted(set(data.gpu[data.kind == TRAIN]))


def gpu_names(data: Dataset) -> list[str]:
    """All measured GPU models, those with whole steps first."""
    steps = step_gpu_names(data)
    return steps + sorted(set(data.gpu[~data.is_alone]) - set(steps))


LIMIT_QUANTILE = 0.01
"""Fraction of measured steps with smaller batches, and less work per kernel, than the limit. The minimum is no useful
limit, because the smallest batch is the largest network's single sample."""


def log_work(batch: Batch) -> np.ndarray:
    """[R]: FLOPs per launch, as a logarithm."""
    flops = training.sums(batch, batch.work.flops.sum(dim=1, keepdim=True) * batch.count)
    return torch.log(flops / batch.launches + 1)[:, 0].numpy()


UNLABELLED_ADAM = 0.2
"""Weight of an optimizer without a label relative to other causes. Published steps with Adam have no larger errors than
others."""


class TrainingRange(nn.Module):
    """A job's distance from the measured range, for each of tables.causes(); 0 within the range."""

    def __init__(self, gpu_count: int, step_gpu_count: int) -> None:
        super().__init__()
        self.step_gpu_count = step_gpu_count
        self.register_buffer("log_batch", torch.zeros(2))
        self.register_buffer("log_least_work", torch.zeros(()))
        self.register_buffer("is_seen_type", torch.zeros(len(tables.operator_types()), 1))
        self.register_buffer("log_load_limit", torch.zeros(tables.LOAD_COUNT))
        self.register_buffer("is_seen_group", torch.zeros(GROUP_CELLS, GROUP_CELLS))
        self.register_buffer("log_gpu", torch.zeros(gpu_count, len(tables.MODEL_SPECS)))

    def fit(self, data: Dataset, seen: Tensor) -> None:
        """`seen`: type rows with their own embedding."""
        is_step = data.kind == TRAIN
        networks = np.unique(data.label_network[(data.kind != INFER) & ~data.is_alone])
        operators = np.unique(np.concatenate([data.operator[data.sequence(n)] for n in networks]))
        steps = np.flatnonzero(is_step)
        work = np.concatenate([log_work(batches.make(data, part)) for part in np.array_split(steps, len(steps) // 400 + 1)])
        self.log_least_work.copy_(torch.tensor(np.quantile(work, LIMIT_QUANTILE)))
        self.log_batch.copy_(torch.tensor(np.log([np.quantile(data.batch[is_step], LIMIT_QUANTILE),
                                                  data.batch[is_step].max()])))
        self.is_seen_type[seen] = 1.0
        self.is_seen_type[tables.UNKNOWN_TYPE] = 0.0
        networks = np.unique(data.label_network[is_step & data.is_nhwc])
        if len(networks):
            operators_in_nhwc = np.unique(np.concatenate([data.operator[data.sequence(n)] for n in networks]))
            width, count = self._group_cells(torch.tensor(data.setting[operators_in_nhwc], dtype=torch.float32))
            self.is_seen_group.copy_((width.T @ count).clamp(max=1))
        self.log_load_limit.copy_(torch.tensor(np.log1p(data.load[operators].max(axis=0))))
        self.compare_steps_with_samples()
        self.log_gpu.copy_(torch.tensor([tables.gpu(name).model_specs for name in gpu_names(data)]).log())

    def compare_steps_with_samples(self) -> None:
        """An operator's work is within the range for a sample and for each step alike. Hardly a training network computes with
        constants, and without this rule, any convolution of one would lie e^17 beyond the data."""
        halves = self.log_load_limit[:2 * tables.PHASE_LOAD_COUNT].reshape(2, -1)
        halves.copy_(halves.amax(dim=0, keepdim=True))

    @staticmethod
    def _group_cells(setting: Tensor) -> tuple[Tensor, Tensor]:
        """[P, GROUP_CELLS] twice, one-hot: log2(channels per group), and log2(groups); zeros for other operators and
        for one channel per group."""
        is_grouped, is_depthwise = features.grouping(setting)
        cells, found = torch.arange(GROUP_CELLS).to(setting.dtype), []
        for size in (features.shape(setting).inputs, column(setting, "groups").clamp(min=1)):
            cell = torch.floor(torch.log2(size) + CELL_MARGIN).clamp(max=GROUP_CELLS - 1)
            found.append((1 - (cell - cells).abs()).clamp(min=0) * is_grouped * (1 - is_depthwise))
        return found[0], found[1]

    def is_new_group(self, setting: Tensor) -> Tensor:
        """[P, 1], 0 or 1: a grouped convolution without a measured NHWC step at its width and group count, within a
        factor of two."""
        width, count = self._group_cells(setting)
        return width.sum(dim=1, keepdim=True) - (width @ self.is_seen_group * count).sum(dim=1, keepdim=True)

    def load(self, operators: Operators) -> Tensor:
        """How far operators exceed the largest ones in training. [1, 1]"""
        beyond = (torch.log(operators.load + 1) - self.log_load_limit).amax(dim=1, keepdim=True)
        return (beyond.amax(dim=0, keepdim=True) - LOAD_MARGIN).clamp(min=0)

    def _distance(self, gpu: Tensor, known: Tensor) -> Tensor:
        """[C]: distance from GPUs [columns, C] to the nearest of `known` [known, columns]."""
        apart = (torch.log(gpu) - known[:, :, None]).abs().amax(dim=1)
        return (apart.amin(dim=0) - GPU_MARGIN).clamp(min=0)

    def is_new_gpu(self, c: DecodedInputs) -> Tensor:
        """[C], 0 or 1: the GPU has no measurements, except for single operators."""
        return (self._distance(c.gpu_specs, self.log_gpu) * STEP_SLOPE).clamp(0, 1)

    def is_elsewhere(self, c: DecodedInputs) -> Tensor:
        """[C], 0 or 1: no whole step was measured on the GPU in the precision. Whole steps were measured with autocast."""
        is_other_gpu = (self._distance(c.gpu_specs, self.log_gpu[:self.step_gpu_count]) * STEP_SLOPE).clamp(0, 1)
        return torch.maximum(is_other_gpu, 1 - c.is_autocast)

    def forward(self, unknown_fraction: Tensor, load: Tensor, flops_per_launch: Tensor, c: DecodedInputs) -> Tensor:
        """`unknown_fraction`: [C]; `load`: [1], from load(); `flops_per_launch`: [1]. [causes, C]"""
        log_batch = torch.log(c.batch)
        # A small batch is outside only if the kernels also have less work than measured ones. For example, a small
        # batch of long sequences is inside.
        small = torch.minimum(self.log_batch[0] - log_batch, self.log_least_work - torch.log(flops_per_launch + 1))
        of = {"BATCH_BELOW_DATA": small.clamp(min=0),
              "BATCH_ABOVE_DATA": (log_batch - self.log_batch[1]).clamp(min=0),
              "OPERATORS_BEYOND_DATA": load,
              "GPU_NOT_MEASURED": self._distance(c.gpu_specs, self.log_gpu),
              # inference was measured with autocast, and in half precision on one GPU
              "PRECISION_NOT_MEASURED": torch.maximum(c.is_other_precision, c.is_inference * (1 - c.halves_bytes)),
              "SOFTWARE_NOT_MEASURED": (c.torch - conditions.NEWEST).clamp(0, 1) + (OLDEST - c.torch).clamp(0, 1),
              "TYPES_NOT_MEASURED": (unknown_fraction - UNKNOWN_FRACTION).clamp(min=0),
              "OPTIMIZER_OR_GPUS_NOT_MEASURED": UNLABELLED_ADAM * c.is_adam}
        return torch.stack([of[cause] * torch.ones_like(c.torch) for cause in tables.causes()])
