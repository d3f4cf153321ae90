"""mdot.trajectory and mdot.federated_round, compared with computations by hand."""

from __future__ import annotations

import dataclasses
import math
import random
import unittest
import warnings

import support

import mdot


class Trajectories(support.TestCase):
    def test_hours_are_those_of_the_steps(self) -> None:
        phases = [(32, 2), (64, 1.5), (256, 3), (64, 1)]
        found = mdot.trajectory("resnet50", "A100", phases, samples=10_000, precision="amp", gpus=2)
        steps = [2 * 157, 79 + 40, 3 * 20, 79]          # ceil(10000 / 64) and so on
        answers = [mdot.predict("resnet50", "A100", batch, precision="amp", gpus=2) for batch, _ in phases]
        self.assertEqual([phase.steps for phase in found.phases], steps)
        self.assertEqual(found.steps, sum(steps))
        for hours, name in ((found.hours, "step_ms"), (found.lower_hours, "lower_ms"), (found.upper_hours, "upper_ms")):
            expected = sum(n * getattr(answer, name) for n, answer in zip(steps, answers)) / 3.6e6
            self.assertAlmostEqual(hours, expected, delta=1e-9 * expected)

    def test_one_phase_is_a_plain_training(self) -> None:
        answer = mdot.predict("gpt2", "H100", 8)
        found = mdot.trajectory("gpt2", "H100", [(8, 3)], samples=800)
        self.assertAlmostEqual(found.hours, answer.hours(steps=300), delta=1e-9)
        halves = mdot.trajectory("gpt2", "H100", [(8, 1), (8, 1), (8, 1)], samples=800)
        self.assertAlmostEqual(halves.hours, found.hours, delta=1e-9)

    def test_a_whole_training_has_its_plan_s_cost(self) -> None:
        """One phase costs what `mdot plan` says of the same layout, with starts, checkpoints and failures."""
        training = mdot.Training(2**20, evaluation_samples=1e4, evaluation_steps=500, storage_gbps=2, gpu_failure_hours=1e4,
                                 restart_minutes=5, startup_minutes=10, grid_grams_per_kwh=300, deadline_hours=3, budget=50)  # fmt: skip
        layout = mdot.plan("gpt2", "A100", [8], training=training, price=2, data_parallel=8)[0]
        options = {row: getattr(layout.configuration, row) for row in ("accumulate", "zero", "checkpoint")}
        for parts in (1, 4):
            found = mdot.trajectory("gpt2", "A100", [(layout.configuration.batch, 1 / parts)] * parts, training, 2, gpus=8, **options)
            assert layout.cost is not None
            for field in dataclasses.fields(layout.cost):
                expected = getattr(layout.cost, field.name)
                self.assertAlmostEqual(getattr(found.cost, field.name), expected, delta=1e-6 * abs(expected), msg=field.name)

    def test_a_batch_that_does_not_fit_is_stated(self) -> None:
        self.assertTrue(mdot.trajectory("resnet50", "T4", [(8, 1)], samples=8).fits)
        self.assertFalse(mdot.trajectory("resnet50", "T4", [(8, 1), (4096, 1)], samples=4096).fits)

    def test_wrong_phases_are_refused(self) -> None:
        wrong = [[], iter([]), [(0, 1)], [(8, 0)], [(8, -1)], [(8, math.nan)], [(8, math.inf)], [(8.5, 1)], [(True, 1)], [("8", 1)],
                 [(8, "x")], [8, 16], [(8, 1, 1)], [(None, 1)], [(8, None)]]  # fmt: skip
        for phases in wrong:
            with self.subTest(phases=phases), self.assertRaises(mdot.InvalidArgumentError):
                mdot.trajectory("gpt2", "H100", phases, samples=100)  # type: ignore[arg-type]
        for samples in (0, -1, math.nan, math.inf, "x", None):
            with self.subTest(samples=samples), self.assertRaises(mdot.InvalidArgumentError):
                mdot.trajectory("gpt2", "H100", [(8, 1)], samples=samples)  # type: ignore[arg-type]

    def test_a_trajectory_has_one_answer(self) -> None:
        for gpu, options in (("all", {}), (["H100", "A100"], {}), ("H100", {"gpus": [1, 2]}), ("H100", {"precision": ["fp32", "amp"]})):
            with self.subTest(gpu=gpu, **options), self.assertRaises(mdot.InvalidArgumentError):
                mdot.trajectory("gpt2", gpu, [(8, 1)], samples=100, **options)
        once, again = (mdot.trajectory("gpt2", "H100", kind([(8, 1), (16, 2)]), samples=100) for kind in (list, iter))
        self.assertEqual(once, again)


