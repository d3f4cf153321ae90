"""The 90 % interval, from prediction errors on labels left out of training.

Half-widths are logarithms. They are a linear function of the following quantities: the predicted time fractions by
operator kind (grouped convolutions, whose kernel cuDNN chooses, are the hardest to predict); the time waiting for a
host of unknown speed; whether whole steps of such networks were measured on the GPU in this precision (without them,
convolutions are the less certain part); newer software and torch.compile; and whether the GPU has any measurements
at all. Half-widths also grow with the job's distance from the training networks (embedding_distance.py).

Two independent errors are added in quadrature, because no held-out network can show them: the host's launch cost on
a new GPU model, and the conditions of a publisher without steps in training. Both come from few samples, so the
quantiles are Student's.

The function is fitted to predictions made without the network, the family, the GPU or the software, each with equal
weight.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np
import torch
from torch import Tensor, nn

NAMES = ("always", "grouped", "depthwise", "grouped_nhwc", "depthwise_nhwc", "others", "software", "is_elsewhere",
         "convolutions_elsewhere", "new_gpu", "waiting", "distance")
FEATURES, FEATURE = len(NAMES), {name: i for i, name in enumerate(NAMES)}
LEAST_WIDENING = {"software": 0.1, "new_gpu": 0.0, "waiting": 0.0}
"""Features that may only widen the interval, with the least log(widening): newer software and torch.compile together,
another GPU, and waiting for the host. Held-out labels with newer software are for inference and one GPU model. They
alone would not widen the interval, although whole steps with this software are unknown elsewhere."""
TAIL = 0.05
LOG_HALF_WIDTHS = (-5.0, -0.1)
"""99 in 100 held-out labels of every split are off by less than e^.9, therefore several differences at once do not widen a
job's interval further."""
LAUNCH_COST = 0.49
"""Half-width of log(launch cost) on a new host: the root mean square of log(cost / 50 µs) over MEASURED_HOSTS, .26,
times Student's 95 % quantile with eight degrees of freedom, 1.86."""
MEASURED_HOSTS = (60.0, 80.0, 50.0, 80.0, 45.0, 45.0, 60.0, 42.5)
"""Launch costs in µs, where every host is assumed to have 50 (docs/explanation/prediction.md, Hosts)."""
OUTSIDE_WIDTH = 0.25
"""Greatest width that is added to both half-widths if a job leaves the measured range. It grows with the distance."""
NEWEST_STEPS = 112
"""Steps of image networks were measured up to this version. Newer software is known only from inference, and from
language models."""


def unmeasured_software(version: Tensor, is_compiled: Tensor, unlike: Tensor) -> Tensor:
    """The number of software properties without a measured whole step. `unlike`: from EmbeddingDistance, above 0 for networks
    other than image networks."""
    return (version - NEWEST_STEPS).clamp(0, 1) * (1 - unlike) + is_compiled


def interval_features(fraction: Tensor, is_nhwc: Tensor, software: Tensor, is_elsewhere: Tensor, is_new_gpu: Tensor,
                      waiting: Tensor, distance: Tensor) -> Tensor:
    """[FEATURES, C]. `fraction`: [4, C], fractions of predicted time in grouped convolutions, depthwise ones, operators other
    than matmuls, and all convolutions. All others are [C]: unmeasured_software; whether whole steps of the kind were measured
    only on other GPUs or in other precisions; whether the GPU has no measurements; the host's fraction of the step; the
    distance of EmbeddingDistance."""
    grouped, depthwise, others, convolutions = fraction.unbind(0)
    return torch.stack([torch.ones_like(grouped), grouped, depthwise, grouped * is_nhwc, depthwise * is_nhwc, others, software,
                        is_elsewhere, is_elsewhere * convolutions, is_new_gpu, waiting, distance])


