"""Recurrent networks and temporal convolutions: language models, and sequences of feature vectors."""

from torch import nn


class RecurrentLanguageModel(nn.Module):
    def __init__(self, cell: str, width: int, depth: int, vocab_size: int, bidirectional: bool):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.layers = getattr(nn, cell)(width, width, depth, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(width * (2 if bidirectional else 1), vocab_size)

    def forward(self, ids):
        return self.head(self.layers(self.tokens(ids))[0])


class RecurrentForecaster(nn.Module):
    def __init__(self, cell: str, features: int, width: int, depth: int):
        super().__init__()
        self.layers = getattr(nn, cell)(features, width, depth, batch_first=True)
        self.head = nn.Linear(width, features)

    def forward(self, x):
        return self.head(self.layers(x)[0])


class TemporalConvolutions(nn.Module):
    """Dilated residual convolutions over time (Bai et al. 2018), with non-causal windows."""

    def __init__(self, features: int, width: int, depth: int):
        super().__init__()
        self.stem = nn.Conv1d(features, width, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1 << i, dilation=1 << i) for i in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(depth))
        self.head = nn.Conv1d(width, features, 1)

    def forward(self, x):
        x = self.stem(x.transpose(1, 2))
        for layer, norm in zip(self.layers, self.norms):
            x = x + norm(layer(x)).relu()
        return self.head(x).transpose(1, 2)


def language_model(cell, width, depth, vocab_size, bidirectional=False):
    return RecurrentLanguageModel(cell, width, depth, vocab_size, bidirectional)


def forecaster(cell, features, width, depth):
    return RecurrentForecaster(cell, features, width, depth)


def temporal_convolutions(features, width, depth):
    return TemporalConvolutions(features, width, depth)
