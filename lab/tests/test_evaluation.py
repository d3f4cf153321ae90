"""Tests evaluate's files, and the report and interval made from them."""

import numpy as np
import pytest
import torch
from scipy.stats import t

from mdot_lab.predictor import dataset, evaluation, export, interval, deploy_graphs, report, splits, tables
from mdot_lab.predictor.evaluation import fold_file, read_folds
from mdot_lab.predictor.ablations import FORMS, SHIPPED_FORM, shortened
from mdot_lab.predictor.labels import Network
from mdot_lab.predictor.deploy_graphs import Whole
from mdot_lab.predictor.final_model import HeldOut, fit_interval, interval_inputs, load, save
from mdot_lab.predictor.training import Schedule


@pytest.fixture
def folder(tmp_path):
    """Two folds of each split for the shipped form, 10 % below the measurements; one for another form, 100 % above."""

    def keep(form, split, fold, ratio):
        measured = np.array([10.0, 20.0])
        np.savez(fold_file(tmp_path, form, split, fold), fold=fold, label=np.arange(2), predicted_ms=ratio * measured,
                 measured_ms=measured, is_nhwc=np.array([False, True]))

    for split in splits.SPLITS:
        for fold in ("fold 1", "fold 2"):
            keep(SHIPPED_FORM, split, fold, 0.9)
        keep("roofline", split, "fold 1", 2.0)
    return tmp_path


def test_folds_are_read_back_by_name(folder):
    folds = read_folds(folder, SHIPPED_FORM, splits.RANDOM)
    assert list(folds) == ["fold 1", "fold 2"]
    assert folds["fold 1"].predicted_ms.tolist() == pytest.approx([9.0, 18.0])


def test_a_form_with_some_folds_is_compared_on_these_folds(folder, data):
    text = report.tables(folder, data)
    assert "roofline sum, fitted constants: 100.0 / 100.0 on fold 1, where the shipped form has 10.0 / 10.0." in text
    assert "| three-token fusion, also trained on inference: shipped | 2 | 10.0 | 10.0 |" in text


def test_the_interval_weights_all_splits_equally(folder):
    held = HeldOut(folder)
    assert held.residual.numpy() == pytest.approx(np.log(1 / 0.9))
    weights = [held.weight[held.split == split].sum().item() for split in splits.SPLITS]
    assert weights == pytest.approx([4.0] * len(splits.SPLITS))


def test_the_interval_is_fitted_to_the_inputs_of_the_exported_predictor(shipped, folder, data, monkeypatch):
    """The features are equal except for those that a split holds out, and for the distance to the remaining networks."""
    found, features = [], deploy_graphs.interval_features
    monkeypatch.setattr(deploy_graphs, "interval_features", lambda *x: found.append(features(*x)) or found[-1])
    inputs = interval_inputs(shipped, data, HeldOut(folder))[:, :2]     # two random labels
    for label in range(2):
        flags = {"batch": float(data.batch[label]), "is_amp": 1.0, "is_eager": 1.0, "torch": 111.0}
        with torch.no_grad():
            Whole(shipped)(*export.rows(data, int(data.label_network[label])), torch.tensor(export.configuration(**flags)),
                           torch.tensor(tables.gpu("RTX-3090").numbers))
    exported = torch.cat(found, dim=1)
    same = [i for name, i in interval.FEATURE.items() if name != "distance"]
    assert exported[same].numpy() == pytest.approx(inputs[same].numpy(), rel=1e-4, abs=1e-6)


def test_intervals_cover_labels_that_they_were_not_fitted_to(shipped, folder, data, tmp_path):
    data.label_network[1] ^= 1      # the networks are split into halves
    data.save(tmp_path / "data.npz")
    save(shipped, tmp_path / "members.pt")
    found = fit_interval(tmp_path / "members.pt", tmp_path / "data.npz", folder, tmp_path / "model.pt")
    assert set(found) == set(splits.SPLITS)
    model = load(tmp_path / "model.pt")
    assert model.trained_on.step_gpu_count == shipped.trained_on.step_gpu_count
    low, high = model.interval.half_widths(interval_inputs(model, data, HeldOut(folder)))
    assert (high > 0.99 * np.log(1 / 0.9)).all()      # all predictions were a tenth too short
    publishers = len(evaluation.read_folds(folder, SHIPPED_FORM, splits.SOURCES))
    above = t.ppf(0.95, publishers) * np.log(1 / 0.9)
    assert model.interval.publisher.tolist() == pytest.approx([0, above], rel=0.01)


def test_existing_folds_are_not_run_again(data, tmp_path, monkeypatch):
    runs = []

    def predict(data, train, test, epochs, seed):
        runs.append(len(test))
        return data.step_ms[test]

    monkeypatch.setattr(evaluation, "FORMS", (type(FORMS[0])("known", "known", predict),))
    data.save(tmp_path / "data.npz")
    for _ in range(2):
        evaluation.run(tmp_path / "data.npz", tmp_path / "results", None, [splits.RANDOM], None)
    assert sum(runs) == len(data.step_ms)


