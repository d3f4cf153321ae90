"""Writes measured steps as a table that mdot reads: a job's graph, the training configuration, and the median time of a
step.

`mdot calibrate` and `mdot-predictions` (simulator) read it. Columns: note (the network), job (the ONNX graph, beside
the table), gpu (the driver's name), batch, precision, layout, optimizer, gpus, ms.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Iterable

from mdot_lab.collect.export_graphs import file_name
from mdot_lab.collect.records import Record

COLUMNS = ("note", "job", "gpu", "batch", "precision", "layout", "optimizer", "gpus", "ms")

PRECISIONS = {"fp32": "fp32", "tf32": "tf32", "bf16": "amp-bf16", "fp16": "amp-fp16"}
"""bf16 and fp16 are measured as autocast over float32 weights (configuration.py)."""

OPTIMIZERS = {"sgd": "sgd-plain", "sgd_momentum": "sgd", "adam": "adam", "adamw": "adamw"}


def rows(records: Iterable[Record], graphs: Path, table: Path, batch: str) -> tuple[list[tuple], list[str]]:
    """A row for each measured configuration whose graph is in `graphs`, in the order of the records, and the names of missing
    graphs.

    `batch` is the batch of the traced graphs in the file names of `collect export`: "2", or "N" for a symbolic dimension. If
    a configuration was measured twice, the first measurement counts.
    """
    folder = os.path.relpath(graphs.resolve(), table.resolve().parent)
    found, missing = [], set()
    for record in records:
        if record["status"] != "ok" or record["repeat"] != 0:
            continue
        name = file_name(record["architecture"], record["size"], batch)
        if not (graphs / name).exists():
            missing.add(f"{record['architecture']} at {record['size']} has no graph {name}")
            continue
        found.append((f"{record['architecture']}.s{record['size']}", os.path.join(folder, name),
                      record["environment"]["gpu"], record["batch"], PRECISIONS[record["precision"]],
                      "nhwc" if record["channels_last"] else "nchw", OPTIMIZERS[record["optimizer"]], 1,
                      f"{record['step_ms']['median']:.6g}"))
    return found, sorted(missing)


def write(found: list[tuple], out: Path) -> None:
    """Writes the table, which appears in one step, complete."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *found])
    temporary = out.with_name(out.name + ".new")
    temporary.write_text(text.getvalue(), encoding="utf-8")
    os.replace(temporary, out)
