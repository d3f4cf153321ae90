"""artefact.py: the content of an artefact, and entry points on named tensors."""

from __future__ import annotations

import array
import tempfile
import unittest
from pathlib import Path

import support

import mdot

MODEL = support.SOURCE / "weights" / "predictor.onnx"


class Artefact(support.TestCase):
    def test_entries_and_images_match_inspect(self) -> None:
        predictor = mdot.Predictor()
        reported = support.inspect(predictor.path)
        self.assertEqual([entry.name for entry in predictor.entries], [entry["name"] for entry in reported["entries"]])
        for ours, theirs in zip(predictor.entries, reported["entries"]):
            self.assertEqual([tensor.name for tensor in ours.inputs], [one["name"] for one in theirs["inputs"]])
            self.assertEqual([tensor.dtype for tensor in ours.outputs], [one["dtype"] for one in theirs["outputs"]])
            self.assertEqual([bucket.max_length for bucket in ours.buckets], [b["max_length"] for b in theirs["buckets"]])
            self.assertTrue(all(bucket.kernels and bucket.flops > 0 for bucket in ours.buckets))
            self.assertTrue(ours.has_length)
        self.assertEqual([image.target for image in predictor.images], [image["target"] for image in reported["images"]])
        for image in predictor.images:
            self.assertEqual(len(image.kernels), sum(len(entry.buckets) for entry in predictor.entries))
            self.assertTrue(all(kernel.threads == 1 and kernel.scratch_bytes > 0 for kernel in image.kernels))
        evaluate = next(entry for entry in predictor.entries if entry.name == "evaluate")
        configuration = next(tensor for tensor in evaluate.inputs if tensor.name == "configuration")
        self.assertEqual(set(configuration.columns), set(reported["configuration"]["reads"]))
        self.assertIsNone(predictor.device_fault)

    def test_an_entry_point_runs_on_named_tensors(self) -> None:
        """Entry "encode" of a job with one operator gives equal rows, and a second run gives the same result."""
        predictor = mdot.Predictor()
        encode = predictor.entries[0]
        self.assertEqual((encode.name, encode.inputs[0].name), ("encode", "operator_type"))
        length = 5
        inputs = {}
        for tensor in encode.inputs:
            count = 1
            for extent in tensor.shape(length):
                count *= extent
            flat = array.array({"i64": "q", "f32": "f"}[tensor.dtype], [1] * count)
            inputs[tensor.name] = memoryview(flat).cast("B").cast(flat.typecode, list(tensor.shape(length)))
        outputs = predictor.run(inputs, "encode")
        self.assertEqual({name: view.shape for name, view in outputs.items()},
                         {tensor.name: tensor.shape(length) for tensor in encode.outputs})  # fmt: skip
        rows = outputs["encoding_rows"].tolist()
        self.assertEqual(rows[0], rows[length - 1])  # all rows are equal
        self.assertTrue(any(value != 0 for value in rows[0]))
        again = mdot.Predictor(threads=2).run(inputs, "encode")
        self.assertEqual(again["encoding_rows"].tolist(), rows)

        missing = {name: view for name, view in inputs.items() if name != "operator_load"}
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "takes 4 inputs; the call passes 3"):
            predictor.run(missing, "encode")
        renamed = {**missing, "operator_lode": inputs["operator_load"]}
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "operator_lode"):
            predictor.run(renamed, "encode")
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "no entry point 'predict'; its entry points are encode"):
            predictor.run(inputs)
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "'operator_count' is a "):
            predictor.run({**inputs, "operator_count": [1.0] * length}, "encode")
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "format 'c'"):
            predictor.run({**inputs, "operator_count": memoryview(b"12345").cast("c")}, "encode")
        with self.assertRaises(mdot.Error):
            predictor.run({**inputs, "operator_count": array.array("d", [1.0] * length)}, "encode")
        with self.assertRaises(mdot.Error):
            predictor.run({**inputs, "operator_count": array.array("f", [1.0] * (length + 1))}, "encode")

    def test_items_of_any_length_match_single_calls(self) -> None:
        """An item with wrong names, shapes or length is refused before any item runs."""
        predictor, configuration = mdot.Predictor(), mdot.Configuration(gpu="A100", batch=16)
        jobs = [self.bert(), mdot.Job.from_onnx(support.RESNET)]
        items = [predictor.inputs_of(job, configuration, "encode") for job in jobs * 2]
        together = predictor.run_many(items, "encode")
        self.assertEqual(len(together), 4)
        for inputs, outputs in zip(items, together):
            for name, view in predictor.run(inputs, "encode").items():
                self.assertEqual(outputs[name].shape, view.shape)
                self.assertEqual(outputs[name].tolist(), view.tolist())
        self.assertEqual(predictor.run_many([], "encode"), [])
        self.assertGreaterEqual(predictor.entries[0].items_together, 1)
        less = {name: view for name, view in items[0].items() if name != "operator_load"}
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "item 1 lacks the input 'operator_load'"):
            predictor.run_many([items[0], less], "encode")
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "item 0: 'encode' has no input 'more'"):
            predictor.run_many([{**items[0], "more": items[0]["operator_count"]}], "encode")
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "item 0: input 'operator_count' must be operator_count f32"):
            predictor.run_many([{**items[0], "operator_count": items[1]["operator_count"]}], "encode")

    def test_an_entry_run_on_job_inputs_predicts_the_job(self) -> None:
        predictor, job = mdot.Predictor(), self.bert()
        configuration = mdot.Configuration(gpu="A100", batch=16, optimizer_kernels="fused")
        inputs = predictor.inputs_of(job, configuration, "evaluate")
        columns = predictor.run(inputs, "evaluate")["step_ms"].tolist()[1]
        step_ms = predictor.predict(job, "A100", 16, optimizer_kernels="fused").step_ms
        self.assertTrue(all(abs(column - step_ms) < 1e-3 * step_ms for column in columns))
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "no entry point 'predict'; its entry points are encode"):
            predictor.inputs_of(job, configuration)

    def test_threads_give_the_same_answers(self) -> None:
        job = self.bert()
        one, two = mdot.Predictor(threads=1), mdot.Predictor(threads=2)
        self.assertEqual(one.predict(job, "A100", 16), two.predict(job, "A100", 16))
        with self.assertRaises(mdot.InvalidArgumentError):
            mdot.Predictor(threads=1 << 20).predict(job, "A100", 16)


class Checking(support.TestCase):
    def test_a_folder_without_a_model_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(mdot.Error, Path(folder).name):
                mdot.check(folder)


if __name__ == "__main__":
    unittest.main()
