"""job.py: jobs are read, saved, frozen and inspected."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

import support

import mdot


class Reading(support.TestCase):
    def test_every_public_name_of_the_package_exists(self) -> None:
        self.assertEqual([name for name in mdot.__all__ if not hasattr(mdot, name)], [])

    def test_onnx_from_a_file_and_from_bytes_gives_one_job(self) -> None:
        file, data = mdot.Job.from_onnx(support.RESNET), mdot.Job.from_onnx(support.RESNET.read_bytes())
        self.assertEqual(list(file), list(data))
        self.assertEqual(file.parameters, 25557032)  # torchvision's own count

    def test_operators_have_types_settings_and_costs(self) -> None:
        job = mdot.Job.from_onnx(support.RESNET)
        first = job[0]
        self.assertEqual(first.type, "Conv")
        self.assertEqual(first.settings["kernel_h"], 7)
        self.assertEqual(first.settings["channels_out"], 64)
        self.assertEqual(first.per_sample["forward"].flops, (2 * 3 * 7 * 7 + 5) * 64 * 112 * 112)  # including its normalisation
        self.assertLess(first.per_sample["data_gradient"].flops, first.per_sample["weight_gradient"].flops)
        self.assertEqual(sum(op.parameters for op in job), job.parameters)
        self.assertEqual(job[-1].inputs, (len(job) - 2,))
        self.assertRaises(IndexError, lambda: job[len(job)])

    def test_names_of_modules_are_kept_by_default(self) -> None:
        named = mdot.Job.from_onnx(support.RESNET)
        self.assertEqual(named[0].module, "conv1")
        self.assertIsNone(mdot.Job.from_onnx(support.RESNET, keep_names=False)[0].module)

    def test_an_open_dimension_is_named(self) -> None:
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "'sequence'"):
            mdot.Job.from_onnx(support.BERT)
        shorter = mdot.Job.from_onnx(support.BERT, dims={"sequence": 64})
        self.assertEqual([op.type for op in shorter], [op.type for op in self.bert()])
        self.assertNotEqual(list(shorter), list(self.bert()))

    def test_a_length_stays_open(self) -> None:
        """The job of a symbolic length equals the file read at each length."""
        for name in ("sequence", "length"):
            job = mdot.Job.from_onnx(support.BERT, length=name)
            for length in (2, 32, 100, 128, 384, 512):  # a length of 1 expands nothing
                wanted = mdot.Job.from_onnx(support.BERT, dims={"sequence": length})
                found = job.with_length(length)
                self.assertEqual([op.type for op in found], [op.type for op in wanted])
                for one, other in zip(found, wanted):
                    for term in ("per_sample", "per_step"):
                        self.assertEqual(getattr(one, term), getattr(other, term), (length, one.type))
                peaks = [mdot.predict(j, "A100", 8, precision="amp").peak_memory_bytes for j in (found, wanted)]
                self.assertAlmostEqual(peaks[0], peaks[1], delta=1e-6 * peaks[1])
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "keep one of them"):
            mdot.Job.from_onnx(support.BERT, dims={"sequence": 64}, length="sequence")
        with self.assertRaisesRegex(mdot.Error, "'sequence'"):
            mdot.Job.from_onnx(support.BERT, length="width")

    def test_invalid_jobs_are_refused_by_name(self) -> None:
        with self.assertRaisesRegex(mdot.NotFoundError, "nowhere.onnx"):
            mdot.Job.from_onnx("nowhere.onnx")
        with self.assertRaisesRegex(mdot.MalformedError, "my bytes"):
            mdot.Job.from_onnx(b"\x12\x03abc\xff", name="my bytes")
        self.assertRaises(mdot.MalformedError, mdot.Job.from_bytes, b"")
        self.assertRaises(LookupError, mdot.Job.load, "nowhere.job")

    def test_reader_messages_are_warnings_at_the_calling_line(self) -> None:
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            mdot.Job.from_onnx(strange_model())
        self.assertEqual([one.category for one in reported], [mdot.JobWarning])
        self.assertIn("Strange", str(reported[0].message))
        self.assertEqual(Path(reported[0].filename).name, Path(__file__).name)


def strange_model() -> bytes:
    """y = Strange(x), an unknown operator, in ONNX's protobuf."""

    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    shape = field(1, bytes([0x08, 2])) + field(1, bytes([0x08, 3]))
    kind = field(1, bytes([0x08, 1]) + field(2, shape))
    node = field(1, b"x") + field(2, b"y") + field(4, b"Strange") + field(7, b"nowhere")
    graph = field(1, node) + field(2, b"g") + field(11, field(1, b"x") + field(2, kind))
    graph += field(12, field(1, b"y") + field(2, kind))
    opset = field(8, field(1, b"") + bytes([0x10, 17])) + field(8, field(1, b"nowhere") + bytes([0x10, 1]))
    return bytes([0x08, 8]) + field(7, graph) + opset


