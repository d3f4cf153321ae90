"""Driple: graph convolutions whose rounds use the same weights, and a readout that attends to the nodes.

Source: Prediction of the Resource Consumption of Distributed Deep Learning Systems. Proceedings of the ACM on
Measurement and Analysis of Computing Systems 6(2), 2022. Code: repository gsyang33/Driple.

Published: nodes are operators with kind and sizes. A graph convolution is repeated with the same weights, a gated
recurrent unit keeps the previous state of a node, and a set-to-set readout attends to all nodes several times. A
perceptron regresses twelve values of a training job's resource use, which gives the time. Weights trained in one
setting are adapted to another. Here: one GPU and one value, the logarithm of a step's time. Layout and software are
inputs of the last perceptron. driple_transfer.py adapts weights to another setting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import network_fitting, jobs
from mdot_lab.baselines.dnnperf import scales, softmax_by
from mdot_lab.baselines.network_fitting import Form, Scaled, Schedule
from mdot_lab.baselines.graph_batches import Part, Reader
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

TYPE_WIDTH = 12


@dataclass(frozen=True)
class Settings:
    width: int = 48
    rounds: int = 2
    readings: int = 3
    schedule: Schedule = Schedule(epochs=30, rate=3e-3)


SETTINGS = Settings()
TRIED = tuple(Settings(rounds=rounds, schedule=Schedule(epochs=30, rate=rate)) for rounds in (2, 3) for rate in (1.5e-3, 3e-3))


class Driple(nn.Module):
    def __init__(self, scaled: dict[str, Scaled], settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.scaled, self.rounds, self.readings = nn.ModuleDict(scaled), settings.rounds, settings.readings
        self.of_type = nn.Embedding(len(tables.operator_types()), TYPE_WIDTH)
        self.node = nn.Linear(TYPE_WIDTH + len(scaled["description"].middle), width)
        self.convolution, self.memory = nn.Linear(width, width), nn.GRUCell(width, width)
        self.reader = nn.LSTMCell(2 * width, width)
        self.head = network_fitting.perceptron(2 * width + 1 + len(scaled["configuration"].middle), width, width, 1)

    def _convolved(self, node: Tensor, part: Part) -> Tensor:
        """The mean over a node and its predecessors."""
        ones = torch.ones(len(part.target), 1)
        degree = network_fitting.sum_by(ones, part.target, len(node)) + 1
        summed = node + network_fitting.sum_by(node[part.source], part.target, len(node))
        return torch.relu(self.convolution(summed / degree))

    def _read(self, node: Tensor, part: Part) -> Tensor:
        """[G, 2 * width]: set-to-set readout, with each node weighted by the number of occurrences in the graph."""
        graphs, width = len(part.batch), node.shape[1]
        answer = node.new_zeros(graphs, 2 * width)
        state = node.new_zeros(graphs, width), node.new_zeros(graphs, width)
        for _ in range(self.readings):
            state = self.reader(answer, state)
            scores = (node * state[0][part.graph]).sum(dim=1) + torch.log(part.count)
            weight = softmax_by(scores, part.graph, graphs)
            answer = torch.cat([state[0], network_fitting.sum_by(node * weight[:, None], part.graph, graphs)], dim=1)
        return answer

    def forward(self, part: Part) -> Tensor:
        node = torch.relu(self.node(torch.cat([self.of_type(part.type), self.scaled["description"](part.description)], dim=1)))
        for _ in range(self.rounds):
            node = self.memory(self._convolved(node, part), node)
        size = torch.log(network_fitting.sum_by(part.count[:, None], part.graph, len(part.batch))) - 5
        x = torch.cat([self._read(node, part), size], dim=1)[part.graph_of_step]
        x = torch.cat([x, self.scaled["configuration"](part.configuration)], dim=1)
        return self.scaled["log_ms"].middle + self.head(x)[:, 0]


def form(data: Dataset, train: np.ndarray, settings: Settings = SETTINGS) -> Form:
    reader = Reader(data, jobs.known_types(data, data.label_network[train]), settings.rounds)
    return Form(settings.schedule, reader.part, lambda training_steps: Driple(scales(reader, training_steps), settings))
