"""Jobs of a trace as mdot-durations prints them: each with the answer of a history of the jobs that ended before."""

from __future__ import annotations

import csv
import io
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

QUANTILES = ("p5_s", "p10_s", "p25_s", "p50_s", "p75_s", "p90_s", "p95_s")
NUMBERS = (*QUANTILES, "early_failure", "key", "weight", "gpus", "hour", "weekday")
"""The model's inputs, as cluster/history/history_trees.c writes them: logarithms of the quantiles, of 1 + weight and of the
GPUs; the hours of the day and days of the week since the trace's origin."""


@dataclass(frozen=True)
class Jobs:
    inputs: np.ndarray  # [jobs, NUMBERS], f32
    log_s: np.ndarray
    completed: np.ndarray
    metadata: np.ndarray  # [jobs, 6]: user, group, name, GPU type as numbers, GPUs, hour


def read(program: Path, trace: Path) -> Jobs:
    text = subprocess.run([program, trace], check=True, capture_output=True, text=True).stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    number = {name: np.array([float(row[name]) for row in rows])
              for name in (*QUANTILES, "early_failure", "key", "weight", "gpus", "submit_s", "duration_s", "outcome")}
    hour = number["submit_s"] / 3600 % 24
    columns = [np.log(np.maximum(number[name], 1e-3)) for name in QUANTILES]
    columns += [number["early_failure"], number["key"], np.log1p(number["weight"]), np.log2(number["gpus"]), hour,
                np.floor(number["submit_s"] / 86400 % 7)]
    codes = [np.unique([row[name] for row in rows], return_inverse=True)[1] for name in ("user", "group", "name", "gpu_type")]
    return Jobs(np.stack(columns, 1).astype(np.float32), np.log(np.maximum(number["duration_s"], 1)), number["outcome"] == 0,
                np.stack([*codes, number["gpus"], hour], 1).astype(np.float64))
