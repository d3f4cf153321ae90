"""The training set: every labelled step and the network's operators; each distinct operator is stored once.

Equal operators in a network are one row with a count, because the runtime merges them for a predictor without
positions. Equal operators in different networks share a row in the operator table, so training computes an encoding
once per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mdot_lab.predictor.labels import ALONE, INFER, Label, Network
from mdot_lab.predictor.sequences import Sequence


TRAINING, INFERENCE = 0, 1
"""`mode` of a label."""

LEAST_PARAMETERS = 0.9
"""Least fraction of the label's parameter count. A larger count is accepted, because a graph without weights does not
distinguish buffers from parameters."""


@dataclass(frozen=True)
class Dataset:
    # the distinct operators of all networks
    type: np.ndarray            # [o]
    setting: np.ndarray         # [o, settings]
    load: np.ndarray            # [o, LOAD_COUNT]
    # every operator of every network, in order: rows network_start[i] to network_start[i + 1]
    network_name: np.ndarray    # [n]
    network_size: np.ndarray    # [n]
    network_start: np.ndarray   # [n + 1]
    operator: np.ndarray        # [s] row of the operator table
    position: np.ndarray        # [s, POSITIONS]
    edge_from: np.ndarray       # [e] data flow, as rows of `operator`: from producer to consumer
    edge_to: np.ndarray
    # the measured steps
    label_network: np.ndarray   # [l]
    batch: np.ndarray
    is_nhwc: np.ndarray
    software: np.ndarray        # [l] text
    run: np.ndarray             # [l] text
    gpu: np.ndarray             # [l] text
    precision: np.ndarray       # [l] text
    kind: np.ndarray            # [l] text
    mode: np.ndarray            # [l] 0: a step of training, or an operator alone; 1: inference
    optimizer: np.ndarray       # [l] text, empty if the time excludes it
    is_compiled: np.ndarray
    is_fused: np.ndarray
    recomputes: np.ndarray      # [l] repeated part of the forward pass, 0 to 1
    step_ms: np.ndarray

    @property
    def is_alone(self) -> np.ndarray:
        """[l]: labels for a single operator instead of a step."""
        return np.isin(self.kind, ALONE)

    @property
    def whole_networks(self) -> np.ndarray:
        """Indices for networks with more than a single operator."""
        return np.unique(self.label_network[~self.is_alone])

    @property
    def network_count(self) -> int:
        return len(self.network_name)

    def sequence(self, network: int) -> slice:
        return slice(self.network_start[network], self.network_start[network + 1])

    def multiset(self, network: int) -> tuple[np.ndarray, np.ndarray]:
        """Distinct operators in a network, and how often each occurs."""
        return np.unique(self.operator[self.sequence(network)], return_counts=True)

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **vars(self))

    @staticmethod
    def load_file(path: Path) -> "Dataset":
        with np.load(path) as arrays:
            return Dataset(**arrays)


def _is_same_network(label: Label, sequence: Sequence) -> bool:
    """Rejects names measured when they meant another network. For example, convnext_tiny_in22ft1k had convnext_base's
    size."""
    return sequence.load[:, -1].sum() / 1e6 >= LEAST_PARAMETERS * label.parameters_m


def build(sequences: dict[Network, Sequence], labels: list[Label]) -> Dataset:
    """Builds the set from networks with a sequence. Labels without one, and labels of another network with the same
    name, are skipped."""
    kept = [label for label in labels if label.network in sequences
            and _is_same_network(label, sequences[label.network])]
    networks = sorted({label.network for label in kept})
    rows = np.concatenate([np.column_stack([s.type, s.setting, s.load]) for s in map(sequences.get, networks)])
    distinct, operator = np.unique(rows, axis=0, return_inverse=True)
    settings = sequences[networks[0]].setting.shape[1]
    start = np.cumsum([0] + [len(sequences[n]) for n in networks])
    edges = np.concatenate([sequences[n].edge + at for n, at in zip(networks, start)])
    number = {network: i for i, network in enumerate(networks)}
    return Dataset(
        type=distinct[:, 0].astype(np.int64),
        setting=distinct[:, 1:1 + settings],
        load=distinct[:, 1 + settings:],
        network_name=np.array([n.name for n in networks]),
        network_size=np.array([n.image_size for n in networks]),
        network_start=start,
        operator=operator.reshape(-1),
        position=np.concatenate([sequences[n].position for n in networks]),
        edge_from=edges[:, 0], edge_to=edges[:, 1],
        label_network=np.array([number[label.network] for label in kept]),
        batch=np.array([label.batch for label in kept], dtype=np.float64),
        is_nhwc=np.array([label.layout == "nhwc" for label in kept]),
        software=np.array([label.software for label in kept]),
        run=np.array([label.run for label in kept]),
        gpu=np.array([label.gpu for label in kept]),
        precision=np.array([label.precision for label in kept]),
        kind=np.array([label.kind for label in kept]),
        mode=np.array([INFERENCE if label.kind == INFER else TRAINING for label in kept]),
        optimizer=np.array([label.optimizer for label in kept]),
        is_compiled=np.array([label.is_compiled for label in kept]),
        is_fused=np.array([label.is_fused for label in kept]),
        recomputes=np.array([label.recomputes for label in kept], dtype=np.float64),
        step_ms=np.array([label.step_ms for label in kept]),
    )
