"""The collector's loop: runs visits in order, skips configurations that are done or hopeless, and stops before the time is
up."""

from __future__ import annotations

import secrets
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable

from mdot_lab.collect import records
from mdot_lab.collect.architecture import Architecture, Unavailable
from mdot_lab.collect.forecast import Forecast
from mdot_lab.collect.measurer import describe, is_out_of_memory
from mdot_lab.collect.plan import Visit

BROKEN_DEVICE = 3
"""Exit status after an error that makes the CUDA context unusable. Another process then continues where this one ended."""


@dataclass
class Tally:
    """Results of the configurations so far."""

    counts: Counter = field(default_factory=Counter)
    unavailable: dict[str, str] = field(default_factory=dict)
    stopped: str = "the plan is done"
    exit_status: int = 0

    def lines(self) -> list[str]:
        counted = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())) or "nothing to do"
        reasons = Counter(self.unavailable.values())
        return [f"collect: {counted}; stopped because {self.stopped}",
                *(f"collect: skipped {count} architectures: {reason}" for reason, count in sorted(reasons.items()))]


@dataclass
class Runner:
    """The loop's dependencies, so that tests can replace clock, builder and measurer."""

    writer: records.Writer
    attempt: records.Attempt
    forecast: Forecast
    measurer: Any                                               # measure(model, row, configuration) -> fields
    build: Callable[[Architecture, int], Any]
    release: Callable[[], None]                                 # frees the memory of a dropped model
    device_works: Callable[[], bool]
    environment: dict[str, Any]
    repeat: int
    cap_seconds: float
    deadline: float                                             # in the time of `now`
    now: Callable[[], float] = time.time
    process: str = field(default_factory=lambda: secrets.token_hex(6))
    log: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)

    @property
    def reserve(self) -> float:
        """Worst-case seconds for one more configuration: steps, and loading kernels in the first one."""
        return self.cap_seconds + 4.0

    def run(self, visits: Iterable[Visit]) -> Tally:
        tally = Tally()
        for visit in visits:
            if visit.architecture.name in tally.unavailable:
                continue
            pending = self._pending(visit, tally)
            if pending and not self._visit(visit, pending, tally):
                break
        return tally

    def _pending(self, visit: Visit, tally: Tally) -> list:
        fresh = [c for c in visit.configurations if not self.forecast.is_done(c)]
        tally.counts["done before"] += len(visit.configurations) - len(fresh)
        return [c for c in fresh if not self._ruled_out(c, tally)]

    def _ruled_out(self, configuration, tally: Tally) -> bool:
        for what, holds in (("ruled out by memory", self.forecast.cannot_fit),
                            ("ruled out by time", self.forecast.takes_too_long)):
            if holds(configuration):
                tally.counts[what] += 1
                return True
        return False

    def _out_of_time(self, tally: Tally) -> bool:
        if self.now() + self.reserve <= self.deadline:
            return False
        tally.stopped = "the time is up"
        return True

    def _visit(self, visit: Visit, pending: list, tally: Tally) -> bool:
        """Measures one visit's configurations. Returns False to stop the run."""
        model = None
        for configuration in pending:
            if self._out_of_time(tally):
                return False
            if self._ruled_out(configuration, tally):           # by earlier results of this visit
                continue
            started = time.time()
            self.attempt.begin(self._describe(visit.architecture, configuration, started,
                                              {"status": "error", "error": "the process died while measuring this"}))
            if model is None:
                try:
                    model = self.build(visit.architecture, visit.size)
                except Unavailable as reason:
                    self.attempt.end()
                    tally.unavailable[visit.architecture.name] = str(reason)
                    return True
                except Exception as fault:
                    status = "oom" if is_out_of_memory(fault) else "error"
                    measured = {"status": status, "error": f"building: {type(fault).__name__}: {fault}"[:500]}
            if model is not None:
                measured = self.measurer.measure(model, visit.architecture, configuration)
            self._keep(visit.architecture, configuration, started, measured, tally)
            if measured["status"] == "error" and not self.device_works():
                tally.stopped, tally.exit_status = "the device no longer answers", BROKEN_DEVICE
                return False
            if not measured.get("finite", True):
                model = None                                    # non-finite weights would spoil the next configuration
                self.release()
        del model
        self.release()
        return True

    def _describe(self, row, configuration, started, measured) -> records.Record:
        return describe(row, configuration, self.repeat, self.process, self.cap_seconds, self.environment, started,
                        measured)

    def _keep(self, row, configuration, started, measured, tally: Tally) -> None:
        record = self._describe(row, configuration, started, measured)
        self.writer.write(record)
        self.attempt.end()
        self.forecast.learn(record)
        tally.counts[measured["status"]] += 1
        shown = f"{measured['step_ms']['median']:.2f} ms" if measured["status"] == "ok" else measured["status"]
        self.log(f"{record['key']}  {shown}  ({record['seconds']:.1f} s)")


def part_path(folder: Path, index: int, count: int) -> Path:
    return folder / f"records.{index}-of-{count}.jsonl"
