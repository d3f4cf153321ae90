"""Reads a module as tests do: the job, and the texts of its warnings."""

from __future__ import annotations

import warnings
from typing import Any

from torch import nn

import mdot


def read(model: nn.Module, *args: Any, **kwargs: Any) -> tuple[mdot.Job, list[str]]:
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        job = mdot.Job.from_torch(model, args, kwargs)
    return job, [str(one.message) for one in reported if issubclass(one.category, mdot.JobWarning)]
