"""The training set as tensors: each labelled step's operators laid out side by side, so that sums over a step are one call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from predictor import features, normalisation, tables
from predictor.context import Places
from predictor.dataset import Dataset
from predictor.features import Work
from predictor.model import Configurations, Options
from predictor.normalisation import Normalisation
from predictor.operators import Operators

LABELLED_GPU = "RTX-3090"
NEWEST_SOFTWARE = "pt111"


@dataclass(frozen=True)
class Batch:
    """Some labelled steps. O distinct operators, Q distinct (operator, batch) pairs, P (operator, step) pairs, R steps."""

    operators: Operators        # [O], without their normalisation
    of_priced: Tensor           # [Q] operator, or its place where the model reads places
    priced_features: Tensor     # [Q, BATCH_FEATURES]
    priced_norms: Tensor        # [Q, normalisation.FEATURES]
    of_pair: Tensor             # [P] operator
    priced_of_pair: Tensor      # [P] (operator, batch) pair
    row: Tensor                 # [P] step
    count: Tensor               # [P, 1]
    work: Work                  # [P, …]
    pair_configurations: Configurations     # [P, 1]
    configurations: Configurations          # [R, 1]
    parameters: Tensor          # [R, 1]
    launches: Tensor            # [R, 1]
    step_ms: Tensor             # [R, 1]
    weight: Tensor              # [R, 1] labels that the step stands for
    places: Places | None       # for a model that reads them


def _float(x: np.ndarray) -> Tensor:
    return torch.tensor(np.asarray(x, dtype=np.float32))


def _configurations(data: Dataset, labels: np.ndarray) -> Configurations:
    one, zero = np.ones((len(labels), 1)), np.zeros((len(labels), 1))
    return Configurations(
        batch=_float(data.batch[labels, None]), gpu_count=_float(one), is_fp32=_float(zero), is_tf32=_float(zero),
        is_amp=_float(one), is_nhwc=_float(data.is_nhwc[labels, None]), is_adam=_float(zero),
        software=_float(data.software[labels, None] == NEWEST_SOFTWARE),
        gpu=_float([tables.gpu(LABELLED_GPU).numbers]))


def _of_pairs(c: Configurations, row: Tensor) -> Configurations:
    return Configurations(*(part if len(part) == 1 else part[row] for part in c))


def _places(data: Dataset, labels: np.ndarray, distinct: np.ndarray) -> Places:
    networks = np.unique(data.label_network[labels])
    sequences = [data.operator[data.sequence(n)] for n in networks]
    bags = [np.unique(operators, return_inverse=True) for operators in sequences]
    start = np.cumsum([0] + [len(operators) for operators, _ in bags])
    place_of = {n: np.arange(start[i], start[i + 1]) for i, n in enumerate(networks)}
    return Places(
        length=[len(operators) for operators in sequences],
        operator=torch.tensor(np.searchsorted(distinct, np.concatenate(sequences))),
        position=_float(np.concatenate([data.position[data.sequence(n)] for n in networks])),
        bag=torch.tensor(np.concatenate([inverse.reshape(-1) + at for (_, inverse), at in zip(bags, start)])),
        operator_of_bag=torch.tensor(np.searchsorted(distinct, np.concatenate([operators for operators, _ in bags]))),
        bag_of_pair=torch.tensor(np.concatenate([place_of[n] for n in data.label_network[labels]])))


def make(data: Dataset, labels: np.ndarray, options: Options = Options()) -> Batch:
    """A step for each label."""
    bags = {n: data.bag(n) for n in np.unique(data.label_network[labels])}
    pairs = [bags[n] for n in data.label_network[labels]]
    distinct, of_pair = np.unique(np.concatenate([operators for operators, _ in pairs]), return_inverse=True)
    row = np.repeat(np.arange(len(labels)), [len(operators) for operators, _ in pairs])
    count = np.concatenate([counts for _, counts in pairs]).astype(np.float64)
    operators = Operators(torch.tensor(data.type[distinct]), _float(data.setting[distinct]), _float(data.load[distinct]))
    operators, norm = normalisation.split(operators)
    of_pair = of_pair.reshape(-1)
    c, rows, index = _configurations(data, labels), torch.tensor(row), torch.tensor(of_pair)
    batch, norm = c.batch[rows], Normalisation(*(part[index] for part in norm))
    work = features.work(Operators(*(part[index] for part in operators)), norm, batch, options.use_padding)
    places = _places(data, labels, distinct) if options.reads_places else None
    encoding = of_pair if places is None else places.bag_of_pair.numpy()
    _, first, priced = np.unique(np.column_stack([encoding, data.batch[labels][row]]), axis=0, return_index=True,
                                 return_inverse=True)

    def summed(amount: np.ndarray) -> Tensor:
        return _float(np.bincount(row, weights=count * amount, minlength=len(labels))[:, None])

    return Batch(
        operators=operators, of_priced=torch.tensor(encoding[first]), priced_features=features.batch_features(work)[first],
        priced_norms=normalisation.features(norm, batch)[first], of_pair=index, priced_of_pair=torch.tensor(priced.reshape(-1)),
        row=rows, count=_float(count[:, None]), work=work, pair_configurations=_of_pairs(c, rows), configurations=c,
        parameters=summed(data.load[distinct[of_pair], -1]), launches=summed(work.launches[:, 0].numpy()),
        step_ms=_float(data.step_ms[labels, None]), weight=_float(np.ones((len(labels), 1))), places=places)


def make_merged(data: Dataset, labels: np.ndarray, options: Options = Options()) -> Batch:
    """Labels that differ in nothing but the run are one step, of their geometric mean."""
    what = np.column_stack([data.label_network, data.batch, data.is_nhwc, data.software == NEWEST_SOFTWARE])[labels]
    _, first, group, weight = np.unique(what, axis=0, return_index=True, return_inverse=True, return_counts=True)
    batch = make(data, labels[first], options)
    mean = np.bincount(group.reshape(-1), weights=np.log(data.step_ms[labels])) / weight
    return replace(batch, step_ms=_float(np.exp(mean)[:, None]), weight=_float(weight[:, None]))
