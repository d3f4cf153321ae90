"""predictor.py, prediction.py, configuration.py, gpus.py: the package gives the same answers as the command."""

from __future__ import annotations

import json
import math
import os
import tempfile
import threading
import unittest
import warnings
from pathlib import Path
from typing import Any

import support

import mdot

# Every option of a configuration, for the package and for the command.
OPTIONS = [
    ({"precision": "tf32"}, ["--precision", "tf32"]),
    ({"precision": "AMP"}, ["--precision", "amp"]),
    ({"precision": "amp_bf16"}, ["--precision", "amp-bf16"]),
    ({"precision": "bfloat16"}, ["--precision", "bf16"]),
    ({"precision": "bf16-mixed"}, ["--precision", "BF16-mixed"]),
    ({"layout": "channels_last"}, ["--layout", "channels_last"]),
    ({"attention": "math", "optimizer": "adamw_torch"}, ["--attention", "math", "--optimizer", "adamw_torch"]),
    ({"checkpoint": "full"}, ["--checkpoint=full"]),
    ({"precision": "fp32"}, ["--precision", "fp32"]),
    ({"layout": "nhwc"}, ["--layout", "nhwc"]),
    ({"optimizer": "adam"}, ["--optimizer", "adam"]),
    ({"optimizer": "adamw"}, ["--optimizer", "adamw"]),
    ({"attention": "eager"}, ["--attention", "eager"]),
    ({"optimizer": "adamw_bnb_8bit"}, ["--optimizer", "adamw_bnb_8bit"]),
    ({"optimizer": "adam", "optimizer_kernels": "for-loop"}, ["--optimizer=adam", "--optimizer-kernels=for-loop"]),
    ({"optimizer": "adam", "step_in_backward": True}, ["--optimizer=adam", "--step-in-backward"]),
    ({"precision": "mixed-bf16", "gradient_type": "fp32"}, ["--precision=mixed-bf16", "--gradient-type=fp32"]),
    ({"gpus": 8, "reduce_type": "half"}, ["--gpus=8", "--reduce-type=half"]),
    ({"context_parallel": 2}, ["--parallel=cp=2"]),
    ({"tensor_parallel": 2, "sequence_parallel": 1}, ["--parallel=tp=2,sp=1"]),
    ({"pipeline_parallel": 2, "virtual_stages": 2}, ["--parallel=pp=2,vpp=2"]),
    ({"pipeline_parallel": 2, "first_stage_blocks": 5}, ["--parallel=pp=2,first=5"]),
    ({"pipeline_parallel": 4, "last_stage_blocks": 2}, ["--parallel=pp=4,last=2"]),
    ({"pipeline_parallel": 4, "pipeline_blocks": 12}, ["--parallel=pp=4,blocks=12"]),
    ({"pipeline_parallel": 2, "schedule": "zero-bubble"}, ["--parallel=pp=2", "--schedule=zb-h1"]),
    ({"offload_activations": True}, ["--offload-activations"]),
    ({"framework": "megatron"}, ["--framework=megatron"]),
    ({"offload": "optimizer"}, ["--offload"]),
    ({"offload": "pages", "optimizer": "adamw8bit"}, ["--offload=pages", "--optimizer=adamw8bit"]),
    ({"frozen_weights": "nf4"}, ["--frozen-weights=nf4"]),
    ({"ema": True}, ["--ema"]),
    ({"grad_scaler": True}, ["--grad-scaler"]),
    ({"power_limit": 250}, ["--power-limit=250"]),
    ({"mode": "inference"}, ["--mode=inference"]),
    ({"host_launch_us": 2000}, ["--host-launch-us=2000"]),
    ({"gpus": 8, "servers": 2}, ["--gpus=8", "--parallel=ps=2"]),
    ({"gpus": 8, "servers": 2, "sync": "async"}, ["--gpus=8", "--parallel=ps=2", "--sync=asp"]),
    ({"loader_rate": 100}, ["--loader-rate=100"]),
    ({"cpu_rate": 25, "cpus": 4}, ["--cpu-rate=25", "--cpus=4"]),
    ({"data_parallel": 8, "zero": 3, "keep_gathered": True}, ["--parallel=fsdp=8", "--keep-gathered"]),
    ({"data_parallel": 8, "zero": 3, "accumulate": 2, "whole_gradients": True},
     ["--parallel=fsdp=8", "--accumulate=2", "--whole-gradients"]),
    ({"checkpoint": "blocks"}, ["--checkpoint=blocks"]),
    ({"checkpoint": "selective"}, ["--checkpoint=selective"]),
    ({"compiled": True}, ["--compile"]),
    ({"accumulate": 4}, ["--accumulate", "4"]),
    ({"gpus": 8}, ["--gpus", "8"]),
    ({"gpus": 8, "nodes": 2}, ["--gpus", "8", "--nodes", "2"]),
    ({"gpus": 8, "nodes": 2, "network": 12.5}, ["--gpus", "8", "--nodes", "2", "--network", "12.5"]),
    ({"gpus": 8, "link": "pcie"}, ["--gpus", "8", "--link", "pcie"]),
    ({"gpus": 8, "link": "nvlink"}, ["--gpus", "8", "--link", "nvlink"]),
    ({"gpus": 8, "link": 33}, ["--gpus", "8", "--link", "33"]),
    ({"data_parallel": 2, "tensor_parallel": 4}, ["--gpus", "8", "--parallel", "dp=2,tp=4"]),
    (
        {"gpus": 8, "data_parallel": 2, "pipeline_parallel": 4, "micro_batches": 8},
        ["--gpus", "8", "--parallel", "dp=2,pp=4,micro=8"],
    ),
    ({"gpus": 8, "zero": 3}, ["--gpus", "8", "--parallel", "zero=3"]),
    ({"torch": "1.12.1+cu113"}, ["--torch", "1.12"]),
    ({"gpus": 8, "data_parallel": 8, "expert_parallel": 1}, ["--gpus", "8", "--parallel", "dp=8,ep=1"]),
]


