"""SEER: predicts a network's time from the kernels that it launches.

Source: SEER: A Time Prediction Model for CNNs from GPU Kernel's View. PACT 2021.

Published: convolutional networks are represented by the GPU kernels that they launch, and a kernel's time is
predicted from kind, instructions and traffic. The paper's text was unavailable, and the labels lack times of
kernels. Here: every operator stands for the kernels in all phases. Each has a kind (dense, grouped and depthwise
convolution, matmul, normalisation, copies and element-wise work). The work of a kind's kernels is summed (number,
FLOPs and bytes, the largest), and boosted trees regress the step's time.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import boosting, jobs
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

SETTINGS = boosting.Settings(7, 400)
TRIED = boosting.TRIED

MATMUL_TYPES = ("Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention", "LSTM", "GRU", "RNN")
NORMALISATIONS = ("LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "Softmax")
REDUCTIONS = ("MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum")
DENSE, GROUPED, DEPTHWISE, MATMUL, NORMALISATION, REDUCTION, ELEMENTWISE = KINDS = range(7)


def kinds(data: Dataset) -> np.ndarray:
    """[operators] kernel kind."""
    def is_type(names: tuple[str, ...]) -> np.ndarray:
        return np.isin(np.array(tables.operator_types())[data.type], names)

    setting = dict(zip(tables.settings(), data.setting.T, strict=True))
    groups = setting["groups"]
    kind = np.full(len(data.type), ELEMENTWISE)
    kind[is_type(MATMUL_TYPES)] = MATMUL
    kind[is_type(NORMALISATIONS)] = NORMALISATION
    kind[is_type(REDUCTIONS)] = REDUCTION
    convolves = is_type(("Conv", "ConvTranspose"))
    kind[convolves] = DENSE
    kind[convolves & (groups > 1)] = GROUPED
    kind[convolves & (groups > 1) & (groups == setting["channels_in"])] = DEPTHWISE
    return kind


def _kernels(load: np.ndarray, count: np.ndarray) -> list[float]:
    """For one kind and phase: number of kernels, FLOPs and bytes, and the largest one's bytes."""
    moved = load[:, 1] + load[:, 2]
    return [count[moved > 0].sum(), count @ load[:, 0], count @ moved, moved.max(initial=0)]


def _job(data: Dataset, kind: np.ndarray, network: int, batch: float) -> np.ndarray:
    operators, count = data.multiset(network)
    load = jobs.loads(data, operators, np.full(len(operators), batch))
    sums = [_kernels(load[kind[operators] == k, 3 * phase:3 * phase + 3], count[kind[operators] == k])
            for k in KINDS for phase in range(len(tables.PHASES))]
    return np.log1p(np.array(sums).reshape(-1))


def describe(data: Dataset, labels: np.ndarray) -> np.ndarray:
    kind = kinds(data)
    networks, batches, of_label = jobs.graphs(jobs.steps(data, labels))
    rows = np.array([_job(data, kind, network, batch) for network, batch in zip(networks, batches, strict=True)])
    return np.column_stack([jobs.configurations(data, labels), rows[of_label]])


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: boosting.Settings = SETTINGS) -> np.ndarray:
    return boosting.predict(describe, data, train, test, settings)
