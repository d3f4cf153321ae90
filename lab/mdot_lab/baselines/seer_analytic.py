"""SEER as the survey describes it: an analytic model with three classes of kernels.

Source: SEER: A Time Prediction Model for CNNs from GPU Kernel's View. PACT 2021. The paper's text was unavailable; the survey
states the classes.

Published: a kernel is bound by computation, by memory, or under-utilises the GPU. Here: every operator's phase is one kernel. If
it moves less than `least_ms` at the peak bandwidth, it under-utilises the GPU and takes a constant time. Otherwise the longer one
of computation and traffic at peak rates decides the class. A step is the sum, with one efficiency per class and layout, and one
launch time, fitted to steps because kernels have no times.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import kernel_classes
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor.dataset import Dataset

SETTINGS = 0.001
TRIED = (0.001, 0.005, 0.02, 0.05)
"""Milliseconds of traffic below which a kernel under-utilises the GPU."""
LAYOUT = 1      # column of jobs.configurations


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: float = SETTINGS) -> np.ndarray:
    def describe(data: Dataset, chosen: Steps, row: int) -> np.ndarray:
        _, count, compute, memory = kernel_classes.kernels(data, chosen, row)
        is_small, is_compute = (memory > 0) & (memory < settings), compute > memory
        sums = [count @ np.where(~is_small & is_compute, compute, 0).sum(1), count @ np.where(~is_small & ~is_compute, memory, 0).sum(1)]
        nhwc = chosen.configuration[row, LAYOUT]
        return np.array([*(value * (1 - nhwc) for value in sums), *(value * nhwc for value in sums), count @ is_small.sum(1), 1.0])

    return kernel_classes.predict(describe, data, train, test)
