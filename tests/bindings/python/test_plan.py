"""planning.py: the package gives the same plans as the command."""

from __future__ import annotations

import json
import os
import unittest

import support

import mdot


class PlanTest(support.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.job = mdot.Job.from_onnx(support.BERT, dims=support.DIMS)

    def test_a_plan_equals_the_command_s(self) -> None:
        training = mdot.Training(samples=1e7, deadline_hours=10, storage_gbps=5, gpu_failure_hours=2e4, restart_minutes=5)
        plan = mdot.plan(
            self.job,
            ["A100", "T4"],
            [1, 8],
            global_batch=64,
            training=training,
            price=2,
            precision="mixed-bf16",
            optimizer="adamw",
        )
        options = "--gpu A100,T4 --gpus 1,8 --samples 1e7 --deadline 10h --price 2 --storage 5 --gpu-failure 20000h --restart 5min"
        words = f"--global-batch 64 --precision mixed-bf16 --optimizer adamw {options} --dim sequence=128 --json -q"
        answer = json.loads(support.run(os.environ["MDOT_CLI"], "plan", str(support.BERT), *words.split()))
        self.assertEqual(len(plan), len(answer["layouts"]))
        self.assertEqual((plan.priced, plan.too_large), (answer["priced"], answer["too_large"]))
        for one, row in zip(plan, answer["layouts"]):
            self.assertAlmostEqual(one.prediction.step_ms, row["step_ms"], delta=1e-6 * row["step_ms"])
            self.assertAlmostEqual(one.cost.hours, row["hours"], delta=1e-6 * row["hours"])
            self.assertAlmostEqual(one.cost.in_time, row["in_time"], delta=1e-6)
            self.assertEqual(one.configuration.zero, row["zero_stage"])
            self.assertEqual(one in plan.front, row["is_front"])
            self.assertEqual(one is plan.recommended, row["is_recommended"])

    def test_a_layout_predicts_as_the_plan_says(self) -> None:
        plan = mdot.plan(self.job, "A100", [1, 4, 16], global_batch=64, kept=5, tried={"precision": ["fp32", "amp"]})
        self.assertEqual({one.configuration.gpu_total for one in plan}, {1, 4, 16})
        predictor = mdot.Predictor()
        for one, answer in zip(plan, predictor.predict_many([(self.job, one.configuration) for one in plan])):
            self.assertAlmostEqual(answer.step_ms, one.prediction.step_ms, delta=1e-6 * answer.step_ms)
            self.assertEqual(one.samples, 64)
            self.assertIsNone(one.cost)
        self.assertIsNone(plan.recommended)
        self.assertEqual(len(plan.records()), len(plan))

    def test_a_calibration_corrects_each_layout_as_measured_steps_do(self) -> None:
        predictor, options = mdot.Predictor(), {"precision": "mixed-bf16", "optimizer": "adamw"}
        ms = 1.5 * predictor.predict(self.job, gpu="A100", batch=8, **options).step_ms
        step = mdot.Measurement(self.job, mdot.Configuration(gpu="A100", batch=8, **options), ms=ms)
        plan = mdot.plan(self.job, "A100", [1, 8], calibration=mdot.Calibration.measured(predictor, [step]), global_batch=64, **options)
        words = f"--gpu A100 --gpus 1,8 --global-batch 64 --measured batch=8,ms={ms!r} --dim sequence=128 --json -q"
        answer = json.loads(support.run(os.environ["MDOT_CLI"], "plan", str(support.BERT), *words.split()))
        plain = mdot.plan(self.job, "A100", [1, 8], global_batch=64, **options)
        for one, row, before in zip(plan, answer["layouts"], plain):
            self.assertAlmostEqual(one.prediction.step_ms, row["step_ms"], delta=1e-6 * row["step_ms"])
            self.assertGreater(one.prediction.step_ms, 1.1 * before.prediction.step_ms)

    def test_sizes_that_fail_too_often_are_left_out(self) -> None:
        words = "--gpu A100 --gpus 8..512 --tokens 1e9 --gpu-failure 100h --restart 30min --dim sequence=128 --json -q"
        answer = json.loads(support.run(os.environ["MDOT_CLI"], "plan", str(support.BERT), *words.split()))
        training = mdot.Training(samples=1e9 / 128, gpu_failure_hours=100, restart_minutes=30)
        plan = mdot.plan(self.job, "A100", [8, 16, 32, 64, 128, 256, 512], training=training, precision="mixed-bf16", optimizer="adamw")
        sizes = [row["gpus"] for row in answer["layouts"]]
        self.assertEqual(sizes, [one.configuration.gpu_total for one in plan])
        self.assertTrue(8 in sizes and 512 not in sizes, sizes)
        self.assertEqual(plan.refused, answer["refused"])
        self.assertGreater(plan.refused, 0)

    def test_wrong_arguments_are_named(self) -> None:
        for arguments, word in (
            ({"gpus": 12}, "12 GPUs"),
            ({"tried": {"nodes": [1]}}, "nodes"),
            ({"tried": {"precision": ["fp31"]}}, "precision"),
            ({"global_batch": -1}, "global_batch"),
            ({"training": mdot.Training(samples=0)}, "samples"),
        ):
            with self.assertRaisesRegex(mdot.InvalidArgumentError, word):
                mdot.plan(self.job, "A100", **{"gpus": 8, **arguments})


if __name__ == "__main__":
    unittest.main()
