"""Adds an operator's graph position to the encoding, and attention over the sequence.

This is an experiment in the evaluation. The shipped predictor reads an operator multiset, several times shorter than
the sequence. The addition starts at zero. It is averaged over equal operators in a network, so all later parts are
the same with and without it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from mdot_lab.predictor import tables


class Places(NamedTuple):
    """The concatenated sequences of some networks: S positions, B (network, distinct operator) pairs."""

    length: list[int]               # of each network
    operator: Tensor                # [S] distinct operator
    position: Tensor                # [S, POSITIONS]
    multiset_row: Tensor            # [S] pair
    operator_of_multiset: Tensor    # [B]
    multiset_row_of_pair: Tensor    # [P] the network's operator of each (operator, step) pair


class Context(nn.Module):
    def __init__(self, width: int, heads: int, use_encoder: bool) -> None:
        super().__init__()
        self.position = nn.Linear(2 * len(tables.POSITIONS), width)
        self.attention = None
        if use_encoder:
            self.attention = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, activation="gelu",
                                                        batch_first=True, norm_first=True)
        self.middle, self.out = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    @staticmethod
    def _features(position: Tensor) -> Tensor:
        """Distances from the graph's start and end, absolute and as a fraction of the graph."""
        return torch.cat([torch.log(position + 1) / 4, position / (position.amax(dim=0, keepdim=True) + 1)], dim=1)

    def forward(self, encoded: Tensor, places: Places) -> Tensor:
        """[O, width] → [B, width]"""
        added = []
        for operator, position in zip(places.operator.split(places.length), places.position.split(places.length)):
            x = encoded[operator] + self.position(self._features(position))
            if self.attention is not None:
                x = self.attention(x[None])[0]
            added.append(self.out(torch.relu(self.middle(x))))
        total = encoded.new_zeros(len(places.operator_of_multiset), encoded.shape[1])
        total = total.index_add(0, places.multiset_row, torch.cat(added))
        count = encoded.new_zeros(len(total), 1).index_add(0, places.multiset_row, torch.ones(len(places.multiset_row), 1))
        return encoded[places.operator_of_multiset] + total / count
