"""Horus: a cluster manager that predicts a job's GPU utilisation from computation graph features.

Source: Horus: Interference-Aware and Prediction-Based Scheduling in Deep Learning Systems. IEEE Transactions on
Parallel and Distributed Systems 33(1), 2022.

Published: the graph is summarised in a few numbers (FLOPs, parameters, memory read and written, batch size,
operators of each kind), and a tree ensemble regresses the utilisation of the GPU. Here: the same kind of numbers,
boosted trees, and the step's time instead of the utilisation, which the labels lack. The exact list of features was
unavailable. The FLOPs and bytes of the backward pass, which the graph of a training step contains, are added.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import boosting, jobs
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

SETTINGS = boosting.Settings(7, 400)
TRIED = boosting.TRIED

KINDS = (("Conv", "ConvTranspose"), ("Linear", "MatMul", "Einsum", "Attention"),
         ("MaxPool", "AveragePool", "GlobalAveragePool"),
         ("Relu", "Sigmoid", "Gelu", "HardSwish", "HardSigmoid", "Tanh"), ("LayerNormalization", "GroupNormalization"),
         ("Add", "Mul", "Sub", "Div"), ("Softmax",), ("Concat", "Split", "Slice", "Reshape", "Transpose"))
"""Separately counted operator kinds."""


def _sums(data: Dataset, network: int) -> np.ndarray:
    operators, count = data.multiset(network)
    numbers = np.array([tables.operator_type_row(name) for kind in KINDS for name in kind])
    kind_of = np.repeat(np.arange(len(KINDS)), [len(kind) for kind in KINDS])
    kinds = np.zeros(len(KINDS))
    for number, kind in zip(numbers, kind_of, strict=True):
        if number != tables.UNKNOWN_TYPE:
            kinds[kind] += count[data.type[operators] == number].sum()
    return np.concatenate([[count.sum()], kinds, count @ data.load[operators]])


def describe(data: Dataset, labels: np.ndarray) -> np.ndarray:
    networks, of_label = np.unique(data.label_network[labels], return_inverse=True)
    sums = np.array([_sums(data, network) for network in networks])[of_label.reshape(-1)]
    counts, load = sums[:, :-tables.LOAD_COUNT], sums[:, -tables.LOAD_COUNT:]
    half = tables.PHASE_LOAD_COUNT
    at_batch = load[:, :half] * data.batch[labels, None] + load[:, half:2 * half]
    return np.column_stack([jobs.configurations(data, labels), np.log1p(counts), np.log1p(at_batch), np.log1p(load[:, -1])])


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: boosting.Settings = SETTINGS) -> np.ndarray:
    return boosting.predict(describe, data, train, test, settings)
