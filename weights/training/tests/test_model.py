"""The predictor's parts, its training and its exported form, on networks whose time is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from predictor import batches, export, splits, tables, training
from predictor.exported import Exported
from predictor.interval import FEATURES, Interval
from predictor.model import Options, Predictor, smooth_maximum
from predictor.range import TrainingRange
from predictor.training import Schedule

SMALL = Options(width=8, hidden=8)
SHORT = Schedule(epochs=40, parts=3, least_networks=1)


@pytest.fixture
def all_labels(data):
    return np.arange(len(data.step_ms))


@pytest.fixture
def exported(data, all_labels):
    torch.manual_seed(0)
    members = [Predictor(SMALL).eval() for _ in range(2)]
    trained_on = TrainingRange()
    trained_on.fit(data, all_labels, torch.arange(len(tables.operator_types())))
    return Exported(members, Interval(), trained_on).eval()


def test_smooth_maximum_is_the_larger_where_they_differ_and_grows_where_they_do_not():
    a, b = torch.tensor([[100.0]]), torch.tensor([[1.0]])
    assert smooth_maximum(a, b).item() == pytest.approx(100, rel=1e-3)
    assert smooth_maximum(a, a).item() == pytest.approx(100 * 2**0.25, rel=1e-3)


def test_an_untrained_predictor_is_its_roofline(data, all_labels):
    model = Predictor(SMALL).eval()
    with_correction = training.predict_labels(model, data, all_labels)
    without = Predictor(replace(SMALL, use_correction=False)).eval()
    assert np.allclose(with_correction, training.predict_labels(without, data, all_labels), rtol=1e-5)


@pytest.mark.parametrize("parts", [{}, {"use_fusion": False}, {"use_position": True}, {"use_encoder": True}])
def test_training_learns_times_that_follow_the_work(data, all_labels, parts):
    model = training.fit(data, all_labels, replace(SMALL, **parts), SHORT)
    ratio = training.predict_labels(model, data, all_labels) / data.step_ms
    assert np.median(np.abs(ratio - 1)) < 0.15


def test_networks_that_were_left_out_are_predicted(data):
    _, train, test = next(iter(splits.folds(data, splits.RANDOM)))
    model = training.fit(data, train, SMALL, SHORT)
    ratio = training.predict_labels(model, data, test) / data.step_ms[test]
    assert np.median(np.abs(ratio - 1)) < 0.25


def test_the_same_seed_trains_the_same_predictor(data, all_labels):
    one, two = (training.fit(data, all_labels, SMALL, Schedule(epochs=2, parts=3)) for _ in range(2))
    assert np.array_equal(training.predict_labels(one, data, all_labels), training.predict_labels(two, data, all_labels))


def test_runs_of_one_setup_are_merged_into_their_geometric_mean(make_sequence, make_label):
    from predictor import dataset
    from predictor.labels import Network

    data = dataset.build({Network("a", 224): make_sequence(2)}, [make_label("a", 8, 4.0), make_label("a", 8, 9.0)])
    batch = batches.make_merged(data, np.arange(2))
    assert batch.step_ms.tolist() == [[pytest.approx(6.0)]]
    assert batch.weight.tolist() == [[2.0]]


def test_types_of_few_networks_share_the_row_of_unknown_ones(data, all_labels):
    model = training.fit(data, all_labels, SMALL, Schedule(epochs=1, parts=2, least_networks=10**6))
    assert model.row_of_type.unique().tolist() == [tables.UNKNOWN_TYPE]


def test_quantiles_ascend(exported, data):
    step_ms, _ = exported(*export.job(data, 0, 64.0, "RTX-3090"))
    assert (step_ms.diff() > 0).all()


def test_equal_operators_may_be_merged(exported, data):
    merged = export.job(data, 0, 64.0, "RTX-3090")
    operators = data.operator[data.sequence(0)]
    apart = (torch.tensor(data.type[operators]), *(torch.tensor(x[operators], dtype=torch.float32)
             for x in (data.setting, data.load)), torch.ones(len(operators)), *merged[4:])
    assert torch.allclose(exported(*merged)[0], exported(*apart)[0], rtol=1e-4)


def test_steps_take_longer_with_every_sample(exported, data):
    times = [exported(*export.job(data, 3, float(batch), "RTX-3090"))[0][1].item() for batch in (1, 2, 3, 5, 8, 13, 33, 100, 700)]
    assert all(a < b for a, b in zip(times, times[1:]))


def test_faster_gpus_take_less_time(exported, data):
    at = {name: exported(*export.job(data, 0, 1024.0, name))[0][1].item() for name in ("T4", "RTX-3090", "H100")}
    assert at["T4"] > at["RTX-3090"] > at["H100"]


def test_labelled_jobs_are_inside_the_training_range(exported, data):
    assert exported(*export.job(data, 0, 128.0, "RTX-3090"))[1].item() == 0


@pytest.mark.parametrize("batch, gpu, flags", [
    (4096.0, "RTX-3090", {}), (1.0, "RTX-3090", {}), (128.0, "A100", {}), (128.0, "RTX-3090", {"gpu_count": 4.0}),
    (128.0, "RTX-3090", {"is_amp": 0.0, "is_fp32": 1.0}), (128.0, "RTX-3090", {"is_adam": 1.0}),
])
def test_other_jobs_are_outside(exported, data, batch, gpu, flags):
    assert exported(*export.job(data, 0, batch, gpu, **flags))[1].item() > 0


def test_unknown_operators_are_outside(exported, data):
    types, *others = export.job(data, 0, 128.0, "RTX-3090")
    assert exported(torch.zeros_like(types), *others)[1].item() > 0


def test_onnx_runtime_agrees(exported, data, tmp_path):
    pytest.importorskip("onnxruntime")
    assert export.export(exported, data, tmp_path / "p.onnx") < export.TOLERANCE


def test_networks_that_shrink_with_the_batch_are_found(data, monkeypatch):
    batch_of = tables.CONFIGURATION.index("batch")

    def opened(path):
        return lambda *inputs: [np.full(3, 1 / inputs[4][batch_of] if inputs[4][batch_of] > 64 else 1.0), np.zeros(1)]

    monkeypatch.setattr(export, "_open", opened)
    assert len(export.shrinking_networks(None, data, "RTX-3090")) == data.network_count
    monkeypatch.setattr(export, "_open", lambda path: lambda *inputs: [np.full(3, float(inputs[4][batch_of])), np.zeros(1)])
    assert export.shrinking_networks(None, data, "RTX-3090") == []


def test_the_interval_covers_what_it_was_fitted_to():
    random = np.random.default_rng(0)
    x = torch.tensor(random.uniform(0, 1, (1000, FEATURES)), dtype=torch.float32)
    x[:, 0] = 1
    residual = torch.tensor(random.normal(0, 0.05 + 0.2 * x[:, 1].numpy()), dtype=torch.float32)
    interval = Interval()
    interval.fit(x, residual, torch.ones(1000))
    width = interval.half_widths(x).detach()
    inside = (residual > -width[:, 0]) & (residual < width[:, 1])
    assert inside.float().mean().item() == pytest.approx(0.9, abs=0.03)
    hard = x[:, 1] > 0.7
    assert width[hard].mean() > 1.5 * width[x[:, 1] < 0.3].mean()
    assert inside[hard].float().mean().item() == pytest.approx(0.9, abs=0.08)
