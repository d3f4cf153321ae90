"""Compares predictions with the records of `mdot_lab.collect`: time, memory and energy of training, latency of inference.

    python3 -m mdot_lab.checks.collected RECORDS --jobs JOBS --out compared.csv

Every network is built without weights and traced once, and its job is kept in JOBS. It needs PyTorch, the libraries of the
networks, and the package mdot. A prediction gets what the record states: the GPU, PyTorch's version, precision, layout,
optimizer and its kernels. `--host-launch-us` adds the host's cost of a launch, if it is known. The summary goes to the
standard output; errors are in percent, and a positive error means that the prediction is above the measurement. PyTorch's
counter of allocated memory includes the workspaces of cuBLAS, which mdot states apart. Its counter of reserved memory
excludes the CUDA context, which is subtracted from the prediction.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable

import mdot
import torch

from mdot_lab.collect import records
from mdot_lab.collect.architecture import build
from mdot_lab.collect.catalogue import BY_NAME
from mdot_lab.collect.measurements_csv import OPTIMIZERS, PRECISIONS
from mdot_lab.collect.tasks import TASKS

GIB = 1 << 30
KERNELS = {"fused": "fused", "foreach": "foreach", "forloop": "for-loop"}
TRACED_BATCH = 2
MEASURED_JOULES_SECONDS = 0.4
"""Least duration of the timed steps for energy to count, because the counter moves about ten times a second."""
GPU_BOUND = 1.5
"""A step counts as bound by the GPU if it takes at least this many times the step of the network's smallest batch."""

COLUMNS = ("key", "bound", "step_ms", "predicted_ms", "lower_ms", "upper_ms", "inference_ms", "predicted_inference_ms",
           "inference_lower_ms", "inference_upper_ms", "allocated_gib", "predicted_gib",
           "predicted_with_cublas_gib", "reserved_gib", "predicted_reserved_gib", "joules", "predicted_joules", "watts",
           "predicted_watts")
Row = dict[str, Any]


def cublas_bytes(record: records.Record) -> int:
    """cuBLAS workspaces for the threads of both passes (ATen's CublasHandlePool.cpp: larger from Hopper on)."""
    is_hopper = float(record["environment"]["gpu_capability"]) >= 9.0
    return 2 * (32 << 20 if is_hopper else (8 << 20) + (1 << 17))


def job_of(record: records.Record, folder: Path) -> mdot.Job:
    """The job of a record's network, traced on first use."""
    row, size = BY_NAME[record["architecture"]], record["size"]
    path = folder / f"{row.name.replace('/', '_')}.s{size}.job"
    if not path.exists():
        model = build(row, size, "meta")
        task = TASKS[row.task]
        inputs = task.inputs(TRACED_BATCH, size, row.arguments, "cpu")
        with torch.no_grad():
            outputs = model(*(x.to("meta") for x in inputs))
        targets = task.targets(torch.zeros(outputs.shape))
        mdot.Job.from_torch(model, inputs, loss=task.loss, targets=targets, name=row.name).save(path)
    return mdot.Job.read(path)


def compare(record: records.Record, job: mdot.Job, options: dict[str, Any]) -> Row:
    """The columns of a record, without `bound`."""
    torch_version = ".".join(record["environment"]["torch"].split(".")[:2])
    common = {"precision": PRECISIONS[record["precision"]], "layout": "nhwc" if record["channels_last"] else "nchw",
              "torch": torch_version, **options}
    optimizer = {"optimizer": OPTIMIZERS[record["optimizer"]], "optimizer_kernels": KERNELS[record["implementation"]]}
    gpu, batch, memory = record["environment"]["gpu"], record["batch"], record["memory"]
    step = mdot.predict(job, gpu, batch, **common, **optimizer)
    seconds = record["host_step_ms"] * record["steps"] / 1e3
    joules = record.get("step_joules") if seconds >= MEASURED_JOULES_SECONDS else None
    found = {"key": record["key"], "step_ms": record["step_ms"]["median"], "predicted_ms": step.step_ms,
             "lower_ms": step.lower_ms, "upper_ms": step.upper_ms,
             "allocated_gib": memory["peak_allocated_bytes"] / GIB, "predicted_gib": step.memory_gib,
             "predicted_with_cublas_gib": (step.peak_memory_bytes + cublas_bytes(record)) / GIB,
             "reserved_gib": memory["peak_reserved_bytes"] / GIB,
             "predicted_reserved_gib": (step.reserved_bytes - step.context_bytes) / GIB,
             "joules": joules, "predicted_joules": step.energy_joules,
             "watts": joules and 1e3 * joules / record["host_step_ms"], "predicted_watts": step.average_watts}
    if "inference_ms" in record:
        answer = mdot.predict(job, gpu, batch, mode="inference", **common)
        found |= {"inference_ms": record["inference_ms"]["median"], "predicted_inference_ms": answer.step_ms,
                  "inference_lower_ms": answer.lower_ms, "inference_upper_ms": answer.upper_ms}
    return found