@pytest.fixture
def known_form(monkeypatch):
    """A form that predicts the measurements and records call sizes."""
    runs = []

    def predict(data, train, test, epochs, seed):
        runs.append((len(train), len(test)))
        return data.step_ms[test]

    monkeypatch.setattr(evaluation, "FORMS", (type(FORMS[0])("known", "known", predict),))
    return runs


def test_folds_with_equal_training_labels_share_a_training(make_sequence, make_label, tmp_path, known_form):
    sequences = {Network(name, 224): make_sequence(2) for name in ("resnet18", "vit_base")}
    labels = [make_label(name, 8, 1.0, kind=kind) for name in ("resnet18", "vit_base") for kind in ("train", "infer")]
    dataset.build(sequences, labels).save(tmp_path / "data.npz")
    evaluation.run(tmp_path / "data.npz", tmp_path / "results", None, [splits.FAMILIES, splits.INFERENCE_FAMILIES], None)
    assert known_form == [(2, 2), (2, 2)]
    for split in (splits.FAMILIES, splits.INFERENCE_FAMILIES):
        assert [len(fold.label) for fold in read_folds(tmp_path / "results", "known", split).values()] == [1, 1]


def test_fewer_epochs_keep_the_epochs_of_each_draw():
    schedule = Schedule(epochs=50, draws=4)
    assert shortened(schedule, None) == schedule
    assert shortened(schedule, 26) == Schedule(epochs=26, draws=2)
    assert shortened(schedule, 1).draws == 1


def test_epochs_and_seed_reach_each_training(data, tmp_path, monkeypatch):
    asked = []

    def predict(data, train, test, epochs, seed):
        asked.append((epochs, seed))
        return data.step_ms[test]

    monkeypatch.setattr(evaluation, "FORMS", (type(FORMS[0])("known", "known", predict),))
    data.save(tmp_path / "data.npz")
    evaluation.run(tmp_path / "data.npz", tmp_path / "results", None, [splits.RANDOM], ["fold 1"], epochs=26, seed=3)
    assert asked == [(26, 3)]


def test_inner_folds_are_saved_apart_from_outer_ones(data, tmp_path, known_form):
    data.save(tmp_path / "data.npz")
    evaluation.run(tmp_path / "data.npz", tmp_path / "results", None, [splits.RANDOM], ["fold 1"], inner_count=2)
    assert not read_folds(tmp_path / "results", "known", splits.RANDOM)
    found = read_folds(tmp_path / "results", "known", evaluation.inner(splits.RANDOM))
    assert set(found) == {"inner 1 of fold 1", "inner 2 of fold 1"}
    outer_test = next(test for name, _, test in splits.folds(data, splits.RANDOM) if name == "fold 1")
    for fold in found.values():
        assert not set(fold.label) & set(outer_test)


def test_the_report_has_bias_and_coverage_by_publisher(folder, data):
    split, fold, label = np.array([splits.RANDOM] * 2), np.array(["fold 1"] * 2), np.arange(2)
    evaluation.write_bounds(folder, split, fold, label, np.array([8.0, 8.0]), np.array([11.0, 9.0]))
    text = report.tables(folder, data)
    assert f"| {splits.RANDOM} | {splits.TIMM} | 4 | -10.0 | 10.0 | 10.0 | 50 |" in text
    assert f"| {splits.FAMILIES} | {splits.TIMM} | 4 | -10.0 | 10.0 | 10.0 |  |" in text


def test_choices_are_reported_from_inner_folds_alone(folder):
    assert report.choices(folder).count("\n") == 1      # head and rule only
    np.savez(fold_file(folder, SHIPPED_FORM, evaluation.inner(splits.RANDOM), "inner 1 of fold 1"), fold="inner 1 of fold 1",
             label=np.arange(2), predicted_ms=np.array([11.0, 22.0]), measured_ms=np.array([10.0, 20.0]),
             is_nhwc=np.array([False, True]))
    assert "shipped | 1 | 2 | +10.0 | 10.0 | 10.0 |" in report.choices(folder)


def test_joined_folds_share_a_training_that_leaves_out_all_of_them():
    labels = np.arange(10)

    def task(fold, *test):
        return evaluation._Task("families", fold, np.setdiff1d(labels, test), np.array(test))

    groups = [[task("a", 0, 1, 2, 3)], [task("b", 4)], [task("c", 5, 6)]]
    joined = evaluation._joined(groups, 2)
    assert [[task.fold for task in group] for group in joined] == [["a"], ["c", "b"]]
    assert joined[1][0].train.tolist() == joined[1][1].train.tolist() == [0, 1, 2, 3, 7, 8, 9]
    assert joined[0][0].test.tolist() == [0, 1, 2, 3]
