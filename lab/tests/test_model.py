"""Tests the predictor's parts, training and exported form on networks with known times."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mdot_lab.predictor import batches, conditions, export, features, normalisation, splits, tables, training
from mdot_lab.predictor.interval import FEATURE
from mdot_lab.predictor.model import Configurations, Options, Predictor, Rates, Roofline, smooth_maximum
from mdot_lab.predictor.operators import Operators
from mdot_lab.predictor.deploy_graphs import Whole
from mdot_lab.predictor.training import Schedule

SMALL = Options(width=8, hidden=8)
SHORT = Schedule(epochs=40, parts=3, least_networks=1)


@pytest.fixture
def all_labels(data):
    return np.arange(len(data.step_ms))


@pytest.fixture
def ask(shipped, data):
    """A network's quantiles, and its distance outside the range by cause."""

    def answer(network: int, batch: float, gpu: str, rows: tuple | None = None, **flags: float):
        with torch.no_grad():
            step_ms, outside, _ = Whole(shipped)(*(rows or export.rows(data, network)),
                                              torch.tensor(export.configuration(batch=batch, **flags)),
                                              torch.tensor(tables.gpu(gpu).numbers))
        return step_ms, dict(zip(tables.causes(), outside.tolist(), strict=True))

    return answer


def test_smooth_maximum_equals_the_larger_value_and_exceeds_equal_values():
    a, b = torch.tensor([[100.0]]), torch.tensor([[1.0]])
    assert smooth_maximum(a, b).item() == pytest.approx(100, rel=1e-3)
    assert smooth_maximum(a, a).item() == pytest.approx(100 * 2**0.25, rel=1e-3)


def test_an_untrained_predictor_is_its_roofline(data, all_labels):
    model = Predictor(SMALL).eval()
    torch.nn.init.constant_(model.head.tail.bias, -100.0)      # the fixed time of kernels is zero
    with_correction = training.predict_labels((model, None), data, all_labels)
    without = Predictor(replace(SMALL, use_correction=False)).eval()
    assert np.allclose(with_correction, training.predict_labels((without, None), data, all_labels), rtol=1e-5)


@pytest.mark.parametrize("parts", [{}, {"use_fusion": False}, {"use_position": True}, {"use_encoder": True}])
def test_training_learns_times_that_follow_the_work(data, all_labels, parts):
    model = training.fit(data, all_labels, replace(SMALL, **parts), SHORT)
    ratio = training.predict_labels(model, data, all_labels) / data.step_ms
    assert np.median(np.abs(ratio - 1)) < 0.15


def test_held_out_networks_are_predicted(data):
    _, train, test = next(iter(splits.folds(data, splits.RANDOM)))
    model = training.fit(data, train, SMALL, SHORT)
    ratio = training.predict_labels(model, data, test) / data.step_ms[test]
    assert np.median(np.abs(ratio - 1)) < 0.25


def test_the_same_seed_trains_the_same_predictor(data, all_labels):
    one, two = (training.fit(data, all_labels, SMALL, Schedule(epochs=2, parts=3)) for _ in range(2))
    assert np.array_equal(training.predict_labels(one, data, all_labels), training.predict_labels(two, data, all_labels))


def test_runs_of_one_setup_are_merged_into_their_geometric_mean(make_sequence, make_label):
    from mdot_lab.predictor import dataset
    from mdot_lab.predictor.labels import Network

    data = dataset.build({Network("a", 224): make_sequence(2)}, [make_label("a", 8, 4.0), make_label("a", 8, 9.0)])
    batch = batches.make_merged(data, np.arange(2), np.ones(2))
    assert batch.step_ms.tolist() == [[pytest.approx(6.0)]]
    assert batch.weight.tolist() == [[2.0]]


def test_rare_types_use_the_row_of_unknown_types(data, all_labels):
    model, _ = training.fit(data, all_labels, SMALL, Schedule(epochs=1, parts=2, least_networks=10**6))
    assert model.row_of_type.unique().tolist() == [tables.UNKNOWN_TYPE]


