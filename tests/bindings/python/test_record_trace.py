"""Rows from torch.profiler traces. The traces here are small and handmade; torch/test_recorded_trainings.py reads
PyTorch's own."""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import support

import mdot
from mdot.recording.trace_file import read_trace

STEP_US = 20_000
DEVICES = [{"id": 0, "name": "Tesla V100-SXM2-32GB"}, {"id": 1, "name": "NVIDIA A100-SXM4-40GB"}]


def step(number: int, begin_us: float, duration_us: float = STEP_US) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": begin_us,
            "dur": duration_us}  # fmt: skip


def kernel(begin_us: float, duration_us: float, category: str = "kernel") -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": "gemm", "ts": begin_us, "dur": duration_us, "args": {"device": 1}}


def memory(kind: int, allocated: int, reserved: int) -> dict[str, Any]:
    arguments = {"Device Type": kind, "Device Id": 0, "Total Allocated": allocated, "Total Reserved": reserved}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 1, "args": arguments}


def trace(*events: dict[str, Any], **about: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": DEVICES, "traceEvents": list(events), **about}


def training() -> list[dict[str, Any]]:
    """Three steps of 20, 22 and 20 ms. In each, kernels overlap and are busy for 12 ms."""
    events: list[dict[str, Any]] = []
    for number, begin in ((5, 1_000_000.0), (6, 1_020_000.0), (7, 1_042_000.0)):
        events.append(step(number, begin))
        events += [kernel(begin + 1000, 8000), kernel(begin + 5000, 6000), kernel(begin + 15_000, 2000, "gpu_memcpy")]
    events.append({**step(5, 1_000_000.0, 90_000), "cat": "gpu_user_annotation"})
    events.append(kernel(500, 400_000))  # before the first step
    return events


class TraceCase(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "trace.json"

    def write(self, content: Any) -> Path:
        self.path.write_text(content if isinstance(content, str) else json.dumps(content))
        return self.path


class Traces(TraceCase):
    def test_step_is_the_median_of_consecutive_begins(self) -> None:
        found = read_trace(self.write(trace(*training())))
        self.assertAlmostEqual(found.step_ms, 21)  # between 20 and 22
        self.assertAlmostEqual(found.busy_ms, 12)
        self.assertEqual((found.step_count, found.kernel_count), (3, 9))
        self.assertEqual(found.gpu, "NVIDIA A100-SXM4-40GB")
        self.assertEqual((found.world_size, found.rank), (1, 0))
        self.assertIsNone(found.allocated_bytes)

    def test_compressed_trace_is_the_same(self) -> None:
        plain = read_trace(self.write(trace(*training())))
        path = self.folder / "trace.json.gz"
        path.write_bytes(gzip.compress(self.path.read_bytes()))
        self.assertEqual(read_trace(path), plain)

    def test_gap_in_the_numbers_is_left_out(self) -> None:
        found = read_trace(self.write(trace(step(1, 0), step(2, STEP_US), step(9, 900_000), step(10, 900_000 + STEP_US))))
        self.assertAlmostEqual(found.step_ms, 20)
        self.assertIsNone(found.gpu)

    def test_single_step_has_its_duration(self) -> None:
        self.assertAlmostEqual(read_trace(self.write(trace(step(3, 7, 12_500)))).step_ms, 12.5)

    def test_step_takes_at_least_as_long_as_the_gpu_is_busy(self) -> None:
        """The host runs ahead of the GPU in a short trace without a synchronisation."""
        steps, kernels = (step(1, 0, 2000), step(2, 2000, 2000)), (kernel(100, 30_000), kernel(30_100, 30_000))
        found = read_trace(self.write(trace(*steps, *kernels)))
        self.assertAlmostEqual(found.step_ms, 30)

    def test_memory_and_processes_are_read(self) -> None:
        events = [*training(), memory(1, 5 << 30, 6 << 30), memory(1, 4 << 30, 7 << 30), memory(0, 99 << 30, 0)]
        found = read_trace(self.write(trace(*events, distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8})))
        self.assertEqual((found.allocated_bytes, found.reserved_bytes), (5 << 30, 7 << 30))
        self.assertEqual((found.world_size, found.rank), (8, 3))

    def test_files_that_are_no_traces_are_refused(self) -> None:
        for content in ("", "{", "[1, 2", '{"traceEvents": 3}', "3", '"text"', "{}", "[" * 100_000):
            with self.subTest(content[:20]), self.assertRaises(mdot.MalformedError) as caught:
                read_trace(self.write(content))
            self.assertIn("trace.json", str(caught.exception))
        self.path.write_bytes(gzip.compress(json.dumps(trace(*training())).encode())[:-20])
        with self.assertRaises(mdot.MalformedError):
            read_trace(self.path)

    def test_odd_events_are_passed_over(self) -> None:
        odd: list[Any] = [None, 3, {}, {"name": 4, "ph": "X"}, {**step(1, 0), "ts": "now"}, {**kernel(1, 2), "args": 7},
                          {**kernel(STEP_US, -5)}, {"name": "[memory]", "args": {"Device Type": 1, "Total Allocated": "all"}}]  # fmt: skip
        self.assertAlmostEqual(read_trace(self.write(trace(*odd, step(8, 0)))).step_ms, 20)

    def test_trace_without_steps_names_the_remedy(self) -> None:
        with self.assertRaises(mdot.NotFoundError) as caught:
            read_trace(self.write(trace(kernel(1, 2))))
        self.assertIn("profiler.step()", str(caught.exception))
        with self.assertRaises(mdot.NotFoundError):
            read_trace(self.folder / "nowhere.json")


class Rows(TraceCase):
    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "measured.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def test_command_appends_a_row_that_calibrate_reads(self) -> None:
        table = self.folder / "measured.csv"
        self.write(trace(*training(), memory(1, 5 << 30, 6 << 30), distributedInfo={"rank": 0, "world_size": 4}))
        command = (sys.executable, "-m", "mdot", "record-trace", str(self.path), "--job", str(support.RESNET), "-t", str(table),
                   "--batch", "64", "--precision", "amp", "--optimizer", "adamw", "--torch", "2.4")  # fmt: skip
        self.assertIn("A100-SXM4-40GB, batch 64: 21.000 ms", support.run(*command))
        support.run(*command, "--parallel", "dp=2,tp=1,zero=1", "--gpus", "2")
        rows = self.rows()
        self.assertEqual([(row["gpu"], row["batch"], row["ms"], row["gpus"]) for row in rows],
                         [("A100-SXM-40GB", "64", "21", "4"), ("A100-SXM-40GB", "64", "21", "2")])  # fmt: skip
        self.assertEqual(rows[0]["gib"], "5")
        self.assertIn("source=torch.profiler; trace=trace.json; steps=3; busy_ms=12; kernels=9; rank=0; "
                      f"allocated_bytes={5 << 30}; reserved_bytes={6 << 30}", rows[0]["note"])  # fmt: skip
        support.run(os.environ["MDOT_CLI"], "calibrate", str(table), "-o", str(self.folder / "site.cal"), "--quiet")

    def test_function_takes_a_job_and_names_a_missing_gpu(self) -> None:
        job = mdot.Job.read(support.RESNET)
        table = self.folder / "measured.csv"
        with self.assertRaises(mdot.InvalidArgumentError) as caught:
            mdot.record_trace(self.write(trace(step(1, 0))), job, table)
        self.assertIn("--gpu", str(caught.exception))
        with self.assertRaises(mdot.InvalidArgumentError):
            mdot.record_trace(self.path, job, table, gpu="B17")
        self.assertFalse(table.exists())
        found = mdot.record_trace(self.path, job, table, gpu="T4", batch=8)
        self.assertAlmostEqual(found.step_ms, 20)
        self.assertTrue((self.folder / self.rows()[0]["job"]).is_file())


if __name__ == "__main__":
    unittest.main()
