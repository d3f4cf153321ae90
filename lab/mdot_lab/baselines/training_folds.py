"""The predictor's folds in the form that baselines learn from: eager training steps on the GPU that is evaluated, or on the
other GPUs if GPU models are held out. Labels of inference and of language models are used only by the predictor, because the
publications do not state how to use the former.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from mdot_lab.predictor import splits
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.labels import BACKWARD, TRAIN

GPU = "RTX-3090"
SPLITS = (splits.RANDOM, splits.FAMILIES, splits.SOFTWARE, splits.GPUS)


def usable(data: Dataset, split: str = splits.RANDOM) -> np.ndarray:
    """[l] whether baselines learn from a label."""
    if split == splits.GPUS:
        return np.isin(data.kind, (TRAIN, BACKWARD)) & ~data.is_compiled & ~splits.is_published(data)
    return (data.kind == TRAIN) & (data.gpu == GPU) & ~data.is_compiled


def folds(data: Dataset, split: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, labels to train on, labels to test on."""
    can_train = usable(data, split)
    for name, train, test in splits.folds(data, split):
        yield name, train[can_train[train]], test


def inner(data: Dataset, train: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Folds of training labels for choosing settings: some networks held out, and some families."""
    is_given = np.isin(np.arange(len(data.step_ms)), train)
    for split in (splits.RANDOM, splits.FAMILIES):
        tested = [test for _, _, test in splits.folds(data, split)][1::4]
        networks = np.unique(data.label_network[np.concatenate(tested)])
        is_out = np.isin(data.label_network, networks)
        yield split, np.flatnonzero(is_given & ~is_out), np.flatnonzero(is_given & is_out)
