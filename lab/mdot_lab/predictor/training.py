"""Fits the predictor to labelled steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mdot_lab.predictor import batches, rare_types, tables
from mdot_lab.predictor.batches import Batch
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.labels import INFER, TRAIN
from mdot_lab.predictor.model import PARTS, PHASES, SMOOTHNESS, Options, Predictor, smooth_maximum
from mdot_lab.predictor.operators import Operators, where_type
from mdot_lab.predictor.published import VTRAIN


@dataclass(frozen=True)
class Schedule:
    epochs: int = 50
    parts: int = 40             # steps per epoch, each over some networks
    draws: int = 4              # training sets with different samples of inference rows; epochs cycle through them
    learning_rate: float = 8e-3
    last_rate: float = 0.2      # final learning rate as a fraction of the first
    averaged_from: float = 0.6  # epoch fraction after which weights are averaged; the result is the mean
    weight_decay: float = 0.05
    penalty: float = 0.003      # factor on the mean square correction, weighted by time
    layout_penalty: float = 3.0     # further factor on NHWC's part of it where kernels are equal in both layouts
    least_networks: int = 25    # a type in fewer networks is replaced by a related type or the unknown type
    benchmarks_penalty: float = 0.002
    launch_penalty: float = 50.0    # further factor, on changed launch cost
    shares_penalty: float = 0.003   # additional factor, on changed shares of grouped convolutions, and on inference
    inferences: int = 2         # inference rows drawn per network, at random
    seed: int = 0


def _heads(model: Predictor, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Corrections for phases and normalisations under every condition, and fixed times, per pair."""
    operators = batch.operators
    types = model.row_of_type[operators.type]
    if model.training:
        dropped = torch.rand(len(types)) < model.options.type_dropout
        types = torch.where(dropped, tables.UNKNOWN_TYPE, types)
    encoded = model.encoder(operators._replace(type=types))
    if model.context is not None:
        encoded = model.context(encoded, batch.places)
    of_phases, tails = (x[batch.encoding_of_pair] for x in model.head(encoded))
    return of_phases, model.norm_head(batch.norms)[batch.of_pair], tails


def sums(batch: Batch, amount: Tensor) -> Tensor:
    """[P, 1] → [R, 1]"""
    return amount.new_zeros(len(batch.step_ms), 1).index_add(0, batch.row, amount)


class OperatorTimes(NamedTuple):
    """The operator time in a step, part by part, and the distance from the prior: mean squared corrections, weighted by
    time."""

    ms: Tensor          # [P, PARTS]
    square: Tensor      # [R, 1]
    layout: Tensor      # [R, 1], NHWC's part where the layout should have no effect


SAME_IN_LAYOUTS = ("Conv", "BatchNormalization", "Relu", "Clip", "Sigmoid", "Swish", "HardSwish", "Gelu", "Add", "Mul",
                   "Concat", "Split", "Slice", "Pad", "Transpose")
"""Types with equal computation and traffic in NHWC, except for grouped convolutions (cuDNN has other kernels for them).
Without this list, the model attributed slow depthwise convolutions to widths found only in mobile networks: a 1x1
convolution with 728 channels seemed three times as slow."""


def _is_same_in_layouts(batch: Batch) -> Tensor:
    """[P, PARTS], 0 or 1"""
    is_same = where_type(batch.operators.type[batch.of_pair], SAME_IN_LAYOUTS) * (1 - batch.work.is_grouped)
    # normalisations are independent of the layout
    return nn.functional.pad(is_same.expand(-1, PHASES), (0, PARTS - PHASES), value=1.0)


