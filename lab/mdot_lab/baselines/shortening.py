"""Shortens sequences beyond a predictor's largest bucket, in the same way as the runtime
(runtime/predict/operator_features.c).

Neighbours are merged while a row's cost stays within a limit. The limit is the least one with few enough rows. A
merged row has the most expensive operator's type, settings and position, and the sums of all FLOPs, bytes and
parameters.
"""

from __future__ import annotations

import numpy as np

from mdot_lab.baselines.jobs import LOADS

COST_BATCH = 64
FLOPS_PER_BYTE = 32
"""The same constants as in runtime/perf/operator_groups.c. They only select the cheap neighbours, and leave times alone."""

BISECTIONS = 64


def costs(load: np.ndarray) -> np.ndarray:
    """[n] costs of operators with these FLOPs and bytes [n, LOAD_COUNT]."""
    at_batch = COST_BATCH * load[:, :LOADS] + load[:, LOADS:2 * LOADS]
    return (at_batch[:, 0::3] / FLOPS_PER_BYTE + at_batch[:, 1::3] + at_batch[:, 2::3]).sum(axis=1)


def _rows(total: np.ndarray, limit: float) -> np.ndarray:
    """First operator per row, from the running cost total [n + 1]."""
    starts = [0]
    while True:
        end = max(int(np.searchsorted(total, total[starts[-1]] + limit, side="right")) - 1, starts[-1] + 1)
        if end >= len(total) - 1:
            return np.array(starts)
        starts.append(end)


def row_starts(cost: np.ndarray, capacity: int) -> np.ndarray:
    """First operator in each of at most `capacity` rows."""
    if len(cost) <= capacity:
        return np.arange(len(cost))
    total = np.concatenate([[0], np.cumsum(cost)])
    low, high = 0.0, 2 * total[-1] / (capacity - 1) if capacity > 2 else total[-1]
    for _ in range(BISECTIONS):
        if high - low <= high / 1024:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if len(_rows(total, middle)) <= capacity else (middle, high)
    return _rows(total, high)


def shortened(load: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row the most expensive operator [rows], and the sums of FLOPs, bytes and parameters [rows, LOAD_COUNT]."""
    cost = costs(load)
    starts = row_starts(cost, capacity)
    ends = np.append(starts[1:], len(cost))
    top = np.array([start + int(np.argmax(cost[start:end])) for start, end in zip(starts, ends, strict=True)])
    return top, np.add.reduceat(load, starts, axis=0)
