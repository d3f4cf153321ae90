"""mdot_store: rows, jobs, outcomes, calibrations and drift, as mdot-store has them; structs as the C compiler has them. The
environment names the libraries (MDOT_LIBRARIES), the command (MDOT_CLI), the compiler (MDOT_CC) and the jobs (MDOT_EXAMPLE_JOBS)."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import io
import multiprocessing
import os
import re
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import mdot
import mdot_store
from mdot.library.structs.base import Sized
from mdot_store import structs
from mdot_store.library import FUNCTIONS

CLUSTER = Path(__file__).resolve().parents[2]
JOBS = Path(os.environ["MDOT_EXAMPLE_JOBS"])
RESNET = JOBS / "resnet50.onnx"
STEPS = JOBS / "steps_gavel.csv"

# Public functions that Python does not use, with reasons.
NOT_NEEDED = {
    "mdotstore_version": "libraries of one version are opened together",
    "mdotstore_version_number": "likewise",
    "mdot_store_digest": "mdot_store_add_job returns it",
    "mdot_store_add_outcomes": "accounting comes as text",
}


def run(*command: str) -> str:
    """Returns the standard output of a program, which runs without the sanitizer library of this process."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def add_rows(path: str, digest: str, first: int) -> None:
    """Adds ten rows from a process of its own."""
    with mdot_store.Store(path) as store:
        for i in range(10):
            store.add(digest, "A100", 8, float(first + i), host=f"n{first}")


class Stores(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", mdot.Warning)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "site.store"
        self.store = mdot_store.Store(self.path)
        self.addCleanup(self.store.close)

    def test_a_row_has_what_was_added(self) -> None:
        job = mdot.Job.read(RESNET)
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
        with mdot_store.Store(self.folder / "copy.store") as copy:
            self.assertEqual(copy.import_table(table).added_count, 34)
            self.assertEqual(copy.export_table(job_folder="jobs"), table.read_text())
        self.assertIn(STEPS.read_text().split("\n")[3].split(",")[-1], self.store.export_table(plain=True))

    def test_a_calibration_is_that_of_the_table(self) -> None:
        self.store.import_table(STEPS)
        predictor = mdot.Predictor()
        calibration = self.store.calibrate(predictor)
        direct = self.folder / "direct.cal"
        run(os.environ["MDOT_CLI"], "calibrate", str(STEPS), "-o", str(direct), "-q")
        self.assertEqual(calibration.row_count, 34)
        calibration.save(self.folder / "stored.cal")
        self.assertEqual((self.folder / "stored.cal").read_text(), direct.read_text())
        drift = {entry.gpu_name: entry for entry in self.store.drift(predictor)}
        self.assertGreater(drift["K80"].ratio, 1.3)
        self.assertEqual(drift["K80"].row_count, 10)

    def test_a_calibration_corrects_memory(self) -> None:
        self.store.add(mdot.Job.read(RESNET), "A100", 64, 100.0, memory_gib=9.0)
        self.assertEqual(self.store.calibrate(mdot.Predictor()).memory_row_count, 1)

    def test_outliers_are_found(self) -> None:
        job = mdot.Job.read(RESNET)
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
        digest = self.store.add_job(mdot.Job.read(RESNET))
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
        self.assertEqual(mdot_store.Store.migrate(self.path), 1)
        with self.path.open("r+b") as file:
            file.write(b"\xee" * 4096)
        with self.assertRaises(mdot.CorruptError):
            mdot_store.Store(self.path)
        copy = self.folder / "copy.store"
        self.assertEqual(mdot_store.Store.recover(self.path, copy), (34, 1, 0))
        with mdot_store.Store(copy, read_only=True) as store:
            self.assertEqual(len(store), 34)
            store.refresh()  # in memory
            self.assertEqual(store.hosts(), [])


class Library(unittest.TestCase):
    def declared(self) -> list[type[Sized]]:
        found = [kind for _, kind in inspect.getmembers(structs, inspect.isclass) if issubclass(kind, Sized)]
        return [kind for kind in found if kind.__name__.startswith("mdot_store")]

    def test_every_public_function_and_struct_is_there(self) -> None:
        exported = set(re.findall(r"^ +(mdot\w+);", (CLUSTER / "store" / "libmdotstore.map").read_text(), re.M))
        used: set[str] = set()
        for path in Path(mdot_store.__file__).parent.glob("*.py"):
            if path.name != "library.py":
                used |= set(re.findall(r"\.(mdot_(?:store|outcome)_\w+)\b", path.read_text()))
        kinds = {kind.__name__ for kind in self.declared()}
        self.assertEqual(exported - (used - kinds), set(NOT_NEEDED))
        self.assertEqual(set(FUNCTIONS), exported - set(NOT_NEEDED))
        header = re.sub(r"/\*.*?\*/", "", (CLUSTER / "include/mdot/mdot_store.h").read_text(), flags=re.S)
        self.assertEqual(set(re.findall(r"typedef struct (mdot_\w+) \{", header)), kinds)

    def test_structs_match_the_c_compilers_layout(self) -> None:
        lines, expected = [], []
        for kind in self.declared():
            name = kind.__name__
            lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(kind)}")
            for field in kind._fields_:
                place = getattr(kind, field[0])
                lines.append(f'    printf("{name}.{field[0]} %zu %zu\\n", offsetof({name}, {field[0]}), '
                             f"sizeof((({name} *)0)->{field[0]}));")
                expected.append(f"{name}.{field[0]} {place.offset} {place.size}")
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "layout.c", Path(folder) / "layout"
            text = '#include "mdot/mdot_store.h"\n#include <stdio.h>\n'
            source.write_text(text + "int main(void)\n{\n" + "\n".join(lines) + "\n    return 0;\n}\n")
            includes = [f"-I{folder}" for folder in (str(CLUSTER / "include"), *os.environ["MDOT_INCLUDE"].split(":"))]
            run(os.environ["MDOT_CC"], *includes, str(source), "-o", str(program))
            self.assertEqual(run(str(program)).split("\n")[:-1], expected)

    def test_the_old_name_says_where_the_store_is(self) -> None:
        with self.assertRaisesRegex(AttributeError, "mdot_store.Store"):
            mdot.Store

    def test_the_readmes_example_runs(self) -> None:
        (example,) = re.findall(r"^```python\n(.*?)^```", (CLUSTER / "python" / "README.md").read_text(), re.M | re.S)
        reported = io.StringIO()
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(reported):
            os.makedirs(os.path.join(folder, "examples"))
            os.symlink(JOBS, os.path.join(folder, "examples", "jobs"))
            os.chdir(folder)
            try:
                exec(compile(example, "README.md", "exec"), {"__name__": "example"})
            finally:
                os.chdir(before)
        self.assertIn("torch 2.4.1", reported.getvalue())


if __name__ == "__main__":
    unittest.main()
