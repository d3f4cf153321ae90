"""Tests of the loop with a fake clock, builder and measurer: resuming, time, memory, broken devices."""

import pytest

from mdot_lab.collect import records
from mdot_lab.collect.architecture import Architecture, Unavailable
from mdot_lab.collect.measured_configuration import Configuration
from mdot_lab.collect.forecast import Forecast
from mdot_lab.collect.plan import Visit
from mdot_lab.collect.runner import BROKEN_DEVICE, Runner

SPREAD = {"median": 10.0, "iqr": 0.1, "min": 9.0, "mean": 10.0}
OK = {"status": "ok", "step_ms": SPREAD, "finite": True}


def visit(name, batches, precision="fp32", optimizer="sgd"):
    row = Architecture(f"torch/{name}", name, "torch", "vector.mlp", "vector", (8,), (1, 2, 4, 8))
    return Visit(row, 8, tuple(Configuration(row.name, 8, b, precision, False, optimizer, "foreach") for b in batches))


class Bench:
    """Counts the runner's requests; `answers` maps a batch to a record's measured fields."""

    def __init__(self, path, answers=None, forecast=None, deadline=1e9, seconds=1.0, cap_seconds=8.0, works=True):
        self.time, self.seconds, self.answers = 0.0, seconds, answers or {}
        self.built, self.measured, self.path = [], [], path
        self.runner = Runner(
            writer=records.Writer(path), attempt=records.Attempt(path),
            forecast=forecast or Forecast(0, cap_seconds), measurer=self, build=self.build,
            release=lambda: None, device_works=lambda: works, environment={"gpu": "G", "torch": "2"}, repeat=0,
            cap_seconds=cap_seconds, deadline=deadline, now=lambda: self.time, log=lambda line: None)

    def build(self, row, size):
        self.built.append(row.family)
        if row.family == "absent":
            raise Unavailable("this library has no absent")
        if row.family == "faulty":
            raise TypeError("no such argument")
        return object()

    def measure(self, model, row, configuration):
        self.time += self.seconds
        self.measured.append((row.family, configuration.batch))
        return dict(self.answers.get(configuration.batch, OK))

    def run(self, *visits):
        tally = self.runner.run(visits)
        self.runner.writer.close()
        return tally, list(records.read(self.path)) if self.path.exists() else []


@pytest.fixture
def part(tmp_path):
    return tmp_path / "part.jsonl"


def test_a_model_is_built_once_per_visit(part):
    bench = Bench(part)
    tally, written = bench.run(visit("a", (1, 2, 4)), visit("b", (1, 2)))
    assert bench.built == ["a", "b"]
    assert tally.counts["ok"] == len(written) == 5 and tally.stopped == "the plan is done"


def test_recorded_configurations_are_skipped(part):
    Bench(part).run(visit("a", (1, 2)))
    bench = Bench(part, forecast=Forecast(0, 8.0).learn_all(records.read(part)))
    tally, written = bench.run(visit("a", (1, 2, 4)), visit("b", (1,)))
    assert bench.measured == [("a", 4), ("b", 1)]
    assert tally.counts["done before"] == 2 and len(written) == 4


def test_a_finished_visit_builds_no_model(part):
    Bench(part).run(visit("a", (1, 2)))
    bench = Bench(part, forecast=Forecast(0, 8.0).learn_all(records.read(part)))
    bench.run(visit("a", (1, 2)))
    assert bench.built == []


def test_repeats_and_first_measurements_are_counted_separately(part):
    Bench(part).run(visit("a", (1,)))
    repeated = Forecast(1, 8.0).learn_all(records.read(part))
    assert not repeated.is_done(visit("a", (1,)).configurations[0])


def test_the_run_ends_before_the_next_configuration_would_exceed_the_time(part):
    bench = Bench(part, deadline=20.0, seconds=3.0, cap_seconds=2.0)
    tally, written = bench.run(*(visit(f"n{i}", (1, 2)) for i in range(20)))
    assert tally.stopped == "the time is up"
    assert bench.time <= 20.0 and bench.time + 2 * (3.0 + bench.runner.reserve) > 20.0
    assert len(written) == len(bench.measured)