def operator_times(model: Predictor, batch: Batch) -> OperatorTimes:
    times, roofline, c = batch.count * batch.part_weight, model.roofline, batch.pair_configurations
    prior, bound = roofline(batch.work, c)
    fixed = roofline.waiting(batch.work)
    casts = roofline.cast_ms(batch.work, c)
    nothing = torch.zeros_like(casts)
    summing = roofline.summing_ms(batch.work.summed_rows, c.torch, c.gpu_column("boost_mhz"))
    fixed = fixed + torch.cat([casts, nothing, casts + summing, nothing, nothing], dim=1)
    total = prior * times
    if not model.options.use_correction:
        none = total.new_zeros(len(batch.step_ms), 1)
        return OperatorTimes((torch.maximum(prior, bound) + fixed) * times, none, none)
    of_phases, of_norms, tails = _heads(model, batch)
    fixed = fixed + nn.functional.pad(tails * batch.runs, (0, PARTS - PHASES))
    correction, layout = model.correction(of_phases, of_norms, batch.conditions, batch.norm_conditions)
    weight = total.detach()
    all_ms = sums(batch, weight.sum(1, keepdim=True))

    def mean(amount: Tensor) -> Tensor:
        return sums(batch, (weight * amount).sum(1, keepdim=True)) / all_ms

    return OperatorTimes((torch.maximum(prior * torch.exp(correction), bound) + fixed) * times, mean(correction**2),
                         mean(_is_same_in_layouts(batch) * layout**2))


class Benchmarks(nn.Module):
    """Benchmark effects rather than operator effects: an offset for each benchmark except whole training and inference,
    and an additional launch cost for each host. They are fitted together with the predictor, and discarded."""

    def __init__(self, hosts: int) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(len(batches.BENCHMARKS)))
        self.host = nn.Parameter(torch.zeros(hosts))
        self.register_buffer("is_other", torch.tensor([float(name != TRAIN) for name in batches.BENCHMARKS]))
        self.register_buffer("is_part", torch.tensor([float(name not in (*batches.WHOLE, INFER)) for name in batches.BENCHMARKS]))

    def forward(self, batch: Batch, knows_hosts: bool) -> tuple[Tensor, Tensor]:
        """[R, 1] each, logarithms of factors: on GPU time, and on launch cost."""
        launches = self.host[batch.host] * self.is_other[batch.benchmark] * float(knows_hosts)
        return (self.offset * self.is_part)[batch.benchmark][:, None], launches[:, None]

    def implausibility(self) -> Tensor:
        return (self.offset**2).sum() / 10 + (self.host**2).sum()


def times(model: Predictor, batch: Batch, benchmarks: Benchmarks | None = None,
          knows_hosts: bool = False) -> tuple[tuple[Tensor, Tensor], OperatorTimes]:
    """[R, 1] GPU and host milliseconds, and parts of the former."""
    of_pairs = operator_times(model, batch)
    operators_ms, host = sums(batch, of_pairs.ms.sum(1, keepdim=True)), 0.0
    if benchmarks is not None:
        offset, host = benchmarks(batch, knows_hosts)
        operators_ms = operators_ms * torch.exp(offset)
    parameters = batch.parameters * batch.has_optimizer
    return model.step.times(operators_ms, batch.launches, parameters, batch.configurations, host), of_pairs


def predict(model: Predictor, batch: Batch, benchmarks: Benchmarks | None = None,
            knows_hosts: bool = False) -> tuple[Tensor, OperatorTimes]:
    """[R, 1] milliseconds per step, and its parts."""
    of_both, of_pairs = times(model, batch, benchmarks, knows_hosts)
    return smooth_maximum(*of_both), of_pairs


def waiting(model: Predictor, batch: Batch) -> Tensor:
    """[R, 1]: the host's fraction of a step, as deploy_graphs.Explain divides it."""
    gpu_ms, host_ms = (t**SMOOTHNESS for t in times(model, batch)[0])
    return host_ms / (gpu_ms + host_ms)


def time_fractions(model: Predictor, batch: Batch) -> Tensor:
    """[P, 1]: each operator's fraction of the step's GPU time."""
    operators_ms = operator_times(model, batch).ms.sum(1, keepdim=True)
    return operators_ms / sums(batch, operators_ms)[batch.row]


def _merge_rare_types(model: Predictor, data: Dataset, networks: np.ndarray, least: int) -> None:
    seen = np.zeros(len(tables.operator_types()), dtype=int)
    for network in networks:
        seen[np.unique(data.type[data.operator[data.sequence(network)]])] += 1
    own = np.where(seen >= least, np.arange(len(seen)), tables.UNKNOWN_TYPE)
    rows = np.where(own == tables.UNKNOWN_TYPE, own[rare_types.rows()], own)
    model.row_of_type.copy_(torch.tensor(rows))


