"""Fits one part of a trained predictor again, and keeps the rest, for a changed law of the prior that concerns this part alone.
It takes ten seconds of processor time.

    nhwc          what NHWC adds, to the labels in NHWC; answers in NCHW stay as they are
    old_versions  the corrections before PyTorch conditions.SUMS_FAST, to the labels of the last such version; answers for later
                  versions stay as they are
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from mdot_lab.predictor import batches, conditions, training
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.model import Correction, Predictor
from mdot_lab.predictor.training import Benchmarks, Schedule

SCHEDULE = Schedule(epochs=10, parts=24, learning_rate=0.01, last_rate=0.1, inferences=1)
AVERAGED_FROM = 0.6
NEWEST_OLD, OLDEST_NEW = (f"torch_{version}" for version in (110, conditions.SUMS_FAST))

_Free = list[tuple[nn.Parameter, "torch.Tensor | None"]]
"""Parameters with a mask for those that the kept part shares."""


def _corrections(model: Predictor) -> tuple[Correction, Correction]:
    return model.head.correction, model.norm_head.correction


def _rows(model: Predictor, names: tuple[bool, ...]) -> _Free:
    """What the corrections add under the conditions that are true."""
    found: _Free = []
    for correction in _corrections(model):
        mask = torch.tensor(names, dtype=torch.float32)[:, None].expand(-1, correction.parts).flatten()
        found += [(correction.out.weight, mask[:, None]), (correction.out.bias, mask)]
    return found


def nhwc(model: Predictor, data: Dataset, schedule: Schedule = SCHEDULE) -> None:
    free: _Free = [(model.roofline.flop_cost_nhwc, None), (model.roofline.depthwise_byte_cost_nhwc, None)]
    _fit(model, data, np.flatnonzero(data.is_nhwc), free + _rows(model, conditions.OF_LAYOUT), schedule)


def old_versions(model: Predictor, data: Dataset, schedule: Schedule = SCHEDULE) -> None:
    """Starts with the corrections of the next version, from which old versions then differ by the law alone."""
    last, next_one = (conditions.NAMES.index(name) for name in (NEWEST_OLD, OLDEST_NEW))
    layers = [parameter for correction in _corrections(model) for parameter in (correction.out.weight, correction.out.bias)]
    rows = [parameter.data.view(conditions.COUNT, -1) for parameter in layers]
    sums = [x[last] + x[next_one] for x in rows]
    for x, both in zip(rows, sums):
        x[last] = both
    labels = np.flatnonzero(batches.versions(data, np.arange(len(data.step_ms))) == conditions.VERSIONS[0])
    _fit(model, data, labels, _rows(model, tuple(name == NEWEST_OLD for name in conditions.NAMES)), schedule)
    for x, both in zip(rows, sums):
        x[next_one] = both - x[last]


def _fit(model: Predictor, data: Dataset, labels: np.ndarray, free: _Free, schedule: Schedule) -> None:
    parts, benchmarks = training._parts(data, labels, schedule, model.options, schedule.seed), Benchmarks(batches.host_count(data))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parameter, mask in free:
        parameter.requires_grad_(True)
        if mask is not None:
            parameter.register_hook(lambda gradient, mask=mask: gradient * mask)
    groups = [{"params": [parameter for parameter, mask in free if (mask is None) == is_analytic],
               "lr": schedule.learning_rate * (2 if is_analytic else 1)} for is_analytic in (True, False)]
    optimizer = torch.optim.Adam(groups)
    steps, random = schedule.epochs * len(parts), np.random.default_rng(schedule.seed)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: training.rate(step / steps, schedule.last_rate))
    mean = training._Mean([parameter for parameter, _ in free])
    for epoch in range(schedule.epochs):
        for i in random.permutation(len(parts)):
            optimizer.zero_grad()
            training._loss(model, benchmarks, parts[i], schedule).backward()
            nn.utils.clip_grad_norm_([parameter for parameter, _ in free], 1.0)
            optimizer.step()
            scheduler.step()
        if epoch + 1 > AVERAGED_FROM * schedule.epochs:
            mean.add()
    mean.apply()
