"""Tests of cluster/simulator/experiment.py: means over windows, tables of predictions, and arms."""
import math
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, sys.argv.pop())
import experiment  # noqa: E402


class Bands(unittest.TestCase):
    def test_bands_use_students_t(self):
        band = experiment.band_of([1, 2, 3, 4, 5])
        self.assertAlmostEqual(band.mean, 3)
        self.assertAlmostEqual(band.high, 3 + 2.776 * math.sqrt(.5))  # standard error sqrt(2.5 / 5), 4 degrees of freedom
        self.assertAlmostEqual(band.low + band.high, 6)
        self.assertEqual(experiment.band_of([7]), (7, 7, 7))
        band = experiment.band_of([i % 2 for i in range(40)])
        self.assertAlmostEqual(band.high, .5 + 1.96 * math.sqrt(10 / 39 / 40))

    def test_ratios_have_a_geometric_mean(self):
        self.assertAlmostEqual(experiment.ratio_band([.5, 2]).mean, 1)


class Predictions(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return experiment.read_predictions(path)

    def test_columns_behind_the_label_are_predictors(self):
        factors = self.read("# steps\n\nnetwork,gpu, step_ms,mdot,mean\na,T4,20,10,15\n\nb,L4,20,30,15\n")
        self.assertEqual(factors, {"mdot": [.5, 1.5], "mean": [.75, .75]})
        setup = types.SimpleNamespace(factors=factors, predictions="p.csv", error_model="normal")
        arms = experiment.figure4_arms(setup)
        self.assertEqual((arms[0].label, arms[0].estimate), ("SRSF, exact", []))
        self.assertEqual([arm.error for arm in arms if "--predictions" in arm.estimate], [.5, .25])

    def test_wrong_tables_are_refused_with_the_reason(self):
        for text, reason in (("network,step_ms\na,1\n", "lacks a predictor column"),
                             ("network,gpu,step_ms\na,T4,1\n", "lacks a predictor column"),
                             ("network,step_ms,m\n", "holds no networks"),
                             ("network,step_ms,m\na,0,1\n", "p.csv:2: expected a positive time"),
                             ("network,step_ms,m\na,1,nan\n", "p.csv:2: expected a positive time"),
                             ("network,step_ms,m\na,1,1\nb,1\n", "p.csv:3: expected a positive time"),
                             ("", "no column network"), ("step_ms,m\n1,1\n", "no column network")):
            with self.subTest(text=text), self.assertRaisesRegex(experiment.Failure, reason):
                self.read(text)


if __name__ == "__main__":
    unittest.main()
