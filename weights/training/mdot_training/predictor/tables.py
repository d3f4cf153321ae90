"""Tables that C and Python share, parsed from the C sources: attributes, operator types, GPUs.

The order of attributes, types and GPU columns is part of the predictor's input schema, therefore it is defined once, in C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]

UNKNOWN_TYPE = 0
"""Number of all types that the table lacks, and of operators that mdot does not know."""

PHASES = ("forward", "data_gradient", "weight_gradient")
LOADS = ("flops", "bytes_read", "bytes_written")
PHASE_LOAD_COUNT = len(PHASES) * len(LOADS)
LOAD_COUNT = 2 * PHASE_LOAD_COUNT + 1
"""operator_load: nine loads per sample, the same nine per step, parameters."""

POSITIONS = ("topological_index", "depth", "height", "in_degree", "out_degree")
READS = ("batch", "is_fp32", "is_tf32", "is_amp", "is_nhwc", "is_adam", "is_adamw", "is_amp_bf16", "is_bf16",
         "is_pytorch", "is_eager", "is_compiled", "torch")
"""Numbers of the configuration that the predictor reads, by their names in the header. The runtime estimates the effect of
other options analytically."""

GPU_FIGURES = ("compute_capability", "sm_count", "boost_mhz", "memory_gib", "memory_gbps", "l2_mib", "fp32_tflops", "tf32_tflops",
               "fp16_tflops", "nvlink_gbps", "pcie_gbps", "watts")
"""The predictor's input `gpu`: the first columns of the table. Columns that were appended later are excluded."""
MODEL_SPECS = GPU_FIGURES[:9]
"""The columns that distinguish GPU models. Links are excluded because a step on one GPU does not use them, and the power
limit because it can be set."""


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def _read(path: str) -> str:
    return _without_comments((ROOT / path).read_text(encoding="utf-8"))


def _map(name: str, row: str) -> tuple[str, ...]:
    """The matches of `row`, a pattern with one group, in a table macro of mdot_predict.h."""
    header = _read("include/mdot/mdot_predict.h")
    lines = re.search(rf"define {name}\(X\)((?:[^\n]*\\\n)+[^\n]*)", header)[1]
    return tuple(re.findall(row, lines))


@cache
def settings() -> tuple[str, ...]:
    """Names of the attributes, in their order."""
    return _map("MDOT_SETTING_MAP", r'X\(\w+, "(\w+)"\)')


@cache
def configuration() -> tuple[str, ...]:
    """Names of a configuration's numbers, in their order."""
    return _map("MDOT_CONFIGURATION_MAP", r'X\(\w+, "(\w+)"\)')


@cache
def causes() -> tuple[str, ...]:
    """Reasons why a job lies outside the measured range, by number."""
    return _map("MDOT_OUTSIDE_MAP", r"X\(\d+, (\w+)\)")


@cache
def operator_types() -> tuple[str, ...]:
    """Names by number; the first stands for all unknown types."""
    names = dict(re.findall(r'^OP\((\w+),\s*"([^"]*)"', _read("ir/ops.def"), flags=re.M))
    rows = re.findall(r"^JOB\((\w+),\s*(\w+),\s*(\d+),", _read("ir/ops_job.def"), flags=re.M)
    numbers = {int(number): names[row] for row, type_row, number in rows if row == type_row and int(number) != UNKNOWN_TYPE}
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        raise ValueError("ir/ops_job.def: the numbers of types have gaps")
    return ("?", *(numbers[n] for n in range(1, len(numbers) + 1)))


@cache
def operator_type_row(name: str) -> int:
    types = operator_types()
    return types.index(name) if name in types else UNKNOWN_TYPE


@dataclass(frozen=True)
class Gpu:
    names: tuple[str, ...]          # the first is the GPU's name, the others are aliases
    numbers: tuple[float, ...]      # the predictor's input `gpu`

    @property
    def model_specs(self) -> tuple[float, ...]:
        """The values that distinguish GPU models."""
        return self.numbers[:len(MODEL_SPECS)]

    def __getitem__(self, column: str) -> float:
        return self.numbers[gpu_columns().index(column)]


@cache
def gpu_columns() -> tuple[str, ...]:
    """GPU_FIGURES. They must be the first numeric columns of the row pattern in the table's opening comment."""
    text = (ROOT / "runtime/job/gpus.def").read_text(encoding="utf-8")
    columns = tuple(re.findall(r"\w+", re.search(r"GPU\(name, aliases,([\w,\s*]+)\)", text)[1]))
    if columns[:len(GPU_FIGURES)] != GPU_FIGURES:
        raise ValueError("runtime/job/gpus.def: the columns do not begin with those that the predictor reads")
    return GPU_FIGURES


@cache
def gpus() -> tuple[Gpu, ...]:
    rows = re.findall(r'^\s*GPU\("([^"]*)",\s*"([^"]*)",([^)]*)\)', _read("runtime/job/gpus.def"), flags=re.M)
    return tuple(Gpu((name, *filter(None, aliases.split("|"))), tuple(float(n) for n in numbers.split(",")[:len(GPU_FIGURES)]))
                 for name, aliases, numbers in rows)


def gpu(name: str) -> Gpu:
    for row in gpus():
        if name in row.names:
            return row
    raise KeyError(f"runtime/job/gpus.def has no GPU '{name}'")
