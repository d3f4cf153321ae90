"""Published peaks, one module per kind of source. `read` returns a folder's points."""

from __future__ import annotations

import csv
import dataclasses
import re
import sys
from pathlib import Path

from mdot_lab.checks.memory.published import hf_trainer, litgpt, llm_points, megatron, megatron_golden
from mdot_lab.checks.memory.published.point import Point, Reader

FILES: dict[str, Reader] = {"llm_points.csv": llm_points.read, "litgpt_finetuning.csv": litgpt.read,
                            "bigscience_steps.csv": megatron.bigscience, "simumax_b200.csv": megatron.simumax,
                            "megatron_golden.csv": megatron_golden.read, "fms_hf_finetuning.csv": hf_trainer.read}


GROUPS_WAIT = re.compile(r"Megatron-Core 0\.1[0-5]\.")
"""Releases in which groups of five micro-batches on four stages take twice as long as from 0.16 on: 350 and 162 ms on A100."""


def _step_ms(file: str, row: dict[str, str], point: Point) -> float:
    if file == "simumax_b200.csv":
        return float(row["measured_ms"])
    if point.source == "torchtitan":    # tokens are counted per GPU, and a sample belongs to a group of GPUs
        group = int(point.options["gpus"]) // _workers(point)
        return 1e3 * int(row["micro_batch"]) * int(row["sequence"]) / (float(row["throughput"]) * group)
    if "tunable_overlap" in row.get("source", "") and GROUPS_WAIT.search(row["software"]):
        return 0
    if file not in ("megatron_golden.csv", "fms_hf_finetuning.csv") or row["doubt"] or not row["step_ms"]:
        return 0
    return float(row["step_ms"])


def _workers(point: Point) -> int:
    degrees = (point.options.get(f"{name}_parallel", 1) for name in ("tensor", "pipeline", "context"))
    workers = int(point.options["gpus"])
    for degree in degrees:
        workers //= degree
    return workers


def read(*folders: Path) -> list[Point]:
    """The points of all files. A file that no folder has is reported on standard error."""
    points: list[Point] = []
    for name, reader in FILES.items():
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is None:
            print(f"skipped: {folders[0] / name} is missing", file=sys.stderr)
            continue
        with path.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(line for line in lines if not line.startswith("#"))
            points += [dataclasses.replace(point, step_ms=0 if point.missing else _step_ms(name, row, point))
                       for row in rows if (point := reader(row)) is not None]
    return points