class Answers(support.TestCase):
    def assert_same(self, answer: mdot.Prediction, reported: dict) -> None:
        self.assertAlmostEqual(answer.step_ms, reported["step_ms"], delta=1e-4 * answer.step_ms)
        self.assertAlmostEqual(answer.lower_ms, reported["lower_ms"], delta=1e-4 * answer.step_ms)
        self.assertAlmostEqual(answer.upper_ms, reported["upper_ms"], delta=1e-4 * answer.step_ms)
        self.assertEqual(answer.peak_memory_bytes, reported["peak_memory_bytes"])
        self.assertEqual(answer.fits, reported["fits"])
        self.assertEqual(list(answer.warnings), reported["warnings"])

    def test_every_option_matches_the_command(self) -> None:
        job = self.bert()
        seen = {option for options, _ in OPTIONS for option in options}
        # Without a loss, the job refuses other loss kernels.
        self.assertEqual(seen | {"gpu", "batch", "loss"}, set(mdot.configuration.OPTIONS))
        plain = mdot.predict(job, "A100", 64)
        for options, arguments in OPTIONS:
            with self.subTest(**options):
                answer = mdot.predict(job, "A100", 64, **options)
                command = [str(support.BERT), "--dim", "sequence=128", "--gpu", "A100", "--batch", "64"]
                self.assert_same(answer, support.ask_command(*command, *arguments)["predictions"][0])
                # for a network without convolutions and frozen weights
                indifferent = {"layout": "nhwc"}, {"layout": "channels_last"}, {"precision": "fp32"}, {"frozen_weights": "nf4"}
                if options not in indifferent and "torch" not in options:  # a predictor may ignore it
                    self.assertNotEqual((answer.step_ms, answer.peak_memory_bytes), (plain.step_ms, plain.peak_memory_bytes))

    def test_batch_and_optimizer_default_to_the_file(self) -> None:
        answer = mdot.predict(support.RESNET, "T4")
        self.assertEqual(answer.configuration.batch, mdot.Job.read(support.RESNET).batch)
        self.assertEqual(answer.configuration.optimizer, "sgd")
        self.assert_same(answer, support.ask_command(str(support.RESNET), "--gpu", "T4")["predictions"][0])

    def test_a_custom_gpu_is_predicted(self) -> None:
        a100 = mdot.gpu("a100")
        self.assertEqual(a100.name, "A100-SXM-40GB")
        job = self.bert()
        by_name, by_specs = (mdot.predict(job, gpu, 64, precision="amp") for gpu in ("A100", a100))
        self.assertEqual(by_name.step_ms, by_specs.step_ms)
        slower = a100.replace(name="slow", memory_gbps=a100.memory_gbps / 4, fp16_tflops=a100.fp16_tflops / 4)
        self.assertGreater(mdot.predict(job, slower, 64, precision="amp").step_ms, by_name.step_ms)
        self.assertGreater(len(mdot.gpus()), 50)

    def test_experts_are_distributed(self) -> None:
        """A handmade mixture: eight matrices after a choice. With expert parallelism, each of four GPUs holds two."""
        load = mdot.Load(1e9, 1e6, 1e6)
        phases = {phase: load for phase in ("forward", "data_gradient", "weight_gradient")}
        nothing = {phase: mdot.Load(0, 0, 0) for phase in phases}
        weights = {phase: mdot.Load(0, 4e8, 0) for phase in phases}
        common = {"known": True, "frozen_parameters": 0, "block": 1, "module": None, "per_sample": phases}
        router = mdot.Operator(type="Linear", settings={"channels_in": 1000, "channels_out": 8}, parameters=8000.0,
                               inputs=(), per_step=nothing, **common)  # fmt: skip
        choice = mdot.Operator(type="TopK", settings={}, parameters=0.0, inputs=(0,), per_step=nothing, **common)
        experts = mdot.Operator(type="MatMul", settings={"channels_in": 1000, "channels_out": 12500, "groups": 8},
                                parameters=1e8, inputs=(1,), per_step=weights, **common)  # fmt: skip
        job = mdot.Job.from_operators([router, choice, experts])
        alone = mdot.predict(job, "A100", 8, gpus=4, zero=0, link="nvlink")
        dealt = mdot.predict(job, "A100", 8, gpus=4, expert_parallel=4, link="nvlink")
        self.assertEqual(dealt.configuration.samples, alone.configuration.samples)
        self.assertAlmostEqual(dealt.weight_bytes, 4 * (1e8 / 4 + 8000), delta=1)
        self.assertAlmostEqual(dealt.optimizer_bytes, 4 * (1e8 / 4 + 8000), delta=1)
        self.assertLess(dealt.step_ms, alone.step_ms)  # a quarter of the weights is read, updated and exchanged
        slow = mdot.predict(job, "A100", 8, gpus=4, expert_parallel=4, link=0.1)
        self.assertGreater(slow.step_ms, dealt.step_ms)
        with self.assertRaisesRegex(ValueError, "must divide the 8 experts"):
            mdot.predict(job, "A100", 8, expert_parallel=3)

    def test_totals_follow_the_configuration(self) -> None:
        answer = mdot.predict(self.bert(), "A100", 32, accumulate=2, data_parallel=2, tensor_parallel=2)
        self.assertEqual(answer.configuration.samples, 128)
        self.assertAlmostEqual(answer.samples_per_second, 128000 / answer.step_ms)
        self.assertAlmostEqual(answer.hours(steps=1000), answer.step_ms / 3600)
        self.assertAlmostEqual(answer.hours(epochs=3, dataset=1000), 24 * answer.step_ms / 3.6e6)
        self.assertRaises(TypeError, answer.hours)
        self.assertRaises(TypeError, answer.hours, epochs=3)

    def test_gpus_of_a_step_are_the_product_of_the_degrees(self) -> None:
        given = mdot.Configuration(gpu="A100", batch=8, gpus=16, tensor_parallel=2, context_parallel=4)
        degrees = given.replace(gpus=0, data_parallel=2)
        for configuration in (given, degrees):
            self.assertEqual((configuration.gpu_total, configuration.workers, configuration.samples), (16, 2, 16))

    def test_measured_kinds_of_steps_have_narrow_intervals(self) -> None:
        """At most a factor of 2.6 where the GPU sets the pace; a GPU without steps of the kind has a wider one."""
        half: dict[str, Any] = {"precision": "amp-bf16"}
        narrow: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
            ("gpt2", "H100", 8, {}), ("gpt2", "A100", 8, half), ("resnet50", "A100", 128, half), ("vgg16", "H200", 64, half),
            ("resnet50", "V100", 128, {"precision": "amp"}), ("resnet50", "RTX-4090", 256, {**half, "mode": "inference"}))
        for name, gpu, batch, options in narrow:
            with self.subTest(name=name, gpu=gpu, **options):
                answer = mdot.predict(mdot.Job.read(name), gpu, batch, **options)
                self.assertLess(answer.upper_ms / answer.lower_ms, 2.6)
        far = mdot.predict(mdot.Job.read("resnet50"), "MI300X", 128, **half)
        self.assertGreater(far.upper_ms / far.lower_ms, 2.6)

    def test_the_largest_batch_fits_and_the_next_does_not(self) -> None:
        job = self.bert()
        batch = mdot.largest_batch(job, "T4", precision="amp")
        self.assertTrue(mdot.predict(job, "T4", batch, precision="amp").fits)
        self.assertFalse(mdot.predict(job, "T4", batch + 1, precision="amp").fits)
        reported = support.ask_command(str(support.BERT), "--dim", "sequence=128", "--gpu", "T4", "--precision", "amp", "--fit")
        self.assertEqual(reported["predictions"][0]["batch"], batch)
        tiny = mdot.gpu("T4").replace(name="tiny", memory_gib=0.25)
        self.assertEqual(mdot.largest_batch(job, tiny), 0)


