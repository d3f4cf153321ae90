"""How much longer jobs ran than predicted, by user: user_outcomes.c of cluster/slurm in Python."""

from __future__ import annotations

import math
from typing import Any

HALF_LIFE_S = 14 * 86400.0
ASSUMED_S = 7200.0
"""GPU-seconds of honest work with which every user begins, so that one short job counts little."""

MAX_USERS = 4096


class Outcomes:
    """Sums of GPU-seconds by user. A user may be any text, for example a namespace. Not thread-safe."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[float, float, float]] = {}

    def add(self, user: str, predicted_s: float, actual_s: float, gpus: float, is_complete: bool, now_s: float) -> None:
        """Adds an ended job. A job that was cut off counts only if it ran longer than predicted. If there are too many
        users, the oldest record is forgotten."""
        product = predicted_s * actual_s * gpus
        is_valid = predicted_s > 0 and actual_s > 0 and gpus > 0 and math.isfinite(product)
        if not is_valid or (not is_complete and actual_s <= predicted_s):
            return
        predicted, excess, _ = self._decayed(user, now_s)
        if user not in self._records and len(self._records) >= MAX_USERS:
            del self._records[min(self._records, key=lambda name: self._records[name][2])]
        self._records[user] = (
            predicted + min(predicted_s, actual_s) * gpus,
            excess + max(actual_s - predicted_s, 0) * gpus,
            now_s,
        )

    def understatement(self, user: str, now_s: float) -> float:
        """The factor by which the user's jobs ran longer than predicted, at least 1."""
        predicted, excess, _ = self._decayed(user, now_s)
        return 1 + excess / (predicted + ASSUMED_S)

    def _decayed(self, user: str, now_s: float) -> tuple[float, float, float]:
        predicted, excess, time_s = self._records.get(user, (0.0, 0.0, now_s))
        kept = 2 ** (-max(now_s - time_s, 0) / HALF_LIFE_S)
        return predicted * kept, excess * kept, now_s

    def to_mapping(self) -> dict[str, list[float]]:
        return {user: list(record) for user, record in self._records.items()}

    @classmethod
    def from_mapping(cls, values: Any) -> Outcomes:
        """Records from to_mapping. Invalid ones are left out, because a damaged record must not stop a scheduler."""
        found = cls()
        for user, record in values.items() if isinstance(values, dict) else ():
            is_valid = isinstance(record, list) and len(record) == 3 and all(isinstance(n, (int, float)) for n in record)
            if is_valid and all(math.isfinite(n) and n >= 0 for n in record):
                found._records[str(user)] = (record[0], record[1], record[2])
        return found
