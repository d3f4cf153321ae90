"""Tests that each baseline learns an artificial law reproducibly, and common code."""

import csv
import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mdot_lab.baselines import (boosting, dnnperf, driple, ets, export_published, graph_batches, habitat, jobs,
                                     kernel_classes, mdot_as_published, network_fitting, neusight, perfnet, seer_analytic, shortening,
                                     training_folds, trials)
from mdot_lab.baselines.network_fitting import Scaled, Schedule
from mdot_lab.baselines.registry import BASELINES, by_name
from mdot_lab.predictor import splits, tables
from mdot_lab.predictor.dataset import Dataset
from mdot_lab.predictor.metrics import errors

BLOCKS, CHANNELS, BATCHES = (1, 2, 3, 5, 8), (16, 32, 64, 128), (32.0, 128.0)
NAMES = ("resnet{}", "vit{}", "vgg{}", "swin{}")
OPERATORS = ("Conv", "Relu", "Conv", "Add")
READS = ((), (0,), (1,), (1, 2))
"""For each operator in a block, the operators that it reads there. The first one reads the previous block."""


def _operator(name, channels):
    positions, is_matmul = 196.0, name == "Conv"
    weights = channels * channels if is_matmul else 0
    values = {"channels_in": channels, "channels_out": channels, "kernel_d": 1, "kernel_h": 1, "kernel_w": 1, "groups": 1,
             "size_in": positions, "size_out": positions} if is_matmul else {"inputs": 1}
    moved = 4 * channels * positions
    per_sample = [max(2 * weights, channels) * positions, moved, moved] * len(tables.PHASES)
    per_step = [0, 4 * weights, 0, 0, 4 * weights, 0, 0, 0, 4 * weights]
    return (tables.operator_type_row(name), [values.get(s, 0.0) for s in tables.settings()], [*per_sample, *per_step, weights])


def _network(blocks, channels):
    rows = [_operator(name, channels) for _ in range(blocks) for name in OPERATORS]
    edges = [(4 * b + source, 4 * b + i) for b in range(blocks) for i, reads in enumerate(READS) for source in reads]
    edges += [(4 * b - 1, 4 * b) for b in range(1, blocks)]
    return rows, sorted(edges, key=lambda edge: edge[::-1])


@pytest.fixture(scope="module")
def steps():
    """Steps that take 2 ms for 10^9 FLOPs and 1 ms for 10^9 bytes, a fifth longer in NHWC and a tenth less with newer
    software."""
    networks = [(NAMES[i % len(NAMES)].format(i), *_network(b, c)) for i, (b, c) in
                enumerate((b, c) for b in BLOCKS for c in CHANNELS)]
    table = np.array([[t, *s, *load] for _, rows, _ in networks for t, s, load in rows])
    distinct, operator = np.unique(table, axis=0, return_inverse=True)
    start = np.cumsum([0] + [len(rows) for _, rows, _ in networks])
    edges = np.concatenate([np.array(e).reshape(-1, 2) + at for (_, _, e), at in zip(networks, start)])
    index = np.concatenate([np.arange(len(rows)) for _, rows, _ in networks])
    length = np.concatenate([np.full(len(rows), len(rows)) for _, rows, _ in networks])
    wanted = [(n, batch, nhwc, software) for n in range(len(networks)) for batch in BATCHES for nhwc in (False, True)
             for software in ("pt110", "pt111", "pt112")]
    number, batch, is_nhwc, software = map(np.array, zip(*wanted))
    settings = len(tables.settings())
    data = Dataset(
        type=distinct[:, 0].astype(np.int64), setting=distinct[:, 1:1 + settings], load=distinct[:, 1 + settings:],
        network_name=np.array([name for name, _, _ in networks]), network_size=np.full(len(networks), 224), network_start=start,
        operator=operator.reshape(-1), edge_from=edges[:, 0], edge_to=edges[:, 1],
        position=np.column_stack([index, index, length - index - 1, np.ones(len(index)), np.ones(len(index))]).astype(float),
        label_network=number, batch=batch, is_nhwc=is_nhwc, software=software, run=np.full(len(wanted), "run"),
        gpu=np.full(len(wanted), training_folds.GPU), precision=np.full(len(wanted), "amp"), kind=np.full(len(wanted), "train"),
        mode=np.zeros(len(wanted), dtype=int), optimizer=np.full(len(wanted), "sgd"),
        is_compiled=np.zeros(len(wanted), dtype=bool),
        is_fused=np.zeros(len(wanted), dtype=bool), recomputes=np.zeros(len(wanted)), step_ms=np.ones(len(wanted)))
    load = np.array([jobs.loads(data, data.operator[data.sequence(n)], np.full(start[n + 1] - start[n], b)).sum(axis=0)
                     for n, b in zip(number, batch)])
    step_ms = (2 * load[:, 0::3].sum(axis=1) + load[:, 1::3].sum(axis=1) + load[:, 2::3].sum(axis=1)) / 1e9
    return dataclasses.replace(data, step_ms=step_ms * np.where(is_nhwc, 1.2, 1) * np.where(software == "pt112", 0.9, 1))


