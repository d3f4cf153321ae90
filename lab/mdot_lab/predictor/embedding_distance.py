"""Measures how far a job is from the training networks, weighted by time. Near jobs may have narrow intervals.

A job's profile is the time-weighted mean over operator encodings. The distance is taken to the nearest of several
centres, along the directions in which network profiles vary the most, in units of the variation.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.predictor import batches, training
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.model import Predictor

DIRECTIONS = 16
CENTRES = 128
UNREACHED = 1e6
FARTHEST = 4.0
"""Nineteen in twenty held-out family labels lie within this distance. Errors beyond it have not been measured."""


def _parts(labels: np.ndarray) -> Iterator[np.ndarray]:
    return (part for part in np.array_split(labels, len(labels) // 400 + 1) if len(part))


def mean_encodings(model: Predictor, data: Dataset, labels: np.ndarray) -> Tensor:
    """[labels, width]"""
    found = []
    with torch.no_grad():
        for part in _parts(labels):
            batch = batches.make(data, part)
            encoded = model.encode(batch.operators)[batch.of_pair] * training.time_fractions(model, batch)
            found.append(encoded.new_zeros(len(part), encoded.shape[1]).index_add(0, batch.row, encoded))
    return torch.cat(found)


def networks(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Networks with whole steps or inference, and one label each."""
    labels = np.flatnonzero(~data.is_alone)
    network, first = np.unique(data.label_network[labels], return_index=True)
    return network, labels[first]


class EmbeddingDistance(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("middle", torch.zeros(width))
        self.register_buffer("directions", torch.zeros(width, DIRECTIONS))
        self.register_buffer("centres", torch.zeros(CENTRES, DIRECTIONS))
        self.register_buffer("is_stepped", torch.zeros(CENTRES, 1))

    def fit(self, encodings: Tensor, has_steps: Tensor) -> None:
        """`encodings`: mean_encodings for networks; `has_steps`: whether whole steps were measured (on TrainingRange's
        GPUs)."""
        self.middle.copy_(encodings.mean(dim=0))
        _, _, directions = torch.linalg.svd(encodings - self.middle, full_matrices=False)
        count = min(DIRECTIONS, len(directions))
        self.directions.zero_()
        self.directions[:, :count] = directions[:count].T
        self.directions /= self.profiles(encodings).square().mean().sqrt()
        self.fit_centres(encodings, has_steps)

    def fit_centres(self, encodings: Tensor, has_steps: Tensor) -> None:
        from scipy.cluster.vq import kmeans2

        profiles = self.profiles(encodings).double().numpy()
        count = min(CENTRES, len(np.unique(profiles, axis=0)))
        centres = torch.tensor(kmeans2(profiles, count, minit="++", seed=0)[0], dtype=torch.float32)
        self.centres.copy_(centres[torch.arange(CENTRES) % count])
        of_steps = self.profiles(encodings[has_steps])
        self.is_stepped.zero_()
        if len(of_steps):
            nearest = torch.cdist(of_steps, centres).argmin(dim=1)
            self.is_stepped[torch.isin(torch.arange(CENTRES) % count, nearest)] = 1

    def profiles(self, encoded: Tensor) -> Tensor:
        """Profiles from encodings [n, width], or from means: [n, DIRECTIONS]"""
        return (encoded - self.middle) @ self.directions

    def distances(self, profile: Tensor) -> tuple[Tensor, Tensor]:
        """[C] for profiles [DIRECTIONS, C]: the distance to the nearest centre, and the additional distance to the nearest
        network with measured steps, at most 1. |p - c|² = |p|² - 2 (c · p - |c|² / 2)"""
        nearness = self.centres @ profile - 0.5 * (self.centres**2).sum(dim=1, keepdim=True)
        size = (profile**2).sum(dim=0)

        def to(nearest: Tensor) -> Tensor:
            return torch.sqrt((size - 2 * nearest).clamp(min=0))

        distance = to(nearness.amax(dim=0))
        of_steps = to((nearness - UNREACHED * (1 - self.is_stepped)).amax(dim=0))
        return distance.clamp(max=FARTHEST), (of_steps - distance).clamp(0, 1)
