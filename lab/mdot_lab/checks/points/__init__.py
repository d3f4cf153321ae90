"""Published training steps as arguments of `mdot.predict`, with one module for each publisher. The result is None for a point
whose model is not rebuilt here, or that leaves too many settings open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable

from mdot_lab.predictor.labels import Network

NODE, NETWORK_GBPS = 8, 25.0
"""GPUs of a node, and each GPU's bandwidth to other nodes, if a point does not state them."""


@dataclass(frozen=True)
class Point:
    source: str
    network: Network
    gpu_model: str
    options: dict[str, Any]     # options of mdot.Predictor.predict
    step_ms: float
    is_trained: bool = False    # whether the shipped predictor is trained on it

    @property
    def gpus(self) -> int:
        return self.options["gpus"]


def distinct(points: Iterable[Point]) -> list[Point]:
    """Each point once. Publishers repeat results: a README of several models has the numbers of the models' own READMEs again."""
    once: list[Point] = []
    of_network: dict[tuple[Network, float], list[Point]] = {}
    for point in points:
        equals = of_network.setdefault((point.network, point.step_ms), [])
        if point not in equals:
            equals.append(point)
            once.append(point)
    return once


def number(row: dict[str, str], name: str) -> int | None:
    """The number in a column that may be empty."""
    return int(float(row[name])) if row[name] else None


def on_nodes(gpus: int) -> dict[str, Any]:
    return {"gpus": gpus, "nodes": max(1, gpus // NODE), "network": NETWORK_GBPS}
