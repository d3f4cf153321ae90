"""Uses earlier records to decide about a configuration: it is measured already, exceeds the memory, or would take too long."""

from __future__ import annotations

from collections import defaultdict
from typing import Iterable

from mdot_lab.collect.measured_configuration import Configuration
from mdot_lab.collect.records import Record
from mdot_lab.collect.timing import MINIMUM_STEPS, WARMUP_STEPS

STATE_COPIES = {"sgd": 0, "sgd_momentum": 1, "adam": 2, "adamw": 2}
"""Weight copies that an optimizer stores."""

OPTIMISM = 2.0
"""A larger batch is ruled out if time proportional to the batch exceeds the cap by this factor. The factor is needed because
small batches waste the GPU, so that proportional scaling overestimates."""


def _half(precision: str) -> bool:
    return precision in ("bf16", "fp16")


class Forecast:
    def __init__(self, repeat: int, cap_seconds: float):
        self._repeat, self._cap_seconds = repeat, cap_seconds
        self._done: set[str] = set()
        self._oom: dict[tuple[str, int], list[Configuration]] = defaultdict(list)
        self._step_ms: dict[tuple[str, int, str], list[tuple[int, float]]] = defaultdict(list)

    def learn_all(self, records: Iterable[Record]) -> Forecast:
        for record in records:
            self.learn(record)
        return self

    def learn(self, record: Record) -> None:
        configuration = Configuration.from_key(record["key"])
        where = configuration.architecture, configuration.size
        # A configuration that was abandoned under a smaller cap is tried again.
        given_up = record["status"] == "over_cap" and record["cap_seconds"] < self._cap_seconds
        if record["repeat"] == self._repeat and not given_up:
            self._done.add(record["key"])
        if record["status"] == "oom":
            self._oom[where].append(configuration)
        elif record["status"] == "ok":
            self._step_ms[(*where, configuration.precision)].append((configuration.batch, record["step_ms"]["median"]))
        elif record["status"] == "over_cap":
            self._step_ms[(*where, configuration.precision)].append((configuration.batch, record["estimate_ms"]))

    def is_done(self, configuration: Configuration) -> bool:
        return configuration.key in self._done

    def cannot_fit(self, configuration: Configuration) -> bool:
        """Whether a configuration that needs at most as much memory has run out."""
        return any(failed.batch <= configuration.batch
                   and _half(failed.precision) >= _half(configuration.precision)
                   and STATE_COPIES[failed.optimizer] <= STATE_COPIES[configuration.optimizer]
                   for failed in self._oom[configuration.architecture, configuration.size])

    def takes_too_long(self, configuration: Configuration) -> bool:
        """Whether a smaller batch was so slow that this one would exceed the cap by far."""
        known = self._step_ms[configuration.architecture, configuration.size, configuration.precision]
        steps = WARMUP_STEPS + MINIMUM_STEPS
        return any(ms * configuration.batch / batch * steps > 1000 * OPTIMISM * self._cap_seconds
                   for batch, ms in known if batch <= configuration.batch)
