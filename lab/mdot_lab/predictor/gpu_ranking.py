"""Evaluates predictions for held-out GPU models: how often the faster of two GPUs is predicted to be faster, and how
much of the error is one constant per GPU, for example the host, which the GPU's spec values leave open."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mdot_lab.predictor import splits
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.evaluation import Fold
from mdot_lab.predictor.metrics import Errors, errors

CLEAR = 1.1
"""A step pair counts from this time ratio on."""


def _die(gpu: str) -> str:
    return next((twins[0] for twins in splits.TWINS if gpu in twins), gpu)


def order(gpu: np.ndarray, same: np.ndarray, predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """[pairs, 2] for clearly different steps with the same network and precision (equal `same`): whether the faster one
    is predicted to be faster, and whether both GPUs have the same die."""
    found = []
    for group in np.unique(same):
        for a, b in combinations(np.flatnonzero(same == group), 2):
            if gpu[a] != gpu[b] and max(measured[a], measured[b]) > CLEAR * min(measured[a], measured[b]):
                found.append(((predicted[a] < predicted[b]) == (measured[a] < measured[b]), _die(gpu[a]) == _die(gpu[b])))
    return np.array(found, dtype=bool).reshape(-1, 2)


def with_constants(group: np.ndarray, predicted: np.ndarray, measured: np.ndarray) -> Errors:
    """Errors after each group's predictions are scaled by the best constant. This is the median of measured over
    predicted with the inverse ratios as weights, because it has the least mean relative error."""
    scaled = predicted.copy()
    for each in np.unique(group):
        rows = np.flatnonzero(group == each)
        ratio = measured[rows] / predicted[rows]
        rows, ratio = rows[np.argsort(ratio)], np.sort(ratio)
        total = np.cumsum(1 / ratio)
        scaled[rows] *= ratio[np.searchsorted(total, total[-1] / 2)]
    return errors(scaled, measured)


def lines(folds: dict[str, Fold], data: Dataset) -> list[str]:
    """Lines for the report; an empty list if there are no folds."""
    if not folds:
        return []
    label, predicted, measured = (np.concatenate([getattr(fold, field) for fold in folds.values()])
                                  for field in ("label", "predicted_ms", "measured_ms"))
    gpu, precision = data.gpu[label].astype(str), data.precision[label].astype(str)
    matmul_precision = np.where(np.isin(precision, ("fp32", "tf32")), "single", "half")
    network = data.label_network[label].astype(str)
    pairs = order(gpu, np.char.add(network, matmul_precision), predicted, measured)
    text = [f"{100 * some[:, 0].mean():.0f} % of {len(some)} pairs {description}" for some, description in
            ((pairs, "of steps that differ by more than a tenth are in the right order"), (pairs[~pairs[:, 1]], "between dies"),
             (pairs[pairs[:, 1]], "between GPU models with the same die")) if len(some)]
    die = np.array([_die(each) for each in gpu])
    for of, name in ((die, "die"), (gpu, "GPU model")):
        e = with_constants(np.char.add(of, precision), predicted, measured)
        text.append(f"with the best constant factor for each {name} and precision {e.mape:.1f} / {e.median:.1f}")
    return ["Between GPU models: " + "; ".join(text) + ".", ""]
