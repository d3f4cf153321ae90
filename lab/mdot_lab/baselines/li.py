"""After Li, Sun and Jog: linear models of kernels by kind.

Source: Path Forward Beyond Simulators: Fast and Accurate GPU Execution Time Prediction for DNN Workloads. MICRO 2023.

Published: a kernel's time is linear in the one of FLOPs, input size and output size that explains it best, with coefficients for
each kernel; for another GPU, they scale with the bandwidth. Here: kernels have no times. Each kind of operator (seer.py) has, for
each phase and layout, a coefficient for FLOPs at the peak rate, for bytes at the peak bandwidth, and for the number of kernels, and
all are fitted to steps together, with coefficients of at least 0.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import kernel_classes, seer
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor.dataset import Dataset

SETTINGS = None
TRIED = ()
LAYOUT = 1      # column of jobs.configurations


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: None = SETTINGS) -> np.ndarray:
    kinds = seer.kinds(data)

    def describe(data: Dataset, chosen: Steps, row: int) -> np.ndarray:
        operators, count, compute, memory = kernel_classes.kernels(data, chosen, row)
        sums = np.zeros((len(seer.KINDS), 3, kernel_classes.PHASES))
        for k in seer.KINDS:
            of = kinds[operators] == k
            sums[k] = count[of] @ compute[of], count[of] @ memory[of], count[of] @ (memory[of] > 0)
        times = sums[:, :2].reshape(-1)
        nhwc = chosen.configuration[row, LAYOUT]
        return np.concatenate([times * (1 - nhwc), times * nhwc, sums[:, 2].reshape(-1), [1.0]])

    return kernel_classes.predict(describe, data, train, test)