GPU_NOT_MEASURED = 3
"""Its number in MDOT_OUTSIDE_MAP (mdot_predict.h)."""

QUICK = Schedule(epochs=60, rate=5e-3, networks=4)
QUICK_SETTINGS = {
    "perfnet": perfnet.Settings(16, QUICK), "perfnet 2": perfnet.Settings(16, QUICK, channels=4),
    "neusight": neusight.Settings(16, QUICK), "ets": ets.Settings(16, QUICK),
    "dnnperf": dnnperf.Settings(16, 1, QUICK), "driple": driple.Settings(16, 1, 1, QUICK),
    "mdot as published": mdot_as_published.Settings(width=16, heads=2, layers=1, capacity=24, schedule=QUICK)}
MOST_PERCENT = 30
"""Maximum mean error of a baseline. For comparison, a constant is off by several hundred."""


def _predict(baseline, data, train, test):
    own = baseline.module.SETTINGS
    settings = QUICK_SETTINGS.get(baseline.name, boosting.Settings(3, 200) if isinstance(own, boosting.Settings) else own)
    return baseline.predict(data, train, test, settings)


@pytest.mark.parametrize("baseline", [b for b in BASELINES if splits.RANDOM in b.splits and b.name != "seer analytic"], ids=lambda baseline: baseline.name)
def test_fitting_learns_a_law_and_is_deterministic(steps, baseline):
    if isinstance(baseline.module.SETTINGS, boosting.Settings):
        pytest.importorskip("xgboost")
    is_out = steps.label_network % 5 == 2
    train, test = np.flatnonzero(~is_out), np.flatnonzero(is_out)
    predicted = _predict(baseline, steps, train, test)
    constant = np.full(len(test), np.median(steps.step_ms[train]))
    found = errors(predicted, steps.step_ms[test])
    assert found.mape < MOST_PERCENT < errors(constant, steps.step_ms[test]).mape
    assert (_predict(baseline, steps, train, test) == predicted).all()


def test_seer_finds_the_efficiency_of_each_class(steps):
    """Kernels at a third of the peak FLOP rate and half of the bandwidth, small ones in 4 µs: not the law above, whose kernels are
    bound by computation and by memory at once."""
    gpu, small = steps.gpu.copy(), seer_analytic.SETTINGS
    chosen = jobs.steps(steps, np.arange(len(gpu)))
    wide = dataclasses.replace(steps, load=steps.load * np.where(steps.load[:, -1:] > 5000, [[2e3, 1, 1] * 6 + [1]], 1.0))
    step_ms = np.zeros(len(gpu))
    for row in range(len(gpu)):
        _, count, compute, memory = kernel_classes.kernels(wide, chosen, row)
        each = np.where(compute > memory, 3 * compute, 2 * memory)
        step_ms[row] = (count[:, None] * np.where((memory > 0) & (memory < small), 0.004, each)).sum()
    law = dataclasses.replace(wide, step_ms=step_ms)
    train, test = (np.flatnonzero((law.label_network % 5 == 2) == is_out) for is_out in (False, True))
    assert errors(seer_analytic.predict(law, train, test), law.step_ms[test]).mape < 1


def test_coefficients_are_the_least_squares_and_not_negative():
    random = np.random.default_rng(3)
    x, wanted = random.uniform(0, 1, (200, 4)), np.array([2.0, 0.0, 5.0, 1.0])
    assert np.allclose(kernel_classes.non_negative(x, x @ wanted), wanted, atol=1e-5)
    found = kernel_classes.non_negative(x, x @ np.array([2.0, -3.0, 5.0, 1.0]))
    slope = x.T @ (x @ found - x @ np.array([2.0, -3.0, 5.0, 1.0]))
    assert (found >= 0).all() and found[1] == 0 and slope[1] > 0 and np.abs(slope[found > 0]).max() < 1e-4


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no baseline is called sheer; there are horus,"):
        by_name(["sheer"])


def test_an_unseen_version_equals_the_newest_seen_one(steps):
    seen = np.flatnonzero(steps.software != "pt112")
    scaled = Scaled.of(jobs.configurations(steps, seen))
    newest, unseen = (np.flatnonzero(steps.software == version) for version in ("pt111", "pt112"))
    condition = [scaled(torch.tensor(jobs.configurations(steps, labels), dtype=torch.float32)) for labels in (newest, unseen)]
    assert torch.equal(*condition)


