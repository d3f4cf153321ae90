"""Measures the cost of recording a step, for `python -m mdot record-overhead`."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
import warnings
from typing import Any

from mdot.job import Job
from mdot.operators import Load, Operator
from mdot.library.errors import InvalidArgumentError, RecordingWarning
from mdot.recording.clocks import Clock, CudaClock, HostClock
from mdot.recording.recorder import Recorder

REPEATS = 7


@dataclasses.dataclass(frozen=True)
class Overhead:
    """The cost of recording, as a median over several runs."""

    clock: str
    """The clock of the steps: "CUDA events" or "host"."""
    step_ms: float
    """Time in recorded steps."""
    cost_ms: float
    """The host's time for recording a step: `begin`, `step`, and the evaluation at the end of windows."""

    @property
    def share(self) -> float:
        """The part of a step."""
        return self.cost_ms / self.step_ms


class _Moving:
    """The host's clock, moved by the training, so that steps need no waiting."""

    def __init__(self) -> None:
        self.moved = 0.0

    def seconds(self) -> float:
        return time.perf_counter() + self.moved


def measure(step_ms: float = 10.0, steps: int = 20000) -> Overhead:
    """Records `steps` empty training steps, each with `step_ms` on the host's clock. Uses CUDA events if PyTorch finds
    a GPU. Raises InvalidArgumentError for times and numbers below the minimum."""
    if not step_ms > 0 or steps < 1000:
        raise InvalidArgumentError("the time of a step must be above 0, and the number of steps at least 1000")
    device = _cuda_device()
    costs = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        for _ in range(REPEATS):
            moving = _Moving()
            clock: Clock = CudaClock(device) if device is not None else HostClock(moving.seconds)
            recorder = Recorder(_job(), f"{folder}/measured.csv", batch=1, clock=clock, host=moving.seconds, seconds=float("inf"))
            recorded = _run(moving, 1e-3 * step_ms, steps, recorder)
            costs.append(1e3 * (recorded - _run(moving, 1e-3 * step_ms, steps, None)) / steps)
    return Overhead("host" if device is None else "CUDA events", step_ms, max(statistics.median(costs), 0.0))


def _run(moving: _Moving, step_seconds: float, steps: int, recorder: Recorder | None) -> float:
    """Seconds that the thread computes in a loop with or without recording, apart from times when other programs run."""
    begin = time.thread_time()
    if recorder is None:
        for _ in range(steps):
            moving.moved += step_seconds
    else:
        for _ in range(steps):
            recorder.begin()
            moving.moved += step_seconds
            recorder.step()
    return time.thread_time() - begin


def _cuda_device() -> Any:
    try:
        import torch
    except ImportError:
        return None
    cuda = getattr(torch, "cuda", None)  # a folder of this name is a module, too
    return torch.device("cuda", cuda.current_device()) if cuda is not None and cuda.is_available() else None


def _job() -> Job:
    """A job of one operator, because a recorder needs one."""
    work = {"forward": Load(1, 4, 4)}
    relu = Operator("Relu", known=True, settings={}, parameters=0, frozen_parameters=0, inputs=(), block=0, module=None,
                    per_sample=work, per_step={})  # fmt: skip
    return Job.from_operators([relu])
