"""Defines the networks, GPUs and publishers that are held out together.

Many networks have several names; for example, resnet50 has five. The random split keeps networks with equal
operators together. Forms are evaluated on whole training steps on the GPU of timm's tables, on torchvision's
networks if GPU models are held out, and separately on language models, on inference and on each publisher.

Splits are nested. A fold of `folds` is an outer fold: the labels judge a finished predictor, once. Choices of
physics and form are made on `inner_folds`, which divide the outer fold's training labels in the same way and never
contain the test labels.
"""

from __future__ import annotations

from typing import Iterator

import numpy as np

from mdot_lab.operator_benchmarks.gpu_specs import architecture
from mdot_lab.predictor import collected, tables
from mdot_lab.predictor.conditions import version
from mdot_lab.predictor.dataset import INFERENCE, Dataset
from mdot_lab.predictor.families import family
from mdot_lab.predictor.labels import BACKWARD, OPERATOR, TORCHVISION, TRAIN
from mdot_lab.predictor.language import LANGUAGE
from mdot_lab.predictor.published import PUBLISHED

Folds = Iterator[tuple[str, np.ndarray, np.ndarray]]
"""Name, labels to train on, labels to test on."""

RANDOM_FOLDS = 5
RANDOM_SEED = 1

RANDOM, FAMILIES, GPUS, SOFTWARE = "random", "families", "gpus", "software"
LANGUAGE_MODELS, LANGUAGE_GPUS = "language models", "language gpus"
SOURCES = "sources"
COLLECTED = "collected"
COLLECTED_FOLDS = 3
INFERENCE_FAMILIES, INFERENCE_GPUS = "inference families", "inference gpus"
GPU_SPLITS = (GPUS, LANGUAGE_GPUS, INFERENCE_GPUS)
SPLITS = (RANDOM, FAMILIES, GPUS, SOFTWARE, LANGUAGE_MODELS, LANGUAGE_GPUS, SOURCES, INFERENCE_FAMILIES, INFERENCE_GPUS,
          COLLECTED)
"""Splits for whole steps and inference. In addition:"""
ARCHITECTURES = "architectures"
INNER_FOLDS = 3

EVALUATED_SOFTWARE = ("pt111", "pt112")
"""Whole steps with older software are used for training but not for evaluation, because users have newer software."""
NEW_SOFTWARE = 112

TIMM, TORCHVISION_BENCHMARK = "timm", "pytorch-gpu-benchmark"


def _same_operators(data: Dataset) -> np.ndarray:
    """[n] equal numbers for networks with equal sequences, because for example resnet50 has several names. Language models,
    single operators, our own records and other publishers' networks come last, so that image networks are in the same folds
    with and without them."""
    numbers: dict[bytes, int] = {}
    result = np.zeros(data.network_count, dtype=int)
    last = (LANGUAGE, OPERATOR, collected.PREFIX)
    others = ~np.isin(np.arange(data.network_count), data.label_network[~is_published(data)])
    for n in sorted(range(data.network_count), key=lambda n: bool(others[n]) or str(data.network_name[n]).startswith(last)):
        result[n] = numbers.setdefault(data.operator[data.sequence(n)].tobytes(), len(numbers))
    return result


def is_published(data: Dataset) -> np.ndarray:
    """[l]: labels of the publishers in published.py."""
    return np.isin(data.run, PUBLISHED)


def is_language(data: Dataset) -> np.ndarray:
    """[l]: labels of language models."""
    return np.char.startswith(data.network_name.astype(str), LANGUAGE)[data.label_network]


def sources(data: Dataset) -> np.ndarray:
    """[l] text: each label's publisher. For single operators, the `run`."""
    is_torchvision = np.char.startswith(data.network_name.astype(str), TORCHVISION)[data.label_network]
    of_images = np.where(is_torchvision, TORCHVISION_BENCHMARK, TIMM)
    return np.where(is_published(data) | data.is_alone, data.run, of_images)


def _by_source(data: Dataset) -> Folds:
    """Leaves out all labels of one publisher. timm stays, because it has most whole steps."""
    of_label = sources(data)
    for name in np.unique(of_label[~data.is_alone & (of_label != TIMM)]):
        is_out = of_label == name
        yield str(name), np.flatnonzero(~is_out), np.flatnonzero(is_out)


def _by_network(data: Dataset, of_network: np.ndarray, is_evaluated: np.ndarray) -> Folds:
    for name in np.unique(of_network):
        is_out = (of_network == name)[data.label_network]
        if (is_out & is_evaluated).any():
            yield str(name), np.flatnonzero(~is_out), np.flatnonzero(is_out & is_evaluated)


A100 = ("A100-SXM-40GB", "A100-SXM-80GB", "A100-PCIe-40GB", "A100-PCIe-80GB")
V100 = ("V100-SXM-16GB", "V100-PCIe-32GB")
P100 = ("P100-PCIe-16GB", "P100-SXM-16GB")
TWINS = (("GTX-1080-Ti", "TITAN-Xp"), ("TITAN-V", *V100), ("RTX-2080-Ti", "TITAN-RTX"), A100)
HOPPER = ("H100-SXM-80GB", "H200-SXM-141GB", "GH200-96GB")
LANGUAGE_TWINS = (HOPPER, ("TITAN-V", *V100), ("L4",), ("T4",), P100,
                  ("RTX-2080-Ti", "TITAN-RTX"), A100, ("B200-SXM-180GB",), ("K80",))
