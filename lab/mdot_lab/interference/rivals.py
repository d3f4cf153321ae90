"""Published methods for the same question, on the same numbers and folds.

- constant: the median slowdown of training.
- Yeung et al. and Horus (IEEE TPDS 33(1), 2022): XGBoost on features of both jobs; their features of the graph are summed in our
  numbers, and the target is the slowdown.
- Harmony (Deep Learning-based Job Placement in Distributed Machine Learning Clusters. INFOCOM, 2019): a perceptron over features of
  the jobs that share a machine. Its reinforcement learning is left out, because it places jobs and predicts nothing.

- the same pair elsewhere: the mean log slowdown of the same two jobs on the other cards. It is no method, because somebody must have
  measured the pair. It bounds any that knows jobs and cards and nothing about the host, since the cards were in different machines.

- own and partner's factor: for each card, every job's slowdown is a factor of its own times one of its partner, both fitted to the
  judged labels. It bounds the additive part of any law that knows a job's factors without measuring its pairs.
- the same speeds, alone again: Gavel has two tables, whose speeds together are equal, and which measured each job alone on their own.
  The slowdowns of one judge those of the other; pairs with Recommendation do not count, which ran without its loader in one. It bounds
  every predictor, because no answer can be nearer to a label than a second measurement.
- mdot, n pairs measured: left-out networks, of which n random pairs on any card are known.

Settings are usual ones and were not tuned. Seeds vary the trees' samples and the perceptron's weights.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mdot_lab.interference import evaluation, process
from mdot_lab.interference.pairs import Pairs
from mdot_lab.interference.process import LEAST

MEASURED = (5, 10, 20, 40)
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


METHODS: dict[str, Method] = {"constant": _constant, "after Yeung et al. and Horus: XGBoost": _trees, "after Harmony: perceptron": _perceptron}


def same_pair_elsewhere(pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, and a mask of the pairs that another card has."""
    logs, names = np.log(pairs.slowdowns), np.array(["|".join(jobs) for jobs in pairs.jobs])
    other = (names[:, None] == names) & (pairs.gpus[:, None] != pairs.gpus)
    count = other.sum(1)
    return other @ logs / np.maximum(count, 1)[:, None], np.zeros_like(logs), count > 0


def own_and_partners_factor(pairs: Pairs) -> np.ndarray:
    """Mean log slowdown of an additive law, by least squares over both sides of all pairs of a card."""
    mean = np.zeros_like(pairs.slowdowns)
    for gpu in np.unique(pairs.gpus):
        rows = pairs.gpus == gpu
        jobs, index = np.unique(pairs.jobs[rows].ravel(), return_inverse=True)
        own, partner = np.eye(len(jobs))[index.reshape(-1, 2)].transpose(1, 0, 2)
        sides = [np.concatenate(side, axis=1) for side in ((own, partner), (partner, own))]
        targets = np.log(pairs.slowdowns[rows])
        factors = np.linalg.lstsq(np.concatenate(sides), targets.T.ravel(), rcond=None)[0]
        mean[rows] = np.column_stack([side @ factors for side in sides])
    return np.maximum(mean, 0)


def with_measured_pairs(pairs: Pairs, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean log slowdown of left-out networks of which `count` pairs are measured, and a mask of the judged pairs."""
    random = np.random.default_rng(seed)
    mean, judged = np.zeros_like(pairs.slowdowns), np.zeros((len(pairs.gpus), 1))
    for out in evaluation.left_out_networks(pairs):
        tested = out.copy()
        tested[random.choice(np.flatnonzero(out), min(count, out.sum()), replace=False)] = False
        mean[tested] += np.maximum(process.fit(pairs.loads[~tested], pairs.slowdowns[~tested])(pairs.loads[tested])[0], 0)
        judged += tested[:, None]
    return mean / np.maximum(judged, 1), judged[:, 0] > 0


def _row_of(split: str, seed: int, name: str, pairs: Pairs, mean: np.ndarray, judged: np.ndarray) -> list[str]:
    some = Pairs(*(part[judged] for part in vars(pairs).values()))
    return [split, str(seed), name, *evaluation.row("", "", some, (mean[judged], np.zeros_like(mean[judged])), 1.0)[2:]]


def alone_again(table: Path, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Log slowdowns of Gavel's other table, and whether a pair is judged."""
    with open(table, newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(line for line in lines if not line.startswith("#"))
                if row["table"] == "physical" and row["gpus"] == "1" and float(row["kept_a"]) > 0]
    known = {(row["gpu"], row["job_a"], row["job_b"]): (float(row["kept_a"]), float(row["kept_b"])) for row in rows}
    known |= {(gpu, b, a): (kept_b, kept_a) for (gpu, a, b), (kept_a, kept_b) in known.items()}
    kept = np.array([known.get((gpu, *jobs), (np.nan, np.nan)) for gpu, jobs in zip(pairs.gpus, pairs.jobs)])
    return -np.log(kept), ~np.isnan(kept).any(1) & ~(pairs.networks == "Recommendation").any(1)


def bounds(pairs: Pairs, seeds: int, table: Path) -> list[list[str]]:
    rows = [_row_of("networks", seed, f"mdot, {count} pairs measured", pairs, *with_measured_pairs(pairs, count, seed))
            for count in MEASURED for seed in range(seeds)]
    mean, _, known = same_pair_elsewhere(pairs)
    every = np.ones(len(pairs.gpus), dtype=bool)
    return [*rows, _row_of("cards", 0, "the same pair elsewhere", pairs, mean, known),
            _row_of("bound", 0, "own and partner's factor", pairs, own_and_partners_factor(pairs), every),
            _row_of("bound", 0, "the same speeds, alone again", pairs, *alone_again(table, pairs))]


def table(pairs: Pairs, splits: dict[str, Callable[[Pairs], list[np.ndarray]]], seeds: int, measured: Path) -> list[list[str]]:
    """Rows in the form of evaluation.row, with the split and the seed before them."""
    rows = []
    for split, folds in splits.items():
        for name, method in METHODS.items():
            for seed in range(seeds if method is not _constant else 1):
                answer = predict_left_out(pairs, folds(pairs), method, seed)
                rows.append([split, str(seed), name, *evaluation.row("", "", pairs, answer, 1.0)[2:]])
    return rows + bounds(pairs, seeds, measured)


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
