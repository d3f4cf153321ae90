"""Tables that examples/scheduler reads."""

import csv

import numpy as np
import pytest

from predictor import scheduler, splits
from predictor.evaluation import fold_file
from predictor.forms import SHIPPED_MEMBERS


def keep(folder, data, form, fold, label, ratio):
    np.savez(fold_file(folder, form, splits.FAMILIES, fold), fold=fold, label=label,
             predicted_ms=ratio * data.step_ms[label], measured_ms=data.step_ms[label], is_nhwc=data.is_nhwc[label])


@pytest.fixture
def results(data, tmp_path):
    """Two families left out once; the shipped form is right, one other twice too slow, one has a family only."""
    first, second = np.array([0, 1]), np.array([2, 3, 4])
    for member in SHIPPED_MEMBERS:
        keep(tmp_path, data, member, "a", first, 1.0)
        keep(tmp_path, data, member, "b", second, 1.0)
    keep(tmp_path, data, "roofline", "a", first, 2.0)
    keep(tmp_path, data, "roofline", "b", second, 2.0)
    keep(tmp_path, data, "mean", "a", first, 3.0)
    return tmp_path


def test_folds_have_a_row_a_left_out_label_and_a_column_a_form(data, results):
    header, rows = scheduler.folds(results, data, splits.FAMILIES)
    assert header[:3] == ["network", "step_ms", "mdot"] and "roofline" in header and "mean" not in header
    assert [row[0] for row in rows] == [data.network_name[data.label_network[i]] for i in range(5)]
    at = header.index("roofline")
    for i, row in enumerate(rows):
        assert float(row[1]) == pytest.approx(data.step_ms[i], rel=1e-5)
        assert float(row[2]) == pytest.approx(data.step_ms[i], rel=1e-5)
        assert float(row[at]) == pytest.approx(2 * data.step_ms[i], rel=1e-5)


def test_folds_of_another_data_set_are_refused(data, results):
    data.step_ms[0] *= 2
    with pytest.raises(ValueError, match="another data set"):
        scheduler.folds(results, data, splits.FAMILIES)
    with pytest.raises(ValueError, match="has no folds"):
        scheduler.folds(results / "nowhere", data, splits.FAMILIES)


LABELS = "model,img_size,batch_size,layout,torch,run,step_time_ms,param_count_M\n"


def test_newer_networks_are_those_that_were_not_seen_and_have_graphs(tmp_path):
    (tmp_path / "seen.csv").write_text(LABELS + "old,224,64,nchw,pt111,r,10,1\n")
    (tmp_path / "new.csv").write_text(LABELS + "old,288,64,nchw,pt112,r,11,1\nnew,224,32,nhwc,pt112,r,12.5,1\n"
                                               "lost,224,32,nchw,pt112,r,13,1\n")
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    for name in ("old.288.onnx", "new.224.onnx"):
        (graphs / name).touch()
    rows = scheduler.newer(tmp_path / "new.csv", tmp_path / "seen.csv", graphs, tmp_path / "out.csv")
    assert rows == [["new", "graphs/new.224.onnx", "RTX-3090", 32, "amp", "nhwc", "sgd", 1, "12.5"]]
    assert scheduler.write(tmp_path / "out.csv", scheduler.MEASURED, rows) == 1
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as lines:
        assert list(csv.DictReader(lines))[0]["ms"] == "12.5"


def test_other_gpus_have_their_arithmetic(tmp_path):
    graphs, results = tmp_path / "graphs", tmp_path / "results"
    graphs.mkdir()
    results.mkdir()
    (graphs / "tv_resnet50.224.onnx").touch()
    for name in ("A100-SXM4-40GB_1_gpus__float_model_train_benchmark.csv", "TITAN V_single_model_train_benchmark.csv",
                 "TITAN V_1_gpus__half_model_train_benchmark.csv"):
        (results / name).write_text("resnet50,vgg11\n3,1\n1,1\n2,1\n")
    rows = scheduler.other_gpus(results, graphs, tmp_path / "out.csv")
    assert [row[2] for row in rows] == ["TITAN-V", "TITAN-V", "A100-SXM-40GB"]
    assert [row[4] for row in rows] == ["fp32", "amp", "tf32"]
    assert all(row[1] == "graphs/tv_resnet50.224.onnx" and row[3] == 12 and row[8] == "2" for row in rows)
