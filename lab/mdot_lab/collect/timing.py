"""Time marks on the GPU or on the host, and the number of steps between them."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable, Protocol, Sequence

WARMUP_STEPS = 5
MINIMUM_STEPS = 20
MAXIMUM_STEPS = 60
WARMUP_SECONDS = 0.05       # minimum: clocks need some tens of milliseconds to rise from idle
TARGET_SECONDS = 0.6        # stop timing steps beyond the minimum at this time
INFERENCE_SECONDS = 0.2     # the same, for inference

PHASES = ("forward", "backward", "optimizer")


class Clock(Protocol):
    def mark(self) -> Any: ...
    def elapsed_ms(self, start: Any, end: Any) -> float: ...
    def synchronize(self) -> None: ...


class CudaClock:
    """Events in the current stream. They cost about a microsecond each, and the host continues at once."""

    def mark(self):
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(self, start, end) -> float:
        return start.elapsed_time(end)

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize()


class HostClock:
    def mark(self) -> float:
        return time.perf_counter()

    def elapsed_ms(self, start: float, end: float) -> float:
        return 1000.0 * (end - start)

    def synchronize(self) -> None:
        pass


class OverCap(Exception):
    """The requested steps would take longer than the cap."""

    def __init__(self, estimate_ms: float):
        super().__init__(f"about {estimate_ms:.0f} ms a step")
        self.estimate_ms = estimate_ms


@dataclass(frozen=True)
class Samples:
    warmup_steps: int
    phases_ms: tuple[tuple[float, ...], ...]    # for each step: forward, backward, optimizer
    host_step_ms: float                         # wall time over the number of timed steps
    joules: float | None                        # energy over the number of timed steps, if the device counts it

    def spread(self, phase: str | None = None) -> dict[str, float]:
        """Median, interquartile range, minimum and mean for a phase or the whole step."""
        values = [sum(step) if phase is None else step[PHASES.index(phase)] for step in self.phases_ms]
        return spread(values)


def spread(values: Sequence[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": round(middle, 5), "iqr": round(high - low, 5), "min": round(min(values), 5),
            "mean": round(statistics.fmean(values), 5)}


def sample(step: Callable[[Callable[[], Any]], Sequence[Any]], clock: Clock, cap_seconds: float,
           while_running: Callable[[], None] = lambda: None, joules: Callable[[], float | None] = lambda: None,
           target_seconds: float = TARGET_SECONDS) -> Samples:
    """Runs `step` until it is measured. `step(mark)` runs one step and returns marks: for training, the ends of four
    phases.

    `while_running` is called once while timed steps are queued and the GPU is still busy with them. `joules` reads
    the device's counter of energy. Raises OverCap early if warm-up and timed steps together would exceed the cap.
    """
    def step_ms() -> float:
        marks = step(clock.mark)
        clock.synchronize()
        return clock.elapsed_ms(marks[0], marks[-1])

    def refuse_over_cap(estimate_ms: float, steps: int) -> None:
        if estimate_ms * steps > 1000.0 * cap_seconds:
            raise OverCap(estimate_ms)

    start = time.perf_counter()
    step_ms()                                   # loads kernels and selects algorithms, therefore its time is meaningless
    refuse_over_cap(step_ms(), WARMUP_STEPS + MINIMUM_STEPS - 2)
    warmup_steps = 2
    while warmup_steps < WARMUP_STEPS or time.perf_counter() - start < WARMUP_SECONDS:
        estimate_ms = step_ms()
        warmup_steps += 1
    refuse_over_cap(estimate_ms, MINIMUM_STEPS)
    steps = min(MAXIMUM_STEPS, max(MINIMUM_STEPS, int(1000.0 * target_seconds / max(estimate_ms, 1e-3))))

    joules_before, start = joules(), time.perf_counter()
    marks = [step(clock.mark) for _ in range(steps)]
    while_running()
    clock.synchronize()
    host_step_ms = 1000.0 * (time.perf_counter() - start) / steps
    joules_after = joules()
    counted = None if joules_before is None or joules_after is None else (joules_after - joules_before) / steps
    phases = tuple(tuple(clock.elapsed_ms(a, b) for a, b in zip(step_marks, step_marks[1:])) for step_marks in marks)
    return Samples(warmup_steps, phases, round(host_step_ms, 5), counted)