class Faults(support.TestCase):
    def test_invalid_arguments_are_refused_by_name(self) -> None:
        job = self.bert()
        for message, options in (
            ("batch must be a whole number", {"batch": 0}),
            ("batch must be a whole number", {"batch": 2.5}),
            ("batch must be a whole number", {"batch": True}),
            ("batch must be a whole number", {"batch": "many"}),
            ("precision must be fp32, tf32", {"precision": "fp4"}),
            ("lacks FP8", {"precision": "fp8"}),
            ("zero must be a whole number", {"zero": 4}),
            ("link must be a rate", {"link": float("nan")}),
            ("link must be default, pcie or nvlink", {"link": "ethernet"}),
            ("network must be a rate", {"network": "fast"}),
            ("torch must be a version", {"torch": 2.1}),
            ("torch must be a version", {"torch": "2"}),
            ("torch must be a version", {"torch": "2.123"}),
            ("expert", {"gpus": 8, "data_parallel": 1, "expert_parallel": 8}),
            ("did you mean A100", {"gpu": "A1000"}),
        ):
            with self.subTest(message=message), self.assertRaisesRegex(ValueError, message):
                mdot.predict(job, **{"gpu": "A100", "batch": 8, **options})
        with self.assertRaisesRegex(TypeError, "unknown option 'precison'"):
            mdot.predict(job, "A100", 8, precison="amp")  # type: ignore[call-arg]

    def test_rates_take_units(self) -> None:
        job = self.bert()
        for options in ({"network": "100Gb/s"}, {"network": "12.5 GB/s"}, {"network": "100Gbps"}):
            two = {"gpus": 16, "nodes": 2}
            self.assertEqual(mdot.predict(job, "A100", 64, **two, **options).step_ms,
                             mdot.predict(job, "A100", 64, **two, network=12.5).step_ms)  # fmt: skip
        self.assertEqual(mdot.predict(job, "A100", 64, gpus=8, link="600GB/s").step_ms,
                         mdot.predict(job, "A100", 64, gpus=8, link=600).step_ms)  # fmt: skip
        for wrong in ("100Gb", "100GB/h", "0"):
            with self.assertRaisesRegex(mdot.InvalidArgumentError, "link must be a rate: .*Gb/s"):
                mdot.predict(job, "A100", 64, gpus=8, link=wrong)

    def test_an_unmeasured_version_gives_a_warning(self) -> None:
        answer = mdot.predict(self.bert(), "A100", 8, torch="1.5")
        self.assertIn("software-not-measured", answer.warnings)
        self.assertTrue(issubclass(mdot.SoftwareNotMeasuredWarning, mdot.OutsideTrainingWarning))
        with warnings.catch_warnings():
            warnings.simplefilter("error", mdot.SoftwareNotMeasuredWarning)
            self.assertRaises(mdot.SoftwareNotMeasuredWarning, mdot.predict, self.bert(), "A100", 64, torch="1.5")

    def test_a_wrong_pair_leaves_the_others_answered(self) -> None:
        job, predictor = self.bert(), mdot.Predictor()
        right = mdot.Configuration("A100", 8)
        answers = predictor.predict_many([(job, right), (job, right.replace(gpu="A1000")), (job, right)])
        self.assertIsInstance(answers[1], mdot.InvalidArgumentError)
        self.assertIn("A1000", str(answers[1]))
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(predictor.predict_many([]), [])

    def test_other_files_are_refused_as_predictors(self) -> None:
        with self.assertRaisesRegex(mdot.NotFoundError, "nowhere.mdot"):
            mdot.Predictor("nowhere.mdot")
        self.assertRaises(mdot.MalformedError, mdot.Predictor, __file__)
        self.assertRaises(mdot.Error, mdot.Predictor, cpu_isa="x86-64-v9")

    def test_warnings_have_names_and_the_calling_line(self) -> None:
        job = self.bert()
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            answer = mdot.predict(job, "A100", 8, checkpoint="blocks")
        kinds = [one.category for one in reported]
        self.assertEqual([kind.name for kind in kinds], list(answer.warnings))  # type: ignore[attr-defined]
        self.assertIn(mdot.AnalyticEstimateWarning, kinds)
        self.assertEqual({Path(one.filename).name for one in reported}, {Path(__file__).name})
        with warnings.catch_warnings():
            warnings.simplefilter("error", mdot.AnalyticEstimateWarning)
            self.assertRaises(mdot.AnalyticEstimateWarning, mdot.predict, job, "A100", 8, checkpoint="blocks")


