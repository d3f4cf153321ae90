"""Gradient-boosted trees on one row of numbers for each job. Several publications use this method with different numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

from mdot_lab.predictor.dataset import Dataset

RATE = 0.1

Description = Callable[[Dataset, np.ndarray], np.ndarray]
"""(data, labels) → [labels, features]."""


@dataclass(frozen=True)
class Settings:
    depth: int
    rounds: int
    seed: int = 0


TRIED = tuple(Settings(depth, rounds) for depth in (3, 5, 7) for rounds in (200, 400))


def predict(describe: Description, data: Dataset, train: np.ndarray, test: np.ndarray,
            settings: Settings) -> np.ndarray:
    """Milliseconds of `test`. The trees are trained on the logarithms."""
    import xgboost

    model = xgboost.XGBRegressor(n_estimators=settings.rounds, max_depth=settings.depth, learning_rate=RATE, subsample=0.7,
                                 colsample_bytree=0.5, min_child_weight=3, reg_lambda=2.0, n_jobs=1, random_state=settings.seed,
                                 objective="reg:squarederror", tree_method="hist", max_bin=128)
    x = describe(data, train)
    varies = x.std(axis=0) > 0
    model.fit(x[:, varies], np.log(data.step_ms[train]))
    return np.exp(model.predict(describe(data, test)[:, varies]))