class Interval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        start = torch.zeros(FEATURES, 2)
        start[0] = -2.0
        for name, least in LEAST_WIDENING.items():
            start[FEATURE[name]] = least + 0.1      # above the bound, at which there is no gradient
        self.weight = nn.Parameter(start)      # columns: below, above
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("publisher", torch.zeros(2))   # half-widths by the conditions of an unknown publisher

    def half_widths(self, x: Tensor) -> list[Tensor]:
        """[FEATURES, C] → [C] twice"""
        least = torch.tensor([LEAST_WIDENING.get(name, -torch.inf) for name in NAMES])[:, None]
        weight = torch.maximum(self.weight, least)
        logs = [(x * weight[:, side, None]).sum(dim=0).clamp(*LOG_HALF_WIDTHS) for side in range(2)]
        return [torch.exp(log) * scale for log, scale in zip(logs, self.scale)]

    def with_unknown(self, x: Tensor, half_widths: Sequence[Tensor], is_new_publisher: Tensor) -> list[Tensor]:
        """[C] twice: half-widths with the errors of an unknown host and publisher. `is_new_publisher`: [C], 0 to 1."""
        of_host = of_new_host(x) ** 2
        return [torch.sqrt(width**2 + of_host + (is_new_publisher * self.publisher[side]) ** 2)
                for side, width in enumerate(half_widths)]

    def forward(self, x: Tensor, outside: Tensor) -> tuple[Tensor, Tensor]:
        """`x`: interval_features; `outside`: [causes, C]. Without whole steps of this kind on the GPU in the precision,
        the conditions are an unknown publisher's."""
        wider = OUTSIDE_WIDTH * outside.sum(dim=0).clamp(0, 1)
        low, high = self.with_unknown(x, self.half_widths(x), x[FEATURE["is_elsewhere"]])
        return low + wider, high + wider

    def fit(self, x: Tensor, residual: Tensor, weight: Tensor) -> None:
        """`residual`: log(measured / predicted) for held-out labels, [R]; `weight`: [R]. Minimises the pinball loss,
        then scales each side to cover exactly its part."""
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

    def widen_new_gpus(self, factors: Tensor) -> None:
        """`factors`: [2], at least 1, on the half-widths below and above for a GPU without measurements."""
        with torch.no_grad():
            row = self.weight[FEATURE["new_gpu"]]
            row.copy_(torch.relu(row) + factors.log())


def of_new_host(x: Tensor) -> Tensor:
    """[C]: the half-width from the host's launch cost for a GPU model without measurements. A step's logarithm changes
    by the fraction that waits for the host, times the change in log(cost)."""
    return LAUNCH_COST * x[FEATURE["waiting"]] * x[FEATURE["new_gpu"]]


def of_publishers(offsets: Sequence[float]) -> Tensor:
    """[2]: the half-widths below and above for an unseen publisher's conditions: the offsets' root mean square on
    either side, times Student's 95 % quantile. `offsets`: each publisher's mean log(measured / predicted)."""
    from scipy.stats import t

    offset, quantile = np.array(offsets), t.ppf(1 - TAIL, len(offsets))
    return torch.tensor([quantile * np.sqrt(np.mean(np.maximum(side * offset, 0) ** 2)) for side in (-1, 1)],
                        dtype=torch.float32)


def without_host(residual: Tensor, x: Tensor) -> Tensor:
    """Residuals beyond a new host's error, which is added in quadrature."""
    return residual.sign() * torch.sqrt((residual**2 - of_new_host(x) ** 2).clamp(min=0))


def beyond(residual: Tensor, widths: Sequence[Tensor]) -> Tensor:
    """[2, R]: residuals in units of the half-widths, below and above; values up to 1 are inside."""
    return torch.stack([-residual / widths[0], residual / widths[1]])


def quantiles(ratios: Tensor, weight: Tensor) -> list[float]:
    """Factors on half-widths with which each side covers the residuals. `ratios`: from beyond()."""
    return [_weighted_quantile(side, weight, 1 - TAIL) for side in ratios]


def _weighted_quantile(values: Tensor, weight: Tensor, level: float) -> float:
    order = np.argsort(values.numpy())
    total = np.cumsum(weight.numpy()[order])
    return float(max(values.numpy()[order][np.searchsorted(total, level * total[-1])], 0.05))