def test_rare_types_use_the_row_of_a_related_type(data, all_labels):
    model, _ = training.fit(data, all_labels, SMALL, Schedule(epochs=1, parts=2, least_networks=1))     # Conv and Relu
    row = {name: model.row_of_type[tables.operator_type_row(name)].item()
           for name in ("ConvTranspose", "LeakyRelu", "LogSoftmax")}
    assert row["ConvTranspose"] == tables.operator_type_row("Conv")
    assert row["LeakyRelu"] == tables.operator_type_row("Relu")
    assert row["LogSoftmax"] == tables.UNKNOWN_TYPE     # no network has its related type


def _network_at(rows: list[tuple], **flags: float):
    """A job with operators (type, FLOPs per phase, bytes, settings), evaluated by a Shipped model."""
    types = torch.tensor([tables.operator_type_row(name) for name, *_ in rows])
    setting = torch.tensor([[float(values.get(name, 0)) for name in tables.settings()] for *_, values in rows])
    load = torch.tensor([[*[flops, moved / 2, moved / 2] * 3, *[0.0] * tables.PHASE_LOAD_COUNT, 1.0]
                         for _, flops, moved, _ in rows])
    return types, setting, load, torch.ones(len(rows))


RECURRENCE = ("LSTM", 1e9, 1e6, {"channels_in": 256, "channels_out": 256, "extent": 35, "directions": 1, "inputs": 1})
SEQUENCE_WINDOW = ("Conv", 1e9, 1e6, dict.fromkeys(("kernel_d", "kernel_h", "stride_d", "stride_h", "stride_w", "groups"), 1)
                   | {"kernel_w": 5, "channels_in": 64, "channels_out": 64})
MAP_WINDOW = ("Conv", 1e9, 1e6, SEQUENCE_WINDOW[3] | {"kernel_h": 5})
VECTOR = ("Relu", 1e6, 1e7, {"inputs": 1})


def _randomize(shipped) -> None:
    for member in shipped.members:
        for head in (member.head, member.norm_head):
            torch.nn.init.normal_(head.correction.out.weight, std=0.5)
            torch.nn.init.normal_(head.correction.out.bias, std=0.5)
            torch.nn.init.normal_(head.correction.common.weight, std=0.5)


@pytest.mark.parametrize("window, has_layout", [(RECURRENCE, False), (SEQUENCE_WINDOW, False), (MAP_WINDOW, True)])
def test_the_layout_affects_jobs_with_two_dimensional_windows_only(shipped, ask, window, has_layout):
    _randomize(shipped)
    nchw, nhwc = (ask(0, 64.0, "RTX-3090", rows=_network_at([window, VECTOR]), is_nhwc=flag)[0][1].item() for flag in (0.0, 1.0))
    assert (nchw != nhwc) == has_layout


@pytest.mark.parametrize("row", [RECURRENCE, MAP_WINDOW, ("Linear", 1e9, 1e6, {"channels_in": 64, "channels_out": 64})])
def test_compilation_and_new_software_leave_matmuls_unchanged(shipped, ask, row):
    _randomize(shipped)
    host = {"host_launch_us": 1e-3}
    times = [ask(0, 64.0, "RTX-3090", rows=_network_at([row]), is_amp=0.0, is_fp32=1.0, **host, **flags)[0][1].item()
             for flags in ({"torch": 113.0}, {"torch": 209.0}, {"torch": 209.0, "is_compiled": 1.0})]
    assert times[0] == pytest.approx(times[1], rel=1e-5) and times[1] == pytest.approx(times[2], rel=1e-5)


