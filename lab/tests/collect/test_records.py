"""Tests part files and the record schema."""

import gzip
import json

import pytest

from mdot_lab.collect import records

KEY = "torch/a|s1|b1|fp32|nchw|sgd|foreach"


def test_a_complete_record_is_valid(make_record):
    assert records.faults(make_record(KEY)) == []


def test_an_oom_record_needs_no_times(make_record):
    record = {name: value for name, value in make_record(KEY, status="oom").items() if not name.endswith("_ms")}
    assert records.faults(record) == []


@pytest.mark.parametrize("fields, fault", [
    ({"status": "fine"}, "status 'fine'"),
    ({"schema": 99}, "schema 99"),
    ({"batch": "8"}, "batch is str"),
    ({"step_ms": {"median": 1.0}}, "step_ms has no iqr"),
])
def test_a_broken_record_reports_its_faults(make_record, fields, fault):
    assert any(fault in found for found in records.faults(make_record(KEY, **fields)))


def test_a_missing_field_is_reported_by_name(make_record):
    record = make_record(KEY)
    del record["optimizer_ms"]
    assert records.faults(record) == ["optimizer_ms is missing"]


def test_written_records_are_read_back_unchanged(tmp_path, make_record):
    writer = records.Writer(tmp_path / "new" / "part.jsonl")
    writer.write(make_record(KEY))
    # The record is readable before the file is closed, because writes are unbuffered.
    assert list(records.read(tmp_path / "new" / "part.jsonl")) == [make_record(KEY)]
    writer.close()


def test_a_truncated_line_is_skipped_and_terminated(tmp_path, make_record):
    path = tmp_path / "part.jsonl"
    path.write_text(json.dumps(make_record(KEY)) + "\n" + '{"key": "tor')
    writer = records.Writer(path)
    writer.write(make_record(KEY, repeat=1))
    writer.close()
    assert [r["repeat"] for r in records.read(path)] == [0, 1]


def test_folders_and_gzip_files_are_read_and_missing_paths_are_empty(tmp_path, make_record):
    (tmp_path / "a.jsonl").write_text(json.dumps(make_record(KEY)) + "\n")
    (tmp_path / "notes.txt").write_text("no record")
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as packed:
        packed.write(json.dumps(make_record(KEY, repeat=1)) + "\n")
    assert len(list(records.read_all([tmp_path, tmp_path / "none"]))) == 2
