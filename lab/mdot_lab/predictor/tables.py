"""Tables that C and Python share: attributes, operator types, GPUs and numbers of a configuration.

The order of attributes, types and GPU columns is part of the predictor's input schema, therefore it is defined once, in C.
An installed mdot has the tables in share/mdot/schema.json.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

UNKNOWN_TYPE = 0
"""Number for all types outside the table, and for operators unknown to mdot."""

PHASES = ("forward", "data_gradient", "weight_gradient")
LOADS = ("flops", "bytes_read", "bytes_written")
PHASE_LOAD_COUNT = len(PHASES) * len(LOADS)
LOAD_COUNT = 2 * PHASE_LOAD_COUNT + 1
"""Columns of operator_load: nine FLOP and byte counts per sample, the same nine per step, parameters."""

POSITIONS = ("topological_index", "depth", "height", "in_degree", "out_degree")
READS = ("batch", "is_fp32", "is_tf32", "is_amp", "is_nhwc", "is_adam", "is_adamw", "is_amp_bf16", "is_bf16",
         "is_pytorch", "is_eager", "is_compiled", "torch", "is_inference", "host_launch_us")
"""Configuration inputs for the predictor, named as in the header. The runtime estimates other options analytically."""

GPU_SPECS = ("compute_capability", "sm_count", "boost_mhz", "memory_gib", "memory_gbps", "l2_mib", "fp32_tflops",
               "tf32_tflops", "fp16_tflops", "nvlink_gbps", "pcie_gbps", "watts")
"""The predictor's input `gpu`: the table's first columns, without columns appended later."""
MODEL_SPECS = GPU_SPECS[:9]
"""The columns that distinguish GPU models. Links are excluded because a step on one GPU does not use them, and the power
limit because it can be set."""


def _schema_path() -> Path:
    """MDOT_SCHEMA, or the file in the installed Python package, or the one beside the command on PATH."""
    chosen = os.environ.get("MDOT_SCHEMA", "")
    if chosen:
        return Path(chosen)
    package, command = importlib.util.find_spec("mdot"), shutil.which("mdot")
    folders = list(package.submodule_search_locations or []) if package is not None else []
    folders += [str(Path(command).resolve().parent.parent)] if command is not None else []
    for folder in folders:
        path = Path(folder, "share", "mdot", "schema.json")
        if path.is_file():
            return path
    raise FileNotFoundError("no installed mdot has share/mdot/schema.json; install mdot, or set MDOT_SCHEMA to the file")


@cache
def _schema() -> dict[str, Any]:
    schema = json.loads(_schema_path().read_text(encoding="utf-8"))
    if schema["schema"] != "mdot-schema/1":
        raise ValueError(f"{_schema_path()}: unknown format {schema['schema']!r}")
    return schema


@cache
def settings() -> tuple[str, ...]:
    """Attribute names, in order."""
    return tuple(_schema()["settings"])


@cache
def configuration() -> tuple[str, ...]:
    """Names of configuration numbers, in order."""
    return tuple(number["name"] for number in _schema()["inputs"])


@cache
def causes() -> tuple[str, ...]:
    """Reasons why a job lies outside the measured range, by number."""
    return tuple(_schema()["outside_reasons"])


@cache
def operator_types() -> tuple[str, ...]:
    """Names by number; the first stands for all unknown types."""
    types = tuple(_schema()["operator_types"])
    if "?" in types[1:]:
        raise ValueError("schema.json: the numbers of operator types have gaps")
    return types


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
    """GPU_FIGURES. They must be the first numeric columns of the GPU table."""
    if tuple(_schema()["gpu_columns"][:len(GPU_SPECS)]) != GPU_SPECS:
        raise ValueError("schema.json: the GPU columns do not begin with those that the predictor reads")
    return GPU_SPECS


@cache
def gpus() -> tuple[Gpu, ...]:
    return tuple(Gpu((row["name"], *row["aliases"]), tuple(map(float, row["numbers"][:len(GPU_SPECS)])))
                 for row in _schema()["gpus"])


def gpu(name: str) -> Gpu:
    for row in gpus():
        if name in row.names:
            return row
    raise KeyError(f"mdot has no GPU '{name}'")