def test_no_operator_is_faster_than_its_bound(shipped):
    """Whatever the corrections, an operator takes at least FLOPs over the fastest unit's peak rate."""
    from mdot_lab.predictor.deploy_graphs import Explain

    _randomize(shipped)
    for member in shipped.members:
        torch.nn.init.constant_(member.head.correction.common.bias, -3.0)
    for gpu in tables.gpus():
        peak = max(gpu["fp32_tflops"], gpu["tf32_tflops"], gpu["fp16_tflops"]) * 1e9
        for flags in ({}, {"is_nhwc": 1.0}, {"is_compiled": 1.0}, {"is_amp": 0.0, "is_fp32": 1.0}, {"is_inference": 1.0}):
            rows = _network_at([MAP_WINDOW, RECURRENCE, ("Linear", 1e12, 1e6, {"channels_in": 4096, "channels_out": 4096})])
            with torch.no_grad():
                ms, _ = Explain(shipped)(*rows, torch.tensor(export.configuration(batch=32.0, **flags)),
                                         torch.tensor(gpu.numbers))
            saved = 2.25 if "is_fp32" in flags else 1
            limit = 32 * rows[2][:, (0, 3, 6)] / peak / saved
            if "is_inference" in flags:
                limit[:, 1:] = 0
            assert (ms >= limit * (1 - 1e-4)).all()


def test_inference_takes_a_part_of_a_step_and_launches_less(ask):
    for batch in (1.0, 256.0):
        step, forward = (ask(0, batch, "RTX-3090", is_inference=flag)[0][1].item() for flag in (0.0, 1.0))
        assert 0.09 * step < forward < 0.6 * step      # at batch 1, the host launches, in .6 times the training cost
    assert ask(0, 128.0, "RTX-3090", is_inference=1.0, is_amp=0.0, is_fp32=1.0)[1]["PRECISION_NOT_MEASURED"] > 0


def test_a_slower_host_makes_small_batches_slower_and_narrows_the_interval_by_being_known(shipped, ask):
    with torch.no_grad():
        shipped.interval.weight[FEATURE["waiting"]] = 1.0
    unknown, slow, fast = (ask(0, 1.0, "H100", host_launch_us=us)[0] for us in (0.0, 200.0, 5.0))
    assert slow[1] > 2 * unknown[1] > 2 * fast[1]
    assert slow[2] / slow[0] < unknown[2] / unknown[0]


@pytest.mark.parametrize("is_inference", [0.0, 1.0])
def test_an_unknown_host_has_the_launch_cost_of_training_on_every_gpu(shipped, ask, is_inference):
    """`evaluate` and the exported graph take one launch cost, so that a host that launches as fast changes no step."""
    with torch.no_grad():
        us = 1e3 * shipped.members[0].step.launch_ms(torch.tensor(is_inference)).item()
    for gpu in ("T4", "A100-SXM-80GB", "H100-SXM-80GB", "B200"):
        unknown, known = (ask(0, 1.0, gpu, is_inference=is_inference, host_launch_us=host)[0][1].item() for host in (0.0, us))
        assert unknown == pytest.approx(known, rel=1e-5)


def test_groups_without_an_nhwc_kernel_take_longer(make_sequence, make_label):
    from mdot_lab.predictor import dataset
    from mdot_lab.predictor.labels import Network

    sequences = {Network(f"groups{groups}", 224): make_sequence(3, 128, groups) for groups in (8, 32)}
    data = dataset.build(sequences, [make_label(n.name, 64, 1.0, layout) for n in sequences for layout in ("nchw", "nhwc")])
    step_ms = training.predict_labels((Predictor(SMALL).eval(), None), data, np.arange(4))
    of = {(str(data.network_name[n]), bool(nhwc)): t for n, nhwc, t in zip(data.label_network, data.is_nhwc, step_ms)}
    assert of["groups8", True] > 1.03 * of["groups8", False]
    assert of["groups32", True] == pytest.approx(of["groups32", False], rel=0.15)


def test_benchmark_offsets_do_not_change_operators(make_sequence, make_label):
    """Inference that takes twice as long as forward passes does not change the predictor for whole steps."""
    from mdot_lab.predictor import dataset
    from mdot_lab.predictor.labels import Network

    sequences, labels = {}, []
    for blocks in (2, 3, 5, 8):
        sequences[Network(f"n{blocks}", 224)] = sequence = make_sequence(blocks, 64)
        for batch in (64, 256):
            step_ms = batch * sequence.load[:, 0].sum() / 1e9
            labels += [make_label(f"n{blocks}", batch, step_ms), make_label(f"n{blocks}", batch, 2 * step_ms, kind="infer")]
    data = dataset.build(sequences, labels)
    fitted = training.fit(data, np.arange(len(data.step_ms)), SMALL, SHORT)
    ratio = training.predict_labels(fitted, data, np.arange(len(data.step_ms))) / data.step_ms
    assert np.median(np.abs(ratio[data.kind == "train"] - 1)) < 0.15
    assert np.median(np.abs(ratio[data.kind == "infer"] - 1)) < 0.15


