"""Law over the functions about whole trainings: an absurd input has finite numbers as its answer, or one clear message."""

from __future__ import annotations

import dataclasses
import math
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import support

import mdot
from mdot.program import Program, to_struct

ABSURD = (math.nan, math.inf, -math.inf, -1, 0, 0.5, 1e300, 1e18, -1e300, 10**400, 2**70, "x", "", "7", b"x", None, True, 1j,
          [], {}, (), [1], [1, 2], [None], [[]], object())  # fmt: skip
INFINITE = {"steps", "upper_steps"}
"""Infinity is a documented answer: never."""


def infinite(value: Any, name: str = "") -> Iterator[str]:
    if dataclasses.is_dataclass(value) and not isinstance(value, (mdot.Prediction, type)):
        for field in dataclasses.fields(value):
            yield from infinite(getattr(value, field.name), field.name)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from infinite(item, name)
    elif isinstance(value, float) and not math.isfinite(value) and name not in INFINITE:
        yield name


class AbsurdInputs(support.TestCase):
    def hold(self, ask: Callable[[Any], Any], *names: str) -> None:
        """One of the names, or the reason, stands in each message."""
        for value in ABSURD:
            with self.subTest(value=repr(value)[:30], names=names):
                try:
                    answer = ask(value)
                except mdot.InvalidArgumentError as fault:
                    message = str(fault)
                    self.assertTrue(any(name in message for name in names), message)
                    self.assertNotIn("\n", message)
                    self.assertLess(len(message), 600)
                else:
                    self.assertEqual([*infinite(answer)], [])

    def test_trajectories(self) -> None:
        job = mdot.Job.read("resnet50")

        def ask(phases: Any = ((8, 1),), samples: Any = 100, **options: Any) -> mdot.Trajectory:
            return mdot.trajectory(job, "H100", phases, samples, **options)

        self.hold(lambda value: ask(value), "phase", "pairs", "steps")
        self.hold(lambda value: ask([value]), "pairs")
        self.hold(lambda value: ask([(value, 1)]), "pairs", "batch")
        self.hold(lambda value: ask([(8, value)]), "pairs", "epochs")
        self.hold(lambda value: ask([(8, 1), (16, value)]), "pairs", "epochs")
        self.hold(lambda value: ask(samples=value), "samples")
        self.hold(lambda value: ask(batch=value), "the phases")
        self.hold(lambda value: ask(price=value), "price")
        self.hold(lambda value: ask(gpus=value), "gpus", "one value")
        self.hold(lambda value: ask(servers=value), "servers", "one value")
        self.hold(lambda value: ask(sync=value), "sync", "one value")
        self.hold(lambda value: ask(cpus=value), "cpus", "one value")
        self.hold(lambda value: ask(loader_rate=value), "loader_rate", "one value")
        for field in dataclasses.fields(mdot.Training):
            self.hold(lambda value: ask(samples=mdot.Training(**{"samples": 100, field.name: value})), field.name, "fail so often")

    def test_curves(self) -> None:
        steps, losses = [*range(1, 11)], [10 / i for i in range(1, 11)]
        self.hold(lambda value: mdot.steps_to_loss(value, losses, 0.5), "steps")
        self.hold(lambda value: mdot.steps_to_loss(steps, value, 0.5), "losses")
        self.hold(lambda value: mdot.steps_to_loss(steps, losses, value), "target")
        for i in (0, 4, 9):
            self.hold(lambda value: mdot.steps_to_loss([*steps[:i], value, *steps[i + 1:]], losses, 0.5), "steps")
            self.hold(lambda value: mdot.steps_to_loss(steps, [*losses[:i], value, *losses[i + 1:]], 0.5), "losses")

    def test_loaders(self) -> None:
        self.hold(mdot.loader_rates, "two numbers of CPUs")
        self.hold(lambda value: mdot.loader_rates({4: value, 8: 9}), "two numbers of CPUs")
        hashable = [value for value in ABSURD if not isinstance(value, (list, dict))]
        self.hold(lambda value: mdot.loader_rates({value if value in hashable else None: 4, 8: 9}), "two numbers of CPUs")

    def test_rounds(self) -> None:
        client = mdot.Client("a", mdot.predict("resnet50", "T4", 16), samples=100, up_mbps=10, down_mbps=50)
        self.hold(lambda value: mdot.federated_round(value), "mdot.Client", "clients")
        self.hold(lambda value: mdot.federated_round([client, value]), "mdot.Client")
        self.hold(lambda value: mdot.federated_round([client, dataclasses.replace(client, name=value)]), "names")
        for field in ("prediction", "samples", "epochs", "up_mbps", "down_mbps"):
            self.hold(lambda value: mdot.federated_round([dataclasses.replace(client, **{field: value})]), "a: ")
        for option in ("model_bytes", "server_mbps", "wait_for"):
            self.hold(lambda value: mdot.federated_round([client], **{option: value}), option, "the round takes")

    def test_jobs_beside_each_other(self) -> None:
        load = mdot.Predictor().load(mdot.Job.read("resnet50"), "A100", 8)
        self.hold(lambda value: mdot.beside(value, load), "two loads")
        self.hold(lambda value: mdot.beside(load, value), "two loads")
        for field in dataclasses.fields(load):
            for order in (1, -1):
                self.hold(lambda value: mdot.beside(*(dataclasses.replace(load, **{field.name: value}), load)[::order]),
                          field.name, "outside 0 to", "two GPU models")  # fmt: skip

    def test_whole_numbers_round_to_floats(self) -> None:
        for size in (2**53 + 1, 2**60 + 1):
            made = to_struct(Program("pytorch", "program", size, size, size, has_loss=True), [])
            self.assertEqual(made.trained_bytes, float(size))


if __name__ == "__main__":
    unittest.main()
