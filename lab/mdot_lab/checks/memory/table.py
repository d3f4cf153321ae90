"""Rows for the table of networks, as CSV and as a summary."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Iterable, Sequence

Key = tuple[str, str]


@dataclasses.dataclass
class Row:
    """A network in a precision. Sizes in bytes; 0: not known, and `note` has the reason."""

    network: str
    precision: str
    optimizer: str
    batch: int
    traced_batch: int
    attention: str = ""
    reference_bytes: int = 0
    predicted_bytes: int = 0
    """By the job that was traced at `traced_batch`."""
    same_batch_bytes: int = 0
    """By the job that was traced at `batch`."""
    seconds: float = 0.0
    note: str = ""

    @property
    def key(self) -> Key:
        return self.network, self.precision

    @property
    def ratio(self) -> float | None:
        """Predicted / reference, from the job that was traced at another batch."""
        return self.predicted_bytes / self.reference_bytes if self.predicted_bytes and self.reference_bytes else None

    @property
    def same_batch_ratio(self) -> float | None:
        return self.same_batch_bytes / self.reference_bytes if self.same_batch_bytes and self.reference_bytes else None


FIELDS = [field.name for field in dataclasses.fields(Row)]
COLUMNS = [*FIELDS[:-2], "ratio", "same_batch_ratio", *FIELDS[-2:]]
INTEGERS = {"batch", "traced_batch", "reference_bytes", "predicted_bytes", "same_batch_bytes"}


def read(path: Path) -> dict[Key, Row]:
    """The rows of a file by network and precision; of equal ones the last. A missing file has no rows."""
    if not path.exists():
        return {}
    rows = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for cells in csv.DictReader(lines):
            values = {name: int(cells[name]) if name in INTEGERS else cells[name] for name in FIELDS}
            row = Row(**{**values, "seconds": float(cells["seconds"])})
            rows[row.key] = row
    return rows


def append(path: Path, row: Row) -> None:
    """Adds a row to the file, and the heading to an empty one."""
    is_new = not path.exists() or path.stat().st_size == 0
    with path.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        ratios = {name: getattr(row, name) for name in ("ratio", "same_batch_ratio")}
        cells = {**dataclasses.asdict(row), **{name: "" if ratio is None else f"{ratio:.4f}" for name, ratio in ratios.items()}}
        writer.writerow([cells[name] for name in COLUMNS])


def errors(ratios: Iterable[float]) -> list[float]:
    """Absolute errors in percent, ascending."""
    return sorted(100 * abs(ratio - 1) for ratio in ratios)


def line(title: str, ratios: Sequence[float]) -> str:
    found = errors(ratios)
    if not found:
        return f"| {title} | 0 | | | | |"
    within = [100 * sum(error <= bound for error in found) / len(found) for bound in (10, 20)]
    return f"| {title} | {len(found)} | {sum(found) / len(found):.1f} | {within[0]:.0f} | {within[1]:.0f} | {found[-1]:.1f} |"


HEADING = "| rows | number | mean error, % | within 10 %, % | within 20 %, % | worst, % |\n" + "| --- " * 6 + "|"


def summary(rows: Sequence[Row], worst: int = 20) -> str:
    """The errors by precision, library and traced batch, the rows that lack a number, and the worst rows."""
    known = [(row, ratio) for row in rows if (ratio := row.ratio) is not None]
    lines = [HEADING, line("all", [ratio for _, ratio in known])]
    lines.append(line("all, traced at the same batch", [r for row in rows if (r := row.same_batch_ratio) is not None]))
    for precision in dict.fromkeys(row.precision for row in rows):
        lines.append(line(precision, [ratio for row, ratio in known if row.precision == precision]))
    for library in dict.fromkeys(row.network.split("/")[0] for row in rows):
        lines.append(line(library, [ratio for row, ratio in known if row.network.split("/")[0] == library]))
    missing = [row for row in rows if row.ratio is None]
    if missing:
        lines += ["", f"{len(missing)} rows without a ratio:"]
        lines += [f"  {row.network}, {row.precision}: {row.note}" for row in missing]
    lines += ["", f"The {min(worst, len(known))} worst of {len(known)} rows:"]
    for row, ratio in sorted(known, key=lambda pair: -abs(pair[1] - 1))[:worst]:
        kernels = f"  attention: {row.attention}" if row.attention else ""
        lines.append(f"  {ratio:5.2f}  {row.network}, {row.precision}: {row.predicted_bytes / 2**30:.2f} predicted, "
                     f"{row.reference_bytes / 2**30:.2f} GiB in PyTorch{kernels}")
    return "\n".join(lines)
