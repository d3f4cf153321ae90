"""Networks over feature vectors: perceptrons, and recommendation models over dense and categorical features."""

from __future__ import annotations

import torch
from torch import nn

from mdot_lab.collect.tasks import DENSE_FEATURES, TABLES


def _layers(widths, last_activation: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if last_activation else layers[:-1]))


class ResidualMlp(nn.Module):
    """Gorishniy et al. 2021: residual blocks over tabular features."""

    def __init__(self, features: int, width: int, depth: int, classes: int):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.BatchNorm1d(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(0.1),
                          nn.Linear(2 * width, width)) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.relu())


class Tables(nn.Module):
    """One embedding table for each categorical feature. Gradients are dense, because every optimizer here needs them so."""

    def __init__(self, rows: int, width: int):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(TABLES))

    def forward(self, ids):
        return torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)


class Dlrm(nn.Module):
    """Naumov et al. 2019: bottom perceptron, pairwise dot products, top perceptron."""

    def __init__(self, rows: int, width: int, bottom, top):
        super().__init__()
        self.tables, self.bottom = Tables(rows, width), _layers([DENSE_FEATURES, *bottom, width], True)
        vectors = TABLES + 1
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1))
        self.top = _layers([width + self.pairs.shape[1], *top, 1], False)

    def forward(self, dense, ids):
        dense = self.bottom(dense)
        vectors = torch.cat((dense.unsqueeze(1), self.tables(ids).to(dense.dtype)), 1)
        dot_products = torch.bmm(vectors, vectors.transpose(1, 2))
        return self.top(torch.cat((dense, dot_products[:, self.pairs[0], self.pairs[1]]), 1)).squeeze(1)


class CrossNetwork(nn.Module):
    """Wang et al. 2021 (DCN-V2): explicit feature crosses before a perceptron."""

    def __init__(self, rows: int, width: int, crosses: int, top):
        super().__init__()
        self.tables = Tables(rows, width)
        features = DENSE_FEATURES + TABLES * width
        self.crosses = nn.ModuleList(nn.Linear(features, features) for _ in range(crosses))
        self.top = _layers([features, *top, 1], False)

    def forward(self, dense, ids):
        start = x = torch.cat((dense, self.tables(ids).flatten(1)), 1)
        for cross in self.crosses:
            x = start * cross(x) + x
        return self.top(x).squeeze(1)


class DeepFm(nn.Module):
    """Guo et al. 2017: factorisation machine and perceptron over shared embeddings."""

    def __init__(self, rows: int, width: int, top):
        super().__init__()
        self.tables, self.linear = Tables(rows, width), nn.Linear(DENSE_FEATURES, 1)
        self.top = _layers([DENSE_FEATURES + TABLES * width, *top, 1], False)

    def forward(self, dense, ids):
        vectors = self.tables(ids)
        pairwise = 0.5 * (vectors.sum(1).square() - vectors.square().sum(1)).sum(1, keepdim=True)
        return (self.linear(dense) + pairwise + self.top(torch.cat((dense, vectors.flatten(1)), 1))).squeeze(1)


class TwoTower(nn.Module):
    """Two perceptrons, each over half of the categorical features. The dot product is the score."""

    def __init__(self, rows: int, width: int, tower):
        super().__init__()
        self.tables = Tables(rows, width)
        half = TABLES // 2
        self.user = _layers([DENSE_FEATURES + half * width, *tower], False)
        self.item = _layers([(TABLES - half) * width, *tower], False)

    def forward(self, dense, ids):
        vectors, half = self.tables(ids), TABLES // 2
        user = self.user(torch.cat((dense, vectors[:, :half].flatten(1)), 1))
        return (user * self.item(vectors[:, half:].flatten(1))).sum(1)


def mlp(features, widths, classes):
    return _layers([features, *widths, classes], False)


def residual_mlp(features, width, depth, classes):
    return ResidualMlp(features, width, depth, classes)


def dlrm(rows, width, bottom, top):
    return Dlrm(rows, width, bottom, top)


def cross_network(rows, width, crosses, top):
    return CrossNetwork(rows, width, crosses, top)


def deep_fm(rows, width, top):
    return DeepFm(rows, width, top)


def two_tower(rows, width, tower):
    return TwoTower(rows, width, tower)
