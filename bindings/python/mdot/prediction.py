"""Predictions, and tables of them."""

from __future__ import annotations

import dataclasses
import functools
import html
import itertools
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence, overload

from mdot.configuration import Configuration
from mdot.library import structs as c
from mdot.library.errors import require
from mdot.library.libraries import read_text, runtime

if TYPE_CHECKING:
    import pandas

    from mdot.beside import Pair

GIB = float(1 << 30)
WARNING_BITS = 32


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The prediction for one training step under one configuration (mdot.h, mdot_prediction)."""

    configuration: Configuration
    step_ms: float
    """Median time of the forward pass, the backward pass and the optimizer."""
    lower_ms: float
    upper_ms: float
    """Bounds of the 90 % interval."""
    peak_memory_bytes: int
    """Peak memory of the tensors on one GPU (torch.cuda.max_memory_allocated)."""
    fits: bool
    """`reserved_bytes` are at most `usable_bytes`."""
    warnings: tuple[str, ...]
    """Reasons for less trust in the prediction, by the names of MDOT_WARNING_MAP."""
    implausible: str | None
    """The bound that the step breaks: too-fast-for-compute, too-fast-for-memory or too-slow; None if it is plausible."""
    parameters: float
    flops_per_sample: float
    compute_share: float
    """Utilisation of the GPU's peak rate at this precision."""
    memory_share: float
    """Utilisation of the peak memory bandwidth, if each operator reads and writes each tensor once."""
    unknown_share: float
    """Share of the job's work in operators of unknown types."""
    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    memory_lower_bytes: int
    """90 % interval of `peak_memory_bytes`."""
    memory_upper_bytes: int
    reserved_bytes: int
    """Memory that the process takes from the GPU, as nvidia-smi shows it: the peak and the four sizes below."""
    usable_bytes: int
    """GPU memory for a process."""
    rounding_bytes: float
    """Rounding and fragmentation of PyTorch's caching allocator."""
    context_bytes: float
    """CUDA context and code."""
    workspace_bytes: float
    """Workspaces of cuBLAS and cuDNN."""
    collective_bytes: float
    """NCCL's buffers; 0 on one GPU."""
    average_watts: float
    """Average power per GPU; 0 if the power limit is unknown."""
    energy_joules: float
    """Energy per step on all GPUs, without the rest of the machine."""
    first_stage_bytes: int
    """Peak of a pipeline's first stage; without a pipeline, `peak_memory_bytes`."""
    last_stage_bytes: int
    """Peak of a pipeline's last stage, which Megatron logs."""
    host_share: float
    """Change of the step with the host's time, both as logarithms: 0 (the GPU is busy) to 1 (it waits for launches)."""
    gpu_ms: float = 0.0
    """`step_ms` if data are always there."""
    gpu_lower_ms: float = 0.0
    gpu_upper_ms: float = 0.0
    loader_ms: float = 0.0
    """The data loaders' time for a step's samples, which `step_ms` is at least; 0 without loader_rate and cpu_rate."""
    beside: Pair | None = None
    """Both jobs on one GPU, if the call named a partner."""

    @property
    def samples_per_second(self) -> float:
        """Throughput of all GPUs together."""
        return 1000 * self.configuration.samples / self.step_ms

    @property
    def memory_gib(self) -> float:
        """`peak_memory_bytes` in GiB (2^30 bytes)."""
        return self.peak_memory_bytes / GIB

    @property
    def reserved_gib(self) -> float:
        """`reserved_bytes` in GiB (2^30 bytes)."""
        return self.reserved_bytes / GIB

    @property
    def usable_gib(self) -> float:
        """`usable_bytes` in GiB (2^30 bytes)."""
        return self.usable_bytes / GIB

    def hours(self, *, steps: int | None = None, epochs: float | None = None, dataset: int | None = None) -> float:
        """Hours for the whole training: either a number of steps, or a number of epochs over `dataset` samples."""
        if (steps is None) == (epochs is None or dataset is None):
            raise TypeError("pass either steps, or both epochs and dataset")
        if steps is None:
            assert epochs is not None and dataset is not None
            steps = -int(-epochs * dataset // self.configuration.samples)  # rounded up
        return steps * self.step_ms / 3.6e6

    def __str__(self) -> str:
        fits = "fits" if self.fits else "does not fit"
        ignored = self.configuration.without_effect
        return (
            f"{self.configuration.gpu_name}, batch {self.configuration.batch}: {short(self.step_ms)} ms, 90 % interval "
            f"{short(self.lower_ms)} to {short(self.upper_ms)} ms; {short(self.samples_per_second)} samples/s; "
            f"{short(self.memory_gib)} GiB allocated, {_limit(self.reserved_gib, self.usable_gib)} GiB usable: {fits}"
            + (f"; {ignored}" if ignored is not None else "")
        )


def short(value: float) -> str:
    """At most three significant digits, or the whole number, because more digits would suggest a higher accuracy."""
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Lines of a table. The first column is aligned on the left, and the others on the right."""
    width = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = [[line[0].ljust(width[0]), *(cell.rjust(w) for cell, w in zip(line[1:], width[1:]))] for line in cells]
    return "\n".join("  ".join(line) for line in lines)


def html_table(cells: Iterable[Sequence[str]]) -> str:
    """A table in HTML, whose first line is the heading."""
    lines = [
        "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in line) + "</tr>"
        for kind, line in zip(itertools.chain(["th"], itertools.repeat("td")), cells)
    ]
    return "\n".join(["<table>", *lines, "</table>"])


def _limit(reserved: float, usable: float) -> str:
    """For example "12.3 reserved of 14.8", with as many decimals as necessary to distinguish the two, three at most."""
    for decimals in range(1 if max(reserved, usable) < 99.95 else 0, 4):
        shown = f"{reserved:.{decimals}f}", f"{usable:.{decimals}f}"
        if shown[0] != shown[1]:
            break
    return f"{shown[0]} reserved of {shown[1]}"


def warning_names(bits: int) -> tuple[str, ...]:
    found = (runtime().mdot_warning_name(1 << bit) for bit in range(WARNING_BITS) if bits >> bit & 1)
    return tuple(read_text(name) for name in found if name is not None)


@functools.lru_cache(maxsize=None)
def warning_bits(names: tuple[str, ...]) -> int:
    """The inverse of warning_names."""
    return sum(1 << bit for bit in range(WARNING_BITS) if set(warning_names(1 << bit)) & set(names))


def implausible_text(name: str) -> str:
    """The sentence of a bound (MDOT_IMPLAUSIBLE_MAP)."""
    found = next(n for n in itertools.count(1) if read_text(runtime().mdot_implausible_name(n)) == name)
    return read_text(runtime().mdot_implausible_text(found))


_MADE = ("configuration", "warnings", "implausible", "beside")
_COPIED = [field.name for field in dataclasses.fields(Prediction) if field.name not in _MADE]


def of_struct(configuration: Configuration, answer: c.mdot_prediction) -> Prediction:
    fields: dict[str, Any] = {name: getattr(answer, name) for name in _COPIED}
    name = runtime().mdot_implausible_name(answer.implausible)
    return Prediction(
        configuration=configuration,
        warnings=warning_names(answer.warnings),
        implausible=None if name is None else read_text(name),
        **fields,
    )


class Table(Sequence[Prediction]):
    """A sweep's predictions, in order. Prints as a table; `to_pandas` makes a DataFrame."""

    def __init__(self, rows: Sequence[Prediction]) -> None:
        self._rows = list(rows)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> Table: ...
    def __getitem__(self, index: int | slice) -> Prediction | Table:
        return Table(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self._rows)

    def sorted(self, by: str = "step_ms") -> Table:
        """Sorts by an attribute of the predictions, lowest first; throughput is sorted highest first. Steps that do not
        fit the memory come last."""
        is_reverse = by == "samples_per_second"
        return Table(sorted(self._rows, key=lambda row: (row.fits == is_reverse, getattr(row, by)), reverse=is_reverse))

    def records(self) -> list[dict[str, Any]]:
        """A flat dictionary for each row: configuration options, then prediction values."""
        records = []
        for row in self._rows:
            options = {f.name: getattr(row.configuration, f.name) for f in dataclasses.fields(Configuration)}
            options["gpu"] = row.configuration.gpu_name
            answer = {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.name != "configuration"}
            answer["warnings"] = ", ".join(row.warnings)
            records.append({**options, **answer, "samples_per_second": row.samples_per_second})
        return records

    def to_pandas(self) -> pandas.DataFrame:
        """The records as a DataFrame. Requires pandas."""
        frame: pandas.DataFrame = require("pandas").DataFrame.from_records(self.records())
        return frame

    def _cells(self) -> list[list[str]]:
        varied = [
            name
            for name in (f.name for f in dataclasses.fields(Configuration))
            if name not in ("gpu", "batch") and len({str(getattr(row.configuration, name)) for row in self._rows}) > 1
        ]
        cells = [["GPU", "batch", *varied, "step, ms", "5 %", "95 %", "samples/s", "GiB", "reserved", "usable", "fits"]]
        for row in self._rows:
            numbers = (
                row.step_ms,
                row.lower_ms,
                row.upper_ms,
                row.samples_per_second,
                row.memory_gib,
                row.reserved_gib,
                row.usable_gib,
            )
            cells.append(
                [
                    row.configuration.gpu_name,
                    str(row.configuration.batch),
                    *[str(getattr(row.configuration, name)) for name in varied],
                    *[short(number) for number in numbers],
                    "yes" if row.fits else "no",
                ]
            )
        return cells

    def __str__(self) -> str:
        return aligned(self._cells())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table as HTML for notebooks."""
        return html_table(self._cells())