def test_the_cost_of_a_launch_stays_near_its_start_unless_labels_show_it(data, all_labels):
    def change(penalty: float) -> float:
        model, _ = training.fit(data, all_labels, SMALL, replace(SHORT, launch_penalty=penalty))
        return model.step.implausibility().item()

    assert change(penalty=1e4) < 0.1 * change(penalty=0.0)


def test_training_limits_the_inference_labels_per_network(make_sequence, make_label):
    from mdot_lab.predictor import dataset
    from mdot_lab.predictor.labels import Network

    labels = [make_label("a", 8, 1.0)] + [make_label("a", batch, 1.0, kind="infer") for batch in (1, 2, 4, 8)]
    data = dataset.build({Network("a", 224): make_sequence(2)}, labels)
    chosen = training.chosen(data, np.arange(5), 2, seed=0)
    assert 0 in chosen and len(chosen) == 3
    assert training.chosen(data, np.arange(5), 0, seed=0).tolist() == [0]


def test_the_learning_rate_rises_and_falls():
    rates = [training.rate(done / 100, 0.2) for done in range(101)]
    top = rates.index(max(rates))
    assert rates[:top + 1] == sorted(rates[:top + 1]) and rates[top:] == sorted(rates[top:], reverse=True)
    assert (round(100 * training.WARM_UP), 1.0, 0.2) == (top, pytest.approx(rates[top]), pytest.approx(rates[-1]))


def test_the_result_is_the_mean_weight_of_the_last_epochs(data, all_labels, monkeypatch):
    seen, fitted, add = [], [], training._Mean.add

    def noted(mean):
        seen.append([p.detach().clone() for p in mean.parameters])
        fitted[:] = mean.parameters
        add(mean)

    monkeypatch.setattr(training._Mean, "add", noted)
    model, benchmarks = training.fit(data, all_labels, SMALL, Schedule(epochs=5, parts=3, averaged_from=0.6))
    assert len(seen) == 2 and {id(p) for p in fitted} == {id(p) for p in (*model.parameters(), *benchmarks.parameters())}
    for parameter, first, second in zip(fitted, *seen):
        assert torch.allclose(parameter, (first + second) / 2, atol=1e-6)


def test_draws_use_different_inference_labels(make_sequence, make_label):
    from mdot_lab.predictor import dataset
    from mdot_lab.predictor.labels import Network

    labels = [make_label("a", batch, 1.0, kind="infer") for batch in range(1, 101)]
    data = dataset.build({Network("a", 224): make_sequence(2)}, labels)
    assert len({tuple(training.chosen(data, np.arange(100), 2, seed=training.DRAW_SEEDS * draw)) for draw in range(4)}) == 4


def test_nhwc_outliers_are_excluded_from_training(make_sequence, make_label):
    from mdot_lab.predictor import dataset
    from mdot_lab.predictor.labels import Network

    labels = [make_label("a", 8, 1.0), make_label("a", 8, 5.0, "nhwc"), make_label("a", 16, 5.0, "nhwc"),
              make_label("a", 8, 5.0, "nhwc", "pt112"), make_label("a", 8, 3.0, "nhwc", run="another")]
    data = dataset.build({Network("a", 224): make_sequence(2)}, labels)
    assert training.chosen(data, np.arange(5), 2, seed=0).tolist() == [0, 2, 3, 4]


def test_quantiles_ascend(ask):
    assert (ask(0, 64.0, "RTX-3090")[0].diff() > 0).all()


def test_merging_equal_operators_keeps_the_prediction(ask, data):
    operators = data.operator[data.sequence(0)]
    apart = (torch.tensor(data.type[operators]), *(torch.tensor(x[operators], dtype=torch.float32)
             for x in (data.setting, data.load)), torch.ones(len(operators)))
    assert torch.allclose(ask(0, 64.0, "RTX-3090")[0], ask(0, 64.0, "RTX-3090", rows=apart)[0], rtol=1e-4)


