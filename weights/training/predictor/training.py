"""Fits the predictor to labelled steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from predictor import batches, tables
from predictor.batches import Batch
from predictor.dataset import Dataset
from predictor.model import Options, Predictor


@dataclass(frozen=True)
class Schedule:
    epochs: int = 60
    parts: int = 40             # an epoch is this many steps, each over some of the networks
    learning_rate: float = 8e-3
    weight_decay: float = 0.05
    penalty: float = 0.003      # of the mean square correction, weighted by time
    least_networks: int = 25    # a type seen in fewer is one of the unknown ones
    seed: int = 0


def _corrections(model: Predictor, batch: Batch) -> Tensor:
    operators = batch.operators
    types = model.row_of_type[operators.type]
    if model.training:
        dropped = torch.rand(len(types)) < model.options.type_dropout
        types = torch.where(dropped, tables.UNKNOWN_TYPE, types)
    encoded = model.encoder(operators._replace(type=types))
    if model.context is not None:
        encoded = model.context(encoded, batch.places)
    priced = model.price(model.head.from_encoding(encoded)[batch.of_priced], batch.priced_features, batch.priced_norms)
    of_pairs = tuple(x[batch.priced_of_pair] for x in priced)
    return model.correction(of_pairs, batch.work.has_layout, batch.pair_configurations)


def sums(batch: Batch, amount: Tensor) -> Tensor:
    """[P, 1] → [R, 1]"""
    return amount.new_zeros(len(batch.step_ms), 1).index_add(0, batch.row, amount)


def parts_ms(model: Predictor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Each pair's parts, and each step's mean square correction weighted by time."""
    prior = model.roofline(batch.work, batch.pair_configurations) * batch.count
    if not model.options.use_correction:
        return prior, prior.new_zeros(len(batch.step_ms), 1)
    correction, weight = _corrections(model, batch), prior.detach()
    square = sums(batch, (weight * correction**2).sum(1, keepdim=True)) / sums(batch, weight.sum(1, keepdim=True))
    return prior * torch.exp(correction), square


def predict(model: Predictor, batch: Batch) -> tuple[Tensor, Tensor]:
    """[R, 1] milliseconds, and the mean square corrections."""
    of_pairs, square = parts_ms(model, batch)
    operators_ms = sums(batch, of_pairs.sum(1, keepdim=True))
    return model.step(operators_ms, batch.launches, batch.parameters, batch.configurations), square


def shares(model: Predictor, batch: Batch) -> Tensor:
    """[P, 1]: of their step's time on the GPU."""
    operators_ms = parts_ms(model, batch)[0].sum(1, keepdim=True)
    return operators_ms / sums(batch, operators_ms)[batch.row]


def _merge_rare_types(model: Predictor, data: Dataset, networks: np.ndarray, least: int) -> None:
    seen = np.zeros(len(tables.operator_types()), dtype=int)
    for network in networks:
        seen[np.unique(data.type[data.operator[data.sequence(network)]])] += 1
    rows = np.where(seen >= least, np.arange(len(seen)), tables.UNKNOWN_TYPE)
    model.row_of_type.copy_(torch.tensor(rows))


def _fit_scales(model: Predictor, batch: Batch) -> None:
    model.encoder.fit_scales(batch.operators)
    model.head.scale.fit(batch.priced_features)
    model.norm_head.scale.fit(batch.priced_norms[batch.priced_norms[:, 0] > 0])


def _parts(data: Dataset, labels: np.ndarray, schedule: Schedule, options: Options) -> list[Batch]:
    """Labels by network, networks at random: a network's encodings are computed once for all of its labels."""
    random = np.random.default_rng(schedule.seed)
    networks = random.permutation(np.unique(data.label_network[labels]))
    groups = np.array_split(networks, schedule.parts)
    return [batches.make_merged(data, labels[np.isin(data.label_network[labels], group)], options) for group in groups]


PHYSICS_RATE = 4.0
"""Efficiencies and costs are logarithms that may lie far from their start: they learn so much faster than the network."""


def _parameter_groups(model: Predictor, schedule: Schedule) -> list[dict]:
    physics = [*model.roofline.parameters(), *model.step.parameters()]
    network = [p for name, p in model.named_parameters() if not name.startswith(("roofline.", "step."))]
    return [
        {"params": physics, "weight_decay": 0.0, "lr": schedule.learning_rate * PHYSICS_RATE},
        {"params": [p for p in network if p.dim() > 1], "weight_decay": schedule.weight_decay, "lr": schedule.learning_rate},
        {"params": [p for p in network if p.dim() <= 1], "weight_decay": 0.0, "lr": schedule.learning_rate},
    ]


def fit(data: Dataset, labels: np.ndarray, options: Options, schedule: Schedule) -> Predictor:
    """A predictor of these labels (indices)."""
    torch.manual_seed(schedule.seed)
    model = Predictor(options)
    _merge_rare_types(model, data, np.unique(data.label_network[labels]), schedule.least_networks)
    parts = _parts(data, labels, schedule, options)
    _fit_scales(model, batches.make_merged(data, labels, options))
    optimizer = torch.optim.AdamW(_parameter_groups(model, schedule), fused=True)
    steps = schedule.epochs * len(parts)
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [group["lr"] for group in optimizer.param_groups], total_steps=steps, pct_start=0.15)
    random = np.random.default_rng(schedule.seed)
    model.train()
    for _ in range(schedule.epochs):
        for i in random.permutation(len(parts)):
            batch = parts[i]
            step_ms, square = predict(model, batch)
            error = torch.log(step_ms) - torch.log(batch.step_ms)
            each = nn.functional.huber_loss(error, torch.zeros_like(error), delta=0.1, reduction="none") * 10
            loss = ((each + schedule.penalty * square) * batch.weight).sum() / batch.weight.sum()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
    return model.eval()


def predict_labels(model: Predictor, data: Dataset, labels: np.ndarray) -> np.ndarray:
    """Milliseconds of each label."""
    order = np.argsort(data.label_network[labels], kind="stable")
    result = np.empty(len(labels))
    with torch.no_grad():
        for part in np.array_split(order, max(1, len(order) // 400)):
            if len(part):
                step_ms, _ = predict(model, batches.make(data, labels[part], model.options))
                result[part] = step_ms[:, 0].numpy()
    return result
