"""The 90 % interval: how far off predictions of networks that were left out of training have been.

Half-widths are logarithms, a linear function of where the predicted time goes: grouped convolutions, whose kernel cuDNN
chooses, are the hardest to foresee. Fitted to predictions that did not see the network, half of them not its family either.
"""

from __future__ import annotations

from typing import Callable

import numpy as np
import torch
from torch import Tensor, nn

from predictor.features import Work

FEATURES = 6
TAIL = 0.05
OUTSIDE_WIDTH = 0.5
"""Added to both half-widths outside the training set's ranges, at most: other GPUs and precisions are unproven."""


def interval_features(work: Work, share: Tensor, is_nhwc: Tensor, sums: Callable[[Tensor], Tensor]) -> Tensor:
    """[R, FEATURES]. `share`: [P, 1] of the predicted time; `sums` adds over the operators of a job; `is_nhwc`: [R, 1]."""
    grouped = sums(share * work.is_grouped * (1 - work.is_depthwise))
    depthwise = sums(share * work.is_depthwise)
    others = sums(share * (1 - work.is_product))
    return torch.cat([torch.ones_like(grouped), grouped, depthwise, grouped * is_nhwc, depthwise * is_nhwc, others], dim=1)


class Interval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        start = torch.zeros(FEATURES, 2)
        start[0] = -2.0
        self.weight = nn.Parameter(start)      # columns: below, above
        self.register_buffer("scale", torch.ones(2))

    def half_widths(self, x: Tensor) -> Tensor:
        """[R, FEATURES] → [R, 2]"""
        return torch.exp((x @ self.weight).clamp(-5, 1)) * self.scale

    def forward(self, x: Tensor, outside: Tensor) -> tuple[Tensor, Tensor]:
        width = self.half_widths(x) + OUTSIDE_WIDTH * outside.clamp(0, 1)
        return width[:, :1], width[:, 1:]

    def fit(self, x: Tensor, residual: Tensor, weight: Tensor) -> None:
        """`residual`: log(measured / predicted) of left-out networks, [R]; `weight`: [R]. Pinball loss, then a scale that gives
        each side exactly its share of these residuals."""
        optimizer = torch.optim.LBFGS([self.weight], max_iter=300, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            width = self.half_widths(x)
            total = 0.0
            for side, beyond in ((0, -residual), (1, residual)):
                miss = beyond - width[:, side]
                total = total + (weight * torch.maximum((1 - TAIL) * miss, -TAIL * miss)).mean()
            total = total + 1e-4 * (self.weight[1:] ** 2).mean()
            total.backward()
            return total

        optimizer.step(loss)
        with torch.no_grad():
            width = self.half_widths(x)
            ratio = torch.stack([-residual, residual], dim=1) / width
            self.scale.copy_(torch.tensor([_weighted_quantile(ratio[:, i], weight, 1 - TAIL) for i in (0, 1)]))


def _weighted_quantile(values: Tensor, weight: Tensor, level: float) -> float:
    order = np.argsort(values.numpy())
    total = np.cumsum(weight.numpy()[order])
    return float(max(values.numpy()[order][np.searchsorted(total, level * total[-1])], 0.05))