def test_step_time_grows_with_the_batch(ask):
    times = [ask(3, float(batch), "RTX-3090")[0][1].item() for batch in (1, 2, 3, 5, 8, 13, 33, 100, 700)]
    assert all(a < b for a, b in zip(times, times[1:]))


def test_faster_gpus_and_lower_precision_take_less_time(ask):
    at = {name: ask(0, 1024.0, name)[0][1].item() for name in ("T4", "RTX-3090", "H100")}
    assert at["T4"] > at["RTX-3090"] > at["H100"]
    of = [ask(0, 1024.0, "A100", **flags)[0][1].item() for flags in ({"is_amp": 0.0, "is_fp32": 1.0},
                                                                     {"is_amp": 0.0, "is_tf32": 1.0}, {})]
    assert of[0] > of[1] > of[2]


def _dense_ms(gpu: str, matmul_precision: str, **window: float) -> list[float]:
    """Milliseconds per convolution phase, by the prior."""
    setting = {"channels_in": 64, "channels_out": 64, "size_in": 196, "size_out": 196} | dict.fromkeys(
        ("kernel_d", "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups"), 1) | window
    load = [1e9 if i % 3 == 0 else 1.0 for i in range(tables.PHASE_LOAD_COUNT)] + [0.0] * tables.PHASE_LOAD_COUNT + [64.0]
    operators = Operators(torch.tensor([tables.operator_type_row("Conv")]),
                          torch.tensor([[float(setting.get(name, 0)) for name in tables.settings()]]), torch.tensor([load]))
    bare, norm = normalisation.split(operators)
    off, specs = torch.zeros(1, 1), torch.tensor([tables.gpu(gpu).numbers])
    flags = {name: torch.full((1, 1), float(name == matmul_precision))
             for name in ("is_fp32", "is_tf32", "is_amp", "is_default")}
    c = Configurations(torch.ones(1, 1), is_half=off, is_nhwc=off, is_adam=off, is_fused=off, is_compiled=off,
                       is_inference=off, torch=torch.full((1, 1), 112.0), gpu=specs, **flags)
    with torch.no_grad():
        return Roofline()(features.work(bare, norm, torch.ones(1, 1), torch.ones(1, 1)), c)[0][0, :3].tolist()


@pytest.mark.parametrize("gpu", ["K80", "P100", "V100", "T4", "RTX-3090", "A100", "H100"])
def test_lower_precision_is_never_slower(gpu):
    for window in ({}, {"kernel_h": 3, "kernel_w": 3}):
        times = [_dense_ms(gpu, matmul_precision, **window) for matmul_precision in ("is_amp", "is_tf32", "is_fp32")]
        assert all(half <= tf32 <= fp32 for half, tf32, fp32 in zip(*times))


def test_the_clock_falls_under_the_power_limit():
    def sustained(gpu: str, **specs: float) -> float:
        names = ("fp32_tflops", "tf32_tflops", "fp16_tflops", "memory_gbps", "compute_capability", "watts")
        values = {name: tables.gpu(gpu)[name] for name in names} | specs
        roofline, rates = Roofline(), Rates(*(torch.tensor([x]) for x in values.values()))
        return (roofline.sustained(rates.vector_tflops, roofline.tflops_per_watt[0], rates) / rates.vector_tflops).item()

    assert sustained("V100") > 0.95 > 0.75 > sustained("T4") > sustained("L4") > 0.3
    assert sustained("T4", watts=140.0) > 1.3 * sustained("T4")
    assert 2 * sustained("T4", fp32_tflops=16.2) > sustained("T4")      # a GPU with a higher rate is at least as fast


def test_few_columns_are_padded_on_tensor_cores_and_vector_units():
    """Otherwise a matmul of few columns would be faster on an old GPU without tensor cores than on a new one that is better
    in all respects."""
    for gpu in ("TITAN-Xp", "RTX-3090"):
        few, many = (_dense_ms(gpu, "is_fp32", channels_out=count)[0] for count in (8, 32))
        assert few == pytest.approx(4 * many)


