"""Boosted trees on all countable job quantities: occurrences by operator type, and work sums by kind. Our own baseline,
which shows the value of published features to trees without the published selection.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import boosting, seer
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

SETTINGS = boosting.Settings(7, 400)
TRIED = boosting.TRIED


def _occurrences(data: Dataset, network: int) -> np.ndarray:
    operators, count = data.multiset(network)
    return np.bincount(data.type[operators], weights=count, minlength=len(tables.operator_types()))


def describe(data: Dataset, labels: np.ndarray) -> np.ndarray:
    networks, of_label = np.unique(data.label_network[labels], return_inverse=True)
    occurrences = np.array([_occurrences(data, network) for network in networks])[of_label.reshape(-1)]
    return np.column_stack([seer.describe(data, labels), occurrences])


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: boosting.Settings = SETTINGS) -> np.ndarray:
    return boosting.predict(describe, data, train, test, settings)
