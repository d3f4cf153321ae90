"""Tests tables of held-out labels, which the simulator reads."""

import numpy as np
import pytest

from mdot_lab.predictor import heldout_predictions, splits
from mdot_lab.predictor.evaluation import fold_file, read_folds
from mdot_lab.predictor.ablations import SHIPPED_FORM


def keep(folder, data, form, fold, label, ratio):
    np.savez(fold_file(folder, form, splits.FAMILIES, fold), fold=fold, label=label,
             predicted_ms=ratio * data.step_ms[label], measured_ms=data.step_ms[label], is_nhwc=data.is_nhwc[label])


@pytest.fixture
def results(data, tmp_path):
    """Two families held out once. The shipped form is exact, another is too slow by a factor of two, and one has a single
    family."""
    first, second = np.array([0, 1]), np.array([2, 3, 4])
    keep(tmp_path, data, SHIPPED_FORM, "a", first, 1.0)
    keep(tmp_path, data, SHIPPED_FORM, "b", second, 1.0)
    keep(tmp_path, data, "roofline", "a", first, 2.0)
    keep(tmp_path, data, "roofline", "b", second, 2.0)
    keep(tmp_path, data, "mean", "a", first, 3.0)
    return tmp_path


def test_tables_have_a_row_per_held_out_label_and_a_column_per_form(data, results):
    header, rows = heldout_predictions.export_cv([results], data, splits.FAMILIES)
    of_label = len(heldout_predictions.LABEL)
    assert header[of_label:of_label + 2] == ["step_ms", "mdot"] and "roofline" in header and "mean" not in header
    assert [row[:of_label][-1] for row in rows] == ["a", "a", "b", "b", "b"]
    assert rows[0][1:6] == [data.gpu[0], data.precision[0], f"{data.batch[0]:g}", "nchw", data.software[0]]
    assert [row[0] for row in rows] == [data.network_name[data.label_network[i]] for i in range(5)]
    at = header.index("roofline")
    for i, row in enumerate(rows):
        assert float(row[of_label]) == float(row[of_label + 1]) == pytest.approx(data.step_ms[i], rel=1e-5)
        assert float(row[at]) == pytest.approx(2 * data.step_ms[i], rel=1e-5)


def test_baselines_of_another_folder_are_columns_too(data, results, tmp_path):
    other = tmp_path / "baselines"
    other.mkdir()
    for fold, label in (("a", np.array([0, 1])), ("b", np.array([2, 3, 4]))):
        keep(other, data, "mdot as published", fold, label, 3.0)
    header, rows = heldout_predictions.export_cv([results, other], data, splits.FAMILIES)
    assert float(rows[0][header.index("mdot_as_published")]) == pytest.approx(3 * data.step_ms[0], rel=1e-5)


def test_columns_follow_the_labels_of_the_first_folder(data, results, tmp_path):
    """A baseline may save a fold's labels in another order."""
    other = tmp_path / "baselines"
    other.mkdir()
    for fold, label in (("a", np.array([1, 0])), ("b", np.array([4, 2, 3]))):
        keep(other, data, "mdot as published", fold, label, 3.0)
    header, rows = heldout_predictions.export_cv([results, other], data, splits.FAMILIES)
    for i, row in enumerate(rows):
        assert float(row[header.index("mdot_as_published")]) == pytest.approx(3 * data.step_ms[i], rel=1e-5)


def test_folds_with_other_labels_are_refused(data, results, tmp_path):
    other = tmp_path / "baselines"
    other.mkdir()
    keep(other, data, "mdot as published", "a", np.array([0, 1]), 3.0)
    for label in (np.array([2, 3]), np.array([2, 3, 5]), np.array([2, 2, 3])):
        keep(other, data, "mdot as published", "b", label, 3.0)
        with pytest.raises(ValueError, match="mdot as published, fold b.* other labels"):
            heldout_predictions.export_cv([results, other], data, splits.FAMILIES)


def test_folds_of_another_data_set_are_refused(data, results):
    data.step_ms[0] *= 2
    with pytest.raises(ValueError, match="another data set"):
        heldout_predictions.export_cv([results], data, splits.FAMILIES)
    with pytest.raises(ValueError, match="has no folds"):
        heldout_predictions.export_cv([results / "nowhere"], data, splits.FAMILIES)


def test_import_cv_restores_the_folds(data, results, tmp_path):
    data.step_ms[1] = data.step_ms[0]
    data.batch[1] = data.batch[0]       # two runs of one job may take equal time
    keep(results, data, SHIPPED_FORM, "a", np.array([0, 1]), 1.0)
    keep(results, data, "roofline", "a", np.array([0, 1]), 2.0)
    table, again = tmp_path / "families.csv", tmp_path / "again"
    heldout_predictions.write(table, *heldout_predictions.export_cv([results], data, splits.FAMILIES))
    assert heldout_predictions.import_cv(table, data, splits.FAMILIES, again) == 5
    for form in (SHIPPED_FORM, "roofline"):
        before, after = (read_folds(folder, form, splits.FAMILIES) for folder in (results, again))
        assert before.keys() == after.keys()
        for name, fold in before.items():
            assert after[name].label.tolist() == fold.label.tolist()
            assert after[name].predicted_ms == pytest.approx(fold.predicted_ms, rel=1e-5)
    data.step_ms[2] *= 2
    with pytest.raises(ValueError, match="line 4: the data set has no such label"):
        heldout_predictions.import_cv(table, data, splits.FAMILIES, again)
