"""Converts `.job` files to operator sequences by running `mdot extract`.

Sequences are cached beside the results, under the hashes of the binary and the graph. Reading all networks again takes a
minute after a change of the tokeniser, and a second without one.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable

import numpy as np

from mdot_lab.predictor import tables

FAR_BATCH = 1025
"""FLOPs and bytes are affine in the batch and whole numbers. Therefore readings at batches 1 and FAR_BATCH give slope and
offset exactly."""


class ExtractFailed(Exception):
    """`mdot extract` rejected a graph; the message is its own."""


@dataclass(frozen=True)
class Sequence:
    """One job's operators in topological order. The columns are the predictor's inputs."""

    type: np.ndarray        # [n] row of the type table
    setting: np.ndarray     # [n, settings]
    load: np.ndarray        # [n, LOAD_COUNT]
    position: np.ndarray    # [n, POSITIONS]
    edge: np.ndarray        # [e, 2] from and to

    def __len__(self) -> int:
        return len(self.type)


def file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _read_job(mdot: Path, graph: Path, batch: int) -> list[dict]:
    command = [str(mdot), "extract", str(graph), "--json", "--quiet", "--batch", str(batch)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise ExtractFailed(f"{graph.name}: {done.stderr.decode(errors='replace').strip()}")
    return json.loads(done.stdout)["operators"]


def _phase_loads(operator: dict) -> list[float]:
    return [float(operator[phase][load]) for phase in tables.PHASES for load in tables.LOADS]


def _loads(near: dict, far: dict) -> list[float]:
    one, many = np.array(_phase_loads(near)), np.array(_phase_loads(far))
    per_sample = np.round((many - one) / (FAR_BATCH - 1))
    return [*per_sample, *(one - per_sample), float(near["parameters"])]


def _settings(operator: dict) -> list[float]:
    inputs = operator["configuration"]
    return [float(inputs.get(name, 0)) for name in tables.settings()]


def _position(index: int, operator: dict) -> list[float]:
    return [float(index), float(operator["depth"]), float(operator["height"]), float(len(operator["inputs"])),
            float(operator["out_degree"])]


def read_sequence(mdot: Path, graph: Path) -> Sequence:
    near, far = _read_job(mdot, graph, 1), _read_job(mdot, graph, FAR_BATCH)
    return Sequence(
        type=np.array([tables.operator_type_row(o["type"]) if o["known"] else tables.UNKNOWN_TYPE for o in near]),
        setting=np.array([_settings(o) for o in near]),
        load=np.array([_loads(a, b) for a, b in zip(near, far, strict=True)]),
        position=np.array([_position(i, o) for i, o in enumerate(near)]),
        edge=np.array([(source, i) for i, o in enumerate(near) for source in o["inputs"]], dtype=np.int64).reshape(-1, 2),
    )


def _table_key() -> str:
    """A hash over the tables that determine the arrays, besides binary and graph."""
    return hashlib.sha256(repr((tables.settings(), tables.operator_types())).encode()).hexdigest()[:8]


def _cached(mdot: Path, binary: str, graph: Path, cache: Path) -> Sequence:
    kept = cache / f"{graph.stem}.{file_hash(graph)}.{binary}.npz"
    if not kept.exists():
        sequence = read_sequence(mdot, graph)
        part = kept.with_suffix(".part")
        with open(part, "wb") as stream:
            np.savez(stream, **vars(sequence))
        part.rename(kept)
        return sequence
    with np.load(kept) as arrays:
        return Sequence(**arrays)


def read_all(mdot: Path, graphs: Iterable[Path], cache: Path, threads: int) -> dict[str, Sequence | str]:
    """By file name: the sequence, or the reason why it could not be read."""
    cache.mkdir(parents=True, exist_ok=True)
    binary = f"{file_hash(mdot)}.{_table_key()}"

    def read(graph: Path) -> tuple[str, Sequence | str]:
        try:
            return graph.name, _cached(mdot, binary, graph, cache)
        except (ExtractFailed, OSError, ValueError) as fault:
            return graph.name, str(fault)

    with ThreadPoolExecutor(threads) as pool:
        return dict(pool.map(read, graphs))
