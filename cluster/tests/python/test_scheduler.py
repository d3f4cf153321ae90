"""cluster/scheduler_python: the jobs that a round starts. Rounds stay as quick with bad files."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scheduler_python"))

import round as example  # noqa: E402 - the path must be known first
from mdot_schedulers import Request, estimates  # noqa: E402

import mdot  # noqa: E402


class Round(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", mdot.Warning)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.job = mdot.Job.from_onnx(Path(os.environ["MDOT_EXAMPLE_JOBS"]) / "bert_base.onnx", dims={"sequence": 128})
        self.job.save(self.folder / "bert.job")

    def request(self, job_id: str, steps: int, gpus: int = 1, **options: object) -> estimates.Submission:
        return self.submission(job_id, self.folder / "bert.job", steps, gpus, **options)

    def submission(self, job_id: str, path: Path, steps: int = 10, gpus: int = 1, **options: object) -> estimates.Submission:
        return estimates.Submission(job_id, path, Request({"batch": 16, **options}, steps), gpus)

    def test_estimates_match_the_predictions(self) -> None:
        known = estimates.Estimates(["T4", "A100"])
        self.assertTrue(known.submit(self.request("a", 1000, precision="amp")))
        answer = mdot.predict(self.job, "T4", 16, precision="amp")
        self.assertAlmostEqual(known.remaining_s("a", "T4", 400) or 0, 600 * answer.step_ms / 1000)
        self.assertAlmostEqual(known.limit_s("a", "T4") or 0, answer.upper_ms)
        self.assertEqual(known.types("a"), ["A100", "T4"])
        known.forget("a")
        self.assertIsNone(known.remaining_s("a", "T4"))

    def test_jobs_that_do_not_fit_a_type_get_no_estimate_for_it(self) -> None:
        known = estimates.Estimates(["T4", "A100"])
        batch = mdot.largest_batch(self.job, "T4") + 8
        self.assertTrue(known.submit(self.request("a", 10, batch=batch)))
        self.assertEqual(known.types("a"), ["A100"])
        self.assertFalse(known.submit(self.request("b", 10, batch=1 << 20)))
        self.assertIn("exceeds the memory of every GPU", known.refused["b"])

    def test_bad_submissions_give_a_reason_without_raising(self) -> None:
        known = estimates.Estimates(["A100"])
        good = (self.folder / "bert.job").read_bytes()
        for name, content in (("empty", b""), ("cut", good[:-9]), ("other", b"\x7fELF" + good), ("huge", b"0" * (2 << 20))):
            path = self.folder / name
            path.write_bytes(content)
            self.assertFalse(known.submit(self.submission(name, path)))
        self.assertFalse(known.submit(self.submission("nowhere", self.folder / "nowhere")))
        self.assertFalse(known.submit(self.submission("folder", self.folder)))
        self.assertFalse(known.submit(self.request("precision", 10, precision="fp8")))
        self.assertFalse(known.submit(self.request("option", 10, colour="red")))
        self.assertEqual(len(known.refused), 8)
        self.assertTrue(all(known.refused.values()))

    def run_round(self, lines: list[str], free: str) -> tuple[int, list[list[str]], str]:
        queue = self.folder / "queue.csv"
        queue.write_text("\n".join(["job_id,path,steps,gpus,batch,precision", *lines]) + "\n")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = example.main([str(queue), "--free", free])
        return status, [line.split() for line in out.getvalue().splitlines()], err.getvalue()

    def test_the_shortest_starts_first_and_unknown_jobs_last(self) -> None:
        path = self.folder / "bert.job"
        lines = ["unknown,nowhere.job,5,1,8,amp", f"long,{path},90000,1,16,amp", f"wide,{path},1000,8,16,amp",
                 f"short,{path},100,1,16,amp"]  # fmt: skip
        status, started, reported = self.run_round(lines, "A100=8,T4=3")
        self.assertEqual(status, 0)
        self.assertEqual([row[:3] for row in started],
                         [["short", "A100", "1"], ["long", "A100", "1"], ["unknown", "A100", "1"]])  # fmt: skip
        self.assertEqual(started[2][3:], ["-", "-"])
        self.assertLess(float(started[1][3]), float(started[1][4]))
        self.assertIn("unknown has no estimate: ", reported)

    def test_an_invalid_line_costs_only_its_own_job_the_round(self) -> None:
        path = self.folder / "bert.job"
        good = f"good,{path},100,1,16,amp"
        minus = "-" * 60000 + "1"
        for line in (
            f"a,{path},many,1,8,amp",
            f"a,{path},100,-8,16,amp",
            f"a,{path},100,0,16,amp",
            f"a,{path},0,1,16,amp",
            f"a,{path},-5,1,16,amp",
            f"a,{path},1e9,1,16,amp",
            f"a,{path},{'9' * 400},1,16,amp",
            f"a,{path},100,True,16,amp",
            f"a,{path},100,1,16,amp,more",
            f"a,{path}",
            f"a b,{path},100,1,16,amp",
            f"\x1b[31m,{path},100,1,16,amp",
            f"good,{path},1,1,16,amp",
        ):
            status, started, reported = self.run_round([good, line, "", good.replace("good", "also")], "A100=2")
            self.assertEqual((status, [row[0] for row in started]), (0, ["good", "also"]), line[:80])
            self.assertIn("queue.csv:3: ", reported)
            self.assertNotIn("\x1b", reported)
        for batch in (minus, "9" * 200000, "inf", "nan", "-1", "1_0", "[1]", "__import__('os')", "\0"):
            status, started, reported = self.run_round([f"a,{path},100,8,{batch},amp", good], "A100=1")
            self.assertEqual((status, [row[0] for row in started]), (0, ["good"]), batch[:80])
            self.assertIn("queue.csv:2: ", reported)

    def test_a_file_that_is_no_queue_is_refused_by_name(self) -> None:
        status, _, reported = self.run_round([], "A100")
        self.assertEqual(status, 2)
        for free in ("A100=-1", "A100=x", "A100=1,A100=2", "=1", "A100=99999999"):
            self.assertEqual(self.run_round([], free)[0], 2, free)
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(example.main([str(self.folder / "other.csv"), "--free", "A100=1"]), 2)
        self.assertIn("no column 'job_id'", err.getvalue())

    def test_numbers_of_a_submission_are_checked(self) -> None:
        known = estimates.Estimates(["A100"])
        for steps in (0, -1, True, 1.5, "10", float("nan"), 1 << 60, None):
            self.assertFalse(known.submit(self.submission("a", self.folder / "bert.job", steps)))  # type: ignore[arg-type]
            self.assertIn("steps must be an integer", known.refused["a"])
        self.assertTrue(known.submit(self.request("a", 1000)))
        self.assertEqual(known.refused, {})
        self.assertEqual(known.remaining_s("a", "A100", 2000), 0)
        self.assertEqual(known.remaining_s("a", "A100", -5), known.remaining_s("a", "A100"))
        for gpus in (0, -8, True, 1 << 30):
            with self.assertRaises(ValueError):
                example.decide([self.request("a", 10, gpus)], {"A100": 1}, known)
        fifo = self.folder / "pipe.job"
        os.mkfifo(fifo)
        self.assertFalse(known.submit(self.submission("pipe", fifo)))
        self.assertIn("not a regular file", known.refused["pipe"])

    def test_an_unreadable_header_is_named(self) -> None:
        """csv in Python 3.9 and 3.10 refuses a NUL, and newer ones read it as a part of the name."""
        queue = self.folder / "nul.csv"
        queue.write_bytes(b"job_id,path\0,steps,gpus\n")
        with self.assertRaisesRegex(ValueError, "nul.csv"):
            example.read_queue(str(queue))

    def test_rounds_of_random_submissions_keep_their_invariants(self) -> None:
        """No round raises, starts a job twice, or gives out more GPUs than are free."""
        random = Random(1)
        path = str(self.folder / "bert.job")
        hostile = ["", "-1", "0", "1", "8", "1e3", "nan", "inf", "9" * 30, "-" * 3000, "(" * 3000, "\0", "\x1b[2J", "é", "true",
                   "None", "1.5", " 1", "[]", "{}", "x" * 5000, "../../etc/passwd", path]  # fmt: skip
        for _ in range(60):
            rows = []
            for job in range(random.randrange(1, 12)):
                gpus = random.choice([1, 1, 2, 4, 8])
                row = [f"job{job}", path, str(random.randrange(1, 100000)), str(gpus), str(random.choice([1, 8, 16])), "amp"]
                is_hostile = random.random() < 0.4
                for cell in range(6):
                    if is_hostile and random.random() < 0.5:
                        row[cell] = random.choice(hostile)
                rows.append(row)
            queue = self.folder / "random.csv"
            free = {"A100": random.randrange(0, 12), "T4": random.randrange(0, 5)}
            with open(queue, "w", newline="") as file:
                file.write("job_id,path,steps,gpus,batch,precision\n")
                file.writelines(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)  # csv of 3.10 refuses "\0"
            requests, refused = example.read_queue(str(queue))
            self.assertLessEqual(len(requests) + len(refused), len(rows))
            known, left = estimates.Estimates(free), dict(free)
            for submission in requests:
                known.submit(submission)
            started = example.decide(requests, left, known)
            self.assertEqual(len({row[0] for row in started}), len(started))
            for gpu, count in free.items():
                used = sum(row[2] for row in started if row[1] == gpu)
                self.assertTrue(0 <= used <= count and left[gpu] == count - used)
            self.assertTrue(all(row[2] >= 1 and (row[3] is None or 0 < row[3] <= row[4]) for row in started))


if __name__ == "__main__":
    unittest.main()
