"""Each public object survives pickle, copy and deepcopy, and a process pool, and answers as before."""

from __future__ import annotations

import concurrent.futures
import copy
import inspect
import multiprocessing
import os
import pickle
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

from support import BERT, DIMS, RESNET, TestCase

import mdot
from mdot.library.libraries import saved_bytes

PREDICTED = {name for name, kind in vars(mdot).items() if inspect.isclass(kind) and name in mdot.__all__}


def describe(value: Any) -> Any:
    """Facts that a copy shares with the original."""
    if isinstance(value, mdot.Job):
        return len(value), value.parameters, value.frozen_parameters, value.batch, value.optimizer, value.program, list(value)
    if isinstance(value, mdot.Predictor):
        return value.info, str(value.predict(BATCH_JOB, "A100", 8))
    if isinstance(value, mdot.Encoding):
        return value.evaluate([mdot.Configuration("A100", 8, optimizer="adam")])
    if isinstance(value, mdot.Explanation):
        return str(value), value.configuration, value.operators
    if isinstance(value, mdot.Calibration):
        return saved_bytes(value.save)
    if isinstance(value, mdot.Measurement):
        return value.ms, value.configuration, describe(value.job)
    if isinstance(value, (mdot.Table, mdot.Plan)):
        return list(value)
    if isinstance(value, mdot.StepHook):
        return describe(value.recorder)
    if isinstance(value, mdot.Recorder):
        return value._table, value._given, value._batch, value.result, value._usual_passes
    if isinstance(value, BaseException):
        return type(value), str(value)
    return value


def describe_pickled(data: bytes) -> Any:
    return pickle.dumps(describe(pickle.loads(data)))


BATCH_JOB = mdot.Job.from_onnx(RESNET)


def objects(folder: Path) -> dict[str, Any]:
    """One object of each public class that holds data."""
    job, predictor = mdot.Job.from_onnx(BERT, dims=DIMS, keep_names=True), mdot.Predictor()
    frozen = job.freeze(["*"], trained=["*layer.3*"])
    configuration = mdot.Configuration(mdot.gpu("A100"), 8)
    row = mdot.Measurement(job, mdot.Configuration("A100", 8), 123.0)
    calibration = mdot.Calibration.measured(predictor, [row])
    recorder = mdot.record(job, folder / "measured.csv", batch=8, gpu="A100", optimizer="adamw", accumulate=2)
    fault: mdot.Error | None = None
    try:
        mdot.gpu("A10x")
    except mdot.Error as caught:
        fault = caught
    plan = mdot.plan(job, "A100", 2, global_batch=16, training=mdot.Training(1e6))
    load = predictor.load(job, "V100", 8)
    beside = mdot.beside(load, load)
    client = mdot.Client("hospital", mdot.predict(job, "T4", 8), 100, 50, 100)
    federated, trajectory = mdot.federated_round([client]), mdot.trajectory(job, "T4", [(8, 1)], samples=100)
    made: dict[str, Any] = {
        "Convergence": mdot.steps_to_loss(range(10), [4 / (1 + i) for i in range(10)], 0.5), "GpuLoad": load, "Beside": beside, "Pair": mdot.Pair(beside, beside),
        "Plan": plan, "Layout": plan[0], "TrainingCost": plan[0].cost, "Training": mdot.Training(1e6),
        "Job": job, "Job, frozen": frozen, "Operator": job[0], "Load": mdot.optimizer_load("adam", 10), "GPU": mdot.gpu("T4"),
        "Configuration": configuration, "Predictor": predictor, "Predictor, calibrated": mdot.Predictor(calibration=calibration),
        "Predictor, by path": mdot.Predictor(predictor.path, threads=2), "Encoding": predictor.encode(job),
        "Explanation": mdot.explain(job, "A100", 8), "Share": mdot.explain(job, "A100", 8)[0],
        "Prediction": mdot.predict(job, "A100", 8), "Table": mdot.sweep(job, ["A100", "T4"], 8), "Calibration": calibration,
        "Measurement": row, "Recorder": recorder, "StepHook": mdot.StepHook(recorder), "Entry": predictor.entries[0],
        "Tensor": predictor.entries[0].inputs[0], "Image": predictor.images[0], "Error": fault,
        "Recorded": mdot.Recorded(configuration, 1.0), "ReadyJob": mdot.ready_jobs()[0], "Warning": mdot.JobWarning("text"),
        "Correction": calibration.gpus["A100-SXM-40GB"], "Factors": calibration.explain(predictor, job, row.configuration),
        "Client": client, "Round": federated, "ClientTime": federated.clients[0], "Trajectory": trajectory, "Phase": trajectory.phases[0],
        "Effect": calibration.explain(predictor, job, row.configuration).effects["site"],
    }  # fmt: skip
    return made


class Copies(TestCase):
    made: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.made = objects(Path(cls.folder.name))

    def test_every_public_class_is_tried(self) -> None:
        kinds = {type(value) for value in self.made.values()}
        missing = {
            name
            for name in PREDICTED
            if not issubclass(getattr(mdot, name), (Exception,)) and not any(issubclass(k, getattr(mdot, name)) for k in kinds)
        }
        # plain dataclasses: results of the compiler, and options of a file
        self.assertEqual(missing, {"Check", "Verification", "FileOptions"})

    def test_copies_are_equal(self) -> None:
        ways: dict[str, Callable[[Any], Any]] = {
            "copy": copy.copy,
            "deepcopy": copy.deepcopy,
            **{f"pickle {n}": lambda value, n=n: pickle.loads(pickle.dumps(value, n)) for n in range(2, 6)},
        }
        for name, value in self.made.items():
            for way, make in ways.items():
                with self.subTest(name=name, way=way):
                    made = make(value)
                    self.assertIs(type(made), type(value))
                    self.assertEqual(describe(made), describe(value))

    def test_a_process_pool_answers_as_before(self) -> None:
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            for name, value in self.made.items():
                with self.subTest(name=name):
                    answer = pickle.loads(pool.submit(describe_pickled, pickle.dumps(value)).result())
                    self.assertEqual(answer, describe(value))

    def test_a_job_equals_its_bytes(self) -> None:
        job = self.made["Job, frozen"]
        self.assertEqual(mdot.Job.from_bytes(job.to_bytes()).to_bytes(), job.to_bytes())

    def test_a_finished_recorder_keeps_its_result(self) -> None:
        result = mdot.Recorded(mdot.Configuration("A100"), 2.0)
        recorder = copy.copy(self.made["Recorder"])
        recorder.result = result
        again = pickle.loads(pickle.dumps(recorder))
        self.assertEqual(again.result, result)
        self.assertEqual(again.finish(), result)

    def test_a_relative_path_survives_another_folder(self) -> None:
        path = os.path.relpath(mdot.Predictor().path)
        data, before = pickle.dumps(mdot.Predictor(path)), os.getcwd()
        os.chdir(self.folder.name)
        self.addCleanup(os.chdir, before)
        self.assertEqual(pickle.loads(data).info, mdot.Predictor().info)


if __name__ == "__main__":
    unittest.main()
