"""Which networks are left out together. All labels of a network stand on one side.

Many networks have several names: resnet50 has five. A random split by name therefore asks in part for networks that were
trained on; it is there because others report it. The random split keeps networks with equal operators together.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from predictor.dataset import Dataset
from predictor.families import family

RANDOM_FOLDS = 5
RANDOM_SEED = 1

RANDOM, NAMES, FAMILIES = "random", "names", "families"
SPLITS = (RANDOM, NAMES, FAMILIES)


def _same_operators(data: Dataset) -> np.ndarray:
    """[n] equal numbers for networks with equal sequences: resnet50 has several names."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(data.operator[data.sequence(n)].tobytes(), len(numbers))
                     for n in range(data.network_count)])


def _same_name(data: Dataset) -> np.ndarray:
    """[n] equal numbers for the input sizes of a network."""
    return np.unique(data.network_name, return_inverse=True)[1].reshape(-1)


def folds(data: Dataset, split: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, labels to train on, labels to test on."""
    if split in (RANDOM, NAMES):
        groups = _same_operators(data) if split == RANDOM else _same_name(data)
        drawn = np.random.default_rng(RANDOM_SEED).integers(0, RANDOM_FOLDS, groups.max() + 1)[groups]
        of_network = np.array([f"fold {k + 1}" for k in drawn])
    else:
        of_network = np.array([family(str(name)) for name in data.network_name])
    for name in np.unique(of_network):
        tested = (of_network == name)[data.label_network]
        yield str(name), np.flatnonzero(~tested), np.flatnonzero(tested)
