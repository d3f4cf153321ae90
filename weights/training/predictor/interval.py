"""The 90 % interval: how far off predictions of what was left out of training have been.

Half-widths are logarithms, a linear function of where the predicted time goes (grouped convolutions, whose kernel cuDNN chooses,
are the hardest to foresee), of how long the GPU waits for a host, which nobody knows, and of what was not measured: whole steps of
such networks on the card in that arithmetic, of which convolutions are the less sure part; newer software, and what torch.compile
makes of a network; and a card of which nothing at all was. They are wider the less the job is like networks of training
(embedding_distance.py).
Fitted to predictions that did not see the network, its family, the card or the software, each as often as the others.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np
import torch
from torch import Tensor, nn

NAMES = ("always", "grouped", "depthwise", "grouped_nhwc", "depthwise_nhwc", "others", "software", "is_elsewhere",
         "convolutions_elsewhere", "new_card", "waiting", "distance")
FEATURES, FEATURE = len(NAMES), {name: i for i, name in enumerate(NAMES)}
SURER_NOWHERE = ("software", "new_card", "waiting")
"""Newer software and torch.compile, each alike, another card and waiting for the host make nothing surer."""
TAIL = 0.05
LOG_HALF_WIDTHS = (-5.0, -0.1)
"""99 in 100 left-out labels of every split are off by less than e^.9: no job is less sure for being farther off in several ways."""
OUTSIDE_WIDTH = 0.25
"""Added to both half-widths where a job leaves what was measured, at most: the farther, the more."""
NEWEST_STEPS = 112
"""Image networks' steps were measured up to this version; newer software is known by their inference, and by language models."""


def unmeasured_software(version: Tensor, is_compiled: Tensor, unlike: Tensor) -> Tensor:
    """In how many ways no whole step was measured by it. `unlike`: likeness', above 0 for what is no image network."""
    return (version - NEWEST_STEPS).clamp(0, 1) * (1 - unlike) + is_compiled


def interval_features(share: Tensor, is_nhwc: Tensor, software: Tensor, is_elsewhere: Tensor, is_new_card: Tensor,
                      waiting: Tensor, distance: Tensor) -> Tensor:
    """[FEATURES, C]. `share`: [4, C], of the predicted time in grouped convolutions, depthwise ones, what is no product, and
    convolutions of any kind; all else [C]: unmeasured_software; whether whole steps of the kind were measured on other cards or in
    other arithmetic alone; whether nothing was measured on the card; the host's part of the step; likeness' distance."""
    grouped, depthwise, others, convolutions = share.unbind(0)
    return torch.stack([torch.ones_like(grouped), grouped, depthwise, grouped * is_nhwc, depthwise * is_nhwc, others, software,
                        is_elsewhere, is_elsewhere * convolutions, is_new_card, waiting, distance])


class Interval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        start = torch.zeros(FEATURES, 2)
        start[0] = -2.0
        for name in SURER_NOWHERE:
            start[FEATURE[name]] = 0.1      # above zero, where it could not grow
        self.weight = nn.Parameter(start)      # columns: below, above
        self.register_buffer("scale", torch.ones(2))

    def half_widths(self, x: Tensor) -> list[Tensor]:
        """[FEATURES, C] → [C] twice"""
        is_bounded = torch.tensor([name in SURER_NOWHERE for name in NAMES])[:, None]
        weight = torch.where(is_bounded, torch.relu(self.weight), self.weight)
        return [torch.exp((x * weight[:, side, None]).sum(dim=0).clamp(*LOG_HALF_WIDTHS)) * self.scale[side] for side in range(2)]

    def forward(self, x: Tensor, outside: Tensor) -> tuple[Tensor, Tensor]:
        """`x`: interval_features'; `outside`: [causes, C]"""
        wider = OUTSIDE_WIDTH * outside.sum(dim=0).clamp(0, 1)
        low, high = self.half_widths(x)
        return low + wider, high + wider

    def fit(self, x: Tensor, residual: Tensor, weight: Tensor) -> None:
        """`residual`: log(measured / predicted) of what was left out, [R]; `weight`: [R]. Pinball loss, then a scale that gives
        each side exactly its share of these residuals."""
        optimizer = torch.optim.LBFGS([self.weight], max_iter=300, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            total = 1e-4 * (self.weight[1:] ** 2).mean()
            for width, off in zip(self.half_widths(x), (-residual, residual)):
                miss = off - width
                total = total + (weight * torch.maximum((1 - TAIL) * miss, -TAIL * miss)).mean()
            total.backward()
            return total

        optimizer.step(loss)
        with torch.no_grad():
            widths = self.half_widths(x)
            self.scale.copy_(torch.tensor(quantiles(beyond(residual, widths), weight)))

    def widen_new_cards(self, factors: Tensor) -> None:
        """`factors`: [2], 1 at least, of the half-widths below and above on a card of which nothing was measured."""
        with torch.no_grad():
            row = self.weight[FEATURE["new_card"]]
            row.copy_(torch.relu(row) + factors.log())


def beyond(residual: Tensor, widths: Sequence[Tensor]) -> Tensor:
    """[2, R]: residuals in half-widths, below and above; 1 at most is inside."""
    return torch.stack([-residual / widths[0], residual / widths[1]])


def quantiles(ratios: Tensor, weight: Tensor) -> list[float]:
    """By how much half-widths would have to be wider for each side to have its share. `ratios`: beyond()'s."""
    return [_weighted_quantile(side, weight, 1 - TAIL) for side in ratios]


def _weighted_quantile(values: Tensor, weight: Tensor, level: float) -> float:
    order = np.argsort(values.numpy())
    total = np.cumsum(weight.numpy()[order])
    return float(max(values.numpy()[order][np.searchsorted(total, level * total[-1])], 0.05))
