"""Errors on left-out pairs, networks and cards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mdot_lab.interference.pairs import Pairs
from mdot_lab.interference.process import fit

PAIR_FOLDS = 5
Folds = list[np.ndarray]
"""Masks of the pairs that are left out."""
Answer = tuple[np.ndarray, np.ndarray]
"""Mean and deviation of the log slowdown."""


def left_out_pairs(pairs: Pairs) -> Folds:
    """Pairs of jobs, on all cards together."""
    names = np.array(["|".join(sorted(jobs)) for jobs in pairs.jobs])
    known, index = np.unique(names, return_inverse=True)
    fold = np.random.default_rng(0).integers(0, PAIR_FOLDS, len(known))[index]
    return [fold == number for number in range(PAIR_FOLDS)]


def left_out_networks(pairs: Pairs) -> Folds:
    """All pairs with a network; a pair of two networks is judged twice, and the mean counts."""
    return [(pairs.networks == name).any(1) for name in np.unique(pairs.networks)]


def left_out_cards(pairs: Pairs) -> Folds:
    return [pairs.gpus == name for name in np.unique(pairs.gpus)]


SPLITS: dict[str, Callable[[Pairs], Folds]] = {"pairs": left_out_pairs, "networks": left_out_networks, "cards": left_out_cards}


def predict_left_out(pairs: Pairs, folds: Folds) -> Answer:
    mean, deviation = np.zeros_like(pairs.slowdowns), np.zeros_like(pairs.slowdowns)
    counts = np.zeros((len(pairs.gpus), 1))
    for tested in folds:
        answers = fit(pairs.loads[~tested], pairs.slowdowns[~tested])(pairs.loads[tested])
        mean[tested] += np.maximum(answers[0], 0)
        deviation[tested] += answers[1]
        counts[tested] += 1
    return mean / counts, deviation / counts


def obvious_rule(pairs: Pairs) -> Answer:
    """Busy shares add: each job slows down by their sum, if it exceeds 1."""
    shares = np.minimum(pairs.loads[:, :, 1], 1).sum(1, keepdims=True)
    return np.log(np.maximum(np.repeat(shares, 2, axis=1), 1)), np.zeros_like(pairs.slowdowns)


def deviations(pairs: Pairs, answer: Answer) -> np.ndarray:
    """Distance from the label, in deviations."""
    return np.abs(np.log(pairs.slowdowns) - answer[0]) / answer[1]


FIELDS = ("key", "left_out", "median", "mean", "pays", "pays_clear", "inside", "k80", "p100", "v100")
"""Median and mean error, right decisions, those where packing changes the work by more than 5 %, coverage, and the median
error of each card; all in percent."""


def row(key: str, name: str, pairs: Pairs, answer: Answer, factor: float) -> list[str]:
    errors = np.abs(np.exp(answer[0]) / pairs.slowdowns - 1)
    work, predicted = (1 / pairs.slowdowns).sum(1), np.exp(-answer[0]).sum(1)
    right, clear = (work > 1) == (predicted > 1), np.abs(work - 1) > 0.05
    values = [np.median(errors), errors.mean(), right.mean(), right[clear].mean()]
    cells = [f"{100 * value:.1f}" for value in values]
    cells.append(f"{100 * (deviations(pairs, answer) <= factor).mean():.1f}" if answer[1].any() else "-")
    return [key, name, *cells, *(f"{100 * np.median(errors[pairs.gpus == gpu]):.1f}" for gpu in FIELDS[-3:])]
