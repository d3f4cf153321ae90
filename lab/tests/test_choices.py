"""checks/choices.py: how layouts are compared. No data."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("mdot")
pytest.importorskip("torch")

from mdot_lab.checks import choices  # noqa: E402


def judged(measured: float, predicted: float, **options: int) -> choices.Judged:
    options = {"batch": 8, "gpus": 8, **options}
    return choices.Judged(choices.Layout(("source", "network", "A100", 8), "A100", options, measured), predicted, True)


def test_samples_are_those_of_all_workers() -> None:
    for tensor in (1, 2, 4):
        for stages in (1, 2):
            for accumulate in (None, 1, 3):
                options = {"batch": 12, "gpus": 16, "tensor_parallel": tensor, "pipeline_parallel": stages, "accumulate": accumulate,
                           "micro_batches": 4 if stages > 1 else None, "expert_parallel": 2}
                assert choices.samples(options) == 12 * (accumulate or 1) * 16 // (tensor * stages)
                assert choices.micro_batch(options) == (3 if stages > 1 else 12)


def test_right_orders_and_regret_follow_the_predicted_order() -> None:
    draw = random.Random(48)
    for _ in range(100):
        contest = [judged(draw.uniform(1, 3), draw.choice((0, draw.uniform(1, 3)))) for _ in range(draw.randint(2, 9))]
        known = [one for one in contest if one.sample_ms]
        row = choices.line("source", [contest], {})
        differing = [(a, b) for a in known for b in known if b.layout.sample_ms > 1.1 * a.layout.sample_ms]
        assert row.pairs == len(differing) and row.right == sum(a.sample_ms < b.sample_ms for a, b in differing)
        assert row.refused == len(contest) - len(known)
        if len(known) > 1:
            best = min(one.layout.sample_ms for one in known)
            chosen = min(known, key=lambda one: one.sample_ms).layout.sample_ms
            assert row.regrets == [pytest.approx(chosen / best)] and row.slower[0] >= 1
        perfect = [one._replace(sample_ms=one.layout.sample_ms) for one in contest]
        row = choices.line("source", [perfect], {})
        assert row.right == row.pairs and row.regrets == [1] and row.slower == [1]


def test_a_faster_plan_lengthens_the_published_best() -> None:
    assert choices.line("source", [[judged(1, 2), judged(2, 4)]], {0: 1.0}).slower == [2]
    assert choices.line("source", [[judged(1, 2), judged(2, 4)]], {0: 9.0}).slower == [1]


def test_equal_layouts_count_once_with_their_median() -> None:
    layouts = [judged(ms, 1).layout for ms in (1.0, 5.0, 2.0)] + [judged(7.0, 1, tensor_parallel=2).layout]
    ((one, other),) = choices.contests(layouts)
    assert (one.sample_ms, other.sample_ms) == (2, 7)
    assert choices.contests(layouts[:3]) == []


def test_differences_name_the_options() -> None:
    one, other = judged(1, 1, tensor_parallel=1, zero=1).layout, judged(1, 1, tensor_parallel=2, batch=16, zero=1).layout
    assert list(choices.differences(one, other)) == ["tp", "micro-batch"]
