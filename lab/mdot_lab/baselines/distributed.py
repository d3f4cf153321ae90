"""Regressions of computation and communication for several GPUs: after GENIE, Optimus and Pollux, on measured placements.

    python3 -m mdot_lab.baselines.distributed pollux_step_times.csv [--table FILE.csv]

Sources: Deep Learning Research and Development Platform: Characterizing and Scheduling with QoS Guarantees on GPU Clusters (GENIE).
IEEE TPDS 31(1), 2020, whose text was unavailable; Optimus: An Efficient Dynamic Resource Scheduler for Deep Learning Clusters.
EuroSys, 2018; Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning. OSDI, 2021.

A method fits one application at a time, on some measured placements and batches, and answers the others:

- `placements`: five folds of the placements; `nodes`: fitted on at most two nodes, answers for three and more.
- GENIE: computation is linear in the batch of a GPU; communication is linear in the ring's part (w - 1) / w, within a node and
  across nodes, and in the number of nodes. They are fitted apart, because the table has the time of synchronisation, and added.
- Optimus: t = a b + c + d w, with b the batch of a GPU and w the GPUs; all coefficients at least 0. Its parameter servers are absent.
- Pollux: (computation^g + synchronisation^g)^(1/g), with synchronisation of a constant and a term per GPU beyond two, one pair within
  a node and one across nodes.
- profile: the mean measured step of the placement with the nearest numbers of nodes and GPUs, at the nearest batch.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares, nnls

FOLDS, SEED, FEW_NODES = 5, 0, 2
Answer = Callable[["Steps", "Steps"], np.ndarray]


class Steps:
    """Columns of some rows of the table."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.rows = rows
        self.nodes, self.gpus, self.batch, self.step_ms, self.sync_ms = (
            np.array([float(row[name]) for row in rows]) for name in ("nodes", "gpus", "batch_per_gpu", "step_ms", "sync_ms"))

    def take(self, which: np.ndarray) -> "Steps":
        return Steps([self.rows[i] for i in np.flatnonzero(which)])


def read(path: Path) -> dict[str, Steps]:
    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {name: Steps([row for row in rows if row["application"] == name]) for name in sorted({row["application"] for row in rows})}


def _relative(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Coefficients of at least 0 with the least relative square error."""
    return nnls(columns / target[:, None], np.ones(len(target)))[0]


def genie(have: Steps, wanted: Steps) -> np.ndarray:
    def computation(of: Steps) -> np.ndarray:
        return np.column_stack([np.ones(len(of.batch)), of.batch])

    def communication(of: Steps) -> np.ndarray:
        ring, across = (of.gpus - 1) / of.gpus, of.nodes > 1
        return np.column_stack([np.ones(len(ring)), ring * ~across, ring * across, of.nodes])

    compute = np.maximum(have.step_ms - have.sync_ms, 1e-3)
    parts = ((computation, compute), (communication, np.maximum(have.sync_ms, 1e-3)))
    return sum(describe(wanted) @ _relative(describe(have), target) for describe, target in parts)


def optimus(have: Steps, wanted: Steps) -> np.ndarray:
    def columns(of: Steps) -> np.ndarray:
        return np.column_stack([of.batch, np.ones(len(of.batch)), of.gpus])

    return columns(wanted) @ _relative(columns(have), have.step_ms)


def pollux(have: Steps, wanted: Steps) -> np.ndarray:
    def answer(p: np.ndarray, of: Steps) -> np.ndarray:
        constant, slope, local, more_local, remote, more_remote = np.exp(p[:6])
        power, beyond = 1 + 9 / (1 + np.exp(-p[6])), np.maximum(of.gpus - 2, 0)
        sync = np.where(of.nodes > 1, remote + more_remote * beyond, local + more_local * beyond) * (of.gpus > 1)
        compute = constant + slope * of.batch
        largest = np.maximum(compute, sync)
        return largest * ((compute / largest) ** power + (sync / largest) ** power) ** (1 / power)

    start = np.log(np.array([*np.maximum(_relative(np.column_stack([np.ones(len(have.batch)), have.batch]), have.step_ms), 1e-2),
                             1, 0.1, 1, 0.1]))
    found = least_squares(lambda p: np.log(answer(p, have) / have.step_ms), np.append(start, 0.0), bounds=(-12, 12), max_nfev=400)
    return answer(found.x, wanted)


def profile(have: Steps, wanted: Steps) -> np.ndarray:
    distance = (np.abs(np.log(have.nodes / wanted.nodes[:, None])) + np.abs(np.log(have.gpus / wanted.gpus[:, None]))
                + np.abs(np.log(have.batch / wanted.batch[:, None])))
    return np.array([have.step_ms[row <= row.min() + 1e-9].mean() for row in distance])


METHODS: dict[str, Answer] = {"profile": profile, "after GENIE": genie, "Optimus": optimus, "Pollux": pollux}


def _folds(of: Steps) -> dict[str, list[np.ndarray]]:
    """Masks of left-out rows."""
    places = np.array([row["table"] + row["placement"] for row in of.rows])
    known, index = np.unique(places, return_inverse=True)
    fold = np.random.default_rng(SEED).integers(0, FOLDS, len(known))[index]
    return {"placements": [fold == number for number in range(FOLDS)], "nodes": [of.nodes > FEW_NODES]}


def judge(applications: dict[str, Steps]) -> list[dict[str, str]]:
    rows = []
    for split in ("placements", "nodes"):
        for name, method in METHODS.items():
            found, begin = {}, time.process_time()
            for application, of in applications.items():
                found[application] = np.concatenate([
                    np.abs(method(of.take(~out), of.take(out)) / of.step_ms[out] - 1) for out in _folds(of)[split] if out.any()])
            seconds = (time.process_time() - begin) / len(applications)
            everything = 100 * np.concatenate(list(found.values()))
            rows.append({"method": name, "split": split, "labels": str(len(everything)), "mean": f"{everything.mean():.1f}",
                         "median": f"{np.median(everything):.1f}", "fit_s": f"{seconds:.2f}",
                         **{application: f"{100 * np.mean(each):.1f}" for application, each in found.items()}})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", type=Path, help="pollux_step_times.csv")
    parser.add_argument("--table", type=Path, help="file for the table of errors")
    options = parser.parse_args()
    rows = judge(read(options.steps))
    file = open(options.table, "w", newline="", encoding="utf-8") if options.table else sys.stdout
    writer = csv.DictWriter(file, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
