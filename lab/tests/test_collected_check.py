"""Compares predictions with records by mdot_lab.collect."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("mdot")

from mdot_lab.checks.collected import cublas_bytes, errors, mark_bound, summary


def row(key, measured, predicted, **more):
    return {"key": key, "step_ms": measured, "predicted_ms": predicted, "lower_ms": 0.5 * predicted, "upper_ms": 2 * predicted, **more}


def test_errors_are_relative_to_the_measurement():
    found = errors([row("a", 100.0, 90.0), row("b", 100.0, 130.0), row("c", 100.0, 20.0)], "step_ms", "predicted_ms",
                   ("lower_ms", "upper_ms"))
    assert (found.count, found.mean, found.median, found.bias) == (3, pytest.approx(40), pytest.approx(30), pytest.approx(-10))
    assert found.inside == pytest.approx(200 / 3)


def test_rows_without_the_measurement_are_left_out():
    rows = [row("a", 100.0, 90.0, joules=None), row("b", 100.0, 90.0, joules=10.0, predicted_joules=12.0)]
    assert errors(rows, "joules", "predicted_joules").count == 1
    assert errors(rows[:1], "joules", "predicted_joules") is None


def test_the_gpu_bounds_steps_that_grew_with_the_batch():
    rows = [row("net|s224|b1|fp32", 10.0, 9.0), row("net|s224|b8|fp32", 14.0, 9.0), row("net|s224|b64|fp32", 30.0, 9.0),
            row("other|s224|b64|fp32", 30.0, 9.0)]
    mark_bound(rows)
    assert [r["bound"] for r in rows] == ["host", "host", "gpu", "host"]
    lines = summary(rows).splitlines()
    assert "| training step | bound by the GPU | 1 | 70.0 | 70.0 | -70.0 | 0 |" in lines


@pytest.mark.parametrize("capability, mebibytes", [("8.0", 16.25), ("9.0", 64.0)])
def test_workspaces_of_cublas(capability, mebibytes):
    assert cublas_bytes({"environment": {"gpu_capability": capability}}) == mebibytes * 2**20
