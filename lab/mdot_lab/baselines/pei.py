"""After Pei et al.: the iteration of a convolutional network as a linear model of its layers.

Source: Iteration Time Prediction for CNN in Multi-GPU Platform: Modeling and Analysis. IEEE Access 7, 2019. The paper's text was
unavailable.

Published: forward and backward passes of convolutions and fully connected layers are modelled apart, and the exchange of gradients
is added for several GPUs. Here: one GPU, therefore no exchange. A step is the FLOPs of convolutions, of other matmuls, and the
bytes of all other layers, forward and backward, each at the peak rate over an efficiency, the bytes of the parameters, and a
constant.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines import kernel_classes, seer
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor.dataset import Dataset

SETTINGS = None
TRIED = ()


def predict(data: Dataset, train: np.ndarray, test: np.ndarray, settings: None = SETTINGS) -> np.ndarray:
    kinds = seer.kinds(data)

    def describe(data: Dataset, chosen: Steps, row: int) -> np.ndarray:
        operators, count, compute, memory = kernel_classes.kernels(data, chosen, row)
        kind = kinds[operators]
        convolves, multiplies = np.isin(kind, (seer.DENSE, seer.GROUPED, seer.DEPTHWISE)), kind == seer.MATMUL
        others = ~(convolves | multiplies)
        parameters = 4 * count @ data.load[operators, -1] / (chosen.gpu[row][kernel_classes.BANDWIDTH] * 1e6)
        parts = [time(values[:, phases].sum(1)) for phases in (slice(0, 1), slice(1, None)) for time, values in (
            (lambda v: count[convolves] @ v[convolves], compute), (lambda v: count[multiplies] @ v[multiplies], compute),
            (lambda v: count[others] @ v[others], memory))]
        return np.array([*parts, parameters, 1.0])

    return kernel_classes.predict(describe, data, train, test)
