"""Part files: JSON lines, each appended whole and flushed. The reader skips a line that was cut off."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterable, Iterator

from mdot_lab.collect import SCHEMA

Record = dict[str, Any]

STATUSES = ("ok", "oom", "over_cap", "error")

_NUMBER = (int, float)
_ALWAYS: dict[str, Any] = {
    "schema": int, "key": str, "repeat": int, "status": str, "process": str, "time_unix": _NUMBER, "seconds": _NUMBER,
    "architecture": str, "family": str, "library": str, "builder": str, "arguments": dict, "task": str, "size": int,
    "batch": int, "precision": str, "channels_last": bool, "optimizer": str, "implementation": str,
    "cap_seconds": _NUMBER, "environment": dict,
}
_MEASURED: dict[str, Any] = {
    "inputs": list, "parameters": int, "parameter_tensors": int, "warmup_steps": int, "steps": int, "step_ms": dict,
    "forward_ms": dict, "backward_ms": dict, "optimizer_ms": dict, "host_step_ms": _NUMBER, "finite": bool,
    "memory": dict, "gpu_state": list,
}
_OPTIONAL: dict[str, Any] = {
    "step_joules": _NUMBER, "inference_ms": dict, "inference_host_ms": _NUMBER, "inference_memory": dict, "inference_error": str,
}
_SPREAD = ("median", "iqr", "min", "mean")


def faults(record: Record) -> list[str]:
    """The violations of the schema in a record; empty for a valid record."""
    wanted = {**_ALWAYS, **(_MEASURED if record.get("status") == "ok" else {})}
    found = [f"{name} is missing" for name in wanted if name not in record]
    found += [f"{name} is {type(record[name]).__name__}" for name, kind in (wanted | _OPTIONAL).items()
              if name in record and not isinstance(record[name], kind)]
    if record.get("schema") != SCHEMA:
        found.append(f"schema {record.get('schema')} is not {SCHEMA}")
    if record.get("status") not in STATUSES:
        found.append(f"status '{record.get('status')}' is none of {', '.join(STATUSES)}")
    for name in ("step_ms", "forward_ms", "backward_ms", "optimizer_ms", "inference_ms"):
        spread = record.get(name)
        if isinstance(spread, dict):
            found += [f"{name} has no {part}" for part in _SPREAD if part not in spread]
    return found


def read(path: Path) -> Iterator[Record]:
    """Records in a part file or a merged file. An unfinished last line from a killed process is skipped."""
    import gzip

    with (gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8")) as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(record, dict) and "key" in record:
                yield record


def files_in(paths: Iterable[Path]) -> list[Path]:
    """The record files among `paths` and directly inside those that are folders. A path that does not exist counts as empty."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
        elif path.exists():
            found.append(path)
    return found


def read_all(paths: Iterable[Path]) -> Iterator[Record]:
    for path in files_in(paths):
        yield from read(path)


class Attempt:
    """Stores the current measurement beside the part file, so that the next process knows which one killed the last."""

    def __init__(self, part: Path):
        self._path = part.with_name(part.name + ".trying")

    def begin(self, record: Record) -> None:
        """Stores the record that will describe the configuration if the process ends before `end`."""
        self._path.write_text(json.dumps(record), encoding="utf-8")

    def end(self) -> None:
        self._path.unlink(missing_ok=True)

    def left(self) -> Record | None:
        """The record that an earlier process began and did not end."""
        try:
            return json.loads(self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None


class Writer:
    """Appends to one part file. Each record is one write call, so that readers and killed processes leave no mixed records."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        length = os.fstat(self._file).st_size
        if length and os.pread(self._file, 1, length - 1) != b"\n":
            os.write(self._file, b"\n")         # ends the line that a killed process left

    def write(self, record: Record) -> None:
        os.write(self._file, (json.dumps(record, separators=(",", ":"), sort_keys=True) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)
