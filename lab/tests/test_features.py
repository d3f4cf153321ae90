"""Tests an operator's analytic quantities."""

import pytest
import torch

from mdot_lab.predictor import features, normalisation, tables
from mdot_lab.predictor.operators import Operators


ONE = torch.ones(1, 1)


def _setting(**values: float) -> torch.Tensor:
    return torch.tensor([[float(values.get(name, 0)) for name in tables.settings()]])


def _convolution(**values: float) -> torch.Tensor:
    return _setting(**({"kernel_d": 1, "kernel_h": 1, "kernel_w": 1, "groups": 1} | values))


def test_channels_that_fill_tiles_are_not_padded():
    assert features.padding(_convolution(channels_in=64, channels_out=96)).tolist() == [[1, 1, 1]]


def test_three_channels_cost_a_whole_tile():
    forward, data, weight = features.padding(_convolution(channels_in=3, channels_out=64))[0].tolist()
    assert forward == pytest.approx(8 / 3)
    assert data == pytest.approx(32 / 3)
    assert weight == pytest.approx(32 / 3)


def test_grouping_distinguishes_dense_grouped_and_depthwise():
    settings = torch.cat([_convolution(channels_in=64, channels_out=64),
                          _convolution(channels_in=64, channels_out=64, groups=32),
                          _convolution(channels_in=64, channels_out=64, groups=64)])
    is_grouped, is_depthwise = features.grouping(settings)
    assert is_grouped[:, 0].tolist() == [0, 1, 1]
    assert is_depthwise[:, 0].tolist() == [0, 0, 1]


def test_groups_of_a_batched_matmul_are_no_grouped_convolution():
    is_grouped, _ = features.grouping(_setting(channels_in=64, channels_out=64, groups=12))
    assert is_grouped.item() == 0


def test_the_share_of_groups_without_a_kernel_grows_with_width_and_falls_with_their_number():
    from mdot_lab.predictor.model import Roofline

    def share(since: int = 1, **values: float) -> float:
        setting = _convolution(**values)
        lacks_kernel = _work("Conv", 1e6, parameters=1, **values).lacks_kernel
        with torch.no_grad():
            return Roofline().shares(features.group_features(setting), lacks_kernel)[0, since].item()

    def of(channels: int, groups: int, **values: float) -> float:
        return share(**({"channels_in": channels * groups, "channels_out": channels * groups, "groups": groups} | values))

    widths = [of(channels, 32) for channels in (4, 8, 16, 32, 64, 128, 256)]
    assert widths == sorted(widths) and widths[0] < 0.1 and widths[-1] > 0.9
    numbers = [of(16, groups) for groups in (2, 4, 8, 16, 32)]
    assert numbers == sorted(numbers, reverse=True)
    assert of(4, 32, dilation_w=2) > of(4, 32) < of(4, 32, channels_out=256)
    assert share(channels_in=64, channels_out=64) == 0
    assert [of(1, 1024, kernel_w=size) for size in (7, 9)] == [0, 1]
    assert [of(channels, 32, kernel_w=3) for channels in (2, 3, 4)] == [1, 1, of(4, 32)]


def test_feature_maps_have_windows_in_two_dimensions():
    def maps(type_name: str, **values: float) -> float:
        operators = Operators(torch.tensor([tables.operator_type_row(type_name)]), _convolution(**values),
                              torch.zeros(1, tables.LOAD_COUNT))
        return features.has_maps(operators).item()

    assert maps("Conv", kernel_h=3, stride_h=1) == 1 and maps("Conv", kernel_h=1, stride_h=2) == 1
    assert maps("Conv", kernel_h=1, stride_h=1, kernel_w=7) == 0 and maps("LSTM", kernel_h=3, stride_h=1) == 0


def test_fallback_kernels_fill_tiles_with_the_channels_of_one_group():
    wide = _convolution(channels_in=256, channels_out=512, groups=2)
    assert features.idle(wide).tolist() == [[1, 1, 1]]
    narrow = _convolution(channels_in=128, channels_out=256, groups=8)      # 16 and 32 channels per group
    assert features.idle(narrow).tolist() == [[1, 4, 2]]


