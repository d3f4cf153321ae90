"""Tests that records become table rows for mdot."""

import csv

from mdot_lab.collect import measurements_csv

A = "torch/a|s64|b8|bf16|nhwc|sgd_momentum|foreach"
B = "torch/b|s1|b1|fp32|nchw|adamw|foreach"


def make(tmp_path, make_record, *made):
    graphs = tmp_path / "graphs"
    graphs.mkdir(exist_ok=True)
    (graphs / "torch-a.s64.b2.onnx").touch()
    return measurements_csv.rows(made, graphs, tmp_path / "measured.csv", "2")


def test_a_record_becomes_a_row_with_mdots_option_names(tmp_path, make_record):
    times = {"median": 12.3456789, "iqr": 0.1, "min": 12.0, "mean": 12.5}
    record = make_record(A, architecture="torch/a", size=64, batch=8, precision="bf16", channels_last=True,
                         optimizer="sgd_momentum", environment={"gpu": "NVIDIA H200"}, step_ms=times)
    found, missing = make(tmp_path, make_record, record)
    assert missing == []
    assert found == [("torch/a.s64", "graphs/torch-a.s64.b2.onnx", "NVIDIA H200", 8, "amp-bf16", "nhwc", "sgd", 1, "12.3457")]
    measurements_csv.write(found, tmp_path / "measured.csv")
    with open(tmp_path / "measured.csv", newline="", encoding="utf-8") as lines:
        read = list(csv.DictReader(lines))
    assert read[0]["ms"] == "12.3457" and tuple(read[0]) == measurements_csv.COLUMNS
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graphs", "measured.csv"]


def test_repeats_and_failed_records_give_no_row(tmp_path, make_record):
    plain = dict(architecture="torch/a", size=64)
    found, missing = make(tmp_path, make_record, make_record(A, status="oom", **plain), make_record(A, repeat=1, **plain),
                          make_record(A, status="over_cap", **plain), make_record(A, status="error", **plain))
    assert found == [] and missing == []


def test_a_missing_graph_is_reported_by_name(tmp_path, make_record):
    found, missing = make(tmp_path, make_record, make_record(B, architecture="torch/b", size=1))
    assert found == [] and missing == ["torch/b at 1 has no graph torch-b.s1.b2.onnx"]


def test_every_precision_and_optimizer_has_a_name(make_record):
    from mdot_lab.collect.measured_configuration import OPTIMIZERS, PRECISIONS

    assert set(PRECISIONS) == set(measurements_csv.PRECISIONS)
    assert {name for name, _ in OPTIMIZERS} == set(measurements_csv.OPTIMIZERS)
