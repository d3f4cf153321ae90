"""compiler.py: predictors are compiled and verified, and errors are reported."""

from __future__ import annotations

import os
import tempfile
import unittest
import warnings
from pathlib import Path

import support

import mdot

MODEL = support.SOURCE / "weights" / "predictor.onnx"


class Compiler(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = Path(folder.name) / "predictor.mdot"

    def test_compiled_artefacts_run_and_verify(self) -> None:
        steps: list[tuple[str, int, int]] = []
        predictor = mdot.compile(
            MODEL, self.output, buckets=[32, 128], targets=["cpu:x86-64-v3"], name="mine",
            progress=lambda *step: steps.append(step),
        )
        self.assertEqual(predictor.info["name"], "mine")
        self.assertEqual(predictor.info["cpu_isa"], "x86-64-v3")
        self.assertGreater(len(steps), 0)
        job = self.bert()
        shipped = mdot.predict(job, "A100", 64)
        self.assertAlmostEqual(predictor.predict(job, "A100", 64).step_ms, shipped.step_ms, delta=1e-3 * shipped.step_ms)
        verified = mdot.verify(predictor, MODEL, tolerance=1e-3)
        self.assertTrue(verified)
        self.assertEqual({row.max_length for row in verified.rows}, {32, 128})
        self.assertEqual({row.level for row in verified.rows}, {"x86-64-v3"})
        strict = mdot.verify(predictor, MODEL, tolerance=1e-12)  # f32 itself is not that exact
        self.assertTrue(all(row.worst_error > 1e-12 and row.bound > row.worst_error for row in strict.rows))
        pairs = [(job, mdot.Configuration(gpu=gpu, batch=64)) for gpu in ("A100", "T4")]
        rows = mdot.verify(predictor, MODEL, jobs=pairs, tolerance=1e-3)
        self.assertTrue(rows)
        self.assertEqual(len(rows.rows), 1)  # only the bucket for this job's rows

    def test_invalid_arguments_are_refused_by_name(self) -> None:
        with self.assertRaisesRegex(mdot.NotFoundError, "nowhere.onnx"):
            mdot.compile("nowhere.onnx", self.output)
        with self.assertRaisesRegex(mdot.Error, "x86-64-v9"):
            mdot.compile(MODEL, self.output, targets=["cpu:x86-64-v9"])
        self.assertFalse(self.output.exists())

    def test_compiler_messages_are_warnings(self) -> None:
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            mdot.compile(MODEL, self.output, buckets=[32], targets=["cpu:x86-64-v3"])
            mdot.verify(os.fspath(self.output), MODEL)
        self.assertTrue(all(issubclass(one.category, mdot.CompilerWarning) for one in reported))


if __name__ == "__main__":
    unittest.main()
