"""A small simulator of preemptive scheduling by scores, with the features of cluster/simulator/policy/mlfs.c."""

from __future__ import annotations

import dataclasses
import math
from typing import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
FEATURES = ("left", "gpus", "waited", "attained", "duration", "done", "loss", "runs", "load")
Score = Callable[[Array], Array]


def _exponent(job: int) -> float:
    """The exponent of a job's loss curve: splitmix64 of the job's number (core/random.c, policy/loss_curves.c)."""
    mask = (1 << 64) - 1
    state = (job + 0x9E3779B97F4A7C15) & mask
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return 0.5 * 4 ** (((state ^ (state >> 31)) >> 11) * 2.0**-53 + 2.0**-54)


@dataclasses.dataclass
class Trace:
    submit_s: Array
    gpus: Array
    duration_s: Array
    factor: Array  # estimated over true duration
    cluster_gpus: int

    def __post_init__(self) -> None:
        self.exponent = np.array([_exponent(job) for job in range(len(self.gpus))])


def draw(random: np.random.Generator, count: int = 150, cluster_gpus: int = 32, error: float = 0.5) -> Trace:
    """Many short jobs and few long ones, at a load of 1 to 4; estimates are log-normal."""
    duration_s = np.clip(np.round(2000 * np.exp(random.uniform(1, 1.8) * random.standard_normal(count))), 60, 4e5)
    gpus = random.choice((1, 1, 1, 1, 1, 2, 2, 4, 4, 8), count).astype(float)
    gap_s = float(np.mean(duration_s * gpus)) / (cluster_gpus * random.uniform(1, 4))
    submit_s = np.round(np.cumsum(random.exponential(gap_s, count)))
    return Trace(submit_s, gpus, duration_s, np.exp(error * random.standard_normal(count)), cluster_gpus)


def loss(part: Array, exponent: Array) -> Array:
    shift = 0.05
    start, end = shift**-exponent, (1 + shift) ** -exponent
    return 0.1 + 0.9 * ((part + shift) ** -exponent - end) / (start - end)


def features(trace: Trace, jobs: npt.NDArray[np.int64], remaining: Array, executed: Array, runs: Array, now_s: float) -> Array:
    duration, gpus = trace.duration_s[jobs], trace.gpus[jobs]
    done = 1 - remaining[jobs] / duration
    waited = np.maximum(0, now_s - trace.submit_s[jobs] - executed[jobs])
    load = np.full(len(jobs), np.log1p(gpus.sum() / trace.cluster_gpus))
    return np.stack([
        np.log1p(remaining[jobs] * trace.factor[jobs]) / 10, np.log2(gpus) / 5, np.log1p(waited) / 10,
        np.log1p(executed[jobs] * gpus) / 10, np.log1p(duration * trace.factor[jobs]) / 10, done,
        loss(done, trace.exponent[jobs]), runs[jobs], load,
    ], axis=1)


def mean_completion_s(trace: Trace, score: Score) -> float:
    """At every arrival and completion, GPUs go to each job that fits, the highest score first."""
    count = len(trace.gpus)
    remaining, executed, runs = trace.duration_s.copy(), np.zeros(count), np.zeros(count)
    end_s = np.zeros(count)
    active: list[int] = []
    now_s, arrived = 0.0, 0
    while active or arrived < count:
        running = [job for job in active if runs[job]]
        next_s = min([now_s + remaining[job] for job in running], default=math.inf)
        if arrived < count:
            next_s = min(next_s, trace.submit_s[arrived])
        for job in running:
            remaining[job] -= next_s - now_s
            executed[job] += next_s - now_s
            if remaining[job] < 1e-6:
                remaining[job], end_s[job] = 0, next_s
        now_s = next_s
        active = [job for job in active if remaining[job] > 0]
        while arrived < count and trace.submit_s[arrived] <= now_s:
            active.append(arrived)
            arrived += 1
        jobs = np.array(active, np.int64)
        runs_now = np.zeros(count)
        if active:
            scores = score(features(trace, jobs, remaining, executed, runs, now_s))
            free = trace.cluster_gpus
            for job in jobs[np.argsort(-scores, kind="stable")]:
                if trace.gpus[job] <= free:
                    free -= int(trace.gpus[job])
                    runs_now[job] = 1
                    if free == 0:
                        break
        runs = runs_now
    return float(np.mean(end_s - trace.submit_s))
