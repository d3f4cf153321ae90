"""Run with python -m pytest lab/tests. Requires PyTorch; tests that need more are skipped without it."""

import numpy as np
import pytest

from mdot_lab.predictor import tables
from mdot_lab.predictor.labels import Label, Network
from mdot_lab.predictor.sequences import Sequence


def _operator(type_name: str, flops: float, moved: float, parameters: float = 0, **settings: float) -> tuple:
    setting = [settings.get(name, 0.0) for name in tables.settings()]
    per_sample = [flops, moved, moved] * len(tables.PHASES)
    return tables.operator_type_row(type_name), setting, [*per_sample, *[0.0] * tables.PHASE_LOAD_COUNT, parameters]


@pytest.fixture
def make_sequence():
    """A network of `blocks` equal convolutions, each followed by an activation."""

    def make(blocks: int, channels: int = 64, groups: int = 1) -> Sequence:
        positions = 14.0 * 14.0
        moved = 4 * channels * positions
        weights = channels * channels / groups * 9
        convolution = _operator("Conv", 2 * weights * positions, moved, weights, kernel_d=1, kernel_h=3, kernel_w=3,
                                stride_h=1, stride_w=1, groups=groups, channels_in=channels, channels_out=channels,
                                size_in=positions, size_out=positions, normalised=1, inputs=1)
        rows = [convolution, _operator("Relu", channels * positions, moved, inputs=1)] * blocks
        count = len(rows)
        position = [[i, i, count - 1 - i, float(i > 0), float(i < count - 1)] for i in range(count)]
        types, settings, loads = zip(*rows)
        edges = np.array([(i, i + 1) for i in range(count - 1)])
        return Sequence(np.array(types), np.array(settings), np.array(loads), np.array(position, dtype=float), edges)

    return make


@pytest.fixture
def make_label():
    def make(name: str, batch: int, step_ms: float, layout: str = "nchw", software: str = "pt111",
             parameters_m: float = 0.0, gpu: str = "RTX-3090", precision: str = "amp", kind: str = "train",
             is_compiled: bool = False, run: str = "run", recomputes: float = 0.0, optimizer: str | None = None) -> Label:
        if optimizer is None:
            optimizer = "sgd" if kind == "train" else ""
        return Label(Network(name, 224), batch, layout, software, run, step_ms, parameters_m, gpu, precision, kind, is_compiled,
                     is_fused=False, recomputes=recomputes, optimizer=optimizer)

    return make


@pytest.fixture
def data(make_sequence, make_label):
    """Networks with several depths and widths, whose steps take 1 ms per 10^9 forward convolution FLOPs."""
    from mdot_lab.predictor import dataset

    sequences, labels = {}, []
    for blocks in (2, 3, 5, 8):
        for channels in (32, 64, 128):
            name = f"net_{blocks}_{channels}"
            sequences[Network(name, 224)] = sequence = make_sequence(blocks, channels)
            for batch in (64, 256):
                labels.append(make_label(name, batch, batch * sequence.load[:, 0].sum() / 1e9))
    return dataset.build(sequences, labels)


@pytest.fixture
def shipped(data):
    """Two untrained members."""
    import torch

    from mdot_lab.predictor import familiarity as familiarities
    from mdot_lab.predictor.interval import Interval
    from mdot_lab.predictor.embedding_distance import EmbeddingDistance, mean_encodings, networks
    from mdot_lab.predictor.model import Options, Predictor
    from mdot_lab.predictor.deploy_graphs import Shipped
    from mdot_lab.predictor.domain_check import TrainingRange, gpu_names, step_gpu_names

    torch.manual_seed(0)
    options = Options(width=8, hidden=8)
    members = [Predictor(options).eval() for _ in range(2)]
    for member in members:
        for head in (member.head.correction, member.norm_head.correction):
            torch.nn.init.normal_(head.out.weight, std=0.01)
            torch.nn.init.normal_(head.common.weight, std=0.01)
    trained_on = TrainingRange(len(gpu_names(data)), len(step_gpu_names(data)))
    trained_on.fit(data, torch.arange(len(tables.operator_types())))
    distance_model = EmbeddingDistance(options.width)
    known, label_of = networks(data)
    distance_model.fit(mean_encodings(members[0], data, label_of), torch.ones(len(known), dtype=torch.bool))
    familiarity = familiarities.fit(members[0], data, data.whole_networks)
    return Shipped(members, Interval(), trained_on, distance_model, familiarity).eval()
