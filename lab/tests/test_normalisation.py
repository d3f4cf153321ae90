"""Tests that BatchNormalization is evaluated separately from the operator before it."""

import pytest
import torch

from mdot_lab.predictor import features, normalisation, tables
from mdot_lab.predictor.model import PHASES, Configurations, Roofline
from mdot_lab.predictor.operators import Operators

CHANNELS, SIZE = 64, 196
ELEMENTS = CHANNELS * SIZE
CONVOLUTION = {"kernel_d": 1, "kernel_h": 3, "kernel_w": 3, "groups": 1, "channels_in": CHANNELS, "channels_out": CHANNELS,
               "size_in": SIZE, "size_out": SIZE}


def _operator(type_name: str, per_sample: list[float], **values: float) -> Operators:
    setting = torch.tensor([[float(values.get(name, 0)) for name in tables.settings()]])
    load = torch.tensor([[*per_sample, *[0.0] * tables.PHASE_LOAD_COUNT, 2.0 * CHANNELS]])
    return Operators(torch.tensor([tables.operator_type_row(type_name)]), setting, load)


def _norm_loads() -> list[float]:
    moved = ((2, 1), (2, 1), (2, 0))
    return [x for flops, maps in zip((5, 5, 3), moved) for x in (flops * ELEMENTS, *(4 * ELEMENTS * m for m in maps))]


BARE = [1e6, 2e5, 3e5, 2e6, 4e5, 5e5, 3e6, 6e5, 7e5]


def test_a_following_normalisation_leaves_the_convolution_unchanged():
    with_norm = _operator("Conv", [a + b for a, b in zip(BARE, _norm_loads())], **CONVOLUTION, normalised=1)
    bare, norm = normalisation.split(with_norm)
    alone, none = normalisation.split(_operator("Conv", BARE, **CONVOLUTION))
    assert all(torch.allclose(a, b) for a, b in zip(bare, alone))
    assert [x.item() for x in norm] == [1, CHANNELS, ELEMENTS]
    assert [x.item() for x in none] == [0, 0, 0]


def test_a_separate_normalisation_has_the_same_work():
    loads = _norm_loads()
    operators = _operator("BatchNormalization", loads, channels_in=CHANNELS, channels_out=CHANNELS, size_in=SIZE, size_out=SIZE)
    bare, norm = normalisation.split(operators)
    assert [x.item() for x in norm] == [0, CHANNELS, ELEMENTS]
    w = features.work(bare, norm, torch.tensor([[8.0]]), torch.ones(1, 1))
    assert w.bytes.sum() == 0 and w.flops.sum() == 0
    assert w.norm_bytes[0].tolist() == pytest.approx([8 * (loads[1] + loads[2]), 8 * (loads[4] + loads[5] + loads[7])])


def test_splitting_loses_no_traffic():
    loads = [a + b for a, b in zip(BARE, _norm_loads())]
    w = features.work(*normalisation.split(_operator("Conv", loads, **CONVOLUTION, normalised=1)), torch.tensor([[1.0]]), torch.ones(1, 1))
    assert (w.bytes.sum() + w.norm_bytes.sum()).item() == pytest.approx(sum(loads[1::3]) + sum(loads[2::3]))


def test_rows_that_the_exporter_folded_into_the_batch_count():
    """A BatchNormalization after a Linear has one position per channel in the settings, and all rows per sample in the
    loads."""
    operators = _operator("BatchNormalization", _norm_loads(), channels_in=CHANNELS, channels_out=CHANNELS, size_in=1,
                          size_out=1)
    _, norm = normalisation.split(operators)
    assert norm.elements.item() == ELEMENTS


def _prior_ms(channels: int, gpu: str = "RTX-3090", **flags: float) -> list[float]:
    """Forward and backward, for a BatchNormalization with equal elements whatever the number of channels."""
    size = ELEMENTS // channels
    operators = _operator("BatchNormalization", _norm_loads(), channels_in=channels, channels_out=channels, size_in=size,
                          size_out=size)
    flags = dict.fromkeys(("is_fp32", "is_tf32", "is_half", "is_default", "is_nhwc", "is_adam", "is_fused", "is_compiled",
                           "is_inference"), 0.0) | {"is_amp": 1.0} | flags
    c = Configurations(batch=torch.ones(1, 1), torch=torch.full((1, 1), 112.0), gpu=torch.tensor([tables.gpu(gpu).numbers]),
                       **{name: torch.full((1, 1), value) for name, value in flags.items()})
    with torch.no_grad():
        prior, _ = Roofline()(features.work(*normalisation.split(operators), torch.tensor([[4096.0]]), torch.ones(1, 1)), c)
    return prior[0, PHASES:].tolist()


def test_in_nchw_each_channel_is_one_block_of_threads():
    few, half, many = (_prior_ms(channels) for channels in (16, 32, 3136))
    assert few == pytest.approx([2 * ms for ms in half]) and min(few) > 4 * max(many)
    assert _prior_ms(3136) == pytest.approx(_prior_ms(784), rel=1e-4)      # all multiprocessors are busy


@pytest.mark.parametrize("flags", [{"is_inference": 1.0}, {"is_nhwc": 1.0, "is_inference": 1.0}, {"is_compiled": 1.0}])
def test_other_kernels_are_independent_of_the_number_of_channels(flags):
    assert _prior_ms(16, **flags) == pytest.approx(_prior_ms(3136, **flags))


def test_more_bandwidth_does_not_help_where_channels_are_few():
    a100, h200 = (_prior_ms(16, gpu)[0] * tables.gpu(gpu)["boost_mhz"] for gpu in ("A100", "H200"))
    assert a100 == pytest.approx(h200)


def test_few_channels_cost_a_whole_tile_in_nhwc():
    assert _prior_ms(16, is_nhwc=1.0) == pytest.approx([4 * ms for ms in _prior_ms(3136, is_nhwc=1.0)])
    for channels in range(1, 1025):
        tiles = normalisation.tiles(torch.tensor(1 / channels)).item()
        assert tiles * channels == pytest.approx(-(-channels // normalisation.CHANNELS_OF_TILE) * normalisation.CHANNELS_OF_TILE)
    assert normalisation.tiles(torch.tensor(0.0)).item() == pytest.approx(1)       # outside feature maps
