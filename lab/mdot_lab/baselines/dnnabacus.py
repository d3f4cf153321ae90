"""DNNAbacus: trees on a matrix that counts successive operator types.

Source: DNNAbacus: Toward Accurate Computational Cost Prediction for Deep Neural Networks. arXiv 2205.12095, 2022.

Published: a "network structural matrix" counts, for every pair of operator types, the edges from one to the other. It is
concatenated with features of the job (batch size, input size, FLOPs, parameters, layers, learning rate, optimizer). An
automatic choice of shallow models, in which tree ensembles win, regresses time and memory. Here: the same matrix over the
types of the training labels, the same features if a label has them, and boosted trees, tuned as the other baselines are.
`Searched` chooses the model on inner folds instead (model_search.py). dnnabacus_memory.py regresses memory.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import boosting, horus, model_search
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

SETTINGS = boosting.Settings(5, 400)
TRIED = boosting.TRIED


def structure(data: Dataset, network: int) -> np.ndarray:
    """[types * types] number of edges from one type to another, as a row."""
    here, types = data.sequence(network), len(tables.operator_types())
    inside = slice(*np.searchsorted(data.edge_to, [here.start, here.stop]))
    kind = data.type[data.operator]
    pairs = kind[data.edge_from[inside]] * types + kind[data.edge_to[inside]]
    return np.bincount(pairs, minlength=types * types)


def _input_size(data: Dataset, labels: np.ndarray) -> np.ndarray:
    return data.network_size[data.label_network[labels]]


def _describe(data: Dataset, train: np.ndarray) -> boosting.Description:
    seen = np.zeros(len(tables.operator_types()) ** 2, dtype=bool)
    for network in np.unique(data.label_network[train]):
        seen |= structure(data, network) > 0

    def describe(data: Dataset, labels: np.ndarray) -> np.ndarray:
        networks, of_label = np.unique(data.label_network[labels], return_inverse=True)
        matrix = np.array([structure(data, network)[seen] for network in networks])[of_label.reshape(-1)]
        return np.column_stack([horus.describe(data, labels), _input_size(data, labels), matrix])

    return describe


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: boosting.Settings = SETTINGS) -> np.ndarray:
    return boosting.predict(_describe(data, train), data, train, test, settings)


class Searched:
    """The searched model as a baseline of its own. The settings have a seed alone."""

    SETTINGS = boosting.Settings(0, 0)
    TRIED = (SETTINGS,)

    @staticmethod
    def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: boosting.Settings = SETTINGS) -> np.ndarray:
        describe, log_ms = _describe(data, train), np.log(data.step_ms[train])
        _, model = model_search.search(describe(data, train), log_ms, data.label_network[train], settings.seed)
        return np.exp(model.predict(describe(data, test)))
