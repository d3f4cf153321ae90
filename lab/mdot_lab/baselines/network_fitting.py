"""Fits the neural network baselines: one loop, one schedule and one error for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, NamedTuple, Protocol, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.baselines import jobs
from mdot_lab.baselines.jobs import Steps
from mdot_lab.predictor.dataset import Dataset


@dataclass(frozen=True)
class Schedule:
    epochs: int = 30
    rate: float = 4e-3
    networks: int = 16      # networks whose steps make up one step of the optimizer
    decay: float = 0.01
    seed: int = 0


class Part(Protocol):
    """Tensors for some steps, in the form for a baseline's model."""


def tensor(x: np.ndarray) -> Tensor:
    return torch.tensor(np.asarray(x, dtype=np.float32))


class Scaled(nn.Module):
    """Scales columns to mean 0 and deviation 1 over the data that it was made from. Constant columns become 0."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("middle", torch.zeros(columns))
        self.register_buffer("factor", torch.zeros(columns))

    @staticmethod
    def of(x: np.ndarray) -> "Scaled":
        scaled, deviation = Scaled(x.shape[1]), x.std(axis=0)
        varies = deviation > 1e-6
        scaled.middle.copy_(tensor(x.mean(axis=0)))
        scaled.factor.copy_(tensor(np.where(varies, 1 / np.where(varies, deviation, 1), 0)))
        return scaled

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.middle) * self.factor


def perceptron(*widths: int) -> nn.Sequential:
    """A perceptron of these widths, with activations between layers."""
    layers: list[nn.Module] = []
    for before, behind in zip(widths, widths[1:]):
        layers += [nn.Linear(before, behind), nn.GELU()]
    return nn.Sequential(*layers[:-1])


def sum_by(values: Tensor, index: Tensor, rows: int) -> Tensor:
    """[rows, …] sums of the values [n, …] with each index."""
    return values.new_zeros((rows, *values.shape[1:])).index_add(0, index, values)


def fit(model: nn.Module, parts: Sequence[Part], chosen: Sequence[Steps], schedule: Schedule) -> None:
    """Minimises the mean absolute log error over each part's steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=schedule.rate, weight_decay=schedule.decay)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, schedule.rate, total_steps=schedule.epochs * len(parts),
                                                pct_start=0.2)
    expected, weight = [tensor(s.log_ms) for s in chosen], [tensor(s.weight) for s in chosen]
    random = np.random.default_rng(schedule.seed)
    model.train()
    for _ in range(schedule.epochs):
        for i in random.permutation(len(parts)):
            off = (model(parts[i]) - expected[i]).abs()
            loss = (off * weight[i]).sum() / weight[i].sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rates.step()
    model.eval()


class Form(NamedTuple):
    """A baseline's network for some training labels."""

    schedule: Schedule
    make_part: Callable[[Steps], Part]
    make_model: Callable[[Steps], nn.Module]
    """Builds the network and sets scales from these steps."""


def predict(form: Form, data: Dataset, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Milliseconds of `test`, predicted by a model fitted to `train`."""
    return predict_labels(fitted(form, data, train), form, data, test)


def fitted(form: Form, data: Dataset, train: np.ndarray) -> nn.Module:
    training_steps = jobs.merged_steps(data, train)
    torch.manual_seed(form.schedule.seed)
    model = form.make_model(training_steps)
    parts = jobs.parts(training_steps, form.schedule.networks, np.random.default_rng(form.schedule.seed))
    chosen = [training_steps.take(rows) for rows in parts]
    fit(model, [form.make_part(some) for some in chosen], chosen, form.schedule)
    return model


@torch.no_grad()
def predict_labels(model: nn.Module, form: Form, data: Dataset, test: np.ndarray) -> np.ndarray:
    wanted = jobs.steps(data, test)
    log_ms = np.empty(len(wanted))
    for rows in jobs.parts(wanted, form.schedule.networks, None):
        log_ms[rows] = model(form.make_part(wanted.take(rows))).numpy()
    return np.exp(log_ms)