def _fit_scales(model: Predictor, parts: list[Batch]) -> None:
    model.encoder.fit_scales(Operators(*(torch.cat(x) for x in zip(*(part.operators for part in parts)))))
    norms = torch.cat([part.norms for part in parts])
    model.norm_head.scale.fit(norms[norms[:, 0] > 0])


AUXILIARY = 0.3
"""Weight for an inference label, and for vTrain's labels, because these are many but cover few networks."""

SINGLE, SINGLE_FRACTION = 0.15, 1 / 3
"""Weight for a single-operator label, and the drawn fraction: 5,000 count a tenth of all whole steps."""


def weights(data: Dataset) -> np.ndarray:
    of_step = np.where((data.kind == INFER) | (data.run == VTRAIN), AUXILIARY, 1.0)
    return np.where(data.is_alone, SINGLE, of_step)


SLOWEST_LAYOUT = 4.0


def is_outlier(data: Dataset) -> np.ndarray:
    """[l]: NHWC steps that take more than SLOWEST_LAYOUT times as long as the same step in NCHW with the same software.
    Training excludes them. They are four networks with PyTorch 1.10 and 1.11 (5 to 16 times), fixed in 1.12. They
    help no other network."""
    def key(label: int) -> tuple:
        return tuple(x[label] for x in (data.label_network, data.batch, data.software, data.gpu, data.precision,
                                        data.is_compiled))

    steps = np.flatnonzero(data.kind == TRAIN)
    in_nchw = {key(label): data.step_ms[label] for label in steps if not data.is_nhwc[label]}
    result = np.zeros(len(data.step_ms), dtype=bool)
    for label in steps[data.is_nhwc[steps]]:
        result[label] = data.step_ms[label] > SLOWEST_LAYOUT * in_nchw.get(key(label), np.inf)
    return result


def chosen(data: Dataset, labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """All labels except inference and outliers, up to `count` inference labels per network, and SINGLE_FRACTION of the
    single operators."""
    labels = labels[~is_outlier(data)[labels]]
    is_drawn = np.random.default_rng(seed).random(len(labels)) < SINGLE_FRACTION
    labels = labels[is_drawn | ~data.is_alone[labels]]
    is_infer = data.kind[labels] == INFER
    drawn = np.random.default_rng(seed).permutation(labels[is_infer])
    order = np.argsort(data.label_network[drawn], kind="stable")
    network = data.label_network[drawn][order]
    rank = np.arange(len(network)) - np.searchsorted(network, network)
    return np.sort(np.concatenate([labels[~is_infer], drawn[order][rank < count]]))


def _parts(data: Dataset, labels: np.ndarray, schedule: Schedule, options: Options, seed: int) -> list[Batch]:
    """Random network groups with all labels: each network is encoded once."""
    labels, random = chosen(data, labels, schedule.inferences, seed), np.random.default_rng(seed)
    networks = random.permutation(np.unique(data.label_network[labels]))
    groups = np.array_split(networks, schedule.parts)
    weight = weights(data)
    return [batches.make_merged(data, labels[np.isin(data.label_network[labels], group)], weight, options) for group in groups]


WARM_UP, FIRST_RATE = 0.15, 0.04


def rate(done: float, last: float) -> float:
    """The learning rate as a fraction of the maximum, after a training fraction `done`. It rises and falls as a cosine."""
    if done < WARM_UP:
        return FIRST_RATE + (1 - FIRST_RATE) * (1 - math.cos(math.pi * done / WARM_UP)) / 2
    return last + (1 - last) * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP))) / 2


