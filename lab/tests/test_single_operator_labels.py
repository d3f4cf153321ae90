"""Tests isolated operators as labels."""

import numpy as np
import pytest

from mdot_lab.operator_benchmarks.measurements import STREAMS, Measured
from mdot_lab.predictor import batches, dataset, report, single_operator_labels, splits, tables, training
from mdot_lab.predictor.evaluation import fold_file
from mdot_lab.predictor.ablations import SHIPPED_FORM
from mdot_lab.predictor.labels import ALONE, OPERATOR, Label, Network


def _as_tokens(described: single_operator_labels.Described, settings: dict[str, float], load: list[float]) -> None:
    found = single_operator_labels.sequence(described)
    assert {name: value for name, value in zip(tables.settings(), found.setting[0]) if value} == settings
    assert found.load[0].tolist() == load


def test_operators_are_described_as_by_mdot_extract():
    """Expected values are the output of `mdot extract` for a GPT with width 1024 at length 1024."""
    _as_tokens(single_operator_labels.linear({"m": 1024, "k": 1024, "n": 51200}),
               {"channels_in": 1024, "channels_out": 51200, "size_in": 1024, "size_out": 1024, "inputs": 1},
               [107374182400, 4194304, 209715200, 107374182400, 209715200, 4194304, 107374182400, 213909504, 0, 0, 209715200, 0,
                0, 209715200, 0, 0, 0, 209715200, 51200 * 1024])
    heads = {"heads": 16, "head_size": 64, "queries": 1024, "keys": 1024}
    _as_tokens(single_operator_labels.attention({**heads, "batch": 1, "is_causal": 1}), {**heads, "inputs": 3},
               [4378853376, 12582912, 4194304, 8757706752, 16777216, 12582912, 0, 0, 0, 0, 8388608, 0, 0, 8388608, 0, 0, 0, 0,
                0])
    _as_tokens(single_operator_labels.stream({"rows": 1024, "columns": 1024, "operation": STREAMS.index("normalisation")}),
               {"axis": 1, "extent": 1024, "inputs": 1},
               [8388608, 4194304, 4194304, 16777216, 8388608, 4194304, 2097152, 4194304, 0, 0, 8192, 0, 0, 8192, 0, 0, 0, 8192,
                2048])
    pointwise = {"batch": 32, "channels_in": 16, "channels_out": 48, "window": 1, "positions_in": 3136, "positions_out": 3136}
    ones = ("kernel_d", "kernel_h", "kernel_w", "stride_d", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups",
            "inputs")
    _as_tokens(single_operator_labels.convolution(pointwise),
               {**dict.fromkeys(ones, 1), "channels_in": 16, "channels_out": 48, "size_in": 3136, "size_out": 3136},
               [4816896, 200704, 602112, 4816896, 602112, 200704, 4816896, 802816, 0, 0, 3072, 0, 0, 3072, 0, 0, 0, 3072, 768])


def test_many_rows_are_several_samples():
    assert [single_operator_labels.linear({"m": m, "k": 8, "n": 8}).batch for m in (81, 4096, 16384, 4097)] == [1, 1, 4, 1]


@pytest.fixture
def with_single(make_sequence, make_label):
    sequences = {Network("net", 224): make_sequence(2)}
    labels = [make_label("net", 64, 5.0)]
    for kind, gpu in ((ALONE[0], "V100-SXM-16GB"), (ALONE[2], "A40")):
        described = single_operator_labels.linear({"m": 512, "k": 256, "n": 1024})
        network = Network(OPERATOR + "Linear", 0)
        sequences[network] = single_operator_labels.sequence(described)
        labels.append(Label(network, described.batch, "nchw", "pt210", single_operator_labels.SOURCES[0], 0.5, 0.0, gpu, "fp32",
                            kind, False, True))
    return dataset.build(sequences, labels)


def test_a_label_of_one_operator_counts_the_phase_that_was_timed_and_no_host(with_single):
    forward, weight = (batches.make(with_single, np.array([i])) for i in (1, 2))
    assert forward.part_weight[0].tolist() == [1, 0, 0, 0, 0]
    assert weight.part_weight[0].tolist() == [0, 0, 1, 0, 0]
    assert forward.launches.item() == 0 and forward.has_optimizer.item() == 0
    assert batches.BENCHMARKS[int(forward.benchmark)] == single_operator_labels.SOURCES[0]
    assert training.weights(with_single).tolist() == [1.0, training.SINGLE, training.SINGLE]


