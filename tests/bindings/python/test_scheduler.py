"""integrations/scheduler_python: the jobs that a round starts. Bad files do not delay a round."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

import support

sys.path.insert(0, str(support.SOURCE / "integrations" / "scheduler_python"))

import estimates  # noqa: E402 - the path must be known first
import round as example  # noqa: E402

import mdot  # noqa: E402


class Round(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.job = self.bert()
        self.job.save(self.folder / "bert.job")

    def request(self, job_id: str, steps: int, **options: object) -> estimates.Request:
        return estimates.Request(job_id, self.folder / "bert.job", steps, {"batch": 16, **options})

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
            self.assertFalse(known.submit(estimates.Request(name, path, 10)))
        self.assertFalse(known.submit(estimates.Request("nowhere", self.folder / "nowhere", 10)))
        self.assertFalse(known.submit(estimates.Request("folder", self.folder, 10)))
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

    def test_a_malformed_queue_is_refused_by_name(self) -> None:
        status, _, reported = self.run_round(["a,b.job,many,1,8,amp"], "A100=8")
        self.assertEqual(status, 2)
        self.assertIn("queue.csv:2", reported)
        status, _, reported = self.run_round([], "A100")
        self.assertEqual(status, 2)


if __name__ == "__main__":
    unittest.main()
