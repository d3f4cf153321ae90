"""Stores: rows, jobs, outcomes, calibrations and drift, as `mdot store` has them."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import unittest
from pathlib import Path

import support

import mdot

try:
    from mdot.library.libraries import store as load_library

    load_library()
    MISSING = ""
except mdot.UnsupportedError as fault:
    MISSING = str(fault)

STEPS = support.SOURCE / "tests" / "data" / "steps_gavel.csv"


def add_rows(path: str, digest: str, first: int) -> None:
    """Adds ten rows from its own process."""
    with mdot.Store(path) as store:
        for i in range(10):
            store.add(digest, "A100", 8, float(first + i), host=f"n{first}")


@unittest.skipIf(MISSING, f"skipped: {MISSING}")
class Stores(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "site.store"
        self.store = mdot.Store(self.path)
        self.addCleanup(self.store.close)

    def test_a_row_has_what_was_added(self) -> None:
        job = mdot.Job.read(support.RESNET)
        self.store.add(job, "A100", 64, 161.5, settings={"precision": "amp", "gpus": 8}, software="torch 2.4.1", host="n1",
                       note="by hand", name="resnet", memory_gib=1000.5, measured_at=1790000000)  # fmt: skip
        (row,) = self.store.rows()
        self.assertEqual(len(self.store), 1)
        self.assertEqual((row.gpu_name, row.batch, row.ms, row.memory_gib), ("A100-SXM-40GB", 64, 161.5, 1000.5))
        self.assertEqual(row.settings, {"gpus": "8", "precision": "amp"})
        self.assertEqual((row.software, row.host, row.note, row.name), ("torch 2.4.1", "n1", "by hand", "resnet"))
        self.assertEqual(row.measured_at, 1790000000)
        (stored,) = self.store.jobs()
        self.assertEqual((stored.digest, stored.row_count), (row.digest, 1))
        self.assertEqual(len(self.store.job(row.digest)), len(job))
        self.assertEqual(self.store.rows(gpu="V100"), [])
        with self.assertRaises(mdot.InvalidArgumentError):
            self.store.add(job, "A100", 64, -1.0)
        with self.assertRaises(mdot.NotFoundError):
            self.store.add("0" * 32, "A100", 64, 1.0)
        with self.assertRaises(mdot.NotFoundError):
            self.store.job("0" * 32)

    def test_a_table_goes_in_and_out(self) -> None:
        counts = self.store.import_table(STEPS)
        self.assertEqual((counts.added_count, counts.known_count), (34, 0))
        self.assertEqual(self.store.import_table(STEPS).known_count, 34)
        (self.folder / "jobs").mkdir()
        self.store.write_jobs(self.folder / "jobs")
        table = self.folder / "all.csv"
        table.write_text(self.store.export_table(job_folder="jobs"))
        with mdot.Store(self.folder / "copy.store") as copy:
            self.assertEqual(copy.import_table(table).added_count, 34)
            self.assertEqual(copy.export_table(job_folder="jobs"), table.read_text())
        self.assertIn(STEPS.read_text().split("\n")[3].split(",")[-1], self.store.export_table(plain=True))

    def test_a_calibration_is_that_of_the_table(self) -> None:
        self.store.import_table(STEPS)
        predictor = mdot.Predictor()
        calibration = self.store.calibrate(predictor)
        direct = self.folder / "direct.cal"
        support.run(os.environ["MDOT_CLI"], "calibrate", str(STEPS), "-o", str(direct), "-q")
        self.assertEqual(calibration.row_count, 34)
        calibration.save(self.folder / "stored.cal")
        self.assertEqual((self.folder / "stored.cal").read_text(), direct.read_text())
        drift = {entry.gpu_name: entry for entry in self.store.drift(predictor)}
        self.assertGreater(drift["K80"].ratio, 1.3)
        self.assertEqual(drift["K80"].row_count, 10)

    def test_a_calibration_corrects_memory(self) -> None:
        self.store.add(mdot.Job.read(support.RESNET), "A100", 64, 100.0, memory_gib=9.0)
        self.assertEqual(self.store.calibrate(mdot.Predictor()).memory_row_count, 1)

    def test_outliers_are_found(self) -> None:
        job = mdot.Job.read(support.RESNET)
        for ms in (100.0, 101.0, 99.0, 150.0):
            self.store.add(job, "A100", 64, ms)
        self.assertEqual(self.store.refresh(), 4)
        self.assertEqual([row.ms for row in self.store.rows(outliers=True)], [150.0])
        (group,) = self.store.groups()
        self.assertEqual((group.row_count, group.outlier_count), (4, 1))

    def test_accounting_is_imported(self) -> None:
        counts = self.store.import_sacct("JobID|State|Elapsed\n7|TIMEOUT|1-00:00:00\n7.0|FAILED|1:00\n8|WHAT|1:00\n", "main")
        self.assertEqual((counts.added_count, counts.step_count), (1, 1))
        self.assertEqual(counts.malformed[0][0], 4)
        self.assertIn("WHAT", counts.malformed[0][1])
        (outcome,) = self.store.outcomes()
        self.assertEqual((outcome.cluster, outcome.outcome, outcome.elapsed_s), ("main", "timed-out", 86400))

    def test_processes_write_at_once(self) -> None:
        digest = self.store.add_job(mdot.Job.read(support.RESNET))
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=add_rows, args=(str(self.path), digest, 100 * k + 1)) for k in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            self.assertEqual(worker.exitcode, 0)
        self.assertEqual(len({row.ms for row in self.store.rows()}), 30)
        self.store.check()

    def test_a_damaged_store_is_recovered(self) -> None:
        self.store.import_table(STEPS)
        self.store.close()
        self.assertEqual(mdot.Store.migrate(self.path), 1)
        with self.path.open("r+b") as file:
            file.write(b"\xee" * 4096)
        with self.assertRaises(mdot.CorruptError):
            mdot.Store(self.path)
        copy = self.folder / "copy.store"
        self.assertEqual(mdot.Store.recover(self.path, copy), (34, 1, 0))
        with mdot.Store(copy, read_only=True) as store:
            self.assertEqual(len(store), 34)
            with self.assertRaises(mdot.InvalidArgumentError):
                store.refresh()


if __name__ == "__main__":
    if MISSING:
        print(f"skipped: {MISSING}")
        raise SystemExit(77)
    unittest.main()