def test_runs_of_the_same_step_are_merged(steps):
    twice = np.array([0, 0, 5])
    merged = jobs.merged_steps(steps, twice)
    assert sorted(merged.weight) == [1, 2] and len(merged) == 2


def test_folds_hold_out_whole_networks_of_one_gpu(steps):
    other = steps.gpu.copy().astype("U16")
    other[::7] = "RTX-4090"
    data = dataclasses.replace(steps, gpu=other)
    found = list(training_folds.folds(data, splits.RANDOM))
    assert found
    for _, train, test in found:
        assert (data.gpu[train] == training_folds.GPU).all()
        assert not set(data.label_network[train]) & set(data.label_network[test])
    for _, train, test in training_folds.inner(data, found[0][1]):
        assert not set(data.label_network[train]) & set(data.label_network[test])
        assert set(train) | set(test) == set(found[0][1])


def test_shortening_keeps_the_sums_and_expensive_operators():
    random = np.random.default_rng(0)
    load = random.integers(1, 100, (50, tables.LOAD_COUNT)).astype(float)
    load[20] *= 1e4
    top, summed = shortening.shortened(load, 8)
    assert len(top) <= 8 and summed.sum(axis=0) == pytest.approx(load.sum(axis=0))
    assert 20 in top and (summed == load[20]).all(axis=1).any()
    kept, same = shortening.shortened(load, 50)
    assert (kept == np.arange(50)).all() and (same == load).all()


def test_every_operator_counts_once_in_its_windows(steps):
    types = np.arange(len(tables.operator_types()))
    chosen = jobs.steps(steps, np.arange(len(steps.step_ms))[-12:])
    part = ets.windows(steps, types, chosen)
    counted = np.bincount(part.row.numpy(), weights=part.weight.sum(dim=1).numpy())
    assert counted == pytest.approx([steps.sequence(n).stop - steps.sequence(n).start for n in chosen.network])


@pytest.mark.parametrize("model", (dnnperf.DnnPerf, driple.Driple))
def test_equal_operators_of_a_graph_are_one_node_and_change_nothing(steps, model):
    types = np.arange(len(tables.operator_types()))
    chosen = jobs.steps(steps, np.arange(0, len(steps.step_ms), 5))
    settings = {dnnperf.DnnPerf: dnnperf.Settings(rounds=2), driple.Driple: driple.Settings(rounds=2)}[model]
    merged, whole = (graph_batches.Reader(steps, types, rounds) for rounds in (2, 100))
    assert len(merged.part(chosen).type) < len(whole.part(chosen).type) / 2
    torch.manual_seed(0)
    net = model(dnnperf.scales(whole, chosen), settings).eval()
    with torch.no_grad():
        answers = [net(reader.part(chosen)).numpy() for reader in (merged, whole)]
    assert answers[0] == pytest.approx(answers[1], rel=1e-4)


def test_tiles_and_waves_of_a_product(steps):
    network = len(BLOCKS) * len(CHANNELS) - 1
    labels = np.flatnonzero((steps.label_network == network) & (steps.batch == 128))[:1]
    part = neusight.kernels(steps, neusight.kinds(steps), jobs.steps(steps, labels))
    forward = int(torch.nonzero(part.kind == neusight.DENSE)[0, 0])
    # 128 samples of 196 positions in tiles of 128 rows, and 128 channels in one tile: 196 tiles
    assert part.waves[forward] == np.ceil(196 / tables.gpu(training_folds.GPU)["sm_count"])
    flops = 2 * 128 * 128 * 196 * 128
    least_ms = flops / (tables.gpu(training_folds.GPU)["fp16_tflops"] * 1e9)
    assert part.roofline_ms[forward] >= least_ms


