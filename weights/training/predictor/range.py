"""Whether a job lies where the predictor was trained, computed beside the prediction."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from predictor import batches, tables
from predictor.dataset import Dataset
from predictor.operators import Operators
from predictor.model import Configurations

UNKNOWN_SHARE = 0.05
"""So much of the time in operators of types that were never seen passes."""
LOAD_MARGIN = 0.7
"""Logarithm: an operator may be twice as large as the largest of its kind in training."""
GPU_MARGIN = 0.05


class TrainingRange(nn.Module):
    """By how much a job leaves the training set's ranges; 0 within. [1, 1]"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("log_batch", torch.zeros(2))
        self.register_buffer("is_seen_type", torch.zeros(len(tables.operator_types()), 1))
        self.register_buffer("log_load_limit", torch.zeros(tables.LOAD_COUNT))
        self.register_buffer("log_gpu", torch.zeros(len(tables.gpu_columns())))

    def fit(self, data: Dataset, labels: np.ndarray, seen: Tensor) -> None:
        """`seen`: rows of the type table that have an embedding of their own."""
        operators = np.unique(np.concatenate([data.operator[data.sequence(n)] for n in np.unique(data.label_network[labels])]))
        self.log_batch.copy_(torch.tensor([np.log(data.batch[labels].min()), np.log(data.batch[labels].max())]))
        self.is_seen_type[seen] = 1.0
        self.is_seen_type[tables.UNKNOWN_TYPE] = 0.0
        self.log_load_limit.copy_(torch.tensor(np.log1p(data.load[operators].max(axis=0))))
        self.log_gpu.copy_(torch.tensor(tables.gpu(batches.LABELLED_GPU).numbers).log())

    def load(self, operators: Operators) -> Tensor:
        """By how much operators are larger than those of training. [1, 1]"""
        beyond = (torch.log(operators.load + 1) - self.log_load_limit).amax(dim=1, keepdim=True)
        return (beyond.amax(dim=0, keepdim=True) - LOAD_MARGIN).clamp(min=0)

    def forward(self, operators: Operators, share: Tensor, c: Configurations) -> Tensor:
        """`share`: [P, 1] of the predicted time."""
        log_batch = torch.log(c.batch)
        batch = (log_batch - self.log_batch[1]).clamp(min=0) + (self.log_batch[0] - log_batch).clamp(min=0)
        gpu = ((torch.log(c.gpu) - self.log_gpu).abs().amax(dim=1, keepdim=True) - GPU_MARGIN).clamp(min=0)
        unknown = (share * (1 - self.is_seen_type[operators.type])).sum(dim=0, keepdim=True)
        other = (1 - c.is_amp) + (c.gpu_count - 1).clamp(0, 1) + c.is_adam
        return batch + gpu + (unknown - UNKNOWN_SHARE).clamp(min=0) + self.load(operators) + other
