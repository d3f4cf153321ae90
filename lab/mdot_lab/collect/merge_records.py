"""Merges part files into one sorted file without duplicates, and summarises contents and noise."""

from __future__ import annotations

import gzip
import json
import os
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Iterable

from mdot_lab.collect.records import STATUSES, Record, faults

_RANK = {status: rank for rank, status in enumerate(("ok", "oom", "over_cap", "error"))}


def _identity(record: Record) -> tuple:
    """Records with equal identity measure the same configuration on the same GPU model and PyTorch version. One of them is
    kept."""
    environment = record["environment"]
    return record["key"], record["repeat"], str(environment.get("gpu")), str(environment.get("torch"))


def merge(records: Iterable[Record], out: Path) -> tuple[list[Record], list[str]]:
    """Writes `out`. Returns the records, and the reasons for the records that were left out.

    The file appears in one step, complete, and is equal for equal records. Among records with the same identity,
    measured ones have priority, then the earliest.
    """
    kept: dict[tuple, Record] = {}
    refused: list[str] = []
    for record in records:
        found = faults(record)
        if found:
            refused.append(f"{record['key']}: {'; '.join(found)}")
            continue
        identity = _identity(record)
        order = _RANK[record["status"]], record["time_unix"]
        known = kept.get(identity)
        if known is None or order < (_RANK[known["status"]], known["time_unix"]):
            kept[identity] = record
    merged = [kept[identity] for identity in sorted(kept)]
    temporary = out.with_name(out.name + ".new")
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(temporary, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        for record in merged:
            packed.write((json.dumps(record, separators=(",", ":"), sort_keys=True) + "\n").encode())
    os.replace(temporary, out)
    return merged, refused


def repeat_differences(records: Iterable[Record]) -> list[float]:
    """|second / first − 1| of median step times for configurations measured twice, in different processes."""
    pairs: dict[tuple, dict[int, Record]] = defaultdict(dict)
    for record in records:
        if record["status"] == "ok":
            key, repeat, *where = _identity(record)
            pairs[(key, *where)][repeat] = record
    return sorted(abs(pair[1]["step_ms"]["median"] / pair[0]["step_ms"]["median"] - 1.0) for pair in pairs.values()
                  if len(pair) == 2 and pair[0]["process"] != pair[1]["process"])


def summary(records: list[Record]) -> str:
    """Markdown: a row for each family, the totals, the machines and the noise floor."""
    families: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["repeat"] == 0:
            families[record["family"]].append(record)
    lines = ["| family | architectures | " + " | ".join(STATUSES) + " | median step, ms |",
             "| --- | --- | " + " | ".join("---" for _ in STATUSES) + " | --- |"]
    for family, rows in [*sorted(families.items()), ("**all**", [r for rows in families.values() for r in rows])]:
        counts = Counter(r["status"] for r in rows)
        times = [r["step_ms"]["median"] for r in rows if r["status"] == "ok"]
        middle = f"{statistics.median(times):.2f}" if times else "–"
        lines.append(f"| {family} | {len({r['architecture'] for r in rows if r['status'] == 'ok'})} | "
                     + " | ".join(str(counts[status]) for status in STATUSES) + f" | {middle} |")
    for axis in ("precision", "optimizer", "implementation", "channels_last"):
        counts = Counter(str(r[axis]) for r in records if r["status"] == "ok")
        lines += ["", f"{axis}: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))]
    gpu_models = Counter((str(r["environment"].get("gpu")), str(r["environment"].get("torch"))) for r in records)
    lines += ["", *(f"{gpu}, torch {version}: {count} records" for (gpu, version), count in sorted(gpu_models.items()))]
    differences = repeat_differences(records)
    if differences:
        ninth = differences[min(len(differences) - 1, int(0.9 * len(differences)))]
        lines += ["", f"Measured twice, in two processes: {len(differences)} configurations; median difference "
                      f"{100 * statistics.median(differences):.2f} %, 90th percentile {100 * ninth:.2f} %, "
                      f"largest {100 * differences[-1]:.2f} %"]
    return "\n".join(lines)
