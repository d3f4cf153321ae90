"""Tables of measured steps: CSV with the columns of `mdot calibrate`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Iterator

from mdot.calibration import Measurement
from mdot.job import Job
from mdot.library.errors import Error, InvalidArgumentError
from mdot.options import Options
from mdot.predictor import as_measurement
from mdot.training_arguments import flag_of, option_value, read_parallel

REQUIRED = ("job", "gpu", "batch")
MEASURED = ("ms", "gib")
RECORDED = ("note", "software", "host", "predictor", "measured_at", "name", "digest", "row")
"""A store's columns (docs/reference/formats/store.md), which change no step."""


def read_measured(path: Path) -> list[Measurement]:
    """Reads a table's steps. Job paths are relative to the table's folder. Raises InvalidArgumentError with the line."""
    with path.open(newline="") as file:
        lines = [(number, line) for number, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
    reader = csv.DictReader(line for _, line in lines)
    columns = reader.fieldnames or ()
    missing = [name for name in REQUIRED if name not in columns]
    if not any(name in columns for name in MEASURED):
        missing.append("ms or gib")
    if missing:
        raise InvalidArgumentError(f"{path}: the first line lacks the column {missing[0]}")
    names = {flag_of(option): option for option in Options.__annotations__}
    known = {*REQUIRED, *MEASURED, *names, "parallel", "dim", "frozen", "trained", *RECORDED}
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise InvalidArgumentError(f"{path}: unknown column {unknown[0]!r}; known are {', '.join(sorted(known))}")
    jobs: dict[tuple[str, ...], Job] = {}
    steps = []
    for (number, _), row in zip(lines[1:], reader):
        try:
            steps.append(_step(path.parent, row, names, jobs))
        except (Error, TypeError, ValueError) as fault:
            raise InvalidArgumentError(f"{path}: line {number}: {fault}") from None
    return steps


def _step(folder: Path, row: dict[str, str], names: dict[str, str], jobs: dict[tuple[str, ...], Job]) -> Measurement:
    cells = {name: (value or "").strip() for name, value in row.items() if name is not None}
    key = tuple(cells.get(name, "") for name in ("job", "dim", "frozen", "trained"))
    if key not in jobs:
        job = Job.read(folder / key[0], dims=dict(_dims(key[1])) or None)
        frozen, trained = ([pattern for pattern in text.split(",") if pattern] for text in key[2:])
        jobs[key] = job.freeze(frozen, trained) if frozen or trained else job
    options: dict[str, Any] = {
        option: option_value(option, cells[name]) for name, option in names.items() if cells.get(name)
    }
    if cells.get("parallel"):
        options.update(read_parallel(cells["parallel"]))
    options.update({name: float(cells[name]) for name in MEASURED if cells.get(name)})
    return as_measurement(jobs[key], {**options, "gpu": cells["gpu"], "batch": int(cells["batch"])}, {})


def _dims(text: str) -> Iterator[tuple[str, int | str]]:
    for item in filter(None, text.replace(";", ",").split(",")):
        name, _, value = item.partition("=")
        yield name, int(value) if value.isdigit() else value
