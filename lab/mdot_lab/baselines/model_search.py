"""DNNAbacus' choice of a shallow model: the one with the least error on inner folds of groups answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

INNER_FOLDS = 3


def _candidates(seed: int) -> dict[str, Callable[[], Any]]:
    import lightgbm
    import xgboost
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    forest = {"n_estimators": 100, "max_features": 0.3, "n_jobs": 1, "random_state": seed}
    boosting = {"n_estimators": 400, "learning_rate": 0.1, "subsample": 0.7, "colsample_bytree": 0.5, "n_jobs": 1, "random_state": seed}
    return {
        "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 4, 11))),
        "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsRegressor(5, weights="distance")),
        "random forest": lambda: RandomForestRegressor(min_samples_leaf=2, **forest),
        "extra trees": lambda: ExtraTreesRegressor(**forest),
        "XGBoost": lambda: xgboost.XGBRegressor(max_depth=5, min_child_weight=3, tree_method="hist", max_bin=128, **boosting),
        "LightGBM": lambda: lightgbm.LGBMRegressor(num_leaves=31, subsample_freq=1, verbosity=-1, **boosting),
    }


def search(x: np.ndarray, y: np.ndarray, groups: np.ndarray, seed: int = 0) -> tuple[str, Any]:
    """Name of the best model, and the model fitted to all rows. y are logarithms; rows of a group stay together."""
    known, index = np.unique(groups, return_inverse=True)
    fold = np.random.default_rng(seed).integers(0, INNER_FOLDS, len(known))[index.reshape(-1)]
    candidates, error = _candidates(seed), {}
    for name, make in candidates.items():
        off = [np.abs(np.expm1(make().fit(x[fold != number], y[fold != number]).predict(x[fold == number]) - y[fold == number]))
               for number in range(INNER_FOLDS)]
        error[name] = float(np.concatenate(off).mean())
    best = min(error, key=error.__getitem__)
    return best, candidates[best]().fit(x, y)
