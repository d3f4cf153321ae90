"""Tests of cluster/simulator/waiting.py on generated accounting: limits follow their definition, results their bounds."""
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types
import unittest

FOLDER = sys.argv.pop()
sys.path.insert(0, FOLDER)
import waiting  # noqa: E402

STATES = {"COMPLETED": 0, "FAILED": 1, "NODE_FAIL": 1, "CANCELLED by 1000": 2, "CANCELLED": 2, "CANCELLED+": 2, "OUT_OF_ME+": 1,
          "TIMEOUT": 3}
MARKS = ["UNLIMITED", "Partition_Limit"]


def clock(seconds, days):
    """A duration as sacct prints it; hours beyond 24 become days."""
    hours = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{seconds // 86400}-{hours}" if seconds >= 86400 or days else hours


class Accounting:
    """Random jobs, and their text in one of sacct's forms."""

    def __init__(self, seed, states=tuple(STATES), jobs=60):
        draw = self.draw = random.Random(seed)
        self.jobs, submit_s = [], 1767225600
        for number in range(jobs):
            submit_s += draw.randrange(900)
            duration_s = 1 + int(draw.lognormvariate(7, 1.5))
            limit_s = draw.choice([None, 60 * math.ceil(duration_s / 60 * draw.uniform(1, 9))])
            name = draw.choice([f"{number}", f"{number}_{draw.randrange(9)}", f"{number}+{draw.randrange(3)}"])
            self.jobs.append((name, draw.choice([1, 1, 2, 4, 8]), duration_s, draw.choice(states), limit_s, submit_s))
        self.jobs[0] = (*self.jobs[0][:4], 60 * math.ceil(self.jobs[0][2] / 60), self.jobs[0][5])  # one limit at least

    def text(self):
        draw = self.draw
        raw_elapsed, raw_limit, gres = draw.random() < .5, draw.random() < .5, draw.random() < .3
        columns = ["JobID", "State", "Submit", "ElapsedRaw" if raw_elapsed else "Elapsed", "Start",
                   "TimelimitRaw" if raw_limit else "Timelimit", "AllocGRES" if gres else "AllocTRES", "JobName", "NodeList"]
        draw.shuffle(columns)
        lines = ["|".join(columns)]
        for name, gpus, duration_s, state, limit_s, submit_s in self.jobs:
            kind = draw.choice(["", ":a100", ":nvidia_h100"])
            limit = draw.choice(MARKS) if limit_s is None else str(limit_s // 60) if raw_limit else clock(limit_s, False)
            tres = f"gpu{kind}:{gpus}" if gres else f"billing=4,cpu=4,gres/gpu{kind}={gpus},mem=1.50T,node=1"
            cells = {"JobID": name, "State": state, "Submit": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(submit_s)),
                     "ElapsedRaw": str(duration_s), "Elapsed": clock(duration_s, draw.random() < .2), "Start": "Unknown",
                     "TimelimitRaw": limit, "Timelimit": limit, "AllocGRES": tres, "AllocTRES": tres,
                     "JobName": draw.choice(["train", "a|b", "é ", ""]), "NodeList": draw.choice(["None assigned", "n[1-2]"])}
            lines.append("|".join(cells[column] for column in columns))
            if draw.random() < .3:
                step = {"JobID": name + draw.choice([".batch", ".0", ".extern"]), "State": "COMPLETED"}
                lines.append("|".join({**cells, **step}[c] for c in columns))
            if draw.random() < .1:
                tasks = {"JobID": f"9{name.split('_')[0].split('+')[0]}_[4-9%2]", "State": "PENDING"}
                lines.append("|".join({**cells, **tasks}[c] for c in columns))
        return "\n".join(lines) + "\n"


class Reading(unittest.TestCase):
    def test_generated_accounting_comes_back_without_a_loss(self):
        for seed in range(40):
            source = Accounting(seed)
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "jobs.txt")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source.text())
                longest_s = max(job[4] for job in source.jobs if job[4] is not None)
                self.assertEqual(waiting.read_jobs(path),
                                 [(name, gpus, duration_s, STATES[state], max(limit_s or longest_s, duration_s))
                                  for name, gpus, duration_s, state, limit_s, _ in source.jobs])


