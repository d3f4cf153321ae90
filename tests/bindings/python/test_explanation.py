"""explanation.py, encoding.py: the parts of a step's time, and cached job features."""

from __future__ import annotations

import gc
import unittest

import support

import mdot

TIMES = ("forward_ms", "data_gradient_ms", "weight_gradient_ms", "optimizer_ms")
WAITING = ("host_ms", "communication_ms", "idle_ms", "data_ms")
SIZES = ("weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes")


class Explanations(support.TestCase):
    def test_parts_add_up_to_the_prediction(self) -> None:
        job = self.bert()
        options = {"precision": "amp", "gpus": 8, "pipeline_parallel": 4, "data_parallel": 2}
        for options_of_step in ({}, {"checkpoint": "blocks"}, options):
            with self.subTest(**options_of_step):
                answer, why = mdot.predict(job, "A100", 16, **options_of_step), mdot.explain(job, "A100", 16, **options_of_step)
                self.assertEqual(why.step_ms, answer.step_ms)
                self.assertEqual(why.configuration, answer.configuration)
                times = sum(getattr(why, name) for name in TIMES + WAITING)
                self.assertAlmostEqual(times, why.step_ms, delta=1e-6 * why.step_ms)
                self.assertAlmostEqual(sum(getattr(why, name) for name in SIZES), answer.peak_memory_bytes, delta=8)
                self.assertEqual(len(why), len(job))
                for name in TIMES + SIZES:
                    whole = getattr(why, name)
                    self.assertAlmostEqual(sum(getattr(share, name) for share in why), whole, delta=1e-6 * whole + 1e-9)
                self.assertEqual("model" in why.approximate, "analytic-estimate" in answer.warnings)

    def test_explanation_matches_the_command(self) -> None:
        why = mdot.explain(support.RESNET, "A100", 64, precision="amp")
        reported = support.ask_command(str(support.RESNET), "--gpu", "A100", "--batch", "64", "--precision", "amp", "--explain")
        explained = reported["predictions"][0]["explanation"]
        for name in TIMES + WAITING:
            self.assertAlmostEqual(getattr(why, name), explained[name], delta=1e-4 * why.step_ms)
        for share, operator in zip(why, explained["operators"]):
            self.assertAlmostEqual(share.forward_ms, operator["forward_ms"], delta=1e-4 * why.step_ms)

    def test_sums_by_type_block_and_module_lose_nothing(self) -> None:
        job = mdot.Job.from_onnx(support.RESNET)
        why = mdot.explain(job, "T4", 32)
        for sums in (why.by_type(), why.by_module(), why.by_block(), why.by(lambda operator: operator.known)):
            self.assertAlmostEqual(sum(share.ms for share in sums.values()), sum(share.ms for share in why), places=6)
            self.assertAlmostEqual(
                sum(share.memory_bytes for share in sums.values()), sum(share.memory_bytes for share in why), places=0
            )
        times = [share.ms for share in why.by_type().values()]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertIn("Conv", str(why))
        with self.assertRaisesRegex(ValueError, "did you mean A100"):
            mdot.explain(job, "A1000", 32)


class Encodings(support.TestCase):
    def test_encoded_answers_match_the_predictions(self) -> None:
        job, predictor = self.bert(), mdot.Predictor()
        requested = [mdot.Configuration(gpu, batch) for gpu in ("T4", "A100") for batch in (8, 16)]
        requested.append(requested[0].replace(tensor_parallel=2, gpus=2))
        encoding = predictor.encode(job)
        self.assertEqual(encoding.evaluate(requested), predictor.predict_many([(job, one) for one in requested]))
        self.assertEqual(encoding.evaluate([]), [])

    def test_a_wrong_configuration_leaves_the_others_answered(self) -> None:
        right = mdot.Configuration("A100", 8)
        answers = mdot.Predictor().encode(self.bert()).evaluate([right, right.replace(gpu="A1000"), right])
        self.assertIsInstance(answers[1], mdot.InvalidArgumentError)
        self.assertIn("A1000", str(answers[1]))
        self.assertEqual(answers[0], answers[2])

    def test_encoding_keeps_its_predictor_alive(self) -> None:
        encoding = mdot.Predictor().encode(self.bert())
        gc.collect()
        self.assertIsInstance(encoding.evaluate([mdot.Configuration("A100", 8)])[0], mdot.Prediction)


if __name__ == "__main__":
    unittest.main()
