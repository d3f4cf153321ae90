"""Measured pairs of jobs on one GPU, with the loads that mdot computes for them.

The table is measured-2026/gavel_pairs.csv. Only rows "simulation" count: in the other table, Recommendation alone has a
speed without its loader, so that its slowdown beside anything is tenfold.
"""

from __future__ import annotations

import csv
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mdot
from mdot_lab.interference.networks import NETWORKS
from mdot_lab.predictor.measured_2026 import GAVEL_GPUS

NUMBERS = ("step_ms", "busy_share", "operator_ms", "compute_share", "memory_share", "host_share", "memory_gib", "fp32_tflops",
           "memory_gbps")
"""The artefact's inputs for each of the two jobs (mdot_beside.h)."""
BATCHES = {"CycleGAN": 1, "A3C": 4}
"""Of the jobs without a batch in their names."""


@dataclass(frozen=True)
class Pairs:
    loads: np.ndarray
    """[pairs, 2, numbers]"""
    slowdowns: np.ndarray
    """[pairs, 2], of each job beside the other"""
    networks: np.ndarray
    jobs: np.ndarray
    gpus: np.ndarray


def numbers_of(load: Any) -> list[float]:
    return [load.step_ms, load.gpu_busy_ms / load.step_ms, load.gpu_busy_ms / max(load.operator_count, 1), load.compute_share,
            load.memory_share, load.host_busy_ms / load.step_ms, load.peak_memory_bytes / 2**30, load.fp32_tflops, load.memory_gbps]


def parse_job(name: str) -> tuple[str, int]:
    """Network and batch in Gavel's "LM (batch size 5)" or "A3C"."""
    found = re.fullmatch(r"(\S+)(?: \(batch size (\d+)\))?", name)
    assert found is not None, name
    return found[1], int(found[2] or BATCHES[found[1]])


def read(table: Path, jobs: Path) -> Pairs:
    """Reads the pairs that fit, and builds each network once in the folder `jobs`."""
    with open(table, newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(line for line in lines if not line.startswith("#"))
                if row["table"] == "simulation" and row["gpus"] == "1" and float(row["kept_a"]) > 0]
    built = {name: build(name, jobs) for name in NETWORKS}
    predictor, known = mdot.Predictor(), {}
    warnings.simplefilter("ignore")
    for row in rows:
        for job in (row["job_a"], row["job_b"]):
            if (row["gpu"], job) not in known:
                network, batch = parse_job(job)
                known[row["gpu"], job] = numbers_of(predictor.load(built[network], GAVEL_GPUS[row["gpu"]], batch, precision="fp32"))
    return Pairs(np.array([[known[row["gpu"], row["job_a"]], known[row["gpu"], row["job_b"]]] for row in rows]),
                 np.array([[1 / float(row["kept_a"]), 1 / float(row["kept_b"])] for row in rows]),
                 np.array([[parse_job(row["job_a"])[0], parse_job(row["job_b"])[0]] for row in rows]),
                 np.array([[row["job_a"], row["job_b"]] for row in rows]), np.array([row["gpu"] for row in rows]))


def build(name: str, folder: Path) -> mdot.Job:
    path = folder / f"{name}.job"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        make, example, loss, target = NETWORKS[name]
        mdot.Job.from_torch(make(), example(), loss=loss, targets=target()).save(path)
    return mdot.Job.read(path)
