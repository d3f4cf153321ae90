"""What evaluate keeps, and what is made of it."""

import numpy as np
import pytest

from predictor import evaluation, report, splits
from predictor.evaluation import fold_file, read_folds
from predictor.forms import FORMS, SHIPPED_FORM
from predictor.shipped import HeldOut


@pytest.fixture
def folder(tmp_path):
    """Two folds of each split for the shipped form, 10 % below what was measured; one for another form, 100 % above."""

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


def test_a_form_of_some_folds_stands_beside_the_shipped_one_there(folder, data):
    text = report.tables(folder, data)
    assert "roofline sum, fitted constants: 100.0 / 100.0 on fold 1, where the shipped form has 10.0 / 10.0." in text
    assert "| three-token fusion, and inference: shipped | 2 | 10.0 | 10.0 |" in text


def test_the_interval_takes_all_splits_alike(folder):
    held = HeldOut(folder)
    assert held.residual.numpy() == pytest.approx(np.log(1 / 0.9))
    assert [held.weight[held.split == split].sum().item() for split in splits.SPLITS] == pytest.approx([4.0] * len(splits.SPLITS))


def test_what_is_there_is_not_run_again(data, tmp_path, monkeypatch):
    runs = []

    def predict(data, train, test):
        runs.append(len(test))
        return data.step_ms[test]

    monkeypatch.setattr(evaluation, "FORMS", (type(FORMS[0])("known", "known", predict),))
    data.save(tmp_path / "data.npz")
    for _ in range(2):
        evaluation.run(tmp_path / "data.npz", tmp_path / "results", None, [splits.RANDOM], None)
    assert sum(runs) == len(data.step_ms)