def test_single_operators_are_no_whole_networks(with_single):
    assert with_single.is_alone.tolist() == [False, True, True]
    assert [str(with_single.network_name[n]) for n in with_single.whole_networks] == ["net"]


def test_an_architecture_is_held_out_except_for_the_gpu_of_whole_steps(with_single):
    folds = {name: (train.tolist(), test.tolist()) for name, train, test in splits.folds(with_single, splits.ARCHITECTURES)}
    assert folds == {"Volta": ([0, 2], [1]), "Ampere": ([0, 1], [2])}     # the network's GPU is of Ampere, too


def test_the_report_has_a_row_per_architecture_and_operator(with_single, tmp_path):
    np.savez(fold_file(tmp_path, SHIPPED_FORM, splits.ARCHITECTURES, "Volta"), fold="Volta", label=np.array([1]),
             predicted_ms=np.array([0.6]), measured_ms=np.array([0.5]), is_nhwc=np.array([False]))
    assert "| Volta | Linear, fp32 | 1 | 1 | 20.0 | 20.0 | 20.0 | 1.20 |" in report.tables(tmp_path, with_single)


def test_short_times_and_gpus_without_spec_values_are_skipped():
    gpu_model = np.array(["A40", "A40", "P4", "T4", "T4"])
    source = np.array(["vidur", "vidur", "vidur", "NeuSight:linear", "NeuSight:linear"])
    found = Measured({}, source, gpu_model, np.array(["fp32"] * 5), np.array([100.0, 10.0, 100.0, 100.0, 500.0]))
    assert single_operator_labels._usable(found).microseconds.tolist() == [100.0, 500.0]


def test_operators_of_profiles_are_read_by_shape(tmp_path):
    rows = [("aten::addmm", "[[768], [4096, 512], [512, 768], [], []]", "['c10::BFloat16', 'c10::BFl", 12, 1200.0),
            ("aten::bmm", "[[12, 313, 64], [12, 64, 313]]", "['c10::BFloat16', 'c10::BFloat16']", 1, 100.0),
            ("aten::native_layer_norm", "[[8, 128, 768], [], [768], [768], []]", "['c10::BFloat16', 'ScalarList'", 2, 120.0),
            ("aten::mm", "[[64, 64], [64, 64]]", "['c10::BFloat16', 'c10::BFloat16']", 1, 5.0),
            ("aten::mm", "[[4096, 4096], [4096, 4096]]", "['float', 'float']", 1, 500.0),
            ("aten::cudnn_convolution", "[[128, 3, 224, 224], [768, 3, 16, 16], []]", "['c10::BFloat16'", 4, 1200.0)]
    path = tmp_path / "profiler_operators.csv"
    lines = ["# from traces", "trace,gpu,operator,input_dims,input_types,kernels,kernel_us_total"]
    lines += [f'mi300/a.json.gz,AMD Instinct MI300X VF,{name},"{dims}","{types}",{kernels},{us}'
              for name, dims, types, kernels, us in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (product, of_product), (batched, of_batched), (norm, _) = single_operator_labels.read(path)
    assert (product.step_ms, product.gpu, product.precision, product.kind) == (0.1, "MI300X", "bf16", ALONE[0])
    assert product.run in single_operator_labels.SOURCES and norm.run in single_operator_labels.SOURCES
    assert of_product.load[0, 0] == 2 * 4096 * 512 * 768
    # as `mdot extract` describes a batched matmul of these shapes
    named = dict(zip(tables.settings(), of_batched.setting[0]))
    assert {name: value for name, value in named.items() if value} == {
        "groups": 12, "channels_in": 64, "channels_out": 313, "size_in": 313, "size_out": 313, "inputs": 2}
    assert of_batched.load[0].tolist() == [150480384, 1923072, 4702512, 300960768, 6625584, 1923072, *[0] * 13]


def test_attention_of_decoders_is_left_out_of_profiles():
    dims = [[16, 559, 16, 64]] * 3
    assert single_operator_labels._profiled("aten::_flash_attention_forward", dims, is_decoder=True) is None
    assert single_operator_labels._profiled("aten::_flash_attention_forward", dims, is_decoder=False).type == "Attention"
