"""mdot.record: rows of measured steps, for a training that exists only as times. torch/test_recorded_trainings.py
records real trainings."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import support

import mdot
from mdot.__main__ import main
from mdot.recording import observed
from mdot.recording.overhead import measure


class Time:
    """A clock for host and device, moved by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class LateDevice:
    """A device that reaches marks only when the test lets it."""

    def __init__(self, time: Time) -> None:
        self.time, self.reached, self.waits, self.free = time, 0.0, 0, 0

    def mark(self) -> float:
        return self.time.now

    def elapsed_ms(self, begin: float, end: float) -> float | None:
        return 1e3 * (end - begin) if end <= self.reached else None

    def release(self, mark: float) -> None:
        self.free += 1

    def wait(self, mark: float) -> None:
        self.waits += 1
        self.reached = mark


class RecordingCase(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.table = self.folder / "measured.csv"
        self.time = Time()

    def recorder(self, **arguments: Any) -> mdot.Recorder:
        """A recorder for a training on an A100, with the test's clock."""
        values = {"batch": 32, "gpu": "A100", "optimizer": "adamw", "host": self.time, **arguments}
        return mdot.Recorder(values.pop("job", support.RESNET), self.table, **values)

    def train(self, recorder: mdot.Recorder, steps: int, ms: float = 20.0) -> None:
        for _ in range(steps):
            self.time.now += 1e-3 * ms
            recorder.step()

    def rows(self) -> list[dict[str, str]]:
        if not self.table.exists():
            return []
        with self.table.open(newline="") as file:
            return list(csv.DictReader(file))

    @contextmanager
    def warning(self, part: str) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", mdot.RecordingWarning)
            yield
        texts = [str(entry.message) for entry in caught if issubclass(entry.category, mdot.RecordingWarning)]
        self.assertTrue(any(part in text for text in texts), f"{part!r} is not in {texts}")


class Steps(RecordingCase):
    def test_row_has_the_time_after_the_warmup(self) -> None:
        with self.recorder(precision="amp") as recorder:
            self.train(recorder, 10, 500)
            self.train(recorder, 60, 20)
        (row,) = self.rows()
        self.assertEqual((row["gpu"], row["batch"], row["precision"], row["optimizer"]),
                         ("A100-SXM-40GB", "32", "amp-fp16", "adamw"))  # fmt: skip
        self.assertAlmostEqual(float(row["ms"]), 20, places=6)
        assert recorder.result is not None
        self.assertEqual(recorder.result.windows, 5)
        self.assertIn("steps=50; windows=5; spread=0.0000; stalled=0; interrupted=0", row["note"])

    def test_stalls_and_interruptions_are_excluded(self) -> None:
        with self.recorder() as recorder:
            self.train(recorder, 20)
            for _ in range(5):  # epochs: validation, and a first step that waits for data
                recorder.interrupt("evaluation")
                self.train(recorder, 1, 30)
                self.train(recorder, 1, 800)
                self.train(recorder, 8, 20)
        assert recorder.result is not None
        self.assertAlmostEqual(recorder.result.step_ms, 20)
        self.assertEqual(recorder.result.notes["interrupted"], "5")
        self.assertEqual(recorder.result.notes["stalled"], "5")

    def test_step_is_a_step_of_the_optimizer(self) -> None:
        with self.recorder(accumulate=4) as recorder:
            self.train(recorder, 4 * 60, 5)
        (row,) = self.rows()
        self.assertAlmostEqual(float(row["ms"]), 20)
        self.assertEqual(row["accumulate"], "4")

    def test_step_with_other_samples_is_excluded(self) -> None:
        with self.recorder() as recorder:
            for i in range(120):
                is_last = i % 4 == 3
                self.time.now += 0.010 if is_last else 0.020
                recorder.step(samples=7 if is_last else 32)
        assert recorder.result is not None
        self.assertAlmostEqual(recorder.result.step_ms, 20)

    def test_step_with_other_passes_is_excluded(self) -> None:
        with self.recorder() as recorder:
            for i in range(120):
                self.time.now += 0.010 if i % 4 == 3 else 0.020
                recorder.end_step(1 if i % 4 == 3 else 2)
        assert recorder.result is not None
        self.assertAlmostEqual(recorder.result.step_ms, 20)
        self.assertEqual(recorder.result.configuration.accumulate, 2)

    def test_waiting_for_data_is_noted(self) -> None:
        for passes in (1, 3):
            with self.subTest(passes), self.recorder(accumulate=passes) as recorder:
                for _ in range(60 * passes):
                    self.time.now += 0.005
                    recorder.begin()
                    self.train(recorder, 1, 15)
            assert recorder.result is not None
            self.assertEqual(recorder.result.notes["data_wait"], "0.250")
            self.assertAlmostEqual(recorder.result.configuration.loader_rate, recorder.result.configuration.batch / 0.02)
            self.assertEqual(self.rows()[-1]["loader-rate"], f"{recorder.result.configuration.loader_rate:.9g}")
            self.assertAlmostEqual(recorder.result.step_ms, 20 * passes)

    def test_row_is_written_when_recording_is_complete(self) -> None:
        recorder = self.recorder(seconds=2)
        self.train(recorder, 10 + 90)
        self.assertEqual(self.rows(), [])
        self.train(recorder, 20)
        self.assertEqual(len(self.rows()), 1)
        self.train(recorder, 500, 70)
        recorder.finish()
        (row,) = self.rows()
        self.assertAlmostEqual(float(row["ms"]), 20)

    def test_row_is_written_after_an_exception(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            with self.recorder() as recorder:
                self.train(recorder, 60)
                raise KeyboardInterrupt
        self.assertEqual(len(self.rows()), 1)

    def test_too_few_steps_give_a_warning_and_no_row(self) -> None:
        with self.warning("3 windows of 10"):
            with self.recorder() as recorder:
                self.train(recorder, 30)
        self.assertIsNone(recorder.result)
        self.assertEqual(self.rows(), [])
        with self.warning("no step was recorded"), self.recorder():
            pass

    def test_hook_brackets_steps(self) -> None:
        hook = mdot.StepHook(self.recorder(accumulate=2))

        def train_step(ms: float) -> float:
            self.time.now += 1e-3 * ms
            return ms

        step = hook.wrap(train_step)
        for i in range(70):
            self.assertEqual(step(20), 20)
            if i % 10 == 9:
                with hook.paused("checkpoint"):
                    self.time.now += 0.03
        recorded = hook.close()
        assert recorded is not None
        self.assertAlmostEqual(recorded.step_ms, 20)
        self.assertEqual(recorded.configuration.accumulate, 2)
        self.assertGreaterEqual(int(recorded.notes["interrupted"]), 6)


class Devices(RecordingCase):
    def test_late_device_is_waited_for_once(self) -> None:
        device = LateDevice(self.time)
        with self.recorder(clock=device) as recorder:
            self.train(recorder, 60)
            self.assertEqual((device.waits, device.free), (0, 0))
        self.assertEqual(device.waits, 1)
        self.assertGreater(device.free, 50)
        assert recorder.result is not None
        self.assertAlmostEqual(recorder.result.step_ms, 20)

    def test_marks_are_shared_by_short_steps(self) -> None:
        class Costly(LateDevice):
            marks = 0

            def mark(self) -> float:
                self.marks += 1
                self.time.now += 5e-6
                return self.time.now

        device = Costly(self.time)
        device.reached = float("inf")
        with self.recorder(clock=device) as recorder:
            self.train(recorder, 1010, 1)
        self.assertLess(device.marks, 10 + 1000 / 9)  # 5 us are 0.5 % of a step: at least ten steps share a mark
        assert recorder.result is not None
        self.assertAlmostEqual(recorder.result.step_ms, 1, places=2)

    def test_memory_is_read_until_the_first_evaluation(self) -> None:
        peaks = iter([(3 << 30, 4 << 30), (6 << 30, 8 << 30)])
        with mock.patch.object(observed, "peak_memory", lambda _: next(peaks)):
            with self.recorder() as recorder:
                self.train(recorder, 80)
                recorder.interrupt("evaluation")
                self.train(recorder, 80)
        (row,) = self.rows()
        self.assertEqual(row["gib"], "3")
        self.assertIn(f"allocated_bytes={3 << 30}; reserved_bytes={4 << 30}", row["note"])

    def test_training_without_a_gpu_has_a_result_and_no_row(self) -> None:
        with self.warning("no GPU of PyTorch"), self.recorder(gpu=None) as recorder:
            self.train(recorder, 60)
        assert recorder.result is not None
        self.assertAlmostEqual(recorder.result.step_ms, 20)
        self.assertEqual(self.rows(), [])

    def test_fault_in_a_foreign_object_does_not_end_the_training(self) -> None:
        class Odd:
            def parameters(self) -> Any:
                raise RuntimeError("weights are elsewhere")

        for patched in ("device_of", "peak_memory"):
            with self.subTest(patched), mock.patch.object(observed, patched, lambda *_: Odd().parameters()):
                with self.warning("RuntimeError: weights are elsewhere"), self.recorder(gpu="A100") as recorder:
                    self.train(recorder, 60)
                self.assertEqual(self.rows(), [])

    def test_unknown_gpu_gives_a_warning_at_the_first_step(self) -> None:
        recorder = self.recorder(gpu="B17")
        with self.warning("B17"):
            self.train(recorder, 1)
        self.train(recorder, 60)
        recorder.finish()
        self.assertEqual(self.rows(), [])

    def test_only_rank_0_records(self) -> None:
        with mock.patch.dict(os.environ, {"RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}):
            with self.recorder() as recorder:
                self.train(recorder, 60)
        self.assertEqual(self.rows(), [])
        with mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}):
            with self.recorder(zero=2) as recorder:
                self.train(recorder, 60)
        (row,) = self.rows()
        self.assertEqual((row["gpus"], row["nodes"], row["parallel"]), ("8", "2", "zero=2"))


class Tables(RecordingCase):
    def calibrate(self) -> mdot.Calibration:
        """Fits the table with the command and with Python, with the same number of rows."""
        output = self.folder / "site.cal"
        support.run(os.environ["MDOT_CLI"], "calibrate", str(self.table), "-o", str(output), "--quiet")
        support.run(sys.executable, "-m", "mdot", "calibrate", str(self.table), "-o", str(self.folder / "python.cal"))
        found = mdot.Calibration.load(output)
        self.assertEqual(mdot.Calibration.load(self.folder / "python.cal").row_count, found.row_count)
        return found

    def test_calibrate_reads_rows_of_all_kinds(self) -> None:
        for options in (
            {},
            {"precision": "amp-bf16", "layout": "nhwc", "compiled": True, "torch": "2.15.0+cu132", "accumulate": 2},
            {"gpus": 16, "nodes": 2, "data_parallel": 16, "zero": 1, "link": "pcie", "network": "100Gb/s"},
            {"data_parallel": 2, "tensor_parallel": 2, "sequence_parallel": 1, "link": 40.0, "checkpoint": "selective"},
        ):
            with self.recorder(job=self.bert(), **{"batch": 4, **options}) as recorder:
                self.train(recorder, 80 * recorder.usual_passes)
        self.assertEqual(self.calibrate().row_count, 4)

    def test_job_object_is_saved_beside_the_table(self) -> None:
        job = mdot.Job.read(support.RESNET)
        for batch in (16, 32):
            with self.recorder(job=job, batch=batch, optimizer=None) as recorder:
                self.train(recorder, 60)
        names = {row["job"] for row in self.rows()}
        self.assertEqual(len(names), 1)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), sorted([*names, "measured.csv"]))
        self.assertEqual(self.calibrate().row_count, 2)

    def test_bound_dimensions_are_part_of_the_saved_job(self) -> None:
        with self.recorder(job=support.BERT, dims=support.DIMS) as recorder:
            self.train(recorder, 60)
        saved = mdot.Job.read(self.folder / self.rows()[0]["job"])
        self.assertEqual(len(saved), len(self.bert()))

    def test_path_of_a_job_is_relative_to_the_table(self) -> None:
        before = os.getcwd()
        os.chdir(support.SOURCE)
        try:
            with self.recorder(job="examples/jobs/resnet50.onnx") as recorder:
                os.chdir(self.folder)
                self.train(recorder, 60)
        finally:
            os.chdir(before)
        self.assertTrue((self.folder / self.rows()[0]["job"]).samefile(support.RESNET))
        self.assertEqual(self.calibrate().row_count, 1)

    def test_processes_append_to_one_table_at_once(self) -> None:
        program = (
            "import sys, mdot\n"
            "now = [0.0]\n"
            "for batch in range(1, 11):\n"
            "    arguments = {'batch': batch, 'gpu': 'A100', 'optimizer': 'sgd', 'host': lambda: now[0]}\n"
            "    with mdot.Recorder(sys.argv[1], sys.argv[2], **arguments) as r:\n"
            "        for _ in range(60):\n"
            "            now[0] += 0.01\n"
            "            r.step()\n"
        )
        job = self.folder / "resnet.job"
        mdot.Job.read(support.RESNET).save(job)
        command = [sys.executable, "-c", program, str(job), str(self.table)]
        processes = [subprocess.Popen(command) for _ in range(4)]
        self.assertEqual([process.wait() for process in processes], [0] * 4)
        rows = self.rows()
        self.assertEqual(len(rows), 40)
        self.assertEqual({row["ms"] for row in rows}, {"10"})
        self.assertEqual(self.calibrate().row_count, 40)

    def test_table_that_lacks_a_column_gives_a_warning(self) -> None:
        self.table.write_text("job,gpu,batch,ms\n")
        with self.warning("no column precision"), self.recorder() as recorder:
            self.train(recorder, 60)
        self.assertEqual(self.table.read_text(), "job,gpu,batch,ms\n")
        self.assertIsNotNone(recorder.result)


