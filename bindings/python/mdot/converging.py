"""Steps to a target loss (mdot_plan.h)."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Iterable, Sequence

from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError
from mdot.library.libraries import call, runtime


@dataclasses.dataclass(frozen=True)
class Convergence:
    """Steps of a training until its loss is at a target (mdot_convergence)."""

    steps: float
    lower_steps: float
    upper_steps: float
    """Median and 90 % interval; infinity: never, by these fits."""
    reach_probability: float
    """Fraction of the resampled fits that reach the target."""
    asymptote: float
    """The loss that the best fit approaches."""
    exponent: float
    """The best fit's: (loss - asymptote) falls as (steps + shift)^-exponent."""


def steps_to_loss(steps: Sequence[float], losses: Sequence[float], target: float) -> Convergence:
    """Predicts the steps to a target loss from the first losses of a training, at least 10. The training must go on as
    before: a later change of the learning rate or of the batch is not foreseen."""
    (goal,), at, values = (_numbers(name, given) for name, given in (("target", [target]), ("steps", steps), ("losses", losses)))
    if len(at) != len(values):
        raise InvalidArgumentError(f"there are {len(at)} steps, but {len(values)} losses")
    doubles = ctypes.c_double * len(at)
    out = c.new(c.mdot_convergence)
    call(runtime().mdot_steps_to_loss, doubles(*at), doubles(*values), len(at), goal, ctypes.byref(out))
    return Convergence(*(getattr(out, field.name) for field in dataclasses.fields(Convergence)))


def _numbers(name: str, given: Iterable[float]) -> list[float]:
    try:
        return [math.fsum([value]) for value in given]  # unlike float(), it takes no texts
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"{name} must be numbers, not {given!r:.60}") from None
