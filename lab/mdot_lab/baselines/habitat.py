"""Habitat: scales the measured time of a step from an available GPU to an unavailable one.

Source: Habitat: A Runtime-Based Computational Performance Predictor for Deep Neural Network Training. USENIX ATC,
2021.

Published: operators are timed on the available GPU. Most are scaled by waves: by the ratio of memory bandwidths to
the power g, and by those of wave sizes and clocks to the power 1 - g. Here g is the degree to which memory is the
limit, derived from the arithmetic intensity and the GPU's peak rate over the bandwidth. Convolutions, matmuls and
recurrences have different kernels on different GPUs, therefore perceptrons trained on measured operators scale them.
Here: only whole steps are measured, therefore a step's time is divided among operators in proportion to rooflines,
and all are scaled by waves. A wave is as large as the GPU's number of multiprocessors. The answer is the mean of
logarithms over all other GPUs that measured the same step. The method is without parameters and settings. It fails
for networks without a measurement on another GPU.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import jobs
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

SETTINGS = None
TRIED = ()

SM_COUNT, CLOCK, BANDWIDTH = (tables.gpu_columns().index(name) for name in ("sm_count", "boost_mhz", "memory_gbps"))
FP32, FP16 = (tables.gpu_columns().index(name) for name in ("fp32_tflops", "fp16_tflops"))


def _memory_fraction(intensity: np.ndarray, gpu: np.ndarray, is_half: bool) -> np.ndarray:
    """g of operators with these FLOPs per byte: it falls from 1 to 1/2, where memory and compute take equal time, and then to
    0."""
    balance = gpu[FP16 if is_half else FP32] * 1e3 / gpu[BANDWIDTH]
    return np.where(intensity < balance, 1 - intensity / balance / 2, balance / np.maximum(intensity, balance) / 2)


def _scaled(flops: np.ndarray, moved: np.ndarray, have: np.ndarray, wanted: np.ndarray, is_half: bool) -> float:
    """Step time on the requested GPU over that on the available one."""
    rate = have[FP16 if is_half else FP32] * 1e12
    roofline = np.maximum(flops / rate, moved / (have[BANDWIDTH] * 1e9))
    memory = _memory_fraction(flops / np.maximum(moved, 1), wanted, is_half)
    compute = have[SM_COUNT] / wanted[SM_COUNT] * have[CLOCK] / wanted[CLOCK]
    factor = (have[BANDWIDTH] / wanted[BANDWIDTH]) ** memory * compute ** (1 - memory)
    return float((roofline * factor).sum() / roofline.sum())


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: None = SETTINGS) -> np.ndarray:
    have, wanted = jobs.steps(data, train), jobs.steps(data, test)
    predicted = np.empty(len(test))
    for row in range(len(test)):
        same = np.flatnonzero((have.network == wanted.network[row]) & (have.batch == wanted.batch[row])
                              & (have.is_half == wanted.is_half[row]) & (data.kind[train] == data.kind[test[row]]))
        if len(same) == 0:
            name, batch = data.network_name[wanted.network[row]], wanted.batch[row]
            raise ValueError(f"habitat: no GPU model has measured {name} at batch {batch:.0f}")
        operators, count = data.multiset(wanted.network[row])
        load = jobs.loads(data, operators, np.full(len(operators), wanted.batch[row]))
        flops, moved = count * load[:, 0::3].sum(axis=1), count * (load[:, 1::3] + load[:, 2::3]).sum(axis=1)
        moved = moved / 2 if wanted.is_half[row] else moved
        longer = [_scaled(flops, moved, have.gpu[i], wanted.gpu[row], bool(wanted.is_half[row])) for i in same]
        predicted[row] = np.exp(np.mean(have.log_ms[same] + np.log(longer)))
    return predicted