class Making(support.TestCase):
    def test_operators_of_a_job_make_the_same_job(self) -> None:
        for job in (self.bert(), mdot.Job.from_onnx(support.RESNET)):
            again = mdot.Job.from_operators(job, batch=job.batch, optimizer="AdamW")
            self.assertEqual(list(again), list(job))
            self.assertEqual((again.optimizer, again.batch, again.notes), ("adamw", job.batch, job.notes))
            requested = {"gpu": "A100", "batch": 16, "precision": "amp", "optimizer": "sgd"}
            # The file also holds the traits of the operator types.
            self.assertEqual(mdot.predict(again, **requested), mdot.predict(job, **requested))

    def test_the_optimizer_has_its_own_flops_and_bytes(self) -> None:
        self.assertGreater(mdot.optimizer_load("Adam", 1000).bytes_read, mdot.optimizer_load("sgd", 1000).bytes_read)
        self.assertRaises(mdot.InvalidArgumentError, mdot.optimizer_load, "lamb", 1000)
        self.assertLess(mdot.optimizer_load("lion", 1000).bytes_read, mdot.optimizer_load("adamw", 1000).bytes_read)

    def test_a_changed_operator_changes_the_job(self) -> None:
        job = mdot.Job.from_onnx(support.RESNET)
        wide = [dataclasses.replace(op, parameters=2 * op.parameters) for op in job]
        self.assertEqual(mdot.Job.from_operators(wide).parameters, 2 * job.parameters)

    def test_invalid_arguments_are_refused_by_name(self) -> None:
        first = mdot.Job.from_onnx(support.RESNET)[0]
        replace = dataclasses.replace
        for wrong, reason in (
            ([], "operator"),
            ([replace(first, inputs=(0,))], "0"),
            ([replace(first, settings={"kernel_x": 3})], "kernel_x"),
            ([replace(first, per_sample={"sideways": mdot.Load(1, 1, 1)})], "sideways"),
            ([replace(first, parameters=-1.0)], "from 0 to 2"),
            ([replace(first, type="Nonsense")], "Nonsense.*known=False"),
        ):
            with self.subTest(reason), self.assertRaisesRegex(mdot.Error, reason):
                mdot.Job.from_operators(wrong)
        self.assertEqual(mdot.Job.from_operators([replace(first, type="Nonsense", known=False)]).unknown_count, 1)


class Keeping(support.TestCase):
    def test_a_saved_job_loads_unchanged(self) -> None:
        job = self.bert()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bert.job"
            job.save(path)
            for again in (mdot.Job.load(path), mdot.Job.read(path), mdot.Job.from_bytes(path.read_bytes())):
                self.assertEqual(list(again), list(job))
                self.assertEqual(again.parameters, job.parameters)
            with self.assertRaisesRegex(mdot.InvalidArgumentError, "no dimension 'sequence'"):
                mdot.Job.read(path, dims=support.DIMS)
            damaged = bytearray(path.read_bytes())
            damaged[len(damaged) // 2] ^= 1
            self.assertRaises(mdot.CorruptError, mdot.Job.from_bytes, bytes(damaged))
            with self.assertRaisesRegex(mdot.NotFoundError, "no folder"):
                job.save(Path(folder) / "no folder" / "bert.job")

    def test_freezing_keeps_trained_parameters(self) -> None:
        job = mdot.Job.from_onnx(support.RESNET)
        frozen = job.freeze(["*"], trained=["fc"])
        self.assertEqual(frozen.parameters, 2048 * 1000 + 1000)
        self.assertEqual(frozen.frozen_parameters, job.parameters - frozen.parameters)
        with self.assertRaisesRegex(mdot.NotFoundError, "nothing.like"):
            job.freeze(["nothing.like"])

    def test_ready_jobs_are_read_by_name(self) -> None:
        ready = {job.name: job for job in mdot.ready_jobs()}
        self.assertIn("resnet50", ready)
        for name in ("resnet50", "gpt2"):
            self.assertAlmostEqual(mdot.Job.read(name).parameters, ready[name].parameters, delta=1)

    def test_ready_jobs_have_compiled_memory_in_each_type(self) -> None:
        for ready in mdot.ready_jobs():
            program = mdot.Job.read(ready.name).program
            assert program is not None, ready.name
            types = {record.precision for record in program.recorded}
            self.assertEqual({record.precision for record in program.recorded if record.compiled}, types, ready.name)

    def test_freezing_while_reading_equals_freezing_afterwards(self) -> None:
        afterwards = mdot.Job.from_onnx(support.RESNET).freeze(["*"], trained=["fc"])
        self.assertEqual(list(mdot.Job.from_onnx(support.RESNET, frozen=["*"], trained=["fc"])), list(afterwards))
        nameless = mdot.Job.from_onnx(support.RESNET, keep_names=False, frozen=["*"], trained=["fc"])
        self.assertEqual(nameless.parameters, afterwards.parameters)
        self.assertTrue(all(op.module is None for op in nameless))
        made = mdot.Job.from_operators(mdot.Job.from_onnx(support.RESNET), frozen=["*"], trained=["fc"])
        self.assertEqual(list(made), list(afterwards))
        with self.assertRaisesRegex(mdot.NotFoundError, "nothing.like"):
            mdot.Job.from_onnx(support.RESNET, frozen=["nothing.like"])

    def test_jobs_are_shared_between_threads(self) -> None:
        job = self.bert()
        expected = [op.type for op in job]
        seen: list[list[str]] = []
        threads = [threading.Thread(target=lambda: seen.append([op.type for op in job])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, [expected] * 4)

    def test_a_missing_pytorch_has_a_remedy(self) -> None:
        calls = ("from_torch(None)", "from_name('resnet50')", "from_transformers('GPT2LMHeadModel')")
        for call in calls:
            code = f"import sys; sys.modules['torch'] = None; import mdot; mdot.Job.{call}"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertRegex(done.stderr, r"NotFoundError: .*PyTorch 2.4 or newer, .* lacks: pip install torch\n$")


if __name__ == "__main__":
    unittest.main()
