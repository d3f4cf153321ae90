"""What a scheduler written in Python asks mdot: how long a job still runs, where, and by when it should be over.

The seam between any scheduler and mdot. A job is priced once on every type of GPU, when it is submitted, in one call of the
library; rounds only look up. A file that is missing, broken or hostile never raises and never holds up a submission: such a job has
no estimate, and `refused` says why.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Iterable, Mapping

import mdot

MOST_BYTES = 1 << 20
"""Of a .job file that somebody submits: a network of thousands of operators has some hundred kilobytes."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What a user says. `configuration` is a keyword of mdot.Configuration each: batch, precision, gpus …"""

    job_id: str
    path: str | os.PathLike[str]
    steps: int
    configuration: Mapping[str, object] = dataclasses.field(default_factory=dict)


class Estimates:
    """Estimates of all jobs that wait or run. Any number of threads may ask; submissions come from one at a time."""

    def __init__(self, gpu_types: Iterable[str], predictor: mdot.Predictor | None = None) -> None:
        self._types = tuple(gpu_types)
        self._predictor = predictor or mdot.Predictor()
        self._answers: dict[str, dict[str, mdot.Prediction]] = {}
        self._steps: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        """Jobs without any estimate, and why."""

    def submit(self, request: Request) -> bool:
        """Prices a job on every type of GPU; False where that gives nothing."""
        try:
            if os.stat(request.path).st_size > MOST_BYTES:
                raise ValueError(f"{request.path}: more than {MOST_BYTES} bytes")
            job = mdot.Job.load(request.path)
            configurations = [mdot.Configuration(gpu=gpu, **request.configuration) for gpu in self._types]  # type: ignore[arg-type]
            answers = self._predictor.predict_many([(job, configuration) for configuration in configurations])
        except (OSError, TypeError, ValueError, mdot.Error) as fault:
            self.refused[request.job_id] = str(fault)
            return False
        priced = {gpu: a for gpu, a in zip(self._types, answers) if isinstance(a, mdot.Prediction) and a.fits}
        if not priced:
            faults = [str(a) for a in answers if isinstance(a, mdot.Error)]
            self.refused[request.job_id] = faults[0] if faults else "it fits no GPU's memory"
            return False
        self._answers[request.job_id], self._steps[request.job_id] = priced, request.steps
        return True

    def forget(self, job_id: str) -> None:
        """A job that is over."""
        self._answers.pop(job_id, None)
        self._steps.pop(job_id, None)
        self.refused.pop(job_id, None)

    def types(self, job_id: str) -> list[str]:
        """Types of GPUs that the job fits, the fastest first."""
        answers = self._answers.get(job_id, {})
        return sorted(answers, key=lambda gpu: answers[gpu].step_ms)

    def remaining_s(self, job_id: str, gpu: str, steps_done: int = 0) -> float | None:
        """The median, for order: a bias that all jobs share changes none."""
        answer = self._answers.get(job_id, {}).get(gpu)
        return (self._steps[job_id] - steps_done) * answer.step_ms / 1000 if answer is not None else None

    def limit_s(self, job_id: str, gpu: str, steps_done: int = 0) -> float | None:
        """The upper end of the 90 % interval, for time limits and gaps: one job in twenty takes longer."""
        answer = self._answers.get(job_id, {}).get(gpu)
        return (self._steps[job_id] - steps_done) * answer.upper_ms / 1000 if answer is not None else None