def test_without_tensor_cores_all_precisions_take_equal_time():
    assert _dense_ms("P100", "is_amp") == _dense_ms("P100", "is_fp32")
    assert _dense_ms("V100", "is_tf32") == _dense_ms("V100", "is_fp32") > _dense_ms("V100", "is_amp")


def test_winograd_applies_to_3x3_windows_at_stride_1_on_vector_units():
    three = {"kernel_h": 3, "kernel_w": 3}
    cases = (("V100", "is_fp32", three, True), ("V100", "is_amp", three, False),
             ("V100", "is_fp32", three | {"stride_h": 2, "stride_w": 2}, False),
             ("V100", "is_fp32", {"kernel_h": 1, "kernel_w": 3}, False),
             ("V100", "is_fp32", three | {"channels_in": 16}, False))
    for gpu, matmul_precision, window, is_quicker in cases:
        channels = {name: value for name, value in window.items() if name == "channels_in"}
        plain, windowed = (_dense_ms(gpu, matmul_precision, **x) for x in (channels, window))
        assert (windowed[0] < 0.9 * plain[0]) == is_quicker


def test_pytorchs_default_uses_tf32_in_convolutions_only(ask, data):
    fp32, tf32 = {"is_amp": 0.0, "is_fp32": 1.0}, {"is_amp": 0.0, "is_tf32": 1.0}
    times = [ask(0, 1024.0, "A100", **flags)[0][1].item() for flags in (tf32, fp32 | {"is_pytorch": 1.0}, fp32)]
    # the network consists of convolutions and ReLUs
    assert times[0] == pytest.approx(times[1], rel=0.05) and times[1] < times[2]


@pytest.fixture
def attention():
    """Rows for one attention with 8 heads over 512 positions."""
    setting = torch.zeros(1, len(tables.settings()))
    for name, value in {"heads": 8, "head_size": 64, "queries": 512, "keys": 512, "inputs": 3}.items():
        setting[0, tables.settings().index(name)] = value
    load = torch.zeros(1, tables.LOAD_COUNT)
    load[0, :tables.PHASE_LOAD_COUNT:3] = 8 * 512 * 512 * (4 * 64 + 5)
    load[0, 1:tables.PHASE_LOAD_COUNT:3] = 4 * 4 * 512 * 512
    return torch.tensor([tables.operator_type_row("Attention")]), setting, load, torch.ones(1)


@pytest.fixture
def batch_norm():
    """Rows for one BatchNormalization over 64 channels."""
    elements = 64 * 56.0 * 56.0
    setting = torch.zeros(1, len(tables.settings()))
    for name, value in {"channels_out": 64, "size_out": 56 * 56, "inputs": 1}.items():
        setting[0, tables.settings().index(name)] = value
    load = torch.zeros(1, tables.LOAD_COUNT)
    for phase, flops in enumerate(normalisation.FLOPS):
        amounts = (flops, 4 * normalisation.MAPS_READ[phase], 4 * normalisation.MAPS_WRITTEN[phase])
        load[0, 3 * phase:3 * phase + 3] = elements * torch.tensor(amounts)
    return torch.tensor([tables.operator_type_row("BatchNormalization")]), setting, load, torch.ones(1)


def test_the_attention_option_affects_attention_only(ask, attention):
    eager, fused = (ask(0, 256.0, "RTX-3090", is_eager=flag)[0] for flag in (1.0, 0.0))
    assert torch.equal(eager, fused)
    eager, fused = (ask(0, 256.0, "RTX-3090", rows=attention, is_eager=flag)[0][1].item() for flag in (1.0, 0.0))
    assert eager > 1.5 * fused


def test_torch_compile_affects_operators_around_attention(ask, attention):
    eager, compiled = (ask(0, 256.0, "RTX-3090", rows=attention, is_compiled=flag)[0][1].item() for flag in (0.0, 1.0))
    assert eager == compiled
    eager, compiled = (ask(0, 256.0, "RTX-3090", is_compiled=flag)[0][1].item() for flag in (0.0, 1.0))
    assert eager != compiled