class _Mean:
    """The mean of parameters at several times. It is in a flatter region, and depends less on chance, than the last
    parameters (Izmailov et al. 2018)."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters, self.count = parameters, 0
        self.mean = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def add(self) -> None:
        self.count += 1
        for mean, parameter in zip(self.mean, self.parameters):
            mean.lerp_(parameter, 1 / self.count)

    @torch.no_grad()
    def apply(self) -> None:
        for mean, parameter in zip(self.mean, self.parameters):
            parameter.copy_(mean)


ANALYTIC_RATE = 4.0
"""Learning-rate factor for efficiencies and costs, because logarithms may end far from their start."""


def _parameter_groups(model: Predictor, benchmarks: Benchmarks, schedule: Schedule) -> list[dict]:
    analytic = [*model.roofline.parameters(), *model.step.parameters(), *benchmarks.parameters()]
    network = [p for name, p in model.named_parameters() if not name.startswith(("roofline.", "step."))]
    return [
        {"params": analytic, "weight_decay": 0.0, "lr": schedule.learning_rate * ANALYTIC_RATE},
        {"params": [p for p in network if p.dim() > 1], "weight_decay": schedule.weight_decay, "lr": schedule.learning_rate},
        {"params": [p for p in network if p.dim() <= 1], "weight_decay": 0.0, "lr": schedule.learning_rate},
    ]


DRAW_SEEDS = 100
"""Distance between two draws' seeds, so that the draws for two training seeds are disjoint."""


def _loss(model: Predictor, benchmarks: Benchmarks, batch: Batch, schedule: Schedule) -> Tensor:
    step_ms, of_pairs = predict(model, batch, benchmarks, knows_hosts=True)
    implausible = of_pairs.square + schedule.layout_penalty * of_pairs.layout
    error = torch.log(step_ms) - torch.log(batch.step_ms)
    each = nn.functional.huber_loss(error, torch.zeros_like(error), delta=0.1, reduction="none") * 10
    loss = ((each + schedule.penalty * implausible) * batch.weight).sum() / batch.weight.sum()
    return loss + schedule.benchmarks_penalty * (benchmarks.implausibility()
                                                 + schedule.launch_penalty * model.step.implausibility()
                                                 + schedule.shares_penalty * model.roofline.implausibility())


def fit(data: Dataset, labels: np.ndarray, options: Options, schedule: Schedule) -> tuple[Predictor, Benchmarks]:
    """Fits a predictor to these labels (indices), and benchmark effects."""
    torch.manual_seed(schedule.seed)
    model, benchmarks = Predictor(options), Benchmarks(batches.host_count(data))
    draws = [_parts(data, labels, schedule, options, schedule.seed + DRAW_SEEDS * i) for i in range(schedule.draws)]
    first = chosen(data, labels, schedule.inferences, schedule.seed)
    _merge_rare_types(model, data, np.unique(data.label_network[first]), schedule.least_networks)
    _fit_scales(model, draws[0])
    groups = _parameter_groups(model, benchmarks, schedule)
    optimizer = torch.optim.AdamW(groups, fused=True)
    steps = schedule.epochs * schedule.parts
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step / steps, schedule.last_rate))
    mean = _Mean([p for group in groups for p in group["params"]])
    random = np.random.default_rng(schedule.seed)
    model.train()
    for epoch in range(schedule.epochs):
        parts = draws[epoch % len(draws)]
        for i in random.permutation(len(parts)):
            loss = _loss(model, benchmarks, parts[i], schedule)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
        if epoch + 1 > schedule.averaged_from * schedule.epochs:
            mean.add()
    if mean.count:
        mean.apply()
    return model.eval(), benchmarks.eval()


def predict_labels(fitted: tuple[Predictor, Benchmarks | None], data: Dataset, labels: np.ndarray) -> np.ndarray:
    """Predicted milliseconds for each label, as the kind of benchmark would measure them on an unknown host. Without
    benchmarks, for a whole step."""
    model, benchmarks = fitted
    order = np.argsort(data.label_network[labels], kind="stable")
    result = np.empty(len(labels))
    with torch.no_grad():
        for part in np.array_split(order, max(1, len(order) // 400)):
            if len(part):
                step_ms, _ = predict(model, batches.make(data, labels[part], model.options), benchmarks)
                result[part] = step_ms[:, 0].numpy()
    return result
