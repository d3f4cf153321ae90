"""Tests that merging part files gives the same file for the same records, with a summary."""

import gzip
import json

from mdot_lab.collect import records
from mdot_lab.collect.merge_records import merge, repeat_differences, summary

A = "torch/a|s1|b1|fp32|nchw|sgd|foreach"
B = "torch/b|s1|b1|fp32|nchw|sgd|foreach"


def timed(ms):
    return {"median": ms, "iqr": 0.1, "min": ms, "mean": ms}


def test_records_are_sorted_and_kept_once(tmp_path, make_record):
    out = tmp_path / "all.jsonl.gz"
    merged, refused = merge([make_record(B), make_record(A, time_unix=2.0), make_record(A, time_unix=1.0)], out)
    assert [(r["key"], r["time_unix"]) for r in merged] == [(A, 1.0), (B, 100.0)] and refused == []
    assert list(records.read(out)) == merged
    assert [path.name for path in tmp_path.iterdir()] == ["all.jsonl.gz"]


def test_a_measurement_wins_over_an_earlier_failure(tmp_path, make_record):
    both = [make_record(A, status="over_cap", time_unix=1.0), make_record(A, time_unix=2.0)]
    merged, _ = merge(both, tmp_path / "x.gz")
    assert [r["status"] for r in merged] == ["ok"]


def test_gpu_models_and_repeats_are_merged_separately(tmp_path, make_record):
    other = {"gpu": "H", "torch": "2"}
    merged, _ = merge([make_record(A), make_record(A, repeat=1), make_record(A, environment=other)], tmp_path / "x.gz")
    assert len(merged) == 3


def test_broken_records_are_omitted_and_reported(tmp_path, make_record):
    merged, refused = merge([make_record(A, batch="one"), make_record(B)], tmp_path / "x.gz")
    assert len(merged) == 1 and refused == [f"{A}: batch is str"]


def test_the_same_records_give_the_same_bytes(tmp_path, make_record):
    both = [make_record(A), make_record(B)]
    merge(both, tmp_path / "1.gz")
    merge(reversed(both), tmp_path / "2.gz")
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()
    assert len(gzip.open(tmp_path / "1.gz", "rt").read().splitlines()) == 2


def test_noise_is_the_difference_between_processes(make_record):
    pair = [make_record(A, step_ms=timed(10.0)), make_record(A, repeat=1, step_ms=timed(10.5), process="b")]
    assert [round(d, 6) for d in repeat_differences(pair)] == [0.05]
    assert repeat_differences([pair[0], {**pair[1], "process": "a"}]) == []


def test_summary_counts_by_family(make_record):
    text = summary([make_record(A, family="f"), make_record(B, family="f", status="oom"),
                    make_record(A, family="f", repeat=1, step_ms=timed(10.1), process="b")])
    assert "| f | 1 | 1 | 1 | 0 | 0 | 10.00 |" in text
    assert "median difference 1.00 %" in text
    json.dumps(text)
