"""Shrinks the learned corrections of a job that is unlike the training networks.

Labels are whole steps, so that a network's corrections are right in the sum and not operator by operator. Carried to a new
family they are wrong in one direction, even for operators that training networks share: with all of them, unseen families came
out 9 % too fast, and with a quarter unbiased. Therefore a job far from every training network keeps LEAST of what each operator
adds, and a training network all of it. The strength depends on the job alone, so that a step still grows with the batch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.predictor import features, normalisation, tables
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.model import Predictor
from mdot_lab.predictor.operators import FP32_BYTES, HALF_BYTES, Operators

DIRECTIONS = 16
REACH, LEAST = 0.6, 0.3
"""Chosen on timm's families xcit, dla and mobilevit with PyTorch 1.12, each left out in turn (lab/notes/accuracy.md). Networks of
one family are .4 apart in the median, and a family is 2.2 from the nearest other one."""
BATCH, FLOPS_PER_MS, BYTES_PER_MS = 64.0, 35e9, 9e8
"""An operator weighs as much as its roofline time, in half precision, at half of the rates of an RTX 3090."""
MOST = 1e30
LEAST_SIZE = 1e-4
"""Directions in which the training networks differ by less, relative to the first one, are noise of f32."""


def weights(load: Tensor, count: Tensor) -> Tensor:
    """[P, 1], which add up to 1"""
    half = tables.PHASE_LOAD_COUNT
    moved = load[:, :half] * BATCH + load[:, half:2 * half]
    flops, read, written = (moved[:, i::3].sum(dim=1, keepdim=True) for i in range(3))
    cost = count * (flops / FLOPS_PER_MS + (read + written) * (HALF_BYTES / FP32_BYTES / BYTES_PER_MS)).clamp(max=MOST)
    return cost / cost.sum(dim=0, keepdim=True).clamp(min=1 / MOST)


class Familiarity(nn.Module):
    def __init__(self, width: int, networks: int) -> None:
        super().__init__()
        self.register_buffer("middle", torch.zeros(width))
        self.register_buffer("directions", torch.zeros(width, DIRECTIONS))
        self.register_buffer("networks", torch.zeros(DIRECTIONS, networks))     # profiles of the training networks
        self.register_buffer("half_squares", torch.zeros(1, networks))          # half of the squared lengths

    @staticmethod
    def of(means: Tensor) -> "Familiarity":
        """`means`: profile() of the training networks."""
        middle = means.mean(dim=0)
        _, sizes, directions = torch.linalg.svd(means - middle, full_matrices=False)
        count = min(DIRECTIONS, int((sizes > LEAST_SIZE * sizes[0]).sum()))
        scaled = torch.zeros(means.shape[1], DIRECTIONS)
        scaled[:, :count] = directions[:count].T / (sizes[:count] / len(means) ** 0.5).clamp(min=1e-6)
        networks = torch.unique(torch.round((means - middle) @ scaled, decimals=3), dim=0).T
        made = Familiarity(means.shape[1], networks.shape[1])
        made.middle.copy_(middle)
        made.directions.copy_(scaled)
        made.networks.copy_(networks)
        made.half_squares.copy_(0.5 * (networks**2).sum(dim=0, keepdim=True))
        return made

    def forward(self, encoded: Tensor, weight: Tensor) -> Tensor:
        """[1, 1]: the strength, LEAST to 1. |p - n|² = |p|² - 2 (n · p - |n|² / 2)"""
        place = ((encoded * weight).sum(dim=0, keepdim=True) - self.middle) @ self.directions
        nearness = (place @ self.networks - self.half_squares).amax(dim=1, keepdim=True)
        squared = ((place**2).sum(dim=1, keepdim=True) - 2 * nearness).clamp(min=0)
        return LEAST + (1 - LEAST) * torch.exp(-(squared / REACH**2).clamp(max=50))


def fit(model: Predictor, data: Dataset, networks: np.ndarray) -> Familiarity:
    """`networks`: those of the training labels."""
    means = []
    with torch.no_grad():
        for network in networks:
            operators, count = data.multiset(network)
            rows = Operators(torch.tensor(data.type[operators]), *(torch.tensor(x[operators], dtype=torch.float32)
                                                                  for x in (data.setting, data.load)))
            full = features.with_states_read(rows)
            weight = weights(full.load, torch.tensor(count, dtype=torch.float32)[:, None])
            means.append((model.encode(normalisation.split(full)[0]) * weight).sum(dim=0))
    return Familiarity.of(torch.stack(means))
