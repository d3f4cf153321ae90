"""The training set as tensors. The operators of all measured steps are concatenated: one call sums a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mdot_lab.predictor import conditions, features, normalisation, tables
from mdot_lab.predictor.context import Places
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.features import Work
from mdot_lab.predictor.labels import ADAMW, ALONE, BACKWARD, INFER, TRAIN
from mdot_lab.predictor.model import PARTS, PHASES, Configurations, Options
from mdot_lab.predictor.normalisation import Normalisation
from mdot_lab.predictor.operators import Operators
from mdot_lab.predictor.collected import RUN as COLLECTED
from mdot_lab.predictor.published import FOUNDRY, PUBLISHED, VTRAIN
from mdot_lab.predictor.single_operator_labels import SOURCES


@dataclass(frozen=True)
class Batch:
    """A set of measured steps. O distinct operators, P (operator, step) pairs, R steps."""

    operators: Operators        # [O], without their normalisation
    norms: Tensor               # [O, normalisation.FEATURES]
    of_pair: Tensor             # [P] operator
    encoding_of_pair: Tensor    # [P] operator, or its position in the sequence if the model reads positions
    row: Tensor                 # [P] step
    count: Tensor               # [P, 1]
    work: Work                  # [P, …]
    pair_configurations: Configurations     # [P, 1]
    configurations: Configurations          # [R, 1]
    conditions: Tensor          # [P, conditions.COUNT], each only where it has an effect
    norm_conditions: Tensor     # the same for normalisations
    runs: Tensor                # [P, PHASES], 0 or 1: phases that launch kernels
    part_weight: Tensor         # [P, PARTS], timed parts
    has_optimizer: Tensor       # [R, 1]
    benchmark: Tensor           # [R], row of BENCHMARKS
    host: Tensor                # [R], row of hosts
    parameters: Tensor          # [R, 1]
    launches: Tensor            # [R, 1]
    step_ms: Tensor             # [R, 1]
    weight: Tensor              # [R, 1] labels that the step represents
    places: Places | None       # for a model that reads them


def _float(x: np.ndarray) -> Tensor:
    return torch.tensor(np.asarray(x, dtype=np.float32))


def versions(data: Dataset, labels: np.ndarray) -> np.ndarray:
    number = {name: conditions.version(str(name)) for name in np.unique(data.software)}
    return np.array([number[name] for name in data.software[labels]])


def _configurations(data: Dataset, labels: np.ndarray) -> Configurations:
    def where(is_so: np.ndarray) -> Tensor:
        return _float(np.asarray(is_so)[:, None])

    precision, torch_version = data.precision[labels], versions(data, labels)
    is_throughout = np.isin(precision, ("fp16", "bf16"))
    gpu = {name: tables.gpu(str(name)).numbers for name in np.unique(data.gpu)}
    return Configurations(
        batch=_float(data.batch[labels, None]), is_fp32=where(precision == "fp32"),
        is_tf32=where(precision == "tf32"), is_amp=where(is_throughout | np.char.startswith(precision, "amp")),
        is_half=where(is_throughout), is_default=where(np.zeros(len(labels))), is_nhwc=where(data.is_nhwc[labels]),
        is_adam=where(np.isin(data.optimizer[labels], (ADAMW,))), is_fused=where(data.is_fused[labels]),
        is_compiled=where(data.is_compiled[labels]), is_inference=where(data.kind[labels] == INFER), torch=where(torch_version),
        gpu=_float([gpu[name] for name in data.gpu[labels]]))


def _of_pairs(c: Configurations, row: Tensor) -> Configurations:
    return Configurations(*(part if len(part) == 1 else part[row] for part in c))


def _places(data: Dataset, labels: np.ndarray, distinct: np.ndarray) -> Places:
    networks = np.unique(data.label_network[labels])
    sequences = [data.operator[data.sequence(n)] for n in networks]
    multisets = [np.unique(operators, return_inverse=True) for operators in sequences]
    start = np.cumsum([0] + [len(operators) for operators, _ in multisets])
    place_of = {n: np.arange(start[i], start[i + 1]) for i, n in enumerate(networks)}
    return Places(
        length=[len(operators) for operators in sequences],
        operator=torch.tensor(np.searchsorted(distinct, np.concatenate(sequences))),
        position=_float(np.concatenate([data.position[data.sequence(n)] for n in networks])),
        multiset_row=torch.tensor(np.concatenate([inverse.reshape(-1) + at for (_, inverse), at in zip(multisets, start)])),
        operator_of_multiset=torch.tensor(np.searchsorted(distinct, np.concatenate([operators for operators, _ in multisets]))),
        multiset_row_of_pair=torch.tensor(np.concatenate([place_of[n] for n in data.label_network[labels]])))


NORM_IN_EVALUATION = 2 / 3
"""In evaluation, BatchNormalization computes no statistics, therefore it reads the input once instead of twice."""
FORWARD, NORM_FORWARD = tables.PHASES.index("forward"), PHASES


def _part_weight(kind: np.ndarray, recomputes: np.ndarray) -> np.ndarray:
    """[labels, PARTS]: how many times each part was run."""
    weight = np.ones((len(kind), PARTS))
    weight[kind == INFER] = 0
    weight[:, FORWARD] = 1 + recomputes
    weight[:, NORM_FORWARD] = np.where(kind == INFER, NORM_IN_EVALUATION, 1 + recomputes)
    for phase, name in enumerate(ALONE):
        weight[kind == name] = np.eye(PARTS)[phase]
    return weight


BENCHMARKS = (TRAIN, BACKWARD, INFER, *(f"{run} {kind}" for run in PUBLISHED for kind in (BACKWARD, INFER)), *SOURCES)
"""The benchmarks that labels come from. timm's and torchvision's are distinguished by kind alone."""
WHOLE = (TRAIN, f"{FOUNDRY} {BACKWARD}", f"{VTRAIN} {BACKWARD}", f"{COLLECTED} {BACKWARD}", f"{COLLECTED} {INFER}")
"""Benchmarks that measured as users train and infer."""


def _benchmark_rows(data: Dataset, labels: np.ndarray) -> np.ndarray:
    """Rows of BENCHMARKS."""
    run, kind = data.run[labels].astype(str), data.kind[labels].astype(str)
    with_run = np.char.add(np.char.add(run, " "), kind)
    names, row = np.unique(np.where(np.isin(kind, ALONE), run, np.where(np.isin(run, PUBLISHED), with_run, kind)),
                           return_inverse=True)
    return np.array([BENCHMARKS.index(str(name)) for name in names])[row.reshape(-1)]


def host_count(data: Dataset) -> int:
    return len(np.unique(data.gpu)) * len(BENCHMARKS)


def _hosts(data: Dataset, labels: np.ndarray, benchmark: np.ndarray) -> np.ndarray:
    """A number below host_count for the machine that launched the kernels, as far as labels identify it: by the GPU and
    the benchmark."""
    return np.searchsorted(np.unique(data.gpu), data.gpu[labels]) * len(BENCHMARKS) + benchmark


def _distinct(operators: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """np.unique with return_inverse, for rows below `count`. It takes a tenth of the time, because it does not sort."""
    is_there = np.zeros(count, dtype=bool)
    is_there[operators] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[operators]


def _operators(data: Dataset, operators: np.ndarray) -> Operators:
    return Operators(torch.tensor(data.type[operators]), _float(data.setting[operators]), _float(data.load[operators]))


def _launches(work: Work, c: Configurations, row: Tensor) -> Tensor:
    """[P, PHASES]: launches of each phase."""
    launches = features.launches(work)
    is_autocast = (c.is_amp * (1 - c.is_half) * (1 - c.is_compiled))[row]
    return (launches.always - launches.compiled * c.is_compiled[row] + launches.composed * (1 - c.is_fused[row])
            + launches.cast * is_autocast)


def make(data: Dataset, labels: np.ndarray, options: Options = Options()) -> Batch:
    """Makes a step for each label."""
    multisets = {n: data.multiset(n) for n in np.unique(data.label_network[labels])}
    pairs = [multisets[n] for n in data.label_network[labels]]
    distinct, of_pair = _distinct(np.concatenate([operators for operators, _ in pairs]), len(data.type))
    row = np.repeat(np.arange(len(labels)), [len(operators) for operators, _ in pairs])
    count = np.concatenate([counts for _, counts in pairs]).astype(np.float64)
    operators, norm = normalisation.split(features.with_states_read(_operators(data, distinct)))
    c, rows, index = _configurations(data, labels), torch.tensor(row), torch.tensor(of_pair)
    norms = normalisation.features(norm)
    batch, norm = c.batch[rows], Normalisation(*(part[index] for part in norm))
    of_pairs = Operators(*(part[index] for part in operators))
    maps = {n: float(features.has_maps(_operators(data, multisets[n][0])).item()) for n in multisets}
    has_maps = _float([[maps[n]] for n in data.label_network[labels]])[rows]
    work = features.work(of_pairs, norm, batch, has_maps, options.use_padding)
    places = _places(data, labels, distinct) if options.reads_places else None
    encoding = of_pair if places is None else places.multiset_row_of_pair.numpy()

    def summed(amount: np.ndarray) -> Tensor:
        return _float(np.bincount(row, weights=count * amount, minlength=len(labels))[:, None])

    part_weight, has_optimizer = _part_weight(data.kind[labels], data.recomputes[labels]), data.optimizer[labels] != ""
    launches = (_launches(work, c, rows).numpy() * part_weight[row, :PHASES]).sum(axis=1)
    launches = launches * ~np.isin(data.kind[labels], ALONE)[row]       # these were timed on the GPU
    launches = launches + features.OPTIMIZER_LAUNCHES * work.learns.numpy()[:, 0] * has_optimizer[row]
    benchmark = _benchmark_rows(data, labels)
    under = c.conditions()[rows]
    of_norms = conditions.of_normalisations(under, c.is_inference[rows], 1)
    return Batch(
        operators=operators, norms=norms, of_pair=index, encoding_of_pair=torch.tensor(encoding),
        row=rows, count=_float(count[:, None]), work=work, pair_configurations=_of_pairs(c, rows), configurations=c,
        conditions=under * conditions.mattering(work),
        norm_conditions=of_norms * conditions.mattering_to_norms(work.has_layout),
        runs=(work.launches > 0).to(torch.float32),
        part_weight=_float(part_weight[row]), has_optimizer=_float(has_optimizer[:, None]),
        benchmark=torch.tensor(benchmark), host=torch.tensor(_hosts(data, labels, benchmark)),
        parameters=summed(data.load[distinct[of_pair], -1]), launches=summed(launches),
        step_ms=_float(data.step_ms[labels, None]), weight=_float(np.ones((len(labels), 1))), places=places)


def make_merged(data: Dataset, labels: np.ndarray, weight: np.ndarray, options: Options = Options()) -> Batch:
    """Merges labels that differ only in the run into one step with the geometric mean. `weight`: one value per label."""
    texts = (data.software, data.gpu, data.precision, data.kind, data.optimizer)
    text = [np.unique(x[labels], return_inverse=True)[1].reshape(-1) for x in texts]
    identity = np.column_stack([x[labels] for x in (data.label_network, data.batch, data.is_nhwc, data.is_compiled,
                                                    data.recomputes)] + text)
    _, first, group, count = np.unique(identity, axis=0, return_index=True, return_inverse=True, return_counts=True)
    batch = make(data, labels[first], options)
    mean = np.bincount(group.reshape(-1), weights=np.log(data.step_ms[labels])) / count
    total = np.bincount(group.reshape(-1), weights=weight[labels])
    return replace(batch, step_ms=_float(np.exp(mean)[:, None]), weight=_float(total[:, None]))