INFERENCE_TWINS = (("RTX-4090",), ("RTX-5090", "RTX-PRO-6000-Max-Q"))
"""GPU models with the same die. The RTX 3090 is never held out from inference, because it has most of the whole steps."""


def _by_gpu(data: Dataset, twins: tuple[tuple[str, ...], ...], is_evaluated: np.ndarray) -> Folds:
    """Excludes all labels on a GPU model, and on models with the same die, from training."""
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


def _own_networks(data: Dataset) -> np.ndarray:
    """[n]: a fold's name for each network in our own records. Labels from others, on other GPU models, stay in
    training, also for the same network: the split tests a network new to a GPU model with measured steps."""
    names = [str(name) if str(name).startswith(collected.PREFIX) else "" for name in data.network_name]
    number = {name: i for i, name in enumerate(sorted(set(names) - {""}))}
    return np.array([f"fold {number[name] % COLLECTED_FOLDS + 1}" if name else "" for name in names])


def _by_software(data: Dataset) -> Folds:
    number = np.array([version(str(name)) for name in data.software])
    is_new = number >= NEW_SOFTWARE
    yield "from 1.12 on", np.flatnonzero(~is_new), np.flatnonzero((number == NEW_SOFTWARE) & (data.kind == TRAIN))


AMD, AMD_PREFIX = "CDNA", "MI"


def _architecture(gpu: str) -> str:
    """AMD's GPUs have compute capabilities too, which PyTorch derives from other numbers."""
    return AMD if gpu.startswith(AMD_PREFIX) else architecture(tables.gpu(gpu)["compute_capability"])


def _by_architecture(data: Dataset) -> Folds:
    """Single operators. Among Ampere GPUs, timm's GPU stays in training, because these steps are most of the data. It
    has no isolated operators."""
    steps = np.unique(data.gpu[data.kind == TRAIN])
    architecture_of = {name: _architecture(str(name)) for name in np.unique(data.gpu)}
    of_label = np.array([architecture_of[name] for name in data.gpu])
    for name in EVALUATED_ARCHITECTURES:
        is_out = (of_label == name) & ~np.isin(data.gpu, steps)
        if (is_out & data.is_alone).any():
            yield name, np.flatnonzero(~is_out), np.flatnonzero(is_out & data.is_alone)


def _families(data: Dataset) -> np.ndarray:
    return np.array([family(str(name)) for name in data.network_name])


def folds(data: Dataset, split: str) -> Folds:
    """The outer folds of a split."""
    is_language_label = is_language(data)
    is_own = data.run == collected.RUN
    is_inference = (data.mode == INFERENCE) & ~is_language_label & ~is_own
    is_step = (data.kind == TRAIN) & np.isin(data.software, EVALUATED_SOFTWARE)
    if split == RANDOM:
        groups = _same_operators(data)
        drawn = np.random.default_rng(RANDOM_SEED).integers(0, RANDOM_FOLDS, groups.max() + 1)[groups]
        return _by_network(data, np.array([f"fold {k + 1}" for k in drawn]), is_step)
    if split == COLLECTED:
        return _by_network(data, _own_networks(data), is_own)
    if split == ARCHITECTURES:
        return _by_architecture(data)
    if split == SOURCES:
        return _by_source(data)
    if split in (FAMILIES, INFERENCE_FAMILIES):
        return _by_network(data, _families(data), is_step if split == FAMILIES else is_inference)
    if split == LANGUAGE_MODELS:
        return _by_network(data, _model_sizes(data), is_language_label)
    if split == LANGUAGE_GPUS:
        return _by_gpu(data, LANGUAGE_TWINS, is_language_label)
    if split == INFERENCE_GPUS:
        return _by_gpu(data, INFERENCE_TWINS, is_inference)
    if split == GPUS:
        return _by_gpu(data, TWINS, (data.kind == BACKWARD) & ~is_language_label & ~is_published(data))
    return _by_software(data)


def inner_folds(data: Dataset, split: str, outer: str, count: int = INNER_FOLDS) -> Folds:
    """At most `count` folds from an outer fold's training labels: the other outer folds, joined to groups of about
    equal size. There are none if the split has one fold. A split with two folds has one inner fold."""
    every = {name: (train, test) for name, train, test in folds(data, split)}
    outer_train, _ = every.pop(outer)
    groups: list[list[str]] = [[] for _ in range(min(count, len(every)))]
    sizes = [0] * len(groups)
    for name in sorted(every, key=lambda name: (-len(every[name][1]), name)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(name)
        sizes[smallest] += len(every[name][1])
    for number, names in enumerate(groups, 1):
        train = outer_train
        for name in names:
            train = np.intersect1d(train, every[name][0])
        test = np.intersect1d(np.concatenate([every[name][1] for name in names]), outer_train)
        if len(train) and len(test):
            yield f"inner {number}", train, test