class Tables(support.TestCase):
    def test_a_sweep_is_every_combination_in_order(self) -> None:
        table = mdot.sweep(self.bert(), ["T4", "A100"], [16, 32], precision=["fp32", "amp"])
        self.assertEqual(len(table), 8)
        requested = [(row.configuration.gpu, row.configuration.batch, row.configuration.precision) for row in table]
        self.assertEqual(requested[:3], [("T4", 16, "fp32"), ("T4", 16, "amp"), ("T4", 32, "fp32")])
        self.assertEqual(requested[-1], ("A100", 32, "amp"))
        for row in table:
            c = row.configuration
            self.assertEqual(row.step_ms, mdot.predict(self.bert(), c.gpu, c.batch, precision=c.precision).step_ms)
        heading, *lines = str(table).splitlines()
        self.assertEqual(heading.split()[:3], ["GPU", "batch", "precision"])
        self.assertEqual(len({len(line) for line in [heading, *lines]}), 1)
        self.assertEqual(len(lines), 8)
        self.assertIn("<td>A100</td>", table._repr_html_())

    def test_tables_sort_and_slice(self) -> None:
        table = mdot.sweep(self.bert(), ["T4", "A100"], range(16, 49, 16))
        times = [row.step_ms for row in table.sorted()]
        self.assertEqual(times, sorted(times))
        rates = [row.samples_per_second for row in table.sorted("samples_per_second")]
        self.assertEqual(rates, sorted(rates, reverse=True))
        self.assertIsInstance(table[:2], mdot.Table)
        self.assertEqual(len(table[:2]), 2)
        with self.assertRaisesRegex(ValueError, "batch is an empty list"):
            mdot.sweep(self.bert(), "T4", [])

    def test_records_are_flat(self) -> None:
        records = mdot.sweep(support.RESNET, ["T4", mdot.gpu("A100")], 8).records()
        self.assertEqual([record["gpu"] for record in records], ["T4", "A100-SXM-40GB"])
        self.assertTrue(all(isinstance(v, (str, int, float, bool, type(None))) for r in records for v in r.values()))

    def test_pandas_accepts_tables(self) -> None:
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = mdot.sweep(support.RESNET, "T4", [8, 16]).to_pandas()
        self.assertEqual(list(frame["batch"]), [8, 16])