class Arguments(RecordingCase):
    def test_wrong_arguments_raise_before_the_training(self) -> None:
        for fault, arguments in (
            (TypeError, {"colour": "red"}),
            (mdot.InvalidArgumentError, {"precision": "fp17"}),
            (mdot.InvalidArgumentError, {"batch": 0}),
            (mdot.InvalidArgumentError, {"batch": True}),
            (mdot.InvalidArgumentError, {"batch": object()}),
            (mdot.InvalidArgumentError, {"warmup_steps": 0}),
            (mdot.InvalidArgumentError, {"window_steps": 2000}),
            (mdot.NotFoundError, {"job": "nowhere.job"}),
        ):
            with self.subTest(arguments), self.assertRaises(fault):
                self.recorder(**arguments)
        with self.assertRaises(mdot.NotFoundError):
            mdot.record(support.RESNET, "/nowhere/measured.csv")

    def test_batch_of_a_loader_is_found(self) -> None:
        class Sampler:
            batch_size = 48

        class Loader:
            batch_size = None
            batch_sampler = Sampler()

        with self.recorder(batch=Loader()) as recorder:
            self.train(recorder, 60)
        self.assertEqual(self.rows()[0]["batch"], "48")

    def test_missing_batch_gives_a_warning(self) -> None:
        with self.warning("batch is unknown"), self.recorder(batch=None) as recorder:
            self.train(recorder, 60)
        self.assertEqual(self.rows(), [])

    def test_software_names_python_and_the_host(self) -> None:
        found = observed.software()
        self.assertEqual(found["python"], ".".join(map(str, sys.version_info[:3])))
        self.assertTrue(found["host"])


class OverheadOfAStep(support.TestCase):
    def test_command_prints_the_overhead(self) -> None:
        """The status depends on the machine, and is left to the user of the command."""
        share = measure(10, 2000).share
        self.assertTrue(0 < share < 1, share)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            main(["record-overhead", "--steps", "1000"])
        self.assertIn("us per step", output.getvalue())

    def test_overhead_refuses_impossible_steps(self) -> None:
        for step_ms, steps in ((0, 1000), (float("nan"), 1000), (10, 10)):
            with self.assertRaises(mdot.InvalidArgumentError):
                measure(step_ms, steps)


if __name__ == "__main__":
    unittest.main()
