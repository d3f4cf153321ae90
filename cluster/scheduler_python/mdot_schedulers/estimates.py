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
from typing import Iterable

import mdot
from mdot_schedulers.decision import Answer
from mdot_schedulers.prediction import predict_here
from mdot_schedulers.request import MAX_STEPS, Request, whole

MAX_BYTES = 1 << 20
"""Maximum size of a submitted .job file. For example, a network of thousands of operators takes some hundred kilobytes."""

MAX_GPUS = 1 << 16
"""Maximum number of GPUs of a job."""


def read_job(path: str | os.PathLike[str]) -> mdot.Job:
    """Reads a regular file of at most MAX_BYTES bytes. The size is checked on the bytes that were read, because the owner of
    the file may change it meanwhile. Opening never waits for the writer of a named pipe."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path}: not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path}: more than {MAX_BYTES} bytes")
    return mdot.Job.from_bytes(data)


@dataclasses.dataclass(frozen=True)
class Submission:
    """A user's submission. The request states the number of steps."""

    job_id: str
    path: str | os.PathLike[str]
    request: Request
    gpus: int = 1


class Estimates:
    """Estimates of all jobs that wait or run. Any number of threads may query them; only one thread may submit at a time."""

    def __init__(self, gpu_types: Iterable[str], predictor: mdot.Predictor | None = None) -> None:
        self._types = tuple(gpu_types)
        self._predictor = predictor or mdot.Predictor()
        self._answers: dict[str, dict[str, Answer]] = {}
        self._steps: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        """Jobs that lack an estimate, with the reason."""

    def submit(self, submission: Submission) -> bool:
        """Evaluate a job on every GPU type; False if there is no result. A job that is submitted again replaces its earlier
        version."""
        self.forget(submission.job_id)
        try:
            steps = whole("steps", submission.request.steps, MAX_STEPS)
            gpus = whole("gpus", submission.gpus, MAX_GPUS)
            job = read_job(submission.path)
            answers = predict_here(job, submission.request, self._types, gpus, predictor=self._predictor)
        except Exception as fault:  # one user's submission must not end the scheduler, whichever exception it causes
            self.refused[submission.job_id] = str(fault) or type(fault).__name__
            return False
        priced = {
            gpu: answer
            for gpu, answer in zip(self._types, answers)
            if isinstance(answer, Answer) and answer.fits and math.isfinite(answer.upper_ms)
        }
        if not priced:
            faults = [answer for answer in answers if isinstance(answer, str)]
            self.refused[submission.job_id] = faults[0] if faults else "the job exceeds the memory of every GPU"
            return False
        self._answers[submission.job_id], self._steps[submission.job_id] = priced, steps
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
