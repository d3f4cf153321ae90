"""Published training steps, each as what `mdot.predict` is asked for it: a module for each publisher. A point whose model is not
rebuilt here, or that leaves too much open, is None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mdot_training.predictor.labels import Network

NODE, NETWORK_GBPS = 8, 25.0
"""GPUs of a node, and what each sends to other nodes, where a point does not say."""


@dataclass(frozen=True)
class Point:
    source: str
    network: Network
    gpu_model: str
    options: dict[str, Any]     # of mdot.Predictor.predict
    step_ms: float
    is_trained: bool = False    # is the shipped predictor trained on it?

    @property
    def gpus(self) -> int:
        return self.options["gpus"]


def number(row: dict[str, str], name: str) -> int | None:
    """Of a column that may be empty."""
    return int(float(row[name])) if row[name] else None


def on_nodes(gpus: int) -> dict[str, Any]:
    return {"gpus": gpus, "nodes": max(1, gpus // NODE), "network": NETWORK_GBPS}
