"""Tests of cluster/simulator/experiment.py and draw.py: means over windows, tables of predictions, arms, and logs."""
import math
import os
import re
import sys
import tempfile
import types
import unittest

sys.path.insert(0, sys.argv.pop())
import draw  # noqa: E402
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


class Gantt(unittest.TestCase):
    # a runs on two nodes, is preempted for b, resumes on one node, and moves to the other; c is rejected.
    LOG = [(0, "arrive", "a", ""), (0, "start", "a", "n1:2 n10:1"), (10, "arrive", "b", ""), (10, "preempt", "a", "n1:2 n10:1"),
           (10, "start", "b", "n1:2"), (15, "arrive", "c", ""), (15, "reject", "c", ""), (20, "complete", "b", "n1:2"),
           (20, "resume", "a", "n1:1"), (25, "batch", "a", "n1:1"), (30, "move", "a", "n10:2"), (40, "note", "", ""),
           (50, "complete", "a", "n10:2")]

    def rows(self):
        return [dict(zip(("time_s", "decision", "job_id", "nodes"), map(str, row))) for row in self.LOG]

    def test_runs_and_waiting_jobs_follow_the_decisions(self):
        runs, queue = draw.read_log(self.rows())
        self.assertEqual(runs, [(0, 10, "a", "n1", 2), (0, 10, "a", "n10", 1), (10, 20, "b", "n1", 2), (20, 30, "a", "n1", 1),
                                (30, 50, "a", "n10", 2)])
        self.assertEqual(max(count for _, count in queue), 2)  # a and c, at 15 s
        self.assertEqual(queue[-1], (50, 0))

    def test_each_gpu_has_one_bar_at_a_time(self):
        svg = "\n".join(draw.draw_gantt(*draw.read_log(self.rows())))
        self.assertEqual(svg.count("<title>"), 5)
        self.assertEqual(svg.count("Z\" fill=\"#1b6ca8\""), 4)  # the runs of a; b has another colour
        rows = {float(y) for bars in svg.split("<path")[1:] if "<title>" in bars
                for y in re.findall(r"M[0-9.]+ ([0-9.]+)h", bars)}
        self.assertEqual(len(rows), 4)  # two GPUs of each node
        self.assertLess(svg.index(">n1<"), svg.index(">n10<"))


if __name__ == "__main__":
    unittest.main()
