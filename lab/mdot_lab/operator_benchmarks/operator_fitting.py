"""Fits an analytic model to measured operators, and leaves out architectures in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.operator_benchmarks.gpu_rates import Rates, Sources
from mdot_lab.operator_benchmarks.measurements import Measured


@dataclass(frozen=True)
class Schedule:
    steps: int = 500
    rows: int = 1024            # measurements in each step
    physics_rate: float = 3e-2
    network_rate: float = 1e-2
    weight_decay: float = 0.05
    penalty: float = 0.1        # factor on the mean square correction
    implausibility_penalty: float = 0.01
    balance: float = 0.7        # a group with n rows weighs n^(1 - balance)
    seed: int = 0


def _weights(measured: Measured, balance: float) -> Tensor:
    _, number, count = np.unique(measured.group, return_inverse=True, return_counts=True)
    weight = count[number.reshape(-1)] ** -balance
    return torch.tensor(weight / weight.mean(), dtype=torch.float32)[:, None]


def fit(make: Callable[[int], nn.Module], measured: Measured, schedule: Schedule = Schedule()) -> tuple[nn.Module, list[str]]:
    """Fits a model. Returns it with the known sources. `make` takes the number of sources. The result's layers `middle`
    and `out` are the correction, and all other parameters are analytic."""
    torch.manual_seed(schedule.seed)
    sources = sorted(set(measured.source))
    model, rows = make(len(sources)), measured.tensors(sources)
    weight = _weights(measured, schedule.balance)
    is_network = {name: name.startswith(("middle.", "out.")) for name, _ in model.named_parameters()}
    optimizer = torch.optim.AdamW([
        {"params": [p for name, p in model.named_parameters() if not is_network[name]], "lr": schedule.physics_rate,
         "weight_decay": 0.0},
        {"params": [p for name, p in model.named_parameters() if is_network[name]], "lr": schedule.network_rate,
         "weight_decay": schedule.weight_decay}])
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, [g["lr"] for g in optimizer.param_groups], pct_start=0.1,
                                               total_steps=schedule.steps)
    # rows are drawn by weight, so that every group occurs in every step in proportion to the weight
    draws = torch.multinomial(weight[:, 0], schedule.steps * schedule.rows, replacement=True)
    for part in draws.split(schedule.rows):
        microseconds, correction = model({name: column[part] for name, column in rows.items()})
        error = torch.log(microseconds) - torch.log(rows["microseconds"][part])
        each = 5 * nn.functional.huber_loss(error, torch.zeros_like(error), delta=0.2, reduction="none")
        loss = (each + schedule.penalty * correction**2).mean()
        loss = loss + schedule.implausibility_penalty * sum(
            part.implausibility() for part in model.modules() if isinstance(part, (Rates, Sources)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rate.step()
    model.sources.settle()
    return model.eval(), sources


def predict(model: nn.Module, sources: list[str], measured: Measured) -> np.ndarray:
    """Predicted microseconds."""
    rows = measured.tensors(sources)
    with torch.no_grad():
        parts = [model({name: column[at] for name, column in rows.items()})[0]
                 for at in torch.arange(len(measured)).split(8192)]
    return torch.cat(parts)[:, 0].numpy().astype(np.float64)


def folds(measured: Measured, left_out: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Architecture name, rows without it, rows with it."""
    architecture = measured.architecture
    for name in left_out:
        if (architecture == name).any():
            yield name, np.flatnonzero(architecture != name), np.flatnonzero(architecture == name)
