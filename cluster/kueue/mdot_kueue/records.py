"""The controller's memory: predictions of jobs that have not ended, and users' outcomes. A user is a namespace."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, Callable

from mdot_schedulers import Outcomes

MAX_OPEN = 4096


@dataclasses.dataclass
class Open:
    """A predicted job that has not ended. It is kept here because users may change the annotations of their objects."""

    namespace: str
    predicted_s: float
    gpus: int
    limit_s: int
    """The limit that ends the job; 0: none."""
    boost: int
    start_s: float | None = None


class Records:
    """Any thread may call the methods. `save` stores a mapping."""

    def __init__(self, state: dict[str, Any], save: Callable[[dict[str, Any]], None]) -> None:
        self._lock = threading.Lock()
        self._save = save
        self._outcomes: Outcomes = Outcomes.from_mapping(state.get("outcomes"))
        self._open: dict[str, Open] = {}
        for uid, fields in (state.get("open") or {}).items() if isinstance(state.get("open"), dict) else ():
            try:
                self._open[uid] = Open(**fields)
            except TypeError:
                continue  # of another version

    def understatement(self, namespace: str, now_s: float) -> float:
        with self._lock:
            return float(self._outcomes.understatement(namespace, now_s))

    def find(self, uid: str) -> Open | None:
        with self._lock:
            return self._open.get(uid)

    def put(self, uid: str, entry: Open) -> None:
        with self._lock:
            if uid not in self._open and len(self._open) >= MAX_OPEN:
                del self._open[next(iter(self._open))]  # the oldest
            self._open[uid] = entry
            self._store()

    def drop(self, uid: str) -> None:
        with self._lock:
            if self._open.pop(uid, None) is not None:
                self._store()

    def end(self, uid: str, actual_s: float, is_complete: bool, now_s: float) -> None:
        """Moves a job to the outcomes of its namespace."""
        with self._lock:
            entry = self._open.pop(uid, None)
            if entry is not None:
                self._outcomes.add(entry.namespace, entry.predicted_s, actual_s, entry.gpus, is_complete, now_s)
                self._store()

    def _store(self) -> None:
        self._save(
            {
                "open": {uid: dataclasses.asdict(entry) for uid, entry in self._open.items()},
                "outcomes": self._outcomes.to_mapping(),
            }
        )