class Calibrations(support.TestCase):
    def test_calibration_changes_answers_only_with_measurements(self) -> None:
        job, predictor = self.bert(), mdot.Predictor()
        requested = [mdot.Configuration("A100", batch, precision="amp") for batch in (8, 16, 32, 64)]
        plain = [answer.step_ms for answer in predictor.predict_many([(job, c) for c in requested])]
        slower = mdot.Calibration.measured(predictor, [(job, c, 1.5 * ms) for c, ms in zip(requested, plain)])
        with tempfile.TemporaryDirectory() as folder:
            slower.save(Path(folder) / "site.cal")
            again = mdot.Predictor(calibration=mdot.Calibration.load(Path(folder) / "site.cal"))
        for configuration, before in zip(requested, plain):
            after = again.predict_many([(job, configuration)])[0].step_ms
            self.assertGreater(after, 1.1 * before)
            self.assertLess(after, 1.6 * before)
        unmoved = mdot.Predictor(calibration=mdot.Calibration.measured(predictor, []))
        self.assertEqual([answer.step_ms for answer in unmoved.predict_many([(job, c) for c in requested])], plain)
        self.assertEqual((slower.row_count, list(slower.gpus)), (4, ["A100-SXM-40GB"]))
        correction = slower.gpus["A100-SXM-40GB"]
        self.assertEqual((correction.row_count, correction.half_row_count), (0, 4))
        self.assertTrue(1.0 < correction.half_factor < 1.5)  # a job without a common part with the measured one
        self.assertEqual(slower.predictor, predictor.info["name"])
        self.assertEqual((unmoved.calibration.row_count, unmoved.calibration.factor), (0, 1.0))
        self.assertEqual(unmoved.calibration.several, (0, 1.0, 1.0))
        self.assertRaises(mdot.NotFoundError, mdot.Calibration.load, "nowhere.cal")
        self.assertRaises(mdot.MalformedError, mdot.Calibration.from_bytes, b"no calibration")
        with self.assertRaises(mdot.InvalidArgumentError):
            mdot.Calibration.measured(predictor, [(job, requested[0], -1.0)])

    def test_one_measured_step_corrects_a_prediction(self) -> None:
        job, predictor = self.bert(), mdot.Predictor()
        plain = predictor.predict(job, "A100", 8, precision="amp")
        step = {"batch": 8, "ms": 1.5 * plain.step_ms, "gib": 1.2 * plain.memory_gib}
        answer = predictor.predict(job, "A100", 8, precision="amp", measured=[step])
        self.assertTrue(1.3 * plain.step_ms < answer.step_ms < 1.51 * plain.step_ms)
        self.assertTrue(1.1 * plain.memory_gib < answer.memory_gib < 1.21 * plain.memory_gib)
        configuration = mdot.Configuration("A100", 8, precision="amp")
        calibration = mdot.Calibration.measured(predictor, [mdot.Measurement(job, configuration, 1.5 * plain.step_ms)])
        factors = calibration.explain(predictor, job, configuration)
        self.assertEqual((factors.row_count, factors.job_row_count), (1, 1))
        self.assertGreater(factors.effects["job"].believed, 0)
        for wrong in ({"batch": 8}, {"ms": 0}, {"ms": -1.0}, {"gib": float("nan")}, {"gpu": None, "ms": 3.0}):
            with self.assertRaises(mdot.InvalidArgumentError):
                predictor.predict(job, "A100", 8, measured=[wrong])
        with self.assertRaises(TypeError):
            predictor.predict(job, "A100", 8, measured=[{"ms": 3.0, "colour": 1}])

    def test_agreeing_gpus_carry_the_residual_of_a_job(self) -> None:
        """BERT at several lengths is several jobs. The last one has a row on A100 alone."""
        predictor = mdot.Predictor()
        jobs = [mdot.Job.from_onnx(support.BERT, dims={"sequence": length}) for length in (32, 64, 96, 128, 192, 256, 384)]
        t4, a100 = (mdot.Configuration(gpu, 8, precision="fp32") for gpu in ("T4", "A100"))
        rows = [(job, configuration) for job in jobs for configuration in (t4, a100)]
        rows.remove((jobs[-1], t4))
        answers = predictor.predict_many(rows)
        measured = [(*row, answer.step_ms * (1.5 if jobs.index(row[0]) % 2 == 0 else 0.7)) for row, answer in zip(rows, answers)]
        calibration = mdot.Calibration.measured(predictor, measured)
        carried = calibration.explain(predictor, jobs[-1], t4)
        self.assertEqual(carried.carried_gpu, "A100-SXM-40GB")
        self.assertTrue(0 < carried.carried_correlation < 1 < carried.carried_factor)
        own = calibration.explain(predictor, jobs[0], t4)
        self.assertEqual((own.carried_gpu, own.carried_correlation, own.carried_factor), (None, 0.0, 1.0))

    def test_calibrated_answers_match_the_command(self) -> None:
        """The correction also covers the common factor of steps with time in the same parts. Eight rows determine it."""
        job, resnet, predictor = self.bert(), mdot.Job.from_onnx(support.RESNET), mdot.Predictor()
        rows = [(one, mdot.Configuration("A100", batch, precision=precision)) for one in (job, resnet)
                for batch in (8, 64) for precision in ("amp", "fp32")]  # fmt: skip
        answers = predictor.predict_many(rows)
        measured = [(*row, answer.step_ms * (2.0 if row[0] is job else 1.1)) for row, answer in zip(rows, answers)]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "site.cal")
            mdot.Calibration.measured(predictor, measured).save(path)
            site = mdot.Predictor(calibration=mdot.Calibration.load(path))
            self.assertEqual(mdot.Calibration.from_bytes(Path(path).read_bytes()).gpus, site.calibration.gpus)
            command = [str(support.BERT), "--dim", "sequence=128", "--gpu", "T4", "--batch", "16", "--calibration", path]
            reported = support.ask_command(*command)["predictions"][0]
            other = Path(folder) / "other.cal"
            other.write_text(Path(path).read_text().replace(f"predictor {site.calibration.predictor}", "predictor another"))
            with self.assertRaisesRegex(mdot.IncompatibleError, "another"):
                mdot.Predictor(calibration=mdot.Calibration.load(other))
        answer = site.predict(job, "T4", 16)
        self.assertAlmostEqual(answer.step_ms, reported["step_ms"], delta=1e-4 * answer.step_ms)
        self.assertAlmostEqual(answer.upper_ms, reported["upper_ms"], delta=1e-4 * answer.upper_ms)


