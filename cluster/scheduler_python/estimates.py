"""The interface between a scheduler written in Python and mdot: run times, GPU types and time limits of jobs.

When a job is submitted, one call of the library evaluates it on every GPU type. Rounds only look up the results. A file that
is missing, damaged or hostile never raises and never delays a submission. Such a job lacks an estimate, and `refused` gives
the reason. The numbers of a submission come from its user, too, and are checked in the same way.
"""

from __future__ import annotations

import dataclasses
import math
import os
import stat
from typing import Iterable, Mapping

import mdot

MOST_BYTES = 1 << 20
"""Maximum size of a submitted .job file. For example, a network of thousands of operators takes some hundred kilobytes."""

MOST_STEPS = 1 << 50
"""Maximum number of steps of a job, as in `mdot predict --steps`. A double holds each of them exactly."""


def whole(what: str, value: object, most: int) -> int:
    """`value` if it is an integer from 1 to `most`, which True is not. Raises ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{what} must be an integer from 1 to {most}, not {str(value)[:40]!r}")
    return value


def read_job(path: str | os.PathLike[str]) -> mdot.Job:
    """Reads a regular file of at most MOST_BYTES bytes. The size is checked on the bytes that were read, because the owner of
    the file may change it meanwhile. Opening never waits for the writer of a named pipe."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path}: not a regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path}: more than {MOST_BYTES} bytes")
    return mdot.Job.from_bytes(data)


@dataclasses.dataclass(frozen=True)
class Request:
    """A user's submission. The items of `configuration` are keywords of mdot.Configuration: batch, precision, gpus …"""

    job_id: str
    path: str | os.PathLike[str]
    steps: int
    configuration: Mapping[str, object] = dataclasses.field(default_factory=dict)


class Estimates:
    """Estimates of all jobs that wait or run. Any number of threads may query them; only one thread may submit at a time."""

    def __init__(self, gpu_types: Iterable[str], predictor: mdot.Predictor | None = None) -> None:
        self._types = tuple(gpu_types)
        self._predictor = predictor or mdot.Predictor()
        self._answers: dict[str, dict[str, mdot.Prediction]] = {}
        self._steps: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        """Jobs that lack an estimate, with the reason."""

    def submit(self, request: Request) -> bool:
        """Evaluate a job on every GPU type; False if there is no result. A job that is submitted again replaces its earlier
        version."""
        self.forget(request.job_id)
        try:
            steps = whole("steps", request.steps, MOST_STEPS)
            job = read_job(request.path)
            configurations = [mdot.Configuration(gpu=gpu, **request.configuration) for gpu in self._types]  # type: ignore[arg-type]
            answers = self._predictor.predict_many([(job, configuration) for configuration in configurations])
        except Exception as fault:  # one user's submission must not end the scheduler, whichever exception it causes
            self.refused[request.job_id] = str(fault) or type(fault).__name__
            return False
        priced = {
            gpu: a
            for gpu, a in zip(self._types, answers)
            if isinstance(a, mdot.Prediction) and a.fits and math.isfinite(a.upper_ms)
        }
        if not priced:
            faults = [str(a) for a in answers if isinstance(a, mdot.Error)]
            self.refused[request.job_id] = faults[0] if faults else "the job exceeds the memory of every GPU"
            return False
        self._answers[request.job_id], self._steps[request.job_id] = priced, steps
        return True

    def forget(self, job_id: str) -> None:
        """Remove a finished job."""
        self._answers.pop(job_id, None)
        self._steps.pop(job_id, None)
        self.refused.pop(job_id, None)

    def types(self, job_id: str) -> list[str]:
        """GPU types that the job fits, the fastest first."""
        answers = self._answers.get(job_id, {})
        return sorted(answers, key=lambda gpu: answers[gpu].step_ms)

    def remaining_s(self, job_id: str, gpu: str, steps_done: int = 0) -> float | None:
        """Remaining time at the median, for ordering, because a bias that all jobs share leaves the order unchanged."""
        answer = self._answers.get(job_id, {}).get(gpu)
        return self._rest(job_id, steps_done) * answer.step_ms / 1000 if answer is not None else None

    def limit_s(self, job_id: str, gpu: str, steps_done: int = 0) -> float | None:
        """Remaining time at the upper end of the 90 % interval, for time limits and gaps: one job in twenty takes longer."""
        answer = self._answers.get(job_id, {}).get(gpu)
        return self._rest(job_id, steps_done) * answer.upper_ms / 1000 if answer is not None else None

    def _rest(self, job_id: str, steps_done: int) -> int:
        """Steps that are left, at least 0, because a job may run longer than its user stated."""
        return max(self._steps[job_id] - max(steps_done, 0), 0)
