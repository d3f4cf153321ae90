"""checks/intervals.py: what the law of intervals forbids."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("mdot")

from mdot_lab.checks import intervals  # noqa: E402
from mdot_lab.predictor.labels import Network  # noqa: E402


def summary(inside: int, outside: int, half_width: float) -> intervals.Row:
    """Measured steps are spread evenly over a factor of e in both directions, except those outside."""
    spread = [math.exp(2 * i / (inside - 1) - 1) for i in range(inside)] + [math.exp(half_width + 0.1)] * outside
    known = [intervals.Known("regime", ms, 1.0, math.exp(-half_width), math.exp(half_width)) for ms in spread]
    return intervals.summary("regime", known)


@pytest.mark.parametrize("inside, outside, half_width, fault", [
    (37, 3, 1.05, ""), (30, 10, 1.05, "too few inside"), (37, 3, 1.4, "too wide"), (100, 0, 1.01, "too many inside"),
    (40, 0, 1.01, "")])
def test_the_law_names_its_fault(inside: int, outside: int, half_width: float, fault: str) -> None:
    assert summary(inside, outside, half_width).fault == fault


def test_small_regimes_are_not_judged() -> None:
    assert not intervals.is_judged(summary(29, 0, 1.01)) and intervals.is_judged(summary(30, 0, 1.01))


def test_a_regime_states_its_figures() -> None:
    row = summary(19, 1, 1.0)
    assert row.inside == pytest.approx(95) and row.width == pytest.approx(math.exp(2))
    assert row.score == pytest.approx(2 + 20 * 0.1 / 20)
    assert "| 20 |" in intervals.line(row) and "fewer than 30" in intervals.line(row)


def test_steps_without_a_graph_are_counted_by_publisher(tmp_path: Path) -> None:
    reader = object.__new__(intervals.Reader)
    reader.graphs, reader.jobs, reader.skipped = tmp_path, {}, Counter()
    for publisher in ("NVIDIA", "timm", "NVIDIA"):
        assert not reader.has(Network("absent", 224), publisher)
    assert reader.skipped == {"NVIDIA": 2, "timm": 1}
