"""Which networks are left out together. All labels of a network stand on one side.

Many networks have several names: resnet50 has five. The random split keeps networks with equal operators together. Judged are
whole training steps on the card of timm's tables, and torchvision's networks where cards are left out.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from predictor.conditions import version
from predictor.dataset import Dataset
from predictor.families import family
from predictor.labels import BACKWARD, TRAIN

RANDOM_FOLDS = 5
RANDOM_SEED = 1

RANDOM, FAMILIES, CARDS, SOFTWARE = "random", "families", "cards", "software"
SPLITS = (RANDOM, FAMILIES, CARDS, SOFTWARE)

JUDGED_SOFTWARE = ("pt111", "pt112")
"""Whole steps by older software are trained on, and not judged: what users have is newer."""
NEW_SOFTWARE = 112


def _same_operators(data: Dataset) -> np.ndarray:
    """[n] equal numbers for networks with equal sequences: resnet50 has several names."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(data.operator[data.sequence(n)].tobytes(), len(numbers))
                     for n in range(data.network_count)])


def _by_network(data: Dataset, of_network: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    is_judged = (data.kind == TRAIN) & np.isin(data.software, JUDGED_SOFTWARE)
    for name in np.unique(of_network):
        is_out = (of_network == name)[data.label_network]
        if (is_out & is_judged).any():
            yield str(name), np.flatnonzero(~is_out), np.flatnonzero(is_out & is_judged)


def _by_card(data: Dataset) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Cards of torchvision's networks, and none of their labels is trained on: neither near-twins, of one chip."""
    is_judged = data.kind == BACKWARD
    for twins in TWINS:
        if (is_judged & np.isin(data.gpu, twins)).any():
            is_out = np.isin(data.gpu, twins)
            yield " ".join(twins), np.flatnonzero(~is_out), np.flatnonzero(is_out & is_judged)


TWINS = (("GTX-1080-Ti", "TITAN-Xp"), ("TITAN-V",), ("RTX-2080-Ti", "TITAN-RTX"), ("A100-SXM-40GB",))


def _by_software(data: Dataset) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    number = np.array([version(str(name)) for name in data.software])
    is_new = number >= NEW_SOFTWARE
    yield "from 1.12 on", np.flatnonzero(~is_new), np.flatnonzero((number == NEW_SOFTWARE) & (data.kind == TRAIN))


def folds(data: Dataset, split: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, labels to train on, labels to test on."""
    if split == RANDOM:
        groups = _same_operators(data)
        drawn = np.random.default_rng(RANDOM_SEED).integers(0, RANDOM_FOLDS, groups.max() + 1)[groups]
        return _by_network(data, np.array([f"fold {k + 1}" for k in drawn]))
    if split == FAMILIES:
        return _by_network(data, np.array([family(str(name)) for name in data.network_name]))
    return _by_card(data) if split == CARDS else _by_software(data)
