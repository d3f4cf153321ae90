"""Baseline inputs for labelled steps: operator and configuration numbers, as arrays.

They exclude mdot's analytic quantities, and have settings, counted FLOPs and bytes, and the label's description.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator

import numpy as np

from mdot_lab.predictor import tables
from mdot_lab.predictor.conditions import VERSIONS, version
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.labels import TRAIN

LOADS = tables.PHASE_LOAD_COUNT


@dataclass(frozen=True)
class Steps:
    """r steps for training or prediction."""

    network: np.ndarray         # [r]
    batch: np.ndarray           # [r]
    gpu: np.ndarray             # [r, MODEL_SPECS] from runtime/job/gpus.def
    is_half: np.ndarray         # [r] whether matmuls are computed in half precision
    configuration: np.ndarray   # [r, c]
    log_ms: np.ndarray          # [r]
    weight: np.ndarray          # [r] labels that the step represents

    def __len__(self) -> int:
        return len(self.network)

    def take(self, rows: np.ndarray) -> "Steps":
        return Steps(*(part[rows] for part in vars(self).values()))


def gpu_spec(data: Dataset, labels: np.ndarray) -> np.ndarray:
    """[labels, MODEL_SPECS]"""
    names, of_label = np.unique(data.gpu[labels], return_inverse=True)
    return np.array([tables.gpu(str(name)).model_specs for name in names])[of_label.reshape(-1)]


def configurations(data: Dataset, labels: np.ndarray) -> np.ndarray:
    """[labels, c]: batch, layout, for each software version whether the label has it or a newer one, GPU, precision,
    and whether the optimizer's step was timed. Baselines drop columns that are constant in the training data, so
    that an unseen version equals the newest version of the training data."""
    names, of_label = np.unique(data.software[labels], return_inverse=True)
    number = np.array([version(str(name)) for name in names])[of_label.reshape(-1)]
    precisions = [data.precision[labels] == name for name in ("fp32", "tf32", "amp")]
    return np.column_stack([np.log(data.batch[labels]), data.is_nhwc[labels], *(number >= v for v in VERSIONS),
                            np.log(gpu_spec(data, labels) + 1), *precisions, data.kind[labels] == TRAIN]).astype(np.float64)


def steps(data: Dataset, labels: np.ndarray) -> Steps:
    """Makes a step for each label."""
    is_half = np.isin(data.precision[labels], ("amp", "amp_bf16", "bf16", "fp16"))
    return Steps(data.label_network[labels], data.batch[labels], gpu_spec(data, labels), is_half, configurations(data, labels),
                 np.log(data.step_ms[labels]), np.ones(len(labels)))


def merged_steps(data: Dataset, labels: np.ndarray) -> Steps:
    """Merges labels that differ only in the run into one step with the geometric mean."""
    each = steps(data, labels)
    identity = np.column_stack([each.network, each.configuration])
    _, first, group, weight = np.unique(identity, axis=0, return_index=True, return_inverse=True, return_counts=True)
    mean = np.bincount(group.reshape(-1), weights=each.log_ms) / weight
    one = each.take(first)
    return replace(one, log_ms=mean, weight=weight.astype(np.float64))


def graphs(chosen: Steps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct (network, batch) pairs: networks [g], batches [g], and the pair of each step [r]."""
    pairs, of_step = np.unique(np.column_stack([chosen.network, chosen.batch]), axis=0, return_inverse=True)
    return pairs[:, 0].astype(np.int64), pairs[:, 1], of_step.reshape(-1)


def parts(chosen: Steps, networks: int, random: np.random.Generator | None) -> Iterator[np.ndarray]:
    """Rows of `networks` networks at a time. The networks are shuffled if there is a generator."""
    order = np.unique(chosen.network)
    order = order if random is None else random.permutation(order)
    for start in range(0, len(order), networks):
        yield np.flatnonzero(np.isin(chosen.network, order[start:start + networks]))


def loads(data: Dataset, operators: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """[n, 9] FLOPs, bytes read and bytes written of each phase, at the batch."""
    load = data.load[operators]
    return load[:, :LOADS] * np.asarray(batch)[:, None] + load[:, LOADS:2 * LOADS]


def describe(data: Dataset, operators: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """[n, f] logarithms: settings, FLOPs and bytes at the batch, parameters."""
    return np.log1p(np.column_stack([data.setting[operators], loads(data, operators, batch), data.load[operators, -1]]))


def known_types(data: Dataset, networks: np.ndarray, least: int = 5) -> np.ndarray:
    """[types] counts by operator type, for types in at least `least` networks; 0 for the others."""
    count = np.zeros(len(tables.operator_types()), dtype=np.int64)
    for network in np.unique(networks):
        count[np.unique(data.type[data.operator[data.sequence(network)]])] += 1
    numbers = np.arange(len(count))
    return np.where(count >= least, numbers, tables.UNKNOWN_TYPE)
