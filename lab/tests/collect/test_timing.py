"""Tests the number of steps and the evaluated marks. Time is a simulated number."""

import pytest

from mdot_lab.collect import timing


class FakeClock:
    """Marks are simulated milliseconds, which only the step advances."""

    def __init__(self):
        self.now_ms, self.synchronized = 0.0, 0

    def mark(self):
        return self.now_ms

    def elapsed_ms(self, start, end):
        return end - start

    def synchronize(self):
        self.synchronized += 1


def fake_step(clock, forward_ms, backward_ms, optimizer_ms):
    def step(mark):
        step.taken += 1
        marks = [mark()]
        for phase_ms in (forward_ms, backward_ms, optimizer_ms):
            clock.now_ms += phase_ms
            marks.append(mark())
        return marks
    step.taken = 0
    return step


@pytest.fixture(autouse=True)
def warmup_without_waiting(monkeypatch):
    monkeypatch.setattr(timing, "WARMUP_SECONDS", 0.0)


def test_a_slow_step_is_timed_twenty_times_after_five():
    clock = FakeClock()
    step = fake_step(clock, 30.0, 60.0, 10.0)
    samples = timing.sample(step, clock, cap_seconds=8.0)
    assert samples.warmup_steps == 5 and len(samples.phases_ms) == 20 and step.taken == 25
    assert samples.spread("forward")["median"] == 30.0
    assert samples.spread("backward")["median"] == 60.0
    assert samples.spread("optimizer")["median"] == 10.0
    assert samples.spread() == {"median": 100.0, "iqr": 0.0, "min": 100.0, "mean": 100.0}


def test_a_fast_step_is_timed_more_often_up_to_a_limit():
    clock = FakeClock()
    assert len(timing.sample(fake_step(clock, 5.0, 10.0, 5.0), clock, 8.0).phases_ms) == 30
    assert len(timing.sample(fake_step(clock, 0.1, 0.1, 0.1), clock, 8.0).phases_ms) == timing.MAXIMUM_STEPS


def test_a_step_above_the_cap_stops_after_two():
    clock = FakeClock()
    step = fake_step(clock, 200.0, 400.0, 100.0)
    with pytest.raises(timing.OverCap) as refused:
        timing.sample(step, clock, cap_seconds=8.0)
    assert refused.value.estimate_ms == 700.0 and step.taken == 2


def test_timed_steps_are_queued_without_waiting():
    clock = FakeClock()
    seen = []
    timing.sample(fake_step(clock, 30.0, 60.0, 10.0), clock, 8.0, while_running=lambda: seen.append(clock.synchronized))
    assert seen == [5] and clock.synchronized == 6


def test_spread_of_uneven_times():
    assert timing.spread([1.0, 2.0, 3.0, 4.0, 100.0]) == {"median": 3.0, "iqr": 2.0, "min": 1.0, "mean": 22.0}