def test_torch_compile_leaves_normalisation_in_training_alone(shipped, ask, batch_norm):
    """A training BatchNormalization needs all samples' mean before it writes, so that compilers read the input twice."""
    for member in shipped.members:
        torch.nn.init.normal_(member.norm_head.correction.out.weight, std=0.3)
        torch.nn.init.normal_(member.norm_head.correction.out.bias, std=0.3)
    for is_inference, is_equal in ((0.0, True), (1.0, False)):
        eager, compiled = (ask(0, 4096.0, "RTX-3090", rows=batch_norm, is_compiled=flag, is_inference=is_inference)[0][1].item()
                           for flag in (0.0, 1.0))
        assert (eager == pytest.approx(compiled, rel=1e-3)) == is_equal


def test_torch_compile_launches_fewer_kernels(ask):
    eager, compiled = (ask(0, 1.0, "A100", is_compiled=flag)[0][1].item() for flag in (0.0, 1.0))
    assert compiled < 0.8 * eager       # alternating convolutions with normalisation and activations


def test_half_precision_throughout_takes_no_longer_than_autocast(shipped, ask):
    for member in shipped.members:
        for head in (member.head, member.norm_head):
            torch.nn.init.normal_(head.correction.out.weight, std=0.3)
            torch.nn.init.normal_(head.correction.out.bias, std=0.3)
    for network in range(4):
        autocast, throughout = (ask(network, 128.0, "A100", **flags)[0][1].item()
                                for flags in ({"is_amp_bf16": 1.0}, {"is_bf16": 1.0}))
        assert throughout <= autocast


def test_bf16_is_emulated_on_older_gpus(ask):
    for gpu, is_slower in (("V100", True), ("A100", False)):
        fp16, bf16 = (ask(0, 1024.0, gpu, is_amp_bf16=flag)[0][1].item() for flag in (0.0, 1.0))
        assert (bf16 > 1.5 * fp16) == is_slower
    assert ask(0, 1024.0, "V100", is_amp_bf16=1.0)[1]["PRECISION_NOT_MEASURED"] > 0


def test_software_defaults_to_the_newest_version_and_later_ones_equal_it(ask):
    newest = ask(0, 64.0, "RTX-3090", torch=float(conditions.NEWEST))
    assert torch.equal(ask(0, 64.0, "RTX-3090")[0], newest[0])
    later = ask(0, 64.0, "RTX-3090", torch=float(conditions.NEWEST + 1))
    assert later[0][1].item() == newest[0][1].item() and later[1]["SOFTWARE_NOT_MEASURED"] > 0
    assert ask(0, 64.0, "RTX-3090", torch=111.0)[0][1].item() != newest[0][1].item()


@pytest.mark.parametrize("name, number", [("pt17", 107), ("pt110", 110), ("pt112", 112), ("pt210", 201), ("pt291", 209)])
def test_versions_without_dots_are_parsed(name, number):
    assert conditions.version(name) == number


def test_labelled_jobs_are_inside_the_measured_range(ask):
    assert not any(ask(0, 128.0, "RTX-3090")[1].values())


@pytest.mark.parametrize("cause, batch, gpu, flags", [
    ("BATCH_ABOVE_DATA", 4096.0, "RTX-3090", {}), ("BATCH_BELOW_DATA", 1.0, "RTX-3090", {}),
    ("GPU_NOT_MEASURED", 128.0, "A100", {}),
    ("OPTIMIZER_OR_GPUS_NOT_MEASURED", 128.0, "RTX-3090", {"is_adam": 1.0}),
    ("SOFTWARE_NOT_MEASURED", 128.0, "RTX-3090", {"torch": 105.0}),
])
def test_jobs_outside_the_measured_range_have_a_cause(ask, cause, batch, gpu, flags):
    outside = ask(0, batch, gpu, **flags)[1]
    assert [name for name, value in outside.items() if value > 0] == [cause]


