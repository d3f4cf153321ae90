"""Jobs as graphs, for the baselines with messages along edges.

Operators that are equal as far as messages reach are one node with a count. After k rounds, a node's state depends
on the operators within k edges before it, so equal nodes need computing only once. This affects only the cost, which
falls to a third.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mdot_lab.baselines import jobs
from mdot_lab.baselines.network_fitting import tensor
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor.dataset import Dataset


@dataclass(frozen=True)
class Graph:
    """n nodes and e edges of a network."""

    operator: np.ndarray    # [n]
    count: np.ndarray       # [n]
    source: np.ndarray      # [e] node
    target: np.ndarray      # [e] node, ascending


class Part(NamedTuple):
    """N nodes and E edges of G graphs side by side, and R steps."""

    type: Tensor            # [N]
    description: Tensor     # [N, f]
    count: Tensor           # [N]
    graph: Tensor           # [N]
    source: Tensor          # [E]
    target: Tensor          # [E]
    moved: Tensor           # [E, 1] log of the edge tensor's bytes
    batch: Tensor           # [G, 1] its logarithm
    graph_of_step: Tensor   # [R]
    configuration: Tensor   # [R, c]


def _rows_within(data: Dataset, network: int) -> tuple[np.ndarray, list[list[int]]]:
    """A network's operators, and for each of them the operators whose results it reads."""
    here = data.sequence(network)
    is_inside = slice(*np.searchsorted(data.edge_to, [here.start, here.stop]))
    read: list[list[int]] = [[] for _ in range(here.stop - here.start)]
    for source, target in zip(data.edge_from[is_inside] - here.start, data.edge_to[is_inside] - here.start):
        read[target].append(int(source))
    return data.operator[here], read


def graph(data: Dataset, network: int, rounds: int) -> Graph:
    operator, read = _rows_within(data, network)
    state = np.unique(operator, return_inverse=True)[1].reshape(-1)
    for _ in range(rounds):
        numbers: dict[tuple, int] = {}
        looks = ((int(state[i]), tuple(sorted(int(state[j]) for j in read[i]))) for i in range(len(operator)))
        state = np.array([numbers.setdefault(look, len(numbers)) for look in looks])
    nodes, first, count = np.unique(state, return_index=True, return_counts=True)
    edges = [(int(state[j]), node) for node, i in zip(nodes, first) for j in read[i]]
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return Graph(operator[first], count, source, target)


class Reader:
    """Graphs of a data set, each made once."""

    def __init__(self, data: Dataset, types: np.ndarray, rounds: int) -> None:
        self.data, self.types, self.rounds = data, types, rounds
        self.kept: dict[int, Graph] = {}

    def graph(self, network: int) -> Graph:
        if network not in self.kept:
            self.kept[network] = graph(self.data, network, self.rounds)
        return self.kept[network]

    def part(self, chosen: Steps) -> Part:
        networks, batches, of_step = jobs.graphs(chosen)
        each = [self.graph(int(network)) for network in networks]
        sizes = [len(g.operator) for g in each]
        start = np.cumsum([0] + sizes[:-1])
        operator, batch = np.concatenate([g.operator for g in each]), np.repeat(batches, sizes)
        source = np.concatenate([g.source + at for g, at in zip(each, start)])
        written = jobs.loads(self.data, operator[source], batch[source])[:, 2:3]
        return Part(
            torch.tensor(self.types[self.data.type[operator]]), tensor(jobs.describe(self.data, operator, batch)),
            tensor(np.concatenate([g.count for g in each])), torch.tensor(np.repeat(np.arange(len(each)), sizes)),
            torch.tensor(source), torch.tensor(np.concatenate([g.target + at for g, at in zip(each, start)])),
            tensor(np.log1p(written)), tensor(np.log(batches)[:, None]), torch.tensor(of_step), tensor(chosen.configuration))
