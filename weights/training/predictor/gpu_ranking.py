"""What a left-out card's predictions are worth beside another card's: which of two is quicker, and how much of the error is one
constant a board, such as its host, that no figure of a card tells."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from predictor import splits
from predictor.dataset import Dataset
from predictor.evaluation import Fold
from predictor.metrics import Errors, errors

CLEAR = 1.1
"""A pair of steps counts from this ratio on."""


def _chip(gpu: str) -> str:
    return next((twins[0] for twins in splits.TWINS if gpu in twins), gpu)


def order(gpu: np.ndarray, same: np.ndarray, predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """[pairs, 2] of steps of the same network and arithmetic (`same` is equal) that clearly differ: whether the quicker one is
    predicted to be, and whether both boards have one chip."""
    found = []
    for what in np.unique(same):
        for a, b in combinations(np.flatnonzero(same == what), 2):
            if gpu[a] != gpu[b] and max(measured[a], measured[b]) > CLEAR * min(measured[a], measured[b]):
                found.append(((predicted[a] < predicted[b]) == (measured[a] < measured[b]), _chip(gpu[a]) == _chip(gpu[b])))
    return np.array(found, dtype=bool).reshape(-1, 2)


def with_constants(group: np.ndarray, predicted: np.ndarray, measured: np.ndarray) -> Errors:
    """Of predictions times what suits their group best: the median of measured over predicted, each at the weight of its inverse,
    has the least mean relative error."""
    scaled = predicted.copy()
    for each in np.unique(group):
        rows = np.flatnonzero(group == each)
        ratio = measured[rows] / predicted[rows]
        rows, ratio = rows[np.argsort(ratio)], np.sort(ratio)
        total = np.cumsum(1 / ratio)
        scaled[rows] *= ratio[np.searchsorted(total, total[-1] / 2)]
    return errors(scaled, measured)


def lines(folds: dict[str, Fold], data: Dataset) -> list[str]:
    """For the report; nothing without folds."""
    if not folds:
        return []
    label, predicted, measured = (np.concatenate([getattr(fold, field) for fold in folds.values()])
                                  for field in ("label", "predicted_ms", "measured_ms"))
    gpu, precision = data.gpu[label].astype(str), data.precision[label].astype(str)
    arithmetic = np.where(np.isin(precision, ("fp32", "tf32")), "single", "half")
    network = data.label_network[label].astype(str)
    pairs = order(gpu, np.char.add(network, arithmetic), predicted, measured)
    text = [f"{100 * some[:, 0].mean():.0f} % of {len(some)} pairs {what}" for some, what in
            ((pairs, "of steps that differ by more than a tenth come out in order"), (pairs[~pairs[:, 1]], "between chips"),
             (pairs[pairs[:, 1]], "between boards of one chip")) if len(some)]
    chip = np.array([_chip(each) for each in gpu])
    for of, name in ((chip, "chip"), (gpu, "board")):
        e = with_constants(np.char.add(of, precision), predicted, measured)
        text.append(f"with the constant that suits each {name} and arithmetic best {e.mape:.1f} / {e.median:.1f}")
    return ["Between cards: " + "; ".join(text) + ".", ""]
