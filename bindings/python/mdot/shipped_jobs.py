"""Networks that ship with mdot."""

from __future__ import annotations

import dataclasses
from typing import Any

from mdot.library import structs as c
from mdot.library.libraries import call, read_text, reader


@dataclasses.dataclass(frozen=True)
class ReadyJob:
    """A network that ships with mdot (mdotjob.h, mdot_ready_job)."""

    name: str
    """For `Job.read` and the command, for example resnet50."""
    title: str
    parameters: float
    """Elements that training updates."""
    length: int | None
    """Default of the symbolic length."""


def ready_jobs() -> list[ReadyJob]:
    """The ready jobs, as `mdot jobs` lists them."""
    jobs: list[ReadyJob] = []

    def add(_: Any, job: Any) -> None:
        ready = job.contents
        jobs.append(ReadyJob(read_text(ready.name), read_text(ready.title), ready.parameters, ready.length or None))

    call(reader().mdot_ready_jobs, c.READY_JOB_FUNCTION(add), None)
    return jobs