class Limits(unittest.TestCase):
    SETUP = types.SimpleNamespace(error=.1, share=1, margin=1.1, startup=600)
    JOBS = [(str(i), 1, 100. + i, i % 4, 1e5) for i in range(4000)]

    def test_a_limit_lies_between_prediction_and_request(self):
        limits = dict(waiting.limits_of(self.JOBS, "mdot", self.SETUP, 1))
        for name, _, duration_s, outcome, limit_s in self.JOBS:
            self.assertLessEqual(limits[name] * duration_s, limit_s * (1 + 1e-9))
            if outcome != 0:  # the plan is unknown
                self.assertAlmostEqual(limits[name] * duration_s, limit_s)
        cut = [limits[name] < 1 for name, _, _, outcome, _ in self.JOBS if outcome == 0]
        self.assertEqual(sum(cut), 0)  # 600 s of startup
        tight = types.SimpleNamespace(**{**vars(self.SETUP), "startup": 0, "margin": 1})
        limits = dict(waiting.limits_of(self.JOBS, "mdot", tight, 1))
        share = statistics.mean(limits[name] < 1 for name, _, _, outcome, _ in self.JOBS if outcome == 0)
        self.assertTrue(.03 < share < .07, share)  # 5 % lie above a 90 % interval

    def test_errors_have_the_stated_mean(self):
        for error in (.02, .1, .4, 1.5):
            draw, spread = random.Random(3), waiting.spread_of(error)
            mean = statistics.mean(abs(math.exp(spread * draw.gauss(0, 1)) - 1) for _ in range(40000))
            self.assertAlmostEqual(mean / error, 1, delta=.05)


class Answers(unittest.TestCase):
    def run_on(self, folder, source, *options):
        path, out = os.path.join(folder, "jobs.txt"), os.path.join(folder, "out")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.text())
        run = subprocess.run([sys.executable, os.path.join(FOLDER, "waiting.py"), path, "--gpus", "8", "--out", out, *options],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(out + ".json", encoding="utf-8") as file:
            return json.load(file), run.stdout, out

    def assert_same(self, left, right):
        rounded = lambda answer: json.loads(json.dumps(answer), parse_float=lambda text: round(float(text), 9))
        self.assertEqual(rounded(left), rounded(right))

    def test_answers_have_their_limits(self):
        for seed in range(4):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                none, _, _ = self.run_on(folder, Accounting(seed), "--share", "0")
                self.assert_same(none["mdot"], none["requested"])
                sure, _, _ = self.run_on(folder, Accounting(seed, ["COMPLETED"]), "--error", "0", "--margin", "1", "--startup",
                                         "0")
                self.assert_same(sure["mdot"], sure["exact"])
                lost, _, _ = self.run_on(folder, Accounting(seed, ["FAILED", "TIMEOUT"]))
                self.assert_same(lost["mdot"], lost["requested"])

    def test_one_command_writes_sentence_table_and_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            results, said, out = self.run_on(folder, Accounting(7), "--policy", "conservative", "--", "--window", "0:50")
            self.assertRegex(said, r"^50 jobs waited [0-9.]+ h on average with the requested limits, and [0-9.]+ h with mdot's")
            with open(out + ".svg", encoding="utf-8") as file:
                svg = file.read()
            for source in results.values():
                self.assertIn(f">{source['mean_h']:.2f}<", svg)
            with open(out + ".md", encoding="utf-8") as file:
                self.assertEqual(len(re.findall(r"^\| (requested|mdot|exact) \| [0-9.]+ \|", file.read(), re.M)), 3)

    def test_a_full_disk_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder, open("/dev/full", "w", encoding="utf-8") as full:
            path = os.path.join(folder, "jobs.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(Accounting(1).text())
            for options in (["--help"], [path, "--gpus", "8", "--out", path]):
                run = subprocess.run([sys.executable, os.path.join(FOLDER, "waiting.py"), *options], stdout=full,
                                     stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(run.returncode, 1)
                self.assertRegex(run.stderr, r"^mdot-waiting: .*No space left on device\n$")

    def test_the_manual_has_every_option(self):
        run = subprocess.run([sys.executable, os.path.join(FOLDER, "waiting.py"), "--help"], capture_output=True, text=True,
                             check=True)
        with open(os.path.join(FOLDER, "mdot-waiting.md"), encoding="utf-8") as file:
            manual = set(re.findall(r"`(--[a-z]+)", file.read())) - {"--priority", "--window"}
        self.assertEqual(manual, set(re.findall(r"^  (?:-h, )?(--[a-z]+)", run.stdout, re.M)))

    def test_faults_name_their_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            for text, reason in (("JobID|State|Submit|Elapsed|AllocTRES\n1|COMPLETED|2026-01-01T00:00:00|1:00|gres/gpu=1\n",
                                  "no job requests a time limit"), ("JobID|State|Elapsed\n", "no column Submit"),
                                 ("JobID|State|Submit|Elapsed|Timelimit\n", "no column AllocTRES"),
                                 ("JobID|State|Submit|Elapsed|Timelimit|AllocTRES\n1|DONE|2026-01-01|1:00|2:00|\n", "t:2: State")):
                path = os.path.join(folder, "t")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                command = [sys.executable, os.path.join(FOLDER, "waiting.py"), path, "--gpus", "8", "--out", path + "o"]
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual((run.returncode, run.stdout), (1, ""))
                self.assertIn(reason, run.stderr)


if __name__ == "__main__":
    unittest.main()
