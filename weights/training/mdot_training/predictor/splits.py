"""Defines the networks that are held out together. All labels of a network are on the same side of a split.

Many networks have several names; for example, resnet50 has five. The random split keeps networks with equal operators
together. Forms are evaluated on whole training steps on the GPU of timm's tables, on torchvision's networks if GPU models are
held out, and separately on language models.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from mdot_training.operator_benchmarks.gpu_specs import architecture
from mdot_training.predictor import tables
from mdot_training.predictor.conditions import version
from mdot_training.predictor.dataset import Dataset
from mdot_training.predictor.families import family
from mdot_training.predictor.labels import BACKWARD, OPERATOR, TRAIN
from mdot_training.predictor.language import LANGUAGE
from mdot_training.predictor.published import PUBLISHED

RANDOM_FOLDS = 5
RANDOM_SEED = 1

RANDOM, FAMILIES, GPUS, SOFTWARE = "random", "families", "gpus", "software"
LANGUAGE_MODELS, LANGUAGE_GPUS = "language models", "language gpus"
GPU_SPLITS = (GPUS, LANGUAGE_GPUS)
SPLITS = (RANDOM, FAMILIES, GPUS, SOFTWARE, LANGUAGE_MODELS, LANGUAGE_GPUS)
"""Splits of whole steps. In addition:"""
ARCHITECTURES = "architectures"

EVALUATED_SOFTWARE = ("pt111", "pt112")
"""Whole steps with older software are used for training but not for evaluation, because users have newer software."""
NEW_SOFTWARE = 112


def _same_operators(data: Dataset) -> np.ndarray:
    """[n] equal numbers for networks with equal sequences, because for example resnet50 has several names. Language models
    and single operators come last, so that image networks are in the same folds with and without them."""
    numbers: dict[bytes, int] = {}
    result = np.zeros(data.network_count, dtype=int)
    for n in sorted(range(data.network_count), key=lambda n: str(data.network_name[n]).startswith((LANGUAGE, OPERATOR))):
        result[n] = numbers.setdefault(data.operator[data.sequence(n)].tobytes(), len(numbers))
    return result


def is_published(data: Dataset) -> np.ndarray:
    """[l]: labels of language models."""
    return np.isin(data.run, PUBLISHED)


def _by_network(data: Dataset, of_network: np.ndarray, is_evaluated: np.ndarray
                ) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name in np.unique(of_network):
        is_out = (of_network == name)[data.label_network]
        if (is_out & is_evaluated).any():
            yield str(name), np.flatnonzero(~is_out), np.flatnonzero(is_out & is_evaluated)


A100 = ("A100-SXM-40GB", "A100-SXM-80GB", "A100-PCIe-40GB", "A100-PCIe-80GB")
V100 = ("V100-SXM-16GB", "V100-PCIe-32GB")
P100 = ("P100-PCIe-16GB", "P100-SXM-16GB")
TWINS = (("GTX-1080-Ti", "TITAN-Xp"), ("TITAN-V", *V100), ("RTX-2080-Ti", "TITAN-RTX"), A100)
LANGUAGE_TWINS = (("H100-SXM-80GB", "GH200-96GB"), ("TITAN-V", *V100), ("L4",), ("T4",), P100,
                  ("RTX-2080-Ti", "TITAN-RTX"))
"""GPU models with the same die. Language models on A100 are never held out together, because no other GPU has them in half
precision."""


def _by_gpu(data: Dataset, twins: tuple[tuple[str, ...], ...],
             is_evaluated: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Excludes all labels of a GPU model, and of GPU models with the same die, from training."""
    for die in twins:
        is_out = np.isin(data.gpu, die)
        if (is_evaluated & is_out).any():
            name = " ".join(sorted(set(data.gpu[is_evaluated & is_out])))
            yield name, np.flatnonzero(~is_out), np.flatnonzero(is_out & is_evaluated)


LANGUAGE_FOLDS = 5

EVALUATED_ARCHITECTURES = ("Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell")


def _model_sizes(data: Dataset) -> np.ndarray:
    """[n]: a fold's name for each network. All lengths of a language model are on the same side."""
    names = [str(name) if str(name).startswith(LANGUAGE) else "" for name in data.network_name]
    number = {name: i for i, name in enumerate(sorted(set(names)))}
    return np.array([f"fold {number[name] % LANGUAGE_FOLDS + 1}" if name else "" for name in names])


def _by_software(data: Dataset) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    number = np.array([version(str(name)) for name in data.software])
    is_new = number >= NEW_SOFTWARE
    yield "from 1.12 on", np.flatnonzero(~is_new), np.flatnonzero((number == NEW_SOFTWARE) & (data.kind == TRAIN))


def _by_architecture(data: Dataset) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Single operators. Of Ampere, the GPU of timm's tables stays in training, because its steps are most of the training
    data. None of its operators was timed in isolation."""
    steps = np.unique(data.gpu[data.kind == TRAIN])
    architecture_of = {name: architecture(tables.gpu(str(name))["compute_capability"]) for name in np.unique(data.gpu)}
    of_label = np.array([architecture_of[name] for name in data.gpu])
    for name in EVALUATED_ARCHITECTURES:
        is_out = (of_label == name) & ~np.isin(data.gpu, steps)
        if (is_out & data.is_alone).any():
            yield name, np.flatnonzero(~is_out), np.flatnonzero(is_out & data.is_alone)


def folds(data: Dataset, split: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, labels to train on, labels to test on."""
    is_published_label = is_published(data)
    is_step = (data.kind == TRAIN) & np.isin(data.software, EVALUATED_SOFTWARE)
    if split == RANDOM:
        groups = _same_operators(data)
        drawn = np.random.default_rng(RANDOM_SEED).integers(0, RANDOM_FOLDS, groups.max() + 1)[groups]
        return _by_network(data, np.array([f"fold {k + 1}" for k in drawn]), is_step)
    if split == ARCHITECTURES:
        return _by_architecture(data)
    if split == FAMILIES:
        return _by_network(data, np.array([family(str(name)) for name in data.network_name]), is_step)
    if split == LANGUAGE_MODELS:
        return _by_network(data, _model_sizes(data), is_published_label)
    if split == LANGUAGE_GPUS:
        return _by_gpu(data, LANGUAGE_TWINS, is_published_label)
    return _by_gpu(data, TWINS, (data.kind == BACKWARD) & ~is_published_label) if split == GPUS else _by_software(data)
