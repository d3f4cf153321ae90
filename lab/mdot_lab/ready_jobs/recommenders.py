"""DLRM (Naumov et al. 2019) with the sizes of Facebook's reference for Criteo's data sets. Nobody ships it as a package."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

KAGGLE = [1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652,
          2173, 4, 7046547, 18, 15, 286181, 105, 142572]  # fmt: skip
"""Rows of the tables for Criteo Kaggle."""
TERABYTE = [39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208, 11938, 155, 4, 976,
            14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36]  # fmt: skip
"""Those for Criteo Terabyte, with at most 40 million rows, as in MLPerf."""


def _perceptron(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    """13 numbers through a perceptron, one bag for each table, the products of all pairs, and a second perceptron."""

    def __init__(self, rows: list[int], bottom: list[int], top: list[int]) -> None:
        super().__init__()
        width = bottom[-1]
        self.tables = nn.ModuleList(nn.EmbeddingBag(count, width, mode="sum", sparse=True) for count in rows)
        self.bottom = _perceptron(13, *bottom)
        pairs = len(rows) * (len(rows) + 1) // 2
        self.top = nn.Sequential(_perceptron(width + pairs, *top), nn.Linear(top[-1], 1))

    def forward(self, dense: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        parts = torch.stack([x, *[table(words[:, i : i + 1]) for i, table in enumerate(self.tables)]], 1)
        products = torch.bmm(parts, parts.transpose(1, 2))
        rows, columns = torch.tril_indices(parts.shape[1], parts.shape[1], -1)
        return self.top(torch.cat([x, products[:, rows, columns]], 1)).squeeze(1)


def dlrm(data: str) -> tuple[nn.Module, tuple[Any, ...], tuple[Any, ...]]:
    """The network on the meta device, inputs, and targets."""
    with torch.device("meta"):
        if data == "kaggle":
            model = DLRM(KAGGLE, [512, 256, 64, 16], [512, 256])
        else:
            model = DLRM(TERABYTE, [512, 256, 128], [1024, 1024, 512, 256])
    return model, (torch.zeros(4, 13), torch.zeros(4, 26, dtype=torch.int64)), (torch.zeros(4),)