def test_computed_weights_have_no_layout():
    """Conditional convolutions have a group for each sample."""
    groups = {"kernel_w": 1, "channels_in": 128, "channels_out": 128, "groups": 2}
    assert _work("Conv", 1e6, parameters=128 * 64, **groups).grouping[0, 0] == 1
    assert not _work("Conv", 1e6, **groups).grouping.any()


def test_batched_matmuls_of_few_rows_fill_a_tile_each():
    batched = features.padding(_setting(groups=64, channels_in=64, channels_out=64, size_out=16))
    assert batched.tolist() == [[2, 2, 2]]
    attention = features.padding(_setting(heads=4, head_size=64, queries=48, keys=64))
    assert attention[0].tolist() == pytest.approx([4 / 3] * 3)
    assert features.padding(_setting(channels_in=64, channels_out=64, size_out=16)).tolist() == [[1, 1, 1]]    # Linear
    convolution = _convolution(channels_in=64, channels_out=64, groups=2, size_out=49)
    assert features.padding(convolution).tolist() == [[1, 1, 1]]


def _work(type_name: str, flops: float, parameters: float = 0, **values: float) -> features.Work:
    load = torch.zeros(1, tables.LOAD_COUNT)
    load[0, 0], load[0, -1] = flops, parameters
    operators = Operators(torch.tensor([tables.operator_type_row(type_name)]), _setting(**values), load)
    return features.work(*normalisation.split(operators), torch.tensor([[2.0]]), ONE)


def test_scores_of_all_windows_count():
    """There are 64 windows of 49 rows in the batch dimension, and the settings describe one of them."""
    scores = 64 * 3 * 49 * 49
    w = _work("Attention", scores * (4 * 32 + 5), heads=3, head_size=32, queries=49, keys=49)
    assert w.scores.item() == pytest.approx(2 * 4 * scores)
    assert _work("Linear", 1e6, channels_in=32, channels_out=32).scores.item() == 0


@pytest.mark.parametrize("read, written, inputs, parameters, extra", [
    (1.0, 1.0, 2, 0, [0, 3, 0]),        # the gate of a channel, read once for a whole map
    (2.0, 1.0, 2, 0, [0, 0, 0]),        # two maps
    (1.0, 1.0, 1, 64, [0, 0, 2]),       # a learned scale
    (1.0, 1.0, 1, 0, [0, 0, 0]),        # a constant
])
def test_the_gradient_of_a_broadcast_factor_is_written_and_summed(read, written, inputs, parameters, extra):
    load = torch.zeros(1, tables.LOAD_COUNT)
    weights = 1e6 * (parameters > 0)
    load[0, (1, 2, 4, 7, -1)] = torch.tensor([1e6 * read, 1e6 * written, 1e6, weights, parameters])
    operators = Operators(torch.tensor([tables.operator_type_row("Mul")]), _setting(inputs=inputs), load)
    w = features.work(*normalisation.split(operators), torch.tensor([[2.0]]), ONE)
    counted = [1e6 * (read + written), 1e6, weights]
    assert w.bytes[0].tolist() == pytest.approx([2 * (a + 1e6 * b) for a, b in zip(counted, extra)])


def _recurrence(steps: float) -> features.Work:
    load = torch.zeros(1, tables.LOAD_COUNT)
    load[0, :tables.PHASE_LOAD_COUNT] = 1e6
    setting = _setting(channels_in=64, channels_out=256, extent=steps, directions=1)
    operators = Operators(torch.tensor([tables.operator_type_row("LSTM")]), setting, load)
    return features.work(*normalisation.split(features.with_states_read(operators)), torch.tensor([[8.0]]), ONE)


def test_a_recurrence_reads_its_state_in_every_step_at_any_batch():
    bare, many = _recurrence(0), _recurrence(35)
    again = 34 * 4 * 4 * 256**2
    assert (many.bytes - bare.bytes)[0].tolist() == pytest.approx([again, again, 0])
    assert (bare.serial[0].tolist(), many.serial[0].tolist()) == ([0, 0, 0], [35, 35, 0])
    assert _work("Softmax", 1.0, extent=35).serial.sum() == 0      # an extent between steps


