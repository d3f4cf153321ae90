"""A queue of keys in which namespaces take turns, so that one namespace's many jobs delay no other."""

from __future__ import annotations

import collections
import threading
import time
from typing import NamedTuple


class Key(NamedTuple):
    kind: str
    namespace: str
    name: str


class FairQueue:
    """Each key waits at most once. A key that is being worked on waits until `done`."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: dict[str, collections.OrderedDict[Key, float]] = collections.OrderedDict()
        self._busy: set[Key] = set()
        self._is_closed = False

    def put(self, key: Key, delay_s: float = 0) -> None:
        with self._condition:
            keys = self._waiting.setdefault(key.namespace, collections.OrderedDict())
            ready_s = time.monotonic() + delay_s
            keys[key] = min(ready_s, keys.get(key, ready_s))
            self._condition.notify()

    def get(self) -> Key | None:
        """The next key; None after `close`."""
        with self._condition:
            while not self._is_closed:
                now_s, next_s = time.monotonic(), None
                for namespace, keys in list(self._waiting.items()):
                    for key, ready_s in keys.items():
                        if key in self._busy:
                            continue
                        if ready_s <= now_s:
                            del keys[key]
                            del self._waiting[namespace]
                            if keys:
                                self._waiting[namespace] = keys  # behind the other namespaces
                            self._busy.add(key)
                            return key
                        next_s = ready_s if next_s is None else min(next_s, ready_s)
                self._condition.wait(None if next_s is None else next_s - now_s)
            return None

    def done(self, key: Key) -> None:
        with self._condition:
            self._busy.discard(key)
            self._condition.notify()

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
