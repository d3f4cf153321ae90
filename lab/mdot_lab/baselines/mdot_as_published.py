"""MDOT as published: operators fused from three tokens, the position in the graph, a Transformer over the sequence, one
head.

Source: Deep Learning Training Time Prediction Algorithm Integrating Multi-dimensional Operator Features. Computer
Science 53(5), 129-136, 2026.

Published: type, configuration, and FLOPs and bytes of an operator are three tokens, which a Transformer fuses into
one. An encoding of the position in the graph is added, and a Transformer reads the sequence of operators. The result
is pooled, and a head regresses the time of a training step. Widths, pooling and training were unavailable and are
tuned here. The load is that at the job's batch. Layout and software, in which the labels here differ, are inputs of
the head. So is the sequence's length, because a mean over the sequence loses it. Sequences longer than the largest
bucket are merged as in the runtime.

It is trained on the labels of one GPU and cannot predict others. It ships as the reference beside the predictor, and
as the sequence model with which the compiler's kernels are benchmarked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import network_fitting, jobs, shortening
from mdot_lab.baselines.network_fitting import Form, Scaled, Schedule, tensor
from mdot_lab.baselines.jobs import LOADS, Steps
from mdot_lab.predictor import tables
from mdot_lab.predictor.dataset import Dataset


@dataclass(frozen=True)
class Settings:
    width: int = 48
    heads: int = 2
    layers: int = 1
    dropout: float = 0.0
    capacity: int = 256     # rows; longer sequences are merged
    schedule: Schedule = Schedule(epochs=20, rate=3e-3, networks=8)


SETTINGS = Settings()
TRIED = (Settings(), Settings(layers=2), Settings(schedule=Schedule(epochs=20, rate=1.5e-3, networks=8)))


class Rows(NamedTuple):
    """A sequence's operators in order. A batch has one more leading dimension."""

    type: Tensor        # i64 [L]
    setting: Tensor     # [L, settings]
    load: Tensor        # [L, LOAD_COUNT]
    position: Tensor    # [L, POSITIONS]


class Sequences(NamedTuple):
    """G sequences of similar length at a time, and R steps. Equal operators are fused once."""

    rows: Rows              # [O, …] distinct operators at their batch
    batch: Tensor           # [O, 1]
    place: list[Tensor]     # [G, L] operator of each position
    position: list[Tensor]  # [G, L, POSITIONS]
    length: list[Tensor]    # [G]
    graph: Tensor           # [R] sequence of each step
    configuration: Tensor   # [R, c]


def position_features(position: Tensor, length: Tensor) -> Tensor:
    """Distance from the start and the end, in operators and as a fraction of the graph, and the numbers of inputs and
    readers."""
    index, depth, height, inputs, readers = position.split(1, dim=-1)
    fractions = [index / length, depth / (depth + height + 1)]
    return torch.cat([*(torch.log(x + 1) for x in (index, depth, height, inputs, readers)), *fractions], dim=-1)


PLACE_FEATURES = len(tables.POSITIONS) + 2


class Layer(nn.Module):
    """A layer of a Transformer's encoder with pre-normalisation, over [B, L, width]."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)

    def _attention(self, x: Tensor, mask: Tensor | None) -> Tensor:
        heads = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.joint(x).chunk(3, dim=-1)]
        return self.out(nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask).transpose(1, 2).flatten(-2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` [B, 1, 1, L] is added to the scores."""
        x = x + self.dropout(self._attention(self.before_attention(x), mask))
        return x + self.dropout(self.feed_forward(self.before_feed_forward(x)))


class Published(nn.Module):
    """`row_of_type` [types]: the embedding row of each type."""

    def __init__(self, settings: Settings, row_of_type: np.ndarray, scaled: dict[str, Scaled]) -> None:
        super().__init__()
        width = settings.width
        self.scaled = nn.ModuleDict(scaled)
        self.register_buffer("row_of_type", torch.tensor(row_of_type))
        self.of_type = nn.Embedding(len(row_of_type), width)
        self.of_setting = network_fitting.perceptron(len(tables.settings()), width, width)
        self.of_load = network_fitting.perceptron(LOADS + 1, width, width)
        self.fusion = Layer(width, settings.heads, 0.0)
        self.of_place = network_fitting.perceptron(PLACE_FEATURES, width, width)
        self.layers = nn.ModuleList(Layer(width, settings.heads, settings.dropout) for _ in range(settings.layers))
        self.last = nn.LayerNorm(width)
        self.head = network_fitting.perceptron(width + 1 + len(scaled["configuration"].middle), width, 1)

    def fuse(self, rows: Rows, batch: Tensor) -> Tensor:
        """[O, width]"""
        load = rows.load[:, :LOADS] * batch + rows.load[:, LOADS:2 * LOADS]
        loads = torch.cat([load, rows.load[:, -1:]], dim=1)
        tokens = [self.of_type(self.row_of_type[rows.type]),
                  self.of_setting(self.scaled["setting"](torch.log(rows.setting + 1))),
                  self.of_load(self.scaled["load"](torch.log(loads + 1)))]
        return self.fusion(torch.stack(tokens, dim=1)).mean(dim=1)

    def read(self, fused: Tensor, place: Tensor, mask: Tensor | None) -> Tensor:
        """[B, L, width] from fused operators and position features."""
        x = fused + self.of_place(self.scaled["place"](place))
        for layer in self.layers:
            x = layer(x, mask)
        return self.last(x)

    def answer(self, pooled: Tensor, length: Tensor, configuration: Tensor) -> Tensor:
        """[R] logarithms of milliseconds. `length` [R, 1]."""
        x = torch.cat([pooled, self.scaled["length"](torch.log(length)), self.scaled["configuration"](configuration)], dim=1)
        return self.scaled["log_ms"].middle + self.head(x)[:, 0]

    def forward(self, part: Sequences) -> Tensor:
        fused, pooled = self.fuse(part.rows, part.batch), []
        for place, position, length in zip(part.place, part.position, part.length, strict=True):
            here = (torch.arange(place.shape[1]) < length[:, None]).float()
            features = position_features(position, length[:, None, None])
            x = self.read(fused[place], features, (here - 1)[:, None, None, :] * 1e4)
            pooled.append((x * here[:, :, None]).sum(dim=1) / length[:, None])
        graph = part.graph
        return self.answer(torch.cat(pooled)[graph], torch.cat(part.length)[graph, None], part.configuration)