def test_old_gradients_of_a_layer_normalization_cost_its_rows():
    from mdot_lab.predictor.model import Roofline

    def of(width: int, version: float, batch: float = 2.0, frozen: bool = False, kind: str = "LayerNormalization") -> float:
        elements = 100 * width
        load = torch.tensor([[5.0 * elements, 4 * elements, 4 * elements, *[elements] * 3, *[0 if frozen else elements] * 3,
                              *[0.0] * tables.PHASE_LOAD_COUNT, 2 * width]])
        operators = Operators(torch.tensor([tables.operator_type_row(kind)]), _setting(extent=width), load)
        work = features.work(*normalisation.split(operators), torch.tensor([[batch]]), ONE)
        return Roofline().summing_ms(work.summed_rows, torch.tensor(version), torch.tensor(1695.0)).item()

    assert of(64, 110) == pytest.approx(200 * 25e-6, rel=0.02)      # 25 ns a row
    assert of(64, 110) == pytest.approx(of(768, 110)) == pytest.approx(of(64, 108)) == pytest.approx(of(64, 110, 4) / 2)
    assert [of(64, 111), of(64, 209), of(64, 110, frozen=True), of(64, 110, kind="Softmax")] == [0, 0, 0, 0]


def test_layouts_leave_rows_unchanged_and_autocast_keeps_some_types_in_fp32():
    assert (_work("Conv", 1.0).has_layout.item(), _work("Linear", 1.0).has_layout.item()) == (1, 0)
    assert (_work("Softmax", 1.0).is_kept_in_fp32.item(), _work("Relu", 1.0).is_kept_in_fp32.item()) == (1, 0)


def test_work_grows_linearly_with_the_batch(data):
    operators = Operators(torch.tensor(data.type), torch.tensor(data.setting, dtype=torch.float32),
                          torch.tensor(data.load, dtype=torch.float32))
    one, four = (features.work(*normalisation.split(operators), torch.tensor([[b]]), ONE) for b in (1.0, 4.0))
    assert torch.allclose(four.flops, 4 * one.flops)
    assert torch.equal(four.launches, one.launches)


def test_features_are_finite_for_empty_and_for_huge_operators():
    for value in (0.0, 1e15):
        load, setting = torch.full((1, tables.LOAD_COUNT), value), _setting()
        batch = torch.tensor([[1024.0]])
        bare, norm = normalisation.split(Operators(torch.tensor([0]), setting, load))
        w = features.work(bare, norm, batch, ONE)
        for x in (features.configuration_features(setting), features.load_features(load), *w,
                  normalisation.features(norm)):
            assert torch.isfinite(x).all()


def _converted(type_name: str, read: float = 3.0, written: float = 5.0, **values: float) -> list[float]:
    load = torch.zeros(1, tables.LOAD_COUNT)
    load[0, :3] = torch.tensor([1.0, read, written])
    load[0, 3], load[0, 6] = values.get("data", 1.0), 1.0
    operators = Operators(torch.tensor([tables.operator_type_row(type_name)]), _convolution(**values), load)
    return features.converted(operators, load[:, :tables.PHASE_LOAD_COUNT])[0].tolist()


@pytest.mark.parametrize("inputs", [3, 4, 5, 8, 9, 12, 16, 27, 64, 65])
@pytest.mark.parametrize("outputs", [1, 7, 8, 16, 20, 24, 61, 64])
def test_channels_outside_whole_vectors_are_padded(inputs: int, outputs: int):
    odd_read, odd_written = inputs % 8 > 0 and inputs > features.IMAGE_CHANNELS, outputs % 8 > 0
    bytes_ = features.PADDING_PASSES * (3 * odd_read + 5 * odd_written)
    sizes = {"channels_in": inputs, "channels_out": outputs}
    assert _converted("Conv", **sizes) == [bytes_] * 3
    assert _converted("Conv", **sizes, data=0.0) == [bytes_, 0, bytes_]        # the first convolution, of images
    assert _converted("Conv", **sizes, groups=2) == [0, 0, 0]
    assert _converted("Linear", **sizes) == [0, 0, 0]


def test_normalised_groups_are_converted_in_both_directions():
    for name in features.CONVERTED_NORMALISATIONS:
        assert _converted(name) == [features.NORMALISATION_PASSES * 8] * 2 + [0]
    assert _converted("LayerNormalization") == [0, 0, 0]