def mark_bound(rows: list[Row]) -> None:
    """Sets `bound`: whether the GPU or the host sets the pace, as far as the times of a network's batches show."""
    smallest: dict[str, float] = {}
    for row in rows:
        network = row["key"].split("|")[0]
        smallest[network] = min(smallest.get(network, float("inf")), row["step_ms"])
    for row in rows:
        is_large = row["step_ms"] >= GPU_BOUND * smallest[row["key"].split("|")[0]]
        row["bound"] = "gpu" if is_large else "host"


@dataclass(frozen=True)
class Errors:
    """Errors for a group of rows, in percent. `bias` is the median signed error."""

    count: int
    mean: float
    median: float
    bias: float
    inside: float | None

    def __str__(self) -> str:
        inside = "" if self.inside is None else f"{self.inside:.0f}"
        return f"{self.count} | {self.mean:.1f} | {self.median:.1f} | {self.bias:+.1f} | {inside}"


def errors(rows: Iterable[Row], measured: str, predicted: str, bounds: tuple[str, str] | None = None) -> Errors | None:
    """Errors over rows with the measured column; None without such a row."""
    pairs = [row for row in rows if row.get(measured)]
    if not pairs:
        return None
    signed = [100 * (row[predicted] / row[measured] - 1) for row in pairs]
    inside = bounds and 100 * statistics.mean(row[bounds[0]] <= row[measured] <= row[bounds[1]] for row in pairs)
    return Errors(len(pairs), statistics.mean(map(abs, signed)), statistics.median(map(abs, signed)), statistics.median(signed),
                  inside)


GROUPS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("all", lambda row: True),
    ("bound by the GPU", lambda row: row["bound"] == "gpu"),
    ("bound by the host", lambda row: row["bound"] == "host"),
    *((name, lambda row, name=name: f"|{name}|" in row["key"]) for name in ("fp32", "tf32", "bf16", "fp16", "nchw", "nhwc")),
)


def summary(rows: list[Row]) -> str:
    """Markdown."""
    lines = ["| what | rows | measurements | mean error | median error | bias | inside the interval, % |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, belongs in GROUPS:
        group = [row for row in rows if belongs(row)]
        for what, *columns in (("training step", "step_ms", "predicted_ms", ("lower_ms", "upper_ms")),
                               ("inference", "inference_ms", "predicted_inference_ms",
                                ("inference_lower_ms", "inference_upper_ms"))):
            found = errors(group, *columns)
            lines += [f"| {what} | {name} | {found} |"] if found else []
    for what, *columns in (("allocated memory", "allocated_gib", "predicted_gib"),
                           ("allocated memory, with cuBLAS", "allocated_gib", "predicted_with_cublas_gib"),
                           ("reserved memory", "reserved_gib", "predicted_reserved_gib"),
                           ("energy", "joules", "predicted_joules"), ("power", "watts", "predicted_watts")):
        found = errors(rows, *columns)
        lines += [f"| {what} | all | {found} |"] if found else []
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--jobs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--host-launch-us", type=float, default=0.0)
    parsed = parser.parse_args(arguments)
    parsed.jobs.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", mdot.PredictionWarning)
    options = {"host_launch_us": parsed.host_launch_us} if parsed.host_launch_us else {}
    rows: list[Row] = []
    for record in records.read_all(parsed.records):
        if record["status"] == "ok" and record["repeat"] == 0:
            try:
                rows.append(compare(record, job_of(record, parsed.jobs), options))
            except mdot.Error as fault:
                print(f"collected: left out: {record['key']}: {fault}", file=sys.stderr)
    if not rows:
        print("collected: no record has been measured", file=sys.stderr)
        return 1
    mark_bound(rows)
    with open(parsed.out, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
                        for row in rows)
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
