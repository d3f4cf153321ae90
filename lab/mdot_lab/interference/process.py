"""The model: a Gaussian process over the loads of both jobs.

log slowdown = max(0, prior + a(own) + b(partner) + c(own, partner)), with one kernel for each part, and a length scale
for each number and side. Far from every measured job, the answer returns to the measured median and the deviation grows
to the prior's, so that unfamiliar jobs get wide intervals. The mean is exact: with one kernel for each side, the weights of all
pairs are a matrix over the distinct loads. The deviation is that of a sparse process with POINTS pairs. An idle partner
costs nothing: the log slowdown is multiplied by 1 - exp(-10 * (busy_share + host_share)), which is 1 within 5e-5 for every
measured job.

The measured cards were in different machines, whose loaders slowed some jobs more than the GPU did. On a card unlike all of them, by
its two rates, the answer is that of time slicing, and the deviation is what that law leaves of the measured pairs:

    slowdown = 1 + k * busy_own * busy_partner * utilisation_partner^p / utilisation_own^q

Utilisation is the larger of the compute and memory shares, LEAST_USE to 1. With k <= 1, two equal jobs are at most twice as slow, and no
job is slower than 1 + LEAST_USE^-q times. CARD_SCALE is the distance, in logarithms of the rates, at which the law takes over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

LEAST = 1e-4
"""Smaller numbers count as this before the logarithm."""
BUSY, COMPUTE, MEMORY, HOST, GATE = 1, 3, 4, 5, 10.0
RATES = slice(7, 9)
LEAST_USE, CARD_SCALE, LAW_STEPS, LAW_RATE, LAW_DECAY = 0.02, 0.25, 400, 0.03, 0.003
POINTS, SAMPLE, STEPS, RATE = 160, 400, 60, 0.1
"""Inducing points; pairs and steps for the length scales."""
KIND = torch.float64


@dataclass(frozen=True)
class Process:
    """Normalisation of logarithms; scaled distinct loads of both sides and their weights; the same for the variance."""
    mean: Tensor
    scale_own: Tensor
    scale_partner: Tensor
    own: Tensor
    partner: Tensor
    weights: Tensor
    """[distinct loads, distinct loads], by own and partner."""
    own_points: Tensor
    partner_points: Tensor
    amplitudes: Tensor
    whitening: Tensor
    prior: float
    noise: float
    law: np.ndarray
    """log k, and the powers of own and partner's utilisation."""
    law_variance: float
    cards: np.ndarray
    """Logarithms of the measured cards' rates, [cards, 2]."""

    def __call__(self, loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the log slowdown, [pairs, 2] each."""
        mean, variance = self.of_measured_cards(loads)
        known = self.familiarity(loads)[:, None]
        return (known * np.maximum(mean, 0) + (1 - known) * time_slicing(self.law, loads),
                np.sqrt(known * variance + (1 - known) * self.law_variance))

    def familiarity(self, loads: np.ndarray) -> np.ndarray:
        """1 on a measured card, towards 0 far from all of them."""
        rates = np.log(loads[:, 0, RATES])[:, None]
        return np.minimum(np.exp(-0.5 * ((rates - self.cards) ** 2).sum(2) / CARD_SCALE**2).sum(1), 1)

    def of_measured_cards(self, loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the process."""
        own, partner = self.inputs(loads)
        a, b = _near(own, self.own), _near(partner, self.partner)
        mean = self.prior + a @ self.own_weights + b @ self.partner_weights + self.amplitudes[2] * ((a @ self.weights) * b).sum(1)
        kernel = _kernel(self.amplitudes, own, partner, self.own_points, self.partner_points)
        variance = (self.amplitudes.sum() + self.noise - (kernel @ self.whitening).square().sum(1)).clamp(min=self.noise)
        return _pairs(mean), _pairs(variance)

    @property
    def own_weights(self) -> Tensor:
        return self.amplitudes[0] * self.weights.sum(1)

    @property
    def partner_weights(self) -> Tensor:
        return self.amplitudes[1] * self.weights.sum(0)

    def inputs(self, loads: np.ndarray) -> tuple[Tensor, Tensor]:
        own, partner = _sides(loads)
        return (own - self.mean) * self.scale_own, (partner - self.mean) * self.scale_partner


def _sides(loads: np.ndarray) -> tuple[Tensor, Tensor]:
    logs = torch.tensor(np.log(np.maximum(loads, LEAST)), dtype=KIND)
    return torch.cat([logs[:, 0], logs[:, 1]]), torch.cat([logs[:, 1], logs[:, 0]])


def _pairs(values: Tensor) -> np.ndarray:
    return values.reshape(2, -1).T.numpy()


def _near(left: Tensor, right: Tensor) -> Tensor:
    return torch.exp(-0.5 * ((left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T).clamp(min=0))


def _kernel(amplitudes: Tensor, own: Tensor, partner: Tensor, other_own: Tensor, other_partner: Tensor) -> Tensor:
    a, b = _near(own, other_own), _near(partner, other_partner)
    return amplitudes[0] * a + amplitudes[1] * b + amplitudes[2] * a * b


def _learn_scales(own: Tensor, partner: Tensor, targets: Tensor) -> Tensor:
    """Logarithms of length scales, amplitudes and noise, by marginal likelihood on a sample, near a common start."""
    count = own.shape[1]
    start = torch.full((2 * count + 4,), float(np.log(1.5)), dtype=KIND)
    start[2 * count:2 * count + 3], start[-1] = float(np.log(0.05)), float(np.log(0.02))
    learnt = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([learnt], RATE)
    chosen = torch.randperm(len(targets), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    a, b, y = own[chosen], partner[chosen], targets[chosen, None]
    for _ in range(STEPS):
        optimizer.zero_grad()
        x, z = a * torch.exp(-learnt[:count]), b * torch.exp(-learnt[count:2 * count])
        covariance = _kernel(torch.exp(learnt[2 * count:2 * count + 3]), x, z, x, z) + torch.exp(learnt[-1]) * torch.eye(len(y), dtype=KIND)
        root = torch.linalg.cholesky(covariance)
        loss = 0.5 * (y * torch.cholesky_solve(y, root)).sum() + root.diagonal().log().sum() + (learnt - start).square().sum()
        loss.backward()
        optimizer.step()
    return learnt.detach()


def _choose_points(amplitudes: Tensor, own: Tensor, partner: Tensor) -> Tensor:
    """A pivoted Cholesky factor's pivots: each point is the one that the earlier ones explain least."""
    left = torch.full((len(own),), float(amplitudes.sum()), dtype=KIND)
    factor = torch.zeros(min(POINTS, len(own)), len(own), dtype=KIND)
    chosen: list[int] = []
    for number in range(len(factor)):
        i = int(left.argmax())
        column = _kernel(amplitudes, own, partner, own[i:i + 1], partner[i:i + 1])[:, 0]
        factor[number] = (column - factor[:number, i] @ factor[:number]) / left[i].clamp(min=1e-9).sqrt()
        left = (left - factor[number]**2).clamp(min=0)
        left[i] = 0
        chosen.append(i)
    return torch.tensor(chosen)


def _shared(loads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Product of the busy shares, and the log utilisation of both sides."""
    busy = np.minimum(loads[:, :, BUSY], 1)
    used = np.log(np.clip(np.maximum(loads[:, :, COMPUTE], loads[:, :, MEMORY]), LEAST_USE, 1))
    return busy * busy[:, ::-1], np.stack([used, used[:, ::-1]], axis=-1)


def time_slicing(law: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Log slowdown by the law, [pairs, 2]."""
    busy, used = _shared(loads)
    return np.log1p(busy * np.exp(law[0] + used @ law[1:]))


def fit_law(loads: np.ndarray, slowdowns: np.ndarray) -> np.ndarray:
    """By absolute error, because loaders slow a few jobs manifold."""
    busy, used = map(torch.tensor, _shared(loads))
    logs = torch.tensor(np.log(slowdowns))
    law = torch.tensor([-0.2, 0, 0], dtype=KIND, requires_grad=True)
    optimizer = torch.optim.Adam([law], LAW_RATE)
    for _ in range(LAW_STEPS):
        optimizer.zero_grad()
        loss = (torch.log1p(busy * torch.exp(law[0] + used @ law[1:])) - logs).abs().mean() + LAW_DECAY * law[1:].square().sum()
        loss.backward()
        optimizer.step()
    found = law.detach().numpy()
    return np.array([min(found[0], 0), min(found[1], 0), max(found[2], -found[1])])


def fit(loads: np.ndarray, slowdowns: np.ndarray) -> Process:
    raw_own, raw_partner = _sides(loads)
    mean, deviation = raw_own.mean(0), raw_own.std(0) + 1e-6
    targets = torch.tensor(np.log(slowdowns), dtype=KIND).T.reshape(-1)
    prior, law = float(targets.median()), fit_law(loads, slowdowns)
    count = raw_own.shape[1]
    learnt = _learn_scales((raw_own - mean) / deviation, (raw_partner - mean) / deviation, targets - prior)
    scale_own, scale_partner = (torch.exp(-learnt[side * count:(side + 1) * count]) / deviation for side in (0, 1))
    amplitudes, noise = torch.exp(learnt[2 * count:2 * count + 3]), float(torch.exp(learnt[-1]))
    own, partner = (raw_own - mean) * scale_own, (raw_partner - mean) * scale_partner
    points = _choose_points(amplitudes, own, partner)
    own_points, partner_points = own[points], partner[points]
    among = _kernel(amplitudes, own_points, partner_points, own_points, partner_points) + 1e-4 * torch.eye(len(points), dtype=KIND)
    across = _kernel(amplitudes, own, partner, own_points, partner_points)
    precision = among + across.T @ across / noise
    explained = torch.linalg.inv(among) - torch.linalg.inv(precision)
    values, vectors = torch.linalg.eigh((explained + explained.T) / 2)
    whole = _kernel(amplitudes, own, partner, own, partner) + noise * torch.eye(len(own), dtype=KIND)
    of_pair = torch.cholesky_solve((targets - prior)[:, None], torch.linalg.cholesky(whole))[:, 0]
    distinct, index = np.unique(loads.reshape(-1, count), axis=0, return_inverse=True)
    index = torch.tensor(index.reshape(-1, 2))
    weights = torch.zeros(len(distinct), len(distinct), dtype=KIND)
    weights.index_put_((torch.cat([index[:, 0], index[:, 1]]), torch.cat([index[:, 1], index[:, 0]])), of_pair, accumulate=True)
    logs = torch.tensor(np.log(np.maximum(distinct, LEAST)), dtype=KIND) - mean
    return Process(mean, scale_own, scale_partner, logs * scale_own, logs * scale_partner, weights, own_points, partner_points,
                   amplitudes, vectors * values.clamp(min=0).sqrt(), prior, noise, law,
                   float(((time_slicing(law, loads) - np.log(slowdowns)) ** 2).mean()),
                   np.unique(np.log(loads[:, 0, RATES]), axis=0))
