"""Tests properties that the analytic single-operator models must have for all fitted values."""

import numpy as np
import pytest
import torch

from mdot_lab.operator_benchmarks import gpu_specs, operator_fitting, gpu_rates, measurements, error_table
from mdot_lab.operator_benchmarks.attention_model import AttentionModel
from mdot_lab.operator_benchmarks.collective_model import OPERATIONS, CollectiveModel
from mdot_lab.operator_benchmarks.convolution_model import ConvolutionModel
from mdot_lab.operator_benchmarks.matmul_model import MatmulModel
from mdot_lab.operator_benchmarks.stream_model import KINDS, StreamModel


def _matmuls(gpu_model: str, m, n, k, is_half: bool = True) -> measurements.Measured:
    m, n, k = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (m, n, k)))
    name = np.array([gpu_model] * len(m))
    columns = measurements.with_specs({"count": np.ones(len(m)), "m": m, "n": n, "k": k}, name, np.full(len(m), is_half))
    return measurements.Measured(columns, np.array(["us"] * len(m)), name, np.array(["all"] * len(m)), np.ones(len(m)))


def _physical_us(rows: measurements.Measured) -> np.ndarray:
    torch.manual_seed(0)
    with torch.no_grad():
        return MatmulModel(1).physical_us(rows.tensors(["us"]))[0][:, 0].numpy()


def test_every_measured_gpu_has_a_known_architecture():
    for name in gpu_specs.NAMES.values():
        assert gpu_specs.gpu_spec(name).architecture in gpu_specs.ARCHITECTURES.values()
        assert gpu_specs.gpu_spec(name).watts > 0


@pytest.mark.parametrize("capability, nm", [(5.2, 28), (6.1, 16), (7.0, 12), (7.5, 12), (8.0, 7), (8.6, 8), (8.9, 4),
                                            (12.0, 4)])
def test_process_sizes_match_the_white_papers(capability, nm):
    assert gpu_rates.process_nm(torch.tensor([[capability]])).item() == pytest.approx(nm)


def test_at_most_is_smooth_and_never_above_either_value():
    x, limit = torch.tensor([[1e-3], [1.0], [1e6]]), torch.ones(3, 1)
    assert (gpu_rates.at_most(x, limit) <= torch.minimum(x, limit) * (1 + 1e-6)).all()
    assert gpu_rates.at_most(x, limit)[0].item() == pytest.approx(1e-3)
    assert gpu_rates.at_most(x, limit)[2].item() == pytest.approx(1.0)


def test_a_low_power_limit_lowers_the_clock():
    rates = gpu_rates.Rates()
    fraction = {name: rates.clock_fraction(_matmuls(name, 1, 1, 1, is_half=False).tensors(["us"])).item()
             for name in ("T4", "V100-SXM-16GB")}
    assert fraction["T4"] < 0.7 < fraction["V100-SXM-16GB"] <= 1


def test_more_work_never_takes_less_time():
    sizes = np.array([64, 256, 1024, 4096, 16384])
    for axis in range(3):
        shape = [np.full(5, 1024), np.full(5, 1024), np.full(5, 1024)]
        shape[axis] = sizes
        for gpu_model in ("T4", "A100-SXM-80GB", "B200"):
            assert (np.diff(_physical_us(_matmuls(gpu_model, *shape))) > -1e-3).all()


def test_another_wave_costs_a_wave():
    """For 256 × 256 tiles without split sums: 108 SMs process 12 · 9 tiles at once, and 13 · 9 in two waves. This holds for
    other tiles, too."""
    one, two = _physical_us(_matmuls("A100-SXM-80GB", [12 * 256, 13 * 256], 9 * 256, 8192))
    assert two / one > 13 / 12


def test_fp32_is_slower_than_tensor_cores():
    for gpu_model, is_slower in (("A100-SXM-80GB", True), ("GTX-1080-Ti", False)):
        half, single = (_physical_us(_matmuls(gpu_model, 4096, 4096, 4096, is_half))[0] for is_half in (True, False))
        assert (single > 2 * half) == is_slower


def _attention(**changes) -> float:
    shape = {"batch": 4, "queries": 2048, "keys": 2048, "heads": 16, "key_heads": 16, "head_size": 128, "is_causal": 0,
             "is_backward": 0, **changes}
    name = np.array(["H100-SXM-80GB"])
    columns = measurements.with_specs({key: np.array([float(x)]) for key, x in shape.items()}, name, np.array([True]))
    rows = measurements.Measured(columns, np.array(["us"]), name, np.array(["all"]), np.ones(1))
    torch.manual_seed(0)
    with torch.no_grad():
        return AttentionModel(1)(rows.tensors(["us"]))[0].item()


def test_causal_attention_does_half_the_work_and_backward_more():
    assert 0.4 < _attention(is_causal=1) / _attention() < 0.7
    assert 2 < _attention(is_backward=1) / _attention() < 5
    assert _attention(key_heads=2) <= _attention()


def test_a_long_sequence_alone_is_bound_by_its_longest_block():
    assert _attention(batch=1, heads=1, queries=128, keys=65536) > _attention(batch=1, heads=1, queries=128, keys=8192) * 4


def _collective(operation: str, gpus: int, message_bytes: float) -> float:
    columns = {"operation": OPERATIONS.index(operation), "gpus": gpus, "message_bytes": message_bytes,
               "is_reduced_twice": operation == "all_reduce", "link_gbps": 300, "adds_in_switch": 0}
    rows = {name: torch.tensor([[float(x)]]) for name, x in columns.items()}
    with torch.no_grad():
        return CollectiveModel(1)({**rows, "source": torch.tensor([1])})[0].item()


