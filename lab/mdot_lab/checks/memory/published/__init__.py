"""Published peaks, one module per kind of source. `read` returns a folder's points."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from mdot_lab.checks.memory.published import hf_trainer, litgpt, llm_points, megatron, megatron_golden
from mdot_lab.checks.memory.published.point import Point, Reader

FILES: dict[str, Reader] = {"llm_points.csv": llm_points.read, "litgpt_finetuning.csv": litgpt.read,
                            "bigscience_steps.csv": megatron.bigscience, "simumax_b200.csv": megatron.simumax,
                            "megatron_golden.csv": megatron_golden.read, "fms_hf_finetuning.csv": hf_trainer.read}


def read(folder: Path) -> list[Point]:
    """The points of all files. A missing file is reported on standard error."""
    points: list[Point] = []
    for name, reader in FILES.items():
        path = folder / name
        if not path.is_file():
            print(f"skipped: {path} is missing", file=sys.stderr)
            continue
        with path.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(line for line in lines if not line.startswith("#"))
            points += [point for row in rows if (point := reader(row)) is not None]
    return points
