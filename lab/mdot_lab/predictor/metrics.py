"""Errors of predictions relative to measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Errors:
    """In %, except for the last two."""

    count: int
    mape: float
    median: float
    p90: float
    within_10: float
    mae_ms: float
    rmse_ms: float


def errors(predicted_ms: np.ndarray, measured_ms: np.ndarray) -> Errors:
    ratio = 100 * np.abs(predicted_ms / measured_ms - 1)
    off_ms = np.abs(predicted_ms - measured_ms)
    return Errors(len(ratio), float(ratio.mean()), float(np.median(ratio)), float(np.quantile(ratio, 0.9)),
                  float(100 * (ratio < 10).mean()), float(off_ms.mean()), float(np.sqrt((off_ms**2).mean())))