class Threads(support.TestCase):
    def test_threads_share_a_predictor_and_outlive_it(self) -> None:
        job, predictor = self.bert(), mdot.Predictor()
        configurations = [mdot.Configuration("A100", batch) for batch in range(1, 33)]
        expected = predictor.predict_many([(job, c) for c in configurations])
        seen: list[list[object]] = []

        def ask(requested: mdot.Predictor) -> None:
            for _ in range(8):
                seen.append(list(requested.predict_many([(job, c) for c in configurations])))

        threads = [threading.Thread(target=ask, args=(predictor,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        del predictor
        for thread in threads:
            thread.join()
        self.assertEqual(len(seen), 32)
        self.assertTrue(all(answers == expected for answers in seen))

    def test_steps_to_a_loss_are_the_command_s_answer(self) -> None:
        steps = list(range(0, 2000, 20))
        losses = [1.5 + 4 * (i + 30) ** -0.5 + 0.01 * math.sin(i) for i in steps]
        for target in (1.55, 1.6, 1.7, 1.2):
            answer = mdot.steps_to_loss(steps, losses, target)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "losses.csv"
                path.write_text("step,loss\n" + "".join(f"{i},{loss!r}\n" for i, loss in zip(steps, losses)))
                both = json.loads(support.run(os.environ["MDOT_CLI"], "converge", str(path), f"--target={target}", "--json"))
            self.assertAlmostEqual(answer.reach_probability, both["reach_probability"])
            for name in ("steps", "lower_steps", "upper_steps"):
                own = getattr(answer, name)
                self.assertEqual(math.isinf(own), both[name] is None)
                if both[name] is not None:
                    self.assertAlmostEqual(own, both[name], delta=1)
        self.assertRaises(ValueError, mdot.steps_to_loss, [1, 2], [1], 0.5)

    def test_a_job_beside_another_is_the_command_s_answer(self) -> None:
        answer = mdot.predict(support.RESNET, "V100-SXM-16GB", 16, precision="fp32", beside=support.RESNET, beside_batch=64)
        options = ("--gpu", "V100-SXM-16GB", "--batch", "16", "--precision", "fp32", "--beside", str(support.RESNET))
        both = support.ask_command(str(support.RESNET), *options, "--beside-batch", "64")["predictions"][0]["beside"]
        assert answer.beside is not None
        self.assertAlmostEqual(answer.beside.own.slowdown, both["own"]["slowdown"], delta=1e-6)
        self.assertAlmostEqual(answer.beside.partner.step_ms, both["partner"]["step_ms"], delta=1e-4)
        self.assertAlmostEqual(answer.beside.gain, both["gain"], delta=1e-6)
        predictor = mdot.Predictor()
        loads = [predictor.load(support.RESNET, "V100-SXM-16GB", batch, precision="fp32") for batch in (16, 64)]
        self.assertEqual(mdot.beside(*loads), answer.beside.own)
        self.assertIsNone(mdot.predict(support.RESNET, "T4", 1).beside)

    def test_measured_steps_correct_both_jobs_of_a_pair(self) -> None:
        """Exchanged jobs exchange their answers, with any measured step of either; a job beside itself has one answer."""
        gpu, batches = "V100-SXM-16GB", (16, 64)
        for factor in (0.7, 0.9, 1.5, 4):
            rows = [{"gpu": gpu, "batch": 16, "ms": factor * mdot.predict(support.RESNET, gpu, 16).step_ms, "gib": 5}]
            ask = [mdot.predict(support.RESNET, gpu, batches[i], beside=support.RESNET, beside_batch=batches[j], measured=rows).beside
                   for i, j in ((0, 1), (1, 0), (0, 0))]  # fmt: skip
            one, other, twin = (pair for pair in ask if pair is not None)
            self.assertEqual((one.own, one.partner), (other.partner, other.own))
            self.assertEqual(twin.own, twin.partner)
            self.assertAlmostEqual(one.own.step_ms, rows[0]["ms"] * one.own.slowdown, delta=1e-3 * one.own.step_ms)
            options = ("--gpu", gpu, "--batch", "16", "--beside", str(support.RESNET), "--beside-batch", "64")
            measured = f"batch=16,ms={rows[0]['ms']},gib=5"
            both = support.ask_command(str(support.RESNET), *options, "--measured", measured)["predictions"][0]["beside"]
            for side, answer in (("own", one.own), ("partner", one.partner)):
                self.assertAlmostEqual(both[side]["step_ms"], answer.step_ms, delta=1e-3 * answer.step_ms)
            self.assertEqual(both["reserved_bytes"], one.own.reserved_bytes)


if __name__ == "__main__":
    unittest.main()