def test_the_exported_file_computes_what_the_model_does(steps, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    settings = dataclasses.replace(QUICK_SETTINGS["mdot as published"], schedule=Schedule(epochs=2, networks=4))
    train = np.arange(len(steps.step_ms))
    reader = mdot_as_published.Reader(steps, settings.capacity)
    form = mdot_as_published.form(steps, train, settings, reader)
    fitted = network_fitting.fitted(form, steps, train)
    model = export_published.Exported(fitted, jobs.steps(steps, train), -0.1, 0.2)
    inputs = export_published.job(steps, reader, 7, 128.0, False)
    export_published.write(model, inputs, tmp_path / "published.onnx")
    assert export_published.worst_difference(model, tmp_path / "published.onnx", steps, reader, np.random.default_rng(0)) < 1e-4
    newest = np.flatnonzero((steps.label_network == 7) & (steps.batch == 128) & ~steps.is_nhwc & (steps.software == "pt112"))
    expected = network_fitting.predict_labels(fitted, form, steps, newest)
    older = newest - np.searchsorted(np.unique(steps.software), "pt112")
    with torch.no_grad():
        step_ms, outside = model(*inputs)
        assert step_ms.numpy() == pytest.approx(expected * np.exp([-0.1, 0, 0.2]), rel=1e-4) and not outside.any()
        step_ms, outside = model(*export_published.job(steps, reader, 7, 128.0, False, 110))
        assert step_ms[1].numpy() == pytest.approx(
            network_fitting.predict_labels(fitted, form, steps, older)[0], rel=1e-4)
        outside = model(*inputs[:-1], torch.tensor(tables.gpu("A100-SXM-40GB").model_specs))[1]
        assert (outside > 0).tolist() == [reason == GPU_NOT_MEASURED for reason in range(8)]


def test_trials_resume_from_the_table_and_from_runs(tmp_path) -> None:
    row = dict(zip(trials.FIELDS, ("ets", "random", "fold 1", "0", "3", "9.50", "8.00", "1.00", "2.0", "4", "5.0", "6")))
    path = tmp_path / "trials.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, trials.FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([row, row | {"baseline": "mdot"}])
    np.savez(tmp_path / "run.npz", baseline="ets", split="random", fold="fold 1", seed=1, predicted_ms=np.array([1.1, 2.2]),
             measured_ms=np.array([1.0, 2.0]), epochs=3, fit_s=2.0, answer_us=7.0)
    assert trials.known(tmp_path / "none.csv") == {}
    found = trials.table(tmp_path, trials.known(path))
    assert found[0] == row and [each["seed"] for each in found] == ["0", "1"] and found[1]["mean"] == "10.00"


def test_trials_stop_at_the_least_inner_error_and_adapt_weights(steps):
    train, test = (np.flatnonzero((steps.label_network % 5 == 2) == is_out) for is_out in (False, True))
    form = perfnet.form(steps, train, perfnet.Settings(16, Schedule(rate=5e-3, networks=4)))
    model, epochs = trials.converged(form, steps, train, seed=1)
    assert trials.PATIENCE * trials.HALVINGS < epochs <= trials.MOST_EPOCHS
    found = network_fitting.predict_labels(model, form, steps, test)
    assert errors(found, steps.step_ms[test]).mape < MOST_PERCENT
    slower = dataclasses.replace(steps, step_ms=3 * steps.step_ms)
    few = train[np.isin(steps.label_network[train], np.unique(steps.label_network[train])[:6])]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    adapted, _ = trials.converged(form, slower, few, seed=1, start=model)
    e = errors(network_fitting.predict_labels(adapted, form, slower, test), slower.step_ms[test])
    assert e.mape < errors(found, slower.step_ms[test]).mape / 2
    assert all((before[name] == value).all() for name, value in model.state_dict().items())     # the source stays


@pytest.fixture
def two_gpus(steps):
    """The same steps, half of them on a GPU with twice the rates and the same balance, where they take half the time."""
    first = steps.gpu == training_folds.GPU
    labels = np.concatenate([np.flatnonzero(first)] * 2)
    gpu = np.repeat(np.array([training_folds.GPU, "twice"]), first.sum())
    per_label = {name: getattr(steps, name)[labels] for name in
                 ("label_network", "batch", "is_nhwc", "software", "run", "precision", "is_compiled", "step_ms")}
    halved = per_label.pop("step_ms") / np.where(gpu == "twice", 2, 1)
    return dataclasses.replace(steps, gpu=gpu, kind=np.full(len(labels), "backward"), step_ms=halved, **per_label)


def test_a_gpu_of_twice_the_size_takes_half_the_time(two_gpus, monkeypatch):
    twice = {"sm_count": 2, "memory_gbps": 2, "fp16_tflops": 2, "fp32_tflops": 2}
    numbers = tables.gpu(training_folds.GPU).model_specs
    bigger = tables.Gpu(("twice",), tuple(n * twice.get(c, 1) for c, n in zip(tables.MODEL_SPECS, numbers)))
    known = tables.gpu
    monkeypatch.setattr(tables, "gpu", lambda name: bigger if name == "twice" else known(name))
    one = two_gpus.software == "pt112"
    train, test = (np.flatnonzero(one & (two_gpus.gpu == name) & ~two_gpus.is_nhwc) for name in (training_folds.GPU, "twice"))
    assert habitat.predict(two_gpus, train, test) == pytest.approx(two_gpus.step_ms[test])
    with pytest.raises(ValueError, match="habitat: no GPU model has measured"):
        habitat.predict(two_gpus, train[1:], test)
