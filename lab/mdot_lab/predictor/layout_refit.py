"""Fits what a trained predictor adds in NHWC to the labels in NHWC, and keeps the rest, for a changed law of NHWC in the prior.
Answers in NCHW stay as they are. It takes ten seconds of processor time."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from mdot_lab.predictor import batches, conditions, training
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.model import Predictor
from mdot_lab.predictor.training import Benchmarks, Schedule

SCHEDULE = Schedule(epochs=10, parts=24, learning_rate=0.01, last_rate=0.1, inferences=1)
AVERAGED_FROM = 0.6


def _free(model: Predictor) -> list[tuple[nn.Parameter, torch.Tensor | None]]:
    """The parameters of NHWC, with a mask for those that other layouts share."""
    found: list[tuple[nn.Parameter, torch.Tensor | None]] = [(model.roofline.flop_cost_nhwc, None),
                                                             (model.roofline.depthwise_byte_cost_nhwc, None)]
    for correction in (model.head.correction, model.norm_head.correction):
        mask = torch.tensor(conditions.OF_LAYOUT, dtype=torch.float32)[:, None].expand(-1, correction.parts).flatten()
        found += [(correction.out.weight, mask[:, None]), (correction.out.bias, mask)]
    return found


def refit(model: Predictor, data: Dataset, schedule: Schedule = SCHEDULE) -> None:
    parts = training._parts(data, np.flatnonzero(data.is_nhwc), schedule, model.options, schedule.seed)
    free, benchmarks = _free(model), Benchmarks(batches.host_count(data))
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
