"""The physics of an operator."""

import pytest
import torch

from predictor import features, tables
from predictor.features import Operators


def _setting(**values: float) -> torch.Tensor:
    return torch.tensor([[float(values.get(name, 0)) for name in tables.settings()]])


def _convolution(**values: float) -> torch.Tensor:
    return _setting(**({"kernel_d": 1, "kernel_h": 1, "kernel_w": 1, "groups": 1} | values))


def test_channels_that_fill_tiles_are_not_padded():
    assert features.padding(_convolution(channels_in=64, channels_out=96)).tolist() == [[1, 1, 1]]


def test_three_channels_cost_what_fills_a_tile():
    forward, data, weight = features.padding(_convolution(channels_in=3, channels_out=64))[0].tolist()
    assert forward == pytest.approx(8 / 3)
    assert data == pytest.approx(32 / 3)
    assert weight == pytest.approx(32 / 3)


def test_grouping_tells_dense_grouped_and_depthwise_apart():
    settings = torch.cat([_convolution(channels_in=64, channels_out=64),
                          _convolution(channels_in=64, channels_out=64, groups=32),
                          _convolution(channels_in=64, channels_out=64, groups=64)])
    is_grouped, is_depthwise = features.grouping(settings)
    assert is_grouped[:, 0].tolist() == [0, 1, 1]
    assert is_depthwise[:, 0].tolist() == [0, 0, 1]


def test_groups_of_a_product_without_parameters_are_no_grouped_convolution():
    is_grouped, _ = features.grouping(_setting(channels_in=64, channels_out=64, groups=12))
    assert is_grouped.item() == 0


def test_work_grows_with_the_batch_by_what_a_sample_costs(data):
    operators = Operators(torch.tensor(data.type), torch.tensor(data.setting, dtype=torch.float32),
                          torch.tensor(data.load, dtype=torch.float32))
    one, four = (features.work(operators, torch.tensor([[b]])) for b in (1.0, 4.0))
    assert torch.allclose(four.flops, 4 * one.flops)
    assert torch.equal(four.launches, one.launches)


def test_features_are_finite_for_empty_and_for_huge_operators():
    for value in (0.0, 1e15):
        load, setting = torch.full((1, tables.LOAD_COUNT), value), _setting()
        w = features.work(Operators(torch.tensor([0]), setting, load), torch.tensor([[1024.0]]))
        for x in (features.configuration_features(setting), features.load_features(load), features.batch_features(w)):
            assert torch.isfinite(x).all()
