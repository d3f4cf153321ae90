"""SEER: a network's time from the kernels that it starts.

Source: SEER: A Time Prediction Model for CNNs from GPU Kernel's View. PACT 2021.

Published: convolutional networks are seen as the GPU kernels that they start, and a kernel's time is predicted from its kind,
its instructions and its traffic. The paper's text was not at hand, and no label has the time of a kernel. Here: every operator
is taken for the kernels of its phases, each of a kind (dense, grouped and depthwise convolution, matrix product, normalisation,
copies and element-wise work); what a kind's kernels do is summed up (how many, their FLOPs and bytes, the largest), and boosted
trees regress the step's time.
"""

from __future__ import annotations

import numpy as np

from mdot_training.baselines import boosting, jobs
from mdot_training.predictor import tables
from mdot_training.predictor.dataset import Dataset

SETTINGS = boosting.Settings(7, 400)
TRIED = boosting.TRIED

MATMUL_TYPES = ("Linear", "MatMul", "Einsum", "Attention", "MultiHeadAttention", "LSTM", "GRU", "RNN")
NORMALISATIONS = ("LayerNormalization", "GroupNormalization", "InstanceNormalization", "BatchNormalization", "Softmax")
REDUCTIONS = ("MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum")
DENSE, GROUPED, DEPTHWISE, MATMUL, NORMALISATION, REDUCTION, ELEMENTWISE = KINDS = range(7)


def kinds(data: Dataset) -> np.ndarray:
    """[operators] of what kind its kernels are."""
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
    """Of one kind and phase: how many, their FLOPs and bytes, the bytes of the largest."""
    moved = load[:, 1] + load[:, 2]
    return [count[moved > 0].sum(), count @ load[:, 0], count @ moved, moved.max(initial=0)]


def _job(data: Dataset, kind: np.ndarray, network: int, batch: float) -> np.ndarray:
    operators, count = data.bag(network)
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
