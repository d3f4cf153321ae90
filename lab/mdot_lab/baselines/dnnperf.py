"""DNNPerf: a graph network over operators and the tensors between them, with attention over both.

Source: Runtime Performance Prediction for Deep Learning Models with Graph Neural Network. ICSE-SEIP, 2023.

Published: nodes are operators with hyperparameters, FLOPs and tensor sizes, and edges are tensors with sizes. In
each round of the attention-based node-edge encoder, an edge's state is computed from the old state and both ends. A
node's state is computed from the old one and from the incoming states, weighted by attention. The sum of all nodes
is combined with features of the device and the configuration, and a perceptron regresses time and memory. Here: time
alone, as a logarithm; layout and software instead of devices. The mean of all nodes and the logarithm of the count
replace the sum, because times span over four orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import network_fitting, jobs
from mdot_lab.baselines.network_fitting import Form, Scaled, Schedule
from mdot_lab.baselines.graph_batches import Part, Reader
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset

TYPE_WIDTH = 12


@dataclass(frozen=True)
class Settings:
    width: int = 48
    rounds: int = 2
    schedule: Schedule = Schedule(epochs=40, rate=3e-3)


SETTINGS = Settings()
TRIED = tuple(Settings(rounds=rounds, schedule=Schedule(epochs=40, rate=rate)) for rounds in (1, 2) for rate in (1.5e-3, 3e-3))


def softmax_by(scores: Tensor, index: Tensor, rows: int) -> Tensor:
    """[n] softmax of the scores [n] among those with the same index."""
    most = scores.new_full((rows,), -1e30).scatter_reduce(0, index, scores.detach(), "amax")
    powers = torch.exp(scores - most[index])
    return powers / network_fitting.sum_by(powers, index, rows)[index]


class Round(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge = nn.Linear(3 * width, width)
        self.score = nn.Linear(3 * width, 1)
        self.own, self.incoming = nn.Linear(width, width), nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, node: Tensor, edge: Tensor, part: Part) -> tuple[Tensor, Tensor]:
        ends = torch.cat([node[part.source], node[part.target], edge], dim=1)
        edge = torch.relu(self.edge(ends))
        weight = softmax_by(nn.functional.leaky_relu(self.score(ends)[:, 0]), part.target, len(node))
        message = self.incoming(torch.cat([node[part.source], edge], dim=1)) * weight[:, None]
        return self.norm(node + torch.relu(self.own(node) + network_fitting.sum_by(message, part.target, len(node)))), edge


class DnnPerf(nn.Module):
    def __init__(self, scaled: dict[str, Scaled], settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.scaled = nn.ModuleDict(scaled)
        self.of_type = nn.Embedding(len(tables.operator_types()), TYPE_WIDTH)
        self.node = network_fitting.perceptron(TYPE_WIDTH + len(scaled["description"].middle), width, width)
        self.edge = nn.Linear(1, width)
        self.rounds = nn.ModuleList(Round(width) for _ in range(settings.rounds))
        self.head = network_fitting.perceptron(width + 1 + len(scaled["configuration"].middle), width, 1)

    def forward(self, part: Part) -> Tensor:
        node = self.node(torch.cat([self.of_type(part.type), self.scaled["description"](part.description)], dim=1))
        edge = self.edge(self.scaled["moved"](part.moved))
        for one in self.rounds:
            node, edge = one(node, edge, part)
        size = network_fitting.sum_by(part.count[:, None], part.graph, len(part.batch))
        mean = network_fitting.sum_by(node * part.count[:, None], part.graph, len(part.batch)) / size
        read = torch.cat([mean, torch.log(size) - 5], dim=1)[part.graph_of_step]
        x = torch.cat([read, self.scaled["configuration"](part.configuration)], dim=1)
        return self.scaled["log_ms"].middle + self.head(x)[:, 0]


def scales(reader: Reader, training_steps: Steps) -> dict[str, Scaled]:
    seen = reader.part(training_steps)
    return {"description": Scaled.of(seen.description.numpy()), "moved": Scaled.of(seen.moved.numpy()),
            "configuration": Scaled.of(training_steps.configuration), "log_ms": Scaled.of(training_steps.log_ms[:, None])}


def form(data: Dataset, train: np.ndarray, settings: Settings = SETTINGS) -> Form:
    reader = Reader(data, jobs.known_types(data, data.label_network[train]), settings.rounds)
    return Form(settings.schedule, reader.part, lambda training_steps: DnnPerf(scales(reader, training_steps), settings))
