"""Sums over the kernels of a step, and linear models of them with coefficients of at least 0."""

from __future__ import annotations

from typing import Callable

import numpy as np

from mdot_lab.baselines import jobs
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

FP32, FP16, BANDWIDTH = (tables.gpu_columns().index(name) for name in ("fp32_tflops", "fp16_tflops", "memory_gbps"))
PHASES = len(tables.PHASES)

Describe = Callable[[Dataset, Steps, int], np.ndarray]
"""(data, steps, index of a step) → milliseconds at the GPU's peak rates, and counts, whose weighted sum is the step's time."""


def kernels(data: Dataset, chosen: Steps, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Operators, their counts, and [operators, phases] milliseconds at the peak FLOP rate and at the peak bandwidth."""
    operators, count = data.multiset(chosen.network[row])
    load = jobs.loads(data, operators, np.full(len(operators), chosen.batch[row]))
    rate = chosen.gpu[row][FP16 if chosen.is_half[row] else FP32] * 1e9
    width = 0.5 if chosen.is_half[row] else 1.0
    moved = width * (load[:, 1::3] + load[:, 2::3]) / (chosen.gpu[row][BANDWIDTH] * 1e6)
    return operators, count, load[:, 0::3] / rate, moved


def non_negative(x: np.ndarray, y: np.ndarray, rounds: int = 3000) -> np.ndarray:
    """Least squares with coefficients of at least 0, by coordinate descent."""
    scale = np.sqrt((x**2).sum(0)) + 1e-30
    gram, target = (x / scale).T @ (x / scale), (x / scale).T @ y
    w = np.zeros(x.shape[1])
    for _ in range(rounds):
        before = w.copy()
        for i in range(len(w)):
            w[i] = max(0.0, w[i] + (target[i] - gram[i] @ w) / gram[i, i]) if gram[i, i] > 0 else 0.0
        if np.abs(w - before).max() < 1e-9:
            break
    return w / scale


def predict(describe: Describe, data: Dataset, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Fits the relative error of steps, so that short steps count as much as long ones."""
    have, wanted = jobs.merged_steps(data, train), jobs.steps(data, test)
    x = np.array([describe(data, have, row) for row in range(len(have))])
    of = np.exp(have.log_ms)
    root = np.sqrt(have.weight)
    w = non_negative(x / of[:, None] * root[:, None], root)
    return np.array([describe(data, wanted, row) for row in range(len(wanted))]) @ w