def test_out_of_memory_is_recorded_and_rules_out_larger_configurations(part):
    bench = Bench(part, answers={4: {"status": "oom", "error": "OutOfMemoryError: CUDA out of memory"}})
    tally, written = bench.run(visit("a", (1, 4, 8)), visit("b", (1,)))
    assert [(r["architecture"], r["batch"], r["status"]) for r in written] == [
        ("torch/a", 1, "ok"), ("torch/a", 4, "oom"), ("torch/b", 1, "ok")]
    assert tally.counts["ruled out by memory"] == 1


def test_out_of_memory_keeps_configurations_that_may_need_less():
    forecast = Forecast(0, 8.0)
    failed = visit("a", (4,), "fp32", "adam").configurations[0]
    forecast.learn({"key": failed.key, "repeat": 0, "status": "oom"})
    assert forecast.cannot_fit(visit("a", (8,), "tf32", "adamw").configurations[0])
    assert not forecast.cannot_fit(visit("a", (8,), "bf16", "adam").configurations[0])
    assert not forecast.cannot_fit(visit("a", (8,), "fp32", "sgd").configurations[0])
    assert not forecast.cannot_fit(visit("a", (2,), "fp32", "adam").configurations[0])


def test_a_batch_far_above_the_cap_is_ruled_out(part):
    slow = {**OK, "step_ms": {**SPREAD, "median": 300.0}}
    bench = Bench(part, answers={1: slow})
    tally, _ = bench.run(visit("a", (1, 2, 8)))
    assert bench.measured == [("a", 1), ("a", 2)] and tally.counts["ruled out by time"] == 1


def test_over_cap_configurations_are_measured_again_under_a_larger_cap(part):
    Bench(part, answers={1: {"status": "over_cap", "estimate_ms": 500.0}}).run(visit("a", (1,)))
    configuration = visit("a", (1,)).configurations[0]
    assert Forecast(0, 8.0).learn_all(records.read(part)).is_done(configuration)
    assert not Forecast(0, 30.0).learn_all(records.read(part)).is_done(configuration)


def test_unavailable_architectures_are_skipped_without_a_record(part):
    bench = Bench(part)
    tally, written = bench.run(visit("absent", (1, 2)), visit("b", (1,)), visit("absent", (4,)))
    assert bench.built == ["absent", "b"] and len(written) == 1
    assert any("skipped 1 architectures: this library has no absent" in line for line in tally.lines())


def test_a_model_that_cannot_be_built_is_an_error_record(part):
    _, written = Bench(part).run(visit("faulty", (1,)), visit("b", (1,)))
    assert written[0]["status"] == "error" and "no such argument" in written[0]["error"]
    assert written[1]["status"] == "ok"


def test_a_broken_device_ends_the_process_with_its_own_status(part):
    bench = Bench(part, answers={2: {"status": "error", "error": "RuntimeError: illegal access"}}, works=False)
    tally, written = bench.run(visit("a", (1, 2, 4)))
    assert tally.exit_status == BROKEN_DEVICE and len(written) == 2


def test_a_configuration_that_kills_the_process_becomes_an_error_record(part):
    class Killed(BaseException):
        pass

    bench = Bench(part)
    bench.measure = lambda model, row, configuration: (_ for _ in ()).throw(Killed())
    bench.runner.measurer = bench
    with pytest.raises(Killed):
        bench.run(visit("a", (1, 2)))
    left = records.Attempt(part).left()
    assert left["batch"] == 1 and left["status"] == "error" and records.faults(left) == []
    records.Attempt(part).end()
    assert records.Attempt(part).left() is None


def test_a_normal_end_removes_the_trying_file(part):
    Bench(part).run(visit("a", (1, 2)), visit("absent", (1,)))
    assert records.Attempt(part).left() is None


def test_a_model_with_non_finite_weights_is_rebuilt(part):
    bench = Bench(part, answers={1: {**OK, "finite": False}})
    bench.run(visit("a", (1, 2, 4)))
    assert bench.built == ["a", "a"]
