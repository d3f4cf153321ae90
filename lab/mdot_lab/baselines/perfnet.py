"""PerfNet: a small network regresses the time of each operator separately, and the times are summed.

Sources: PerfNet: Platform-Aware Performance Modeling for Deep Neural Networks. RACS, 2020; Toward Accurate Platform-Aware
Performance Modeling for Deep Neural Networks (PerfNetV2). ACM SIGAPP Applied Computing Review 21(1), 2021.

Published: a network for each kind of layer reads the layer's hyperparameters and the batch size: a perceptron, and in version 2
one-dimensional convolutions over these numbers before it, with figures of the GPU among them. It was trained on measured times of
single layers, before, in and after the GPU's execution. Here: labels are times of whole steps, therefore the sum is trained. One
network serves all operators and reads the type as an embedding, because many types are rare. It also reads layout, software and the
GPU's figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import network_fitting, jobs
from mdot_lab.baselines.network_fitting import Form, Scaled, Schedule, tensor
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

TYPE_WIDTH = 12


@dataclass(frozen=True)
class Settings:
    width: int = 96
    schedule: Schedule = Schedule(epochs=40)
    channels: int = 0
    """Channels of version 2's convolutions; 0: version 1, without."""


SETTINGS = Settings()
KERNEL = 3
TRIED = tuple(Settings(width, Schedule(epochs=epochs)) for width in (48, 96) for epochs in (20, 40))


class Pairs(NamedTuple):
    """P (operator, step) pairs of R steps."""

    type: Tensor            # [P]
    description: Tensor     # [P, f]
    count: Tensor           # [P]
    row: Tensor             # [P] step
    configuration: Tensor   # [R, c]


def pairs(data: Dataset, types: np.ndarray, chosen: Steps) -> Pairs:
    multisets = {network: data.multiset(network) for network in np.unique(chosen.network)}
    operators, counts = zip(*(multisets[network] for network in chosen.network))
    row = np.repeat(np.arange(len(chosen)), [len(o) for o in operators])
    operator = np.concatenate(operators)
    return Pairs(torch.tensor(types[data.type[operator]]), tensor(jobs.describe(data, operator, chosen.batch[row])),
                 tensor(np.concatenate(counts)), torch.tensor(row), tensor(chosen.configuration))


class PerfNet(nn.Module):
    def __init__(self, scaled: Scaled, scaled_configuration: Scaled, settings: Settings) -> None:
        super().__init__()
        self.scaled, self.scaled_configuration = scaled, scaled_configuration
        self.of_type = nn.Embedding(len(tables.operator_types()), TYPE_WIDTH)
        inputs = TYPE_WIDTH + len(scaled.middle) + len(scaled_configuration.middle)
        width, channels = settings.width, settings.channels
        self.convolutions = nn.Sequential(
            nn.Conv1d(1, channels, KERNEL), nn.GELU(), nn.Conv1d(channels, channels, KERNEL, stride=2), nn.GELU(), nn.Flatten(),
        ) if channels > 0 else None
        if channels > 0:
            inputs = channels * ((inputs - KERNEL + 1 - KERNEL) // 2 + 1)
        self.log_ms = network_fitting.perceptron(inputs, width, width, 1)

    def forward(self, part: Pairs) -> Tensor:
        configuration = self.scaled_configuration(part.configuration)
        x = torch.cat([self.of_type(part.type), self.scaled(part.description), configuration[part.row]], dim=1)
        if self.convolutions is not None:
            x = self.convolutions(x[:, None])
        each_ms = part.count * torch.exp(self.log_ms(x)[:, 0].clamp(max=15))
        return torch.log(network_fitting.sum_by(each_ms, part.row, len(configuration)))


def form(data: Dataset, train: np.ndarray, settings: Settings = SETTINGS) -> Form:
    types = jobs.known_types(data, data.label_network[train])

    def make_model(training_steps: Steps) -> nn.Module:
        seen = pairs(data, types, training_steps)
        return PerfNet(Scaled.of(seen.description.numpy()), Scaled.of(training_steps.configuration), settings)

    return Form(settings.schedule, lambda chosen: pairs(data, types, chosen), make_model)


class Version2:
    """PerfNetV2 as a baseline of its own."""

    SETTINGS = Settings(channels=8)
    TRIED = (Settings(channels=4), Settings(channels=8), Settings(channels=16))

    form = staticmethod(form)
