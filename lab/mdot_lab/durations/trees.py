"""Boosted trees that correct a history's answer, and CART on the metadata alone."""

from __future__ import annotations

import lightgbm
import numpy as np
from sklearn.tree import DecisionTreeRegressor

from mdot_lab.durations.jobs import QUANTILES

PROBABILITIES = (0.05, 0.5, 0.95)
ENDS = [QUANTILES.index(name) for name in ("p5_s", "p50_s", "p95_s")]
"""The history's numbers that the trees correct, one each."""
SETTINGS = {"num_leaves": 31, "learning_rate": 0.05, "min_data_in_leaf": 200, "feature_fraction": 0.7, "bagging_fraction": 0.7,
            "bagging_freq": 1, "lambda_l2": 1.0, "num_threads": 1, "verbosity": -1}
ROUNDS = 20
"""More rounds learn a site's level of durations, which drifts: with 60, the medians of Philly and ITP are 5 to 12 % worse."""

Boosters = list[lightgbm.Booster]


def fit(inputs: np.ndarray, log_s: np.ndarray, seed: int = 0) -> Boosters:
    """One booster for each probability; it predicts the logarithm of duration over the history's quantile."""
    return [lightgbm.train({**SETTINGS, "objective": "quantile", "alpha": p, "seed": seed},
                           lightgbm.Dataset(inputs, log_s - inputs[:, end]), ROUNDS) for p, end in zip(PROBABILITIES, ENDS)]


def predict(boosters: Boosters, inputs: np.ndarray) -> np.ndarray:
    """Log seconds at the probabilities, ascending: [jobs, 3]."""
    lower, median, upper = (inputs[:, end] + booster.predict(inputs) for booster, end in zip(boosters, ENDS))
    return np.stack([np.minimum(lower, median), median, np.maximum(upper, median)], 1)


def cart(train: np.ndarray, log_s: np.ndarray, test: np.ndarray) -> np.ndarray:
    """MLaaS in the Wild (Weng et al., NSDI 2022): one tree on the metadata. Its leaves have the training jobs' quantiles."""
    tree = DecisionTreeRegressor(min_samples_leaf=50, random_state=0).fit(train, log_s)
    leaf, asked = tree.apply(train), tree.apply(test)
    quantiles = {i: np.quantile(log_s[leaf == i], PROBABILITIES) for i in np.unique(asked)}
    return np.stack([quantiles[i] for i in asked])
