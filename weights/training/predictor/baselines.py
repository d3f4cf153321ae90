"""What a predictor has to beat: gradient-boosted trees on a job's configuration and on counts and totals of its operators."""

from __future__ import annotations

import numpy as np

from predictor import batches, features, tables
from predictor.dataset import Dataset

ROUNDS = (200, 400, 800)
DEPTHS = (3, 5, 7)
RATE = 0.05
INNER_FOLDS = 3


def _totals(work: features.Work, row: np.ndarray, count: np.ndarray, rows: int) -> np.ndarray:
    columns = [work.flops, work.padded, work.bytes, work.scores, work.norm_bytes, work.launches]
    kinds = {"all": 1.0, "product": work.is_product, "grouped": work.is_grouped, "depthwise": work.is_depthwise}
    sums = [np.bincount(row, weights=count * (x[:, i:i + 1] * kind)[:, 0].numpy(), minlength=rows)
            for x in columns for i in range(x.shape[1]) for kind in kinds.values()]
    return np.log1p(np.column_stack(sums))


def describe(data: Dataset, labels: np.ndarray) -> np.ndarray:
    """[labels, features]: configuration, how often each type occurs, logarithms of totals."""
    batch = batches.make(data, labels)
    row, count = batch.row.numpy(), batch.count[:, 0].numpy()
    types = batch.operators.type[batch.of_pair].numpy()
    occurrences = np.zeros((len(labels), len(tables.operator_types())))
    np.add.at(occurrences, (row, types), count)
    c = batch.configurations
    totals = _totals(batch.work, row, count, len(labels))
    return np.column_stack([c.is_nhwc, c.software, np.log(c.batch.numpy()), np.log1p(batch.parameters.numpy()), occurrences, totals])


def _fit(x: np.ndarray, y: np.ndarray, depth: int, rounds: int):
    import xgboost

    model = xgboost.XGBRegressor(n_estimators=rounds, max_depth=depth, learning_rate=RATE, subsample=0.7,
                                 colsample_bytree=0.5, min_child_weight=3, reg_lambda=2.0, n_jobs=1, random_state=0,
                                 objective="reg:squarederror", tree_method="hist", max_bin=128)
    return model.fit(x, y)


def _tuned(x: np.ndarray, y: np.ndarray, group: np.ndarray) -> tuple[int, int]:
    """Depth and rounds that are best on networks left out of the training labels."""
    fold = np.random.default_rng(0).integers(0, INNER_FOLDS, group.max() + 1)[group]
    best, chosen = np.inf, (DEPTHS[0], ROUNDS[0])
    for depth in DEPTHS:
        models = [_fit(x[fold != k], y[fold != k], depth, max(ROUNDS)) for k in range(INNER_FOLDS)]
        for rounds in ROUNDS:
            off = [np.abs(m.predict(x[fold == k], iteration_range=(0, rounds)) - y[fold == k]) for k, m in enumerate(models)]
            error = float(np.concatenate(off).mean())
            if error < best:
                best, chosen = error, (depth, rounds)
    return chosen


class Trees:
    """Trees tuned once, on the training labels of the first fold that asks, and then fitted to each fold."""

    def __init__(self) -> None:
        self.chosen: tuple[int, int] | None = None

    def predict(self, data: Dataset, train: np.ndarray, test: np.ndarray, roofline_ms: np.ndarray | None) -> np.ndarray:
        """Milliseconds of `test`. With `roofline_ms` [labels of the data set], of the logarithm of time over it."""
        offset = np.zeros(len(data.step_ms)) if roofline_ms is None else np.log(roofline_ms)
        x = describe(data, np.arange(len(data.step_ms)))
        x = x if roofline_ms is None else np.column_stack([x, offset])
        y = np.log(data.step_ms) - offset
        if self.chosen is None:
            self.chosen = _tuned(x[train], y[train], data.label_network[train])
        model = _fit(x[train], y[train], *self.chosen)
        return np.exp(model.predict(x[test]) + offset[test])