SEQUENCES_AT_A_TIME = 4


class Reader:
    """Sequences of a data set, each shortened once."""

    def __init__(self, data: Dataset, capacity: int) -> None:
        self.data, self.capacity = data, capacity
        self.kept: dict[int, Rows] = {}

    def sequence(self, network: int) -> Rows:
        """The sequence as arrays."""
        if network not in self.kept:
            here = self.data.sequence(network)
            operators = self.data.operator[here]
            top, load = shortening.shortened(self.data.load[operators], self.capacity)
            chosen = operators[top]
            self.kept[network] = Rows(self.data.type[chosen], self.data.setting[chosen], load, self.data.position[here][top])
        return self.kept[network]

    def part(self, chosen: Steps) -> Sequences:
        networks, batches, of_step = jobs.graphs(chosen)
        sequences = [self.sequence(network) for network in networks]
        order = np.argsort([len(s.type) for s in sequences], kind="stable")
        rows = np.concatenate([np.column_stack([s.type, s.setting, s.load, np.full(len(s.type), batch)])
                               for s, batch in zip(sequences, batches, strict=True)])
        distinct, operator = np.unique(rows, axis=0, return_inverse=True)
        ends = np.cumsum([len(s.type) for s in sequences])
        of_sequence = np.split(operator.reshape(-1), ends[:-1])
        places, positions, lengths = [], [], []
        for start in range(0, len(order), SEQUENCES_AT_A_TIME):
            some = order[start:start + SEQUENCES_AT_A_TIME]
            longest = len(sequences[some[-1]].type)
            place = np.zeros((len(some), longest), dtype=np.int64)
            position = np.zeros((len(some), longest, len(tables.POSITIONS)))
            for i, s in enumerate(some):
                place[i, :len(of_sequence[s])] = of_sequence[s]
                position[i, :len(of_sequence[s])] = sequences[s].position
            places.append(torch.tensor(place))
            positions.append(tensor(position))
            lengths.append(tensor(np.array([len(sequences[s].type) for s in some])))
        settings = self.data.setting.shape[1]
        return Sequences(
            rows=Rows(torch.tensor(distinct[:, 0].astype(np.int64)), tensor(distinct[:, 1:1 + settings]),
                      tensor(distinct[:, 1 + settings:-1]), torch.empty(0)),
            batch=tensor(distinct[:, -1:]), place=places, position=positions, length=lengths,
            graph=torch.tensor(np.argsort(order)[of_step]), configuration=tensor(chosen.configuration))


def _scales(reader: Reader, training_steps: Steps) -> dict[str, Scaled]:
    networks, batches, _ = jobs.graphs(training_steps)
    sequences = [reader.sequence(network) for network in networks]
    load = np.concatenate([np.column_stack([s.load[:, :LOADS] * batch + s.load[:, LOADS:2 * LOADS], s.load[:, -1]])
                           for s, batch in zip(sequences, batches, strict=True)])
    length = np.array([len(s.type) for s in sequences])
    places = np.concatenate([position_features(tensor(s.position), torch.tensor(float(len(s.type)))).numpy()
                             for s in sequences])
    return {"setting": Scaled.of(np.log1p(np.concatenate([s.setting for s in sequences]))), "load": Scaled.of(np.log1p(load)),
            "place": Scaled.of(places), "length": Scaled.of(np.log(length)[:, None]),
            "configuration": Scaled.of(training_steps.configuration), "log_ms": Scaled.of(training_steps.log_ms[:, None])}


def form(data: Dataset, train: np.ndarray, settings: Settings = SETTINGS, reader: Reader | None = None) -> Form:
    reader = reader or Reader(data, settings.capacity)
    types = jobs.known_types(data, data.label_network[train])
    return Form(settings.schedule, reader.part, lambda training_steps: Published(settings, types, _scales(reader, training_steps)))
