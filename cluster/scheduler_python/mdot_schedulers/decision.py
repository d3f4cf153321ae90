"""Prediction to place, time limit, priority and words: decision.c of cluster/slurm in Python.

The incentives are those of cluster/slurm/INCENTIVES.md: a job has priority only with a limit that ends it, by the longer of
prediction and limit, times the user's understatement, times GPUs."""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import Sequence

from mdot_schedulers.request import Request
from mdot_schedulers.site import Place, Site

MAX_LIMIT_S = (1 << 31) - 1
DOUBTFUL = frozenset({"unknown-operators", "outside-training", "implausible", "no-parameters", "waited-for-data"})
"""Warnings that make a prediction too uncertain for a priority, and for a limit unless the site permits it."""

_END = statistics.NormalDist().inv_cdf(0.95)


class Unpredictable(Exception):
    """A job without a prediction. The message is the reason, for the user."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The prediction for one place, as plain data."""

    gpu: str
    step_ms: float
    lower_ms: float
    upper_ms: float
    memory_bytes: int
    fits: bool
    samples: int
    warnings: tuple[str, ...] = ()
    reserved_bytes: float = 0.0
    """Memory that the process takes from a GPU, at the upper end of the interval."""
    usable_bytes: float = 0.0
    """GPU memory for processes."""

    @property
    def is_doubtful(self) -> bool:
        return not DOUBTFUL.isdisjoint(self.warnings)


@dataclasses.dataclass(frozen=True)
class Decision:
    place: Place
    is_chosen: bool
    """The job should run in this place only, because the request asks for a choice."""
    ranked: tuple[Place, ...]
    """Places where the job fits, the best first; empty if the request asks for no choice."""
    limit_s: int
    """Limit to set; 0: none."""
    priority: int
    total_s: float
    """Predicted training time at the median; 0 if the length is unknown."""
    interval_s: tuple[float, float]
    words: str
    """Prediction, interval, memory, cost and warnings in one line, without text of the user."""


def step_quantile_ms(answer: Answer, quantile: float) -> float:
    """The quantile of the step time, whose logarithm is normal on either side of the median."""
    z = statistics.NormalDist().inv_cdf(quantile)
    ratio = answer.upper_ms / answer.step_ms if z >= 0 else answer.step_ms / answer.lower_ms
    return float(answer.step_ms * ratio ** (z / _END))


def priority(site: Site, predicted_s: float, binding_s: float, gpus: int, understatement: float) -> int:
    """The full weight for jobs as short as shortest_s, zero for longest_s, linear in the logarithm between. 0 without a
    limit that ends the job (`binding_s` is 0)."""
    if binding_s <= 0:
        return 0
    length_s = max(predicted_s, binding_s) * max(understatement, 1)
    if site.order == "service":
        length_s *= gpus
    weight = math.log(site.longest_s / length_s) / math.log(site.longest_s / site.shortest_s)
    return math.floor(site.priority_weight * min(max(weight, 0), 1) + 0.5)


def limit_s(site: Site, answer: Answer, steps: int) -> int:
    """The training seconds at the site's quantile; 0: set no limit."""
    if not site.limits or steps == 0 or not answer.fits or (answer.is_doubtful and not site.limits_doubtful):
        return 0
    seconds = 1e-3 * steps * step_quantile_ms(answer, site.quantile) * site.margin + site.startup_s
    return max(1, math.ceil(min(seconds, MAX_LIMIT_S)))


def decide(
    site: Site,
    request: Request,
    places: Sequence[Place],
    answers: Sequence[Answer | str],
    *,
    gpus: int,
    own_limit_s: float = 0,
    may_choose: bool = True,
    understatement: float = 1.0,
    seconds_left: float | None = None,
) -> Decision:
    """Decides for a job that may run in these places. `own_limit_s` is the user's limit, which is kept; 0: none.
    `seconds_left` is the time until the deadline.

    A job without a choice may start anywhere, so the slowest place decides. Raises Unpredictable with the reason.
    """
    pairs = [(place, answer) for place, answer in zip(places, answers) if isinstance(answer, Answer)]
    faults = [f"{place.gpu}: {answer}" for place, answer in zip(places, answers) if isinstance(answer, str)]
    criterion = request.choose or (site.choose if request.deadline is None else "cost")
    ranked = _rank(site, request, pairs, criterion, seconds_left)
    is_chosen = may_choose and bool(ranked)
    if not is_chosen:
        if faults or not pairs:
            raise Unpredictable(faults[0] if faults else "none of its places has a known GPU")
        place, answer = max(pairs, key=lambda pair: pair[1].step_ms)
    else:
        place, answer = ranked[0]
    steps = request.step_count(answer.samples)
    total_s = 1e-3 * steps * answer.step_ms
    limit = limit_s(site, answer, steps) if own_limit_s <= 0 else 0
    is_trusted = not answer.is_doubtful and answer.fits and steps > 0 and gpus > 0 and site.priority_weight > 0
    rank = priority(site, total_s, own_limit_s or limit, gpus, understatement) if is_trusted else 0
    interval_s = (1e-3 * steps * answer.lower_ms, 1e-3 * steps * answer.upper_ms)
    decision = Decision(place, is_chosen, tuple(place for place, _ in ranked), limit, rank, total_s, interval_s, "")
    return dataclasses.replace(decision, words=_words(decision, answer, steps, gpus, own_limit_s, site.startup_s, seconds_left))


def _rank(
    site: Site, request: Request, pairs: Sequence[tuple[Place, Answer]], criterion: str, seconds_left: float | None
) -> list[tuple[Place, Answer]]:
    """The places where the job fits: first those that meet the deadline, by cost or time, then the others by time."""
    fitting = [pair for pair in pairs if pair[1].fits]
    if criterion == "no" or (criterion == "cost" and any(place.price <= 0 for place, _ in fitting)):
        return []  # an unknown price cannot be compared

    def key(pair: tuple[Place, Answer]) -> tuple[bool, float, float]:
        place, answer = pair
        end_s = 1e-3 * request.step_count(answer.samples) * answer.upper_ms + site.startup_s
        is_late = seconds_left is not None and end_s > seconds_left
        return is_late, answer.step_ms * place.price if criterion == "cost" and not is_late else answer.step_ms, answer.step_ms

    return sorted(fitting, key=key)


def _words(
    d: Decision, answer: Answer, steps: int, gpus: int, own_limit_s: float, startup_s: float, seconds_left: float | None
) -> str:
    words = [
        f"mdot: gpu={answer.gpu} gpus={gpus} step_ms={answer.step_ms:.4g} interval_ms={answer.lower_ms:.4g}..{answer.upper_ms:.4g}"
    ]
    if steps > 0:
        words.append(f"steps={steps} total_s={d.total_s:.1f} interval_s={d.interval_s[0]:.1f}..{d.interval_s[1]:.1f}")
    words.append(f"memory_gib={answer.memory_bytes / (1 << 30):.3g} fits={'yes' if answer.fits else 'no'}")
    if d.place.price > 0 and steps > 0:
        words.append(f"cost={d.place.price * gpus * d.total_s / 3600:.4g}")
    if d.limit_s > 0:
        words.append(f"limit_s={d.limit_s}")
    if d.priority > 0:
        words.append(f"priority={d.priority} binding_s={own_limit_s or d.limit_s:.0f}")
    if seconds_left is not None and steps > 0:
        words.append(f"deadline={'met' if d.interval_s[1] + startup_s <= seconds_left else 'missed'}")
    if answer.warnings:
        words.append(f"warnings={','.join(answer.warnings)}")
    return " ".join(words)
