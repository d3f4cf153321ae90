"""The measured step times: one row a network, input size, layout and software version."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Network:
    """A network at an input size: what one ONNX graph stands for."""

    name: str
    image_size: int

    @property
    def graph_file(self) -> str:
        return f"{self.name}.{self.image_size}.onnx"


def networks(path: Path) -> list[Network]:
    with open(path, newline="", encoding="utf-8") as lines:
        return sorted({Network(row["model"], int(row["img_size"])) for row in csv.DictReader(lines)})


@dataclass(frozen=True)
class Label:
    """A measured training step."""

    network: Network
    batch: int
    layout: str
    software: str       # "pt111"
    run: str            # of the benchmark: two runs differ in nothing else that is recorded
    step_ms: float
    parameters_m: float     # of the network that was measured, in millions


def read_labels(path: Path) -> list[Label]:
    with open(path, newline="", encoding="utf-8") as lines:
        return [Label(Network(row["model"], int(row["img_size"])), int(row["batch_size"]), row["layout"], row["torch"],
                      row["run"], float(row["step_time_ms"]), float(row["param_count_M"])) for row in csv.DictReader(lines)]