def test_all_reduce_moves_twice_what_a_gather_does_and_more_gpus_take_longer():
    assert 1.7 < _collective("all_reduce", 8, 1e9) / _collective("all_gather", 8, 1e9) < 2.1
    assert _collective("all_reduce", 8, 1e6) > _collective("all_reduce", 2, 1e6)
    assert _collective("all_reduce", 8, 1e9) > _collective("all_reduce", 8, 1e6)


def _made(noise: float = 0.0) -> measurements.Measured:
    """Matmuls on two GPUs. One source measures twice the times of the other."""
    random = np.random.default_rng(0)
    shapes = 2.0 ** random.uniform(6, 13, (3, 400))
    parts = [_matmuls(gpu_model, *shapes) for gpu_model in ("A100-SXM-80GB", "H100-SXM-80GB")]
    joined = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    gpu_model = np.concatenate([part.gpu_model for part in parts])
    source = np.where(random.random(800) < 0.5, "fast", "slow")
    rows = measurements.Measured(joined, source, gpu_model, np.array(["all"] * 800), np.ones(800))
    slower = np.where(source == "slow", 2.0, 1.0)
    microseconds = (3 + _physical_us(rows)) * slower * np.exp(noise * random.normal(size=800))
    return measurements.Measured(joined, source, gpu_model, rows.kind, microseconds)


def test_fitting_separates_sources_and_predicts_a_held_out_gpu():
    rows = _made(noise=0.03)
    schedule = operator_fitting.Schedule(steps=150, rows=256)
    (name, train, test), = operator_fitting.folds(rows, ("Hopper",))
    assert name == "Hopper"
    assert set(rows.gpu_model[train]) == {"A100-SXM-80GB"} and set(rows.gpu_model[test]) == {"H100-SXM-80GB"}
    model, sources = operator_fitting.fit(MatmulModel, rows.take(train), schedule)
    error = np.abs(operator_fitting.predict(model, sources, rows.take(test)) / rows.microseconds[test] - 1)
    assert np.median(error) < 0.15
    offset = model.sources.offset.detach().numpy()
    assert 0.4 < offset[1 + sources.index("slow")] - offset[1 + sources.index("fast")] < 1.0
    assert offset[0] == pytest.approx(offset[1:].mean())


def test_equal_seeds_give_equal_models():
    rows, schedule = _made(), operator_fitting.Schedule(steps=5, rows=64)
    first, second = (operator_fitting.predict(*operator_fitting.fit(MatmulModel, rows, schedule), rows) for _ in range(2))
    assert (first == second).all()


def test_at_most_keeps_rows_of_every_group():
    rows = _made()
    few = rows.at_most(7)
    _, count = np.unique(few.group, return_counts=True)
    assert list(count) == [7, 7, 7, 7]


def test_tables_have_a_line_with_the_error_of_each_group():
    rows = _made().at_most(5)
    lines = error_table.lines("Hopper", 1.1 * rows.microseconds, rows)
    assert len(lines) == 5 and all("| 10.0 | 10.0 | 10.0 | 1.10 |" in line for line in lines[:-1])
    assert "**10.0**" in lines[-1]


def _convolution(**changes) -> dict[str, torch.Tensor]:
    shape = {"batch": 32, "channels_in": 256, "channels_out": 128, "window": 9, "positions_in": 784, "positions_out": 784,
             "phase": 0, "has_winograd": 0, **changes}
    name = np.array(["V100-SXM-16GB"])
    columns = measurements.with_specs({key: np.array([float(x)]) for key, x in shape.items()}, name, np.array([False]))
    return measurements.Measured(columns, np.array(["us"]), name, np.array(["all"]), np.ones(1)).tensors(["us"])


def _convolution_us(**changes) -> float:
    torch.manual_seed(0)
    with torch.no_grad():
        return ConvolutionModel(1)(_convolution(**changes))[0].item()


def test_phases_of_a_convolution_are_matmuls_of_equal_work():
    for changes in ({}, {"positions_out": 196}):
        work = []
        for phase in range(3):
            matmul = ConvolutionModel.matmul(_convolution(phase=phase, **changes))
            work.append((matmul["m"] * matmul["n"] * matmul["k"]).item())
        assert work[0] == pytest.approx(work[1]) == pytest.approx(work[2])
        assert work[0] == 32 * changes.get("positions_out", 784) * 128 * 256 * 9


def test_winograd_is_used_if_it_is_available_and_faster():
    assert _convolution_us(has_winograd=1) < 0.8 * _convolution_us()
    assert _convolution_us(has_winograd=1, channels_in=3) == pytest.approx(_convolution_us(channels_in=3))


def _stream_us(operation: str, rows: float, columns: float) -> float:
    shape = {"rows": rows, "columns": columns, "accesses": 2, "operation": KINDS.index(operation),
             "is_by_row": operation != "elementwise"}
    name = np.array(["A100-SXM-80GB"])
    given = measurements.with_specs({key: np.array([float(x)]) for key, x in shape.items()}, name, np.array([False]))
    with torch.no_grad():
        return StreamModel(1)(measurements.Measured(given, np.array(["us"]), name, name, np.ones(1)).tensors(["us"]))[0].item()


def test_streams_are_memory_bound_and_reductions_need_many_rows():
    assert 7 < _stream_us("elementwise", 2**16, 2**13) / _stream_us("elementwise", 2**16, 2**10) < 9
    assert _stream_us("softmax", 4, 2**22) > 2 * _stream_us("softmax", 2**12, 2**12)
    assert _stream_us("elementwise", 4, 2**22) == pytest.approx(_stream_us("elementwise", 2**12, 2**12))
