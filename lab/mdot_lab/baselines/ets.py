"""ETS: a recurrent network reads a sliding window over the operators in execution order.

Source: ETS: Deep Learning Training Iteration Time Prediction based on Execution Trace Sliding Window; code in the
repository iscas-system/ETS. Venue and year were unavailable.

Published: the trace of a step is the sequence of operators, forward, backward and update, each with kind,
hyperparameters, FLOPs, bytes and batch size. A window of ten slides over it, five at a time. An LSTM reads the
window and predicts, for every operator in it, the time and the gap after it. An operator in several windows gets the
mean, and all times are summed. It is trained on traces that a profiler measured. Here: the sequence is that of the
forward graph, with the FLOPs and bytes of the backward pass beside each operator. Labels are times of whole steps,
therefore the sum is trained. Layout and software are inputs after the LSTM. Equal windows are read once, which
affects only the cost.
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

WINDOW, STRIDE = 10, 5
NO_OPERATOR = -1
"""Index after the last operator."""
TYPE_WIDTH = 12


@dataclass(frozen=True)
class Settings:
    width: int = 32
    schedule: Schedule = Schedule(epochs=20)


SETTINGS = Settings()
TRIED = tuple(Settings(width, Schedule(epochs=20, rate=rate)) for width in (32, 48) for rate in (2e-3, 4e-3))


class Windows(NamedTuple):
    """W distinct windows over O distinct (operator, batch) pairs; U uses of windows by G sequences; R steps."""

    type: Tensor            # [O]
    description: Tensor     # [O, f]
    operator: Tensor        # [W, WINDOW]
    is_there: Tensor        # [W, WINDOW]
    of_use: Tensor          # [U] window, of each step
    weight: Tensor          # [U, WINDOW] number of such windows; each operator is divided by the windows around it
    row: Tensor             # [U] step
    configuration: Tensor   # [R, c]


def _windows(length: int) -> tuple[np.ndarray, np.ndarray]:
    """[w, WINDOW] positions, NO_OPERATOR after the last; and for each position the number of windows around it
    [length]."""
    starts = np.arange(0, max(length - WINDOW, 0) + STRIDE, STRIDE)
    starts = starts[starts < length]
    places = starts[:, None] + np.arange(WINDOW)
    places = np.where(places < length, places, NO_OPERATOR)
    return places, np.bincount(places[places >= 0], minlength=length)


def windows(data: Dataset, types: np.ndarray, chosen: Steps) -> Windows:
    networks, batches, of_step = jobs.graphs(chosen)
    sequences = [data.operator[data.sequence(network)] for network in networks]
    batch = np.repeat(batches, [len(s) for s in sequences])
    pairs, pair = np.unique(np.column_stack([np.concatenate(sequences), batch]), axis=0, return_inverse=True)
    of_sequence = np.split(pair.reshape(-1), np.cumsum([len(s) for s in sequences])[:-1])
    operators, weights = [], []
    for places_of in of_sequence:
        places, uses = _windows(len(places_of))
        operators.append(np.where(places >= 0, places_of[places], NO_OPERATOR))
        weights.append(np.where(places >= 0, 1 / uses[places], 0))
    distinct, window = np.unique(np.concatenate(operators), axis=0, return_inverse=True)
    of_graph = np.split(window.reshape(-1), np.cumsum([len(o) for o in operators])[:-1])
    of_use, weight, row = [], [], []
    merged = [_merged(w, s) for w, s in zip(of_graph, weights, strict=True)]
    for step, graph in enumerate(of_step):
        used, part = merged[graph]
        of_use.append(used)
        weight.append(part)
        row.append(np.full(len(used), step))
    operator = pairs[:, 0].astype(np.int64)
    return Windows(torch.tensor(types[data.type[operator]]), tensor(jobs.describe(data, operator, pairs[:, 1])),
                   torch.tensor(np.maximum(distinct, 0)), tensor(distinct >= 0), torch.tensor(np.concatenate(of_use)),
                   tensor(np.concatenate(weight)), torch.tensor(np.concatenate(row)), tensor(chosen.configuration))


def _merged(window: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct windows in a sequence, with summed weights."""
    used, of_used = np.unique(window, return_inverse=True)
    sums = np.zeros((len(used), WINDOW))
    np.add.at(sums, of_used.reshape(-1), weight)
    return used, sums


class Ets(nn.Module):
    def __init__(self, scaled: Scaled, scaled_configuration: Scaled, width: int) -> None:
        super().__init__()
        self.scaled, self.scaled_configuration = scaled, scaled_configuration
        self.of_type = nn.Embedding(len(tables.operator_types()), TYPE_WIDTH)
        self.recurrent = nn.LSTM(TYPE_WIDTH + len(scaled.middle), width, batch_first=True)
        self.of_window = nn.Linear(width, width)
        self.of_configuration = nn.Linear(len(scaled_configuration.middle), width)
        self.log_ms = nn.Linear(width, 1)

    def forward(self, part: Windows) -> Tensor:
        operators = torch.cat([self.of_type(part.type), self.scaled(part.description)], dim=1)
        read = self.recurrent(operators[part.operator] * part.is_there[:, :, None])[0]
        condition = self.of_configuration(self.scaled_configuration(part.configuration))[part.row]
        x = torch.relu(self.of_window(read)[part.of_use] + condition[:, None])
        each_ms = torch.exp(self.log_ms(x)[:, :, 0].clamp(max=15)) * part.weight
        return torch.log(network_fitting.sum_by(each_ms.sum(dim=1), part.row, len(part.configuration)))


def form(data: Dataset, train: np.ndarray, settings: Settings = SETTINGS) -> Form:
    types = jobs.known_types(data, data.label_network[train])

    def make_model(training_steps: Steps) -> nn.Module:
        seen = windows(data, types, training_steps)
        return Ets(Scaled.of(seen.description.numpy()), Scaled.of(training_steps.configuration), settings.width)

    return Form(settings.schedule, lambda chosen: windows(data, types, chosen), make_model)