def test_one_label_at_batch_1_does_not_lower_the_batch_limit(shipped, ask, data):
    data.batch[-2] = 1      # of the largest network
    shipped.trained_on.fit(data, torch.arange(len(tables.operator_types())))
    assert ask(0, 1.0, "RTX-3090")[1]["BATCH_BELOW_DATA"] > 0
    assert ask(0, 64.0, "RTX-3090")[1]["BATCH_BELOW_DATA"] == 0


@pytest.fixture
def width(shipped, ask):
    """Upper over lower bound, with an interval in which unmeasured properties widen half-widths by a factor of e^0.5 and
    waiting by e."""
    with torch.no_grad():
        for name, value in (("is_elsewhere", 0.5), ("waiting", 1.0), ("software", 0.5), ("new_gpu", 0.5)):
            shipped.interval.weight[FEATURE[name]] = value

    def answer(*arguments, **flags: float) -> float:
        low, _, high = ask(*arguments, **flags)[0].tolist()
        return high / low

    return answer


def test_intervals_are_wider_for_unmeasured_conditions(width):
    measured = width(0, 128.0, "RTX-3090", torch=112.0)
    newer, compiled = width(0, 128.0, "RTX-3090"), width(0, 128.0, "RTX-3090", is_compiled=1.0)
    assert measured < newer < compiled
    quick = {"torch": 112.0, "host_launch_us": 1.0}     # waiting for the host widens both
    assert width(0, 128.0, "RTX-3090", is_amp=0.0, is_fp32=1.0, **quick) > 1.1 * width(0, 128.0, "RTX-3090", **quick)


def test_intervals_are_wider_on_gpus_without_measurements(shipped, width):
    shipped.trained_on.log_gpu = torch.cat([shipped.trained_on.log_gpu,
                                            torch.tensor(tables.gpu("V100").model_specs).log()[None]])

    def widths_of_gpus():
        return [width(0, 4096.0, gpu_model, torch=112.0, is_amp=0.0, is_fp32=1.0) for gpu_model in ("RTX-3090", "V100", "A100")]

    *known, new = widths_of_gpus()
    with torch.no_grad():
        shipped.interval.weight[FEATURE["new_gpu"]] = 0.0
    assert widths_of_gpus()[:2] == known and widths_of_gpus()[2] < 0.9 * new


def test_intervals_are_wider_if_the_gpu_waits_for_the_host(width):
    assert width(0, 8.0, "A100", torch=112.0) > 1.1 * width(0, 4096.0, "A100", torch=112.0)


def test_networks_without_whole_steps_have_the_width_of_another_gpu(shipped, width):
    measured = width(0, 128.0, "RTX-3090", torch=112.0)
    shipped.distance_model.is_stepped[:] = 0
    assert width(0, 128.0, "RTX-3090", torch=112.0) > 1.1 * measured


def test_unknown_operators_are_outside(ask, data):
    types, *others = export.rows(data, 0)
    assert ask(0, 128.0, "RTX-3090", rows=(torch.zeros_like(types), *others))[1]["TYPES_NOT_MEASURED"] > 0


def test_all_files_agree_with_training(shipped, data, tmp_path):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    assert export.export(shipped, data, tmp_path / "new") < export.TOLERANCE
    for name in ("predictor.onnx", "evaluate.onnx", "explain.onnx"):
        metadata = {entry.key: entry.value for entry in onnx.load(str(tmp_path / "new" / name)).metadata_props}
        assert metadata == {"mdot.reads.configuration": ", ".join(tables.READS), "mdot.defaults.gpu": "0",
                            "mdot.assumes.torch": "2.9"}


def test_steps_that_shrink_with_the_batch_are_found(data):
    batch_of = tables.READS.index("batch")

    class Written:
        def __init__(self, time_of):
            self.time_of = time_of

        def run(self, name, *inputs):
            if name == export.ENCODING_FILE:
                return []
            return [np.repeat(self.time_of(inputs[0][batch_of])[None], 3, axis=0), np.zeros(1)]

    assert len(list(export.shrinking(Written(lambda batch: np.where(batch > 64, 1 / batch, 1.0)), data))) == data.network_count
    assert not list(export.shrinking(Written(lambda batch: batch), data))
    assert list(export.shrinking(Written(lambda batch: batch**1.1), data))     # samples per second fall