class Rounds(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.steps = {gpu: mdot.predict("resnet50", gpu, 16) for gpu in ("T4", "V100-SXM2-16GB", "A100")}

    def client(self, name: str, gpu: str = "T4", **changes: float) -> mdot.Client:
        fields = {"samples": 100, "up_mbps": 10.0, "down_mbps": 50.0, **changes}
        return mdot.Client(name, self.steps[gpu], **fields)  # type: ignore[arg-type]

    def test_a_round_is_transfer_training_transfer(self) -> None:
        answer = self.steps["T4"]
        megabits = 32e-6 * answer.parameters
        found = mdot.federated_round([self.client("a", epochs=3)])
        train = 3 * 7 * answer.step_ms / 1000
        self.assertAlmostEqual(found.seconds, megabits / 50 + train + megabits / 10)
        self.assertAlmostEqual(found.upper_s - found.seconds, 3 * 7 * (answer.upper_ms - answer.step_ms) / 1000)
        self.assertEqual((found.straggler, found.waiting_share), ("a", 0))
        self.assertAlmostEqual(mdot.federated_round([self.client("a")], model_bytes=0).seconds, 7 * answer.step_ms / 1000)

    def test_a_client_can_train(self) -> None:
        """Over devices and jobs: an inference is no training, and a job beyond the device's memory is named."""
        for job, gpu, batch in (("resnet50", "T4", 8), ("resnet50", "A100", 64), ("gpt2", "V100", 1)):
            answer = mdot.predict(job, gpu, batch, mode="inference")
            with self.subTest(job), self.assertRaisesRegex(mdot.InvalidArgumentError, "b: the prediction is an inference"):
                mdot.federated_round([self.client("a"), mdot.Client("b", answer, 10, 5, 5)])
        for job, gpu, batch in (("llama-7b", "T4", 1), ("resnet50", "T4", 1024), ("resnet50", "T4", 8)):
            answer = mdot.predict(job, gpu, batch)
            with self.subTest(job, batch=batch), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                mdot.federated_round([self.client("a"), mdot.Client("b", answer, 10, 5, 5)])
                self.assertEqual(["b: the training does not fit" in str(warning.message) for warning in caught], [True] * (not answer.fits))

    def test_the_straggler_ends_the_round(self) -> None:
        """Over random clients: the round is the slowest one's, removing any other changes nothing, and removing the straggler
        ends it earlier, with and without the last updates."""
        draw = random.Random(5)
        for _ in range(50):
            clients = [self.client(str(i), draw.choice(list(self.steps)), samples=draw.randint(1, 5000),
                                   up_mbps=draw.uniform(1, 100), down_mbps=draw.uniform(1, 100)) for i in range(8)]  # fmt: skip
            alone = {client.name: mdot.federated_round([client]).seconds for client in clients}
            slowest = sorted(alone, key=lambda name: alone[name])
            for count in (8, 5):
                found = mdot.federated_round(clients, wait_for=count)
                self.assertEqual(found.straggler, slowest[count - 1])
                self.assertAlmostEqual(found.seconds, alone[slowest[count - 1]])
                self.assertEqual([time.name for time in found.clients], slowest)
                self.assertTrue(found.lower_s < found.seconds < found.upper_s)
                mean = sum(alone[name] for name in slowest[:count]) / count
                self.assertAlmostEqual(found.waiting_share, 1 - mean / found.seconds)

    def test_the_servers_link_is_shared_fairly(self) -> None:
        clients = [self.client("slow", up_mbps=2), self.client("fast", up_mbps=100), self.client("faster", up_mbps=200)]
        megabits = 32e-6 * self.steps["T4"].parameters
        found = {time.name: time for time in mdot.federated_round(clients, server_mbps=42).clients}
        self.assertAlmostEqual(found["slow"].upload_s, megabits / 2)
        self.assertAlmostEqual(found["fast"].upload_s, megabits / 20)
        self.assertAlmostEqual(found["faster"].upload_s, megabits / 20)
        self.assertAlmostEqual(found["slow"].download_s, megabits / 14)

    def test_wrong_clients_are_refused(self) -> None:
        one = self.client("a")
        for clients, options in (([], {}), ([one, one], {}), ([dataclasses.replace(one, samples=0)], {}),
                                 ([dataclasses.replace(one, up_mbps=-1)], {}), ([one], {"wait_for": 2}), ([one], {"wait_for": 0}),
                                 ([one], {"server_mbps": 0})):  # fmt: skip
            with self.subTest(clients=len(clients), **options), self.assertRaises(mdot.InvalidArgumentError):
                mdot.federated_round(clients, **options)

    def test_numbers_that_are_no_amounts_are_refused(self) -> None:
        one, other = self.client("a"), self.client("b")
        bad = (0, -1, math.nan, -math.inf, "7", None)
        for name, values in (("samples", (*bad, math.inf)), ("epochs", (*bad, math.inf)), ("up_mbps", bad), ("down_mbps", bad)):
            for value in values:
                for clients in ([dataclasses.replace(one, **{name: value}), other], [other, dataclasses.replace(one, **{name: value})]):
                    with self.subTest(field=name, value=value), self.assertRaises(mdot.InvalidArgumentError):
                        mdot.federated_round(clients)
        for options in ({"server_mbps": math.nan}, {"model_bytes": math.nan}, {"model_bytes": -1}, {"model_bytes": math.inf},
                        {"wait_for": 1.5}, {"wait_for": "all"}, {"server_mbps": "9"}, {"server_mbps": 1e-320}):  # fmt: skip
            with self.subTest(**options), self.assertRaises(mdot.InvalidArgumentError):
                mdot.federated_round([one, other], **options)


if __name__ == "__main__":
    unittest.main()
