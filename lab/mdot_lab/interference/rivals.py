"""Published methods for the same question, on the same numbers and folds.

- constant: the median slowdown of training.
- Yeung et al. and Horus (IEEE TPDS 33(1), 2022): XGBoost on features of both jobs; their features of the graph are summed in our
  numbers, and the target is the slowdown.
- Harmony (Deep Learning-based Job Placement in Distributed Machine Learning Clusters. INFOCOM, 2019): a perceptron over features of
  the jobs that share a machine. Its reinforcement learning is left out, because it places jobs and predicts nothing.

- the same pair elsewhere: the mean log slowdown of the same two jobs on the other cards. It is no method, because somebody must have
  measured the pair. It bounds any that knows jobs and cards and nothing about the host, since the cards were in different machines.

Settings are usual ones and were not tuned. Seeds vary the trees' samples and the perceptron's weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mdot_lab.interference import evaluation
from mdot_lab.interference.pairs import Pairs
from mdot_lab.interference.process import LEAST

FIELDS = ("split", "seed", "method", *evaluation.FIELDS[2:])
Method = Callable[[np.ndarray, np.ndarray, int], Callable[[np.ndarray], np.ndarray]]
"""(inputs [n, f], log slowdowns [n], seed) -> inputs [m, f] -> log slowdowns [m]."""


def _constant(inputs: np.ndarray, logs: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda wanted: np.full(len(wanted), np.median(logs))


def _trees(inputs: np.ndarray, logs: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    import xgboost

    return xgboost.XGBRegressor(n_estimators=200, max_depth=4, learning_rate=0.05, subsample=0.7, colsample_bytree=0.5,
                                min_child_weight=5, n_jobs=1, random_state=seed).fit(inputs, logs).predict


def _perceptron(inputs: np.ndarray, logs: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(32, 32), alpha=0.1, early_stopping=True, max_iter=300,
                                                        random_state=seed)).fit(inputs, logs).predict


METHODS: dict[str, Method] = {"constant": _constant, "Yeung et al., Horus: XGBoost": _trees, "Harmony: perceptron": _perceptron}


def same_pair_elsewhere(pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, and a mask of the pairs that another card has."""
    logs, names = np.log(pairs.slowdowns), np.array(["|".join(jobs) for jobs in pairs.jobs])
    other = (names[:, None] == names) & (pairs.gpus[:, None] != pairs.gpus)
    count = other.sum(1)
    return other @ logs / np.maximum(count, 1)[:, None], np.zeros_like(logs), count > 0


def table(pairs: Pairs, splits: dict[str, Callable[[Pairs], list[np.ndarray]]], seeds: int) -> list[list[str]]:
    """Rows in the form of evaluation.row, with the split and the seed before them."""
    rows = []
    for split, folds in splits.items():
        for name, method in METHODS.items():
            for seed in range(seeds if method is not _constant else 1):
                answer = predict_left_out(pairs, folds(pairs), method, seed)
                rows.append([split, str(seed), name, *evaluation.row("", "", pairs, answer, 1.0)[2:]])
    mean, deviation, known = same_pair_elsewhere(pairs)
    some = Pairs(*(part[known] for part in vars(pairs).values()))
    rows.append(["cards", "0", "the same pair elsewhere", *evaluation.row("", "", some, (mean[known], deviation[known]), 1.0)[2:]])
    return rows


def predict_left_out(pairs: Pairs, folds: list[np.ndarray], method: Method, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The mean of all folds' answers, in the form of evaluation.Answer, without deviations."""
    logs = np.log(np.maximum(pairs.loads, LEAST))
    sides = [np.concatenate([logs[:, side], logs[:, 1 - side]], axis=1) for side in (0, 1)]
    targets, total, count = np.log(pairs.slowdowns), np.zeros_like(pairs.slowdowns), np.zeros((len(logs), 1))
    for tested in folds:
        fitted = method(np.concatenate([side[~tested] for side in sides]), targets[~tested].T.ravel(), seed)
        total[tested] += np.maximum(np.column_stack([fitted(side[tested]) for side in sides]), 0)
        count[tested] += 1
    return total / count, np.zeros_like(total)
