"""Recording follows real trainings: plain loops, Lightning, transformers, Accelerate, distributed processes, and
torch.profiler.

The trainings run on the CPU. The clock belongs to the test: a pass, an update, an evaluation and a checkpoint move
it by fixed times, so that the step time is known exactly.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import socket
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import support
import torch
from torch import nn

import mdot
from mdot.recording import observed
from mdot.recording.clocks import CudaClock

PASS_S, UPDATE_S, OTHER_S = 0.020, 0.005, 0.450
HAS = {name: importlib.util.find_spec(name) is not None for name in ("lightning", "transformers", "accelerate")}


class Time:
    """The clock of the host. It moves when the model and the optimizer run."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now

    def follow(self, model: nn.Module, optimizer: Any = None) -> None:
        """Moves with each pass: a training pass is short, an evaluation takes long, so that it would be noticed."""

        def passed(module: nn.Module, *_: Any) -> None:
            self.now += PASS_S if module.training and torch.is_grad_enabled() else OTHER_S

        model.register_forward_hook(passed)
        if optimizer is not None:
            self.follow_optimizer(optimizer)

    def follow_optimizer(self, optimizer: Any) -> None:
        def updated(*_: Any) -> None:
            self.now += UPDATE_S

        optimizer.register_step_post_hook(updated)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.body(images)  # type: ignore[no-any-return]


def linear() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


class TrainingCase(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.table = self.folder / "measured.csv"
        self.time = Time()
        torch.manual_seed(0)

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Arguments that every recording here has, beside the job."""
        return {"gpu": "A100", "host": self.time, "warmup_steps": 3, "window_steps": 4, **more}

    def job(self, model: nn.Module | None = None, *example: torch.Tensor) -> mdot.Job:
        return mdot.Job.from_torch(model or linear(), *(example or (torch.zeros(4, 6),)))

    def row(self) -> dict[str, str]:
        """The only row in a table for `mdot calibrate`."""
        with self.table.open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 1, rows)
        support.run(os.environ["MDOT_CLI"], "calibrate", str(self.table), "-o", str(self.folder / "site.cal"), "--quiet")
        return rows[0]

    def expect_step(self, row: dict[str, str], passes: int) -> None:
        """Every window has the step time: nothing else is in any of them."""
        self.assertAlmostEqual(float(row["ms"]), 1e3 * (passes * PASS_S + UPDATE_S), places=6)
        self.assertIn("spread=0.0000", row["note"])


class PlainLoops(TrainingCase):
    def test_configuration_is_seen_in_model_and_optimizer(self) -> None:
        model = Convolutions().to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.time.follow(model, optimizer)
        loader = torch.utils.data.DataLoader(torch.randn(24, 3, 8, 8), batch_size=4)
        job = self.job(Convolutions(), torch.zeros(4, 3, 8, 8))
        with mdot.Recorder(job, self.table, batch=loader, model=model, optimizer=optimizer, **self.arguments()) as recorder:
            for epoch in range(8):
                for i, images in enumerate(loader):
                    with torch.autocast("cpu", torch.bfloat16):
                        loss = model(images).float().square().mean()
                    loss.backward()
                    if i % 2 == 1:
                        optimizer.step()
                        optimizer.zero_grad()
                    recorder.step()
                with torch.no_grad():
                    model.eval()(images)
                recorder.interrupt("evaluation")
                model.train()
        row = self.row()
        self.expect_step(row, passes=2)
        self.assertEqual([row[name] for name in ("gpu", "batch", "precision", "layout", "optimizer", "accumulate", "compile")],
                         ["A100-SXM-40GB", "4", "amp-bf16", "nhwc", "sgd", "2", ""])  # fmt: skip
        self.assertTrue(torch.__version__.startswith(row["torch"] + "."))
        self.assertIn(f"torch={torch.__version__}", row["note"])
        self.assertIn("interrupted=8", row["note"])  # one epoch is over in the warm-up, and interrupts, too
        self.assertEqual((len(model._forward_pre_hooks), len(optimizer._optimizer_step_post_hooks)), (0, 1))

    def test_evaluation_without_an_interrupt_is_a_stall(self) -> None:
        model = linear()
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        self.time.follow(model, optimizer)
        arguments = self.arguments(batch=4, model=model, optimizer=optimizer)
        with mdot.Recorder(self.job(), self.table, **arguments) as recorder:
            for _ in range(6):
                for _ in range(5):
                    model(torch.randn(4, 6)).sum().backward()
                    optimizer.step()
                    recorder.step()
                with torch.no_grad():
                    model(torch.randn(4, 6))
        row = self.row()
        self.expect_step(row, passes=1)
        self.assertEqual((row["optimizer"], row["optimizer-kernels"]), ("adam", "for-loop"))
        self.assertIn("stalled=5", row["note"])

    def test_loop_with_a_function_per_step_is_wrapped(self) -> None:
        """A loop like torchtitan's: train_step takes a step's batches from an iterator, and adds up the gradients."""
        model = linear()
        time = self.time

        class Trainer:
            def __init__(self) -> None:
                self.optimizer = torch.optim.AdamW(model.parameters(), fused=True)
                self.step = 0
                time.follow(model, self.optimizer)

            def train_step(self, batches: Any) -> None:
                self.optimizer.zero_grad()
                for _ in range(3):
                    model(next(batches)).sum().backward()
                self.optimizer.step()

            def train(self) -> None:
                batches = (torch.randn(4, 6) for _ in range(1000))
                for self.step in range(1, 31):
                    self.train_step(batches)
                    if self.step % 10 == 0:
                        with hook.paused("checkpoint"):
                            time.now += OTHER_S

        trainer = Trainer()
        arguments = self.arguments(batch=4, model=model, optimizer=trainer.optimizer, accumulate=3, tensor_parallel=1, zero=0)
        hook = mdot.StepHook(mdot.Recorder(self.job(), self.table, **arguments))
        trainer.train_step = hook.wrap(trainer.train_step)  # type: ignore[method-assign]
        trainer.train()
        hook.close()
        row = self.row()
        self.expect_step(row, passes=3)
        self.assertEqual((row["optimizer"], row["accumulate"]), ("adamw-fused", "3"))
        self.assertIn("data_wait=0.000", row["note"])


@unittest.skipUnless(HAS["lightning"], "lightning is not installed")
class Lightning(TrainingCase):
    def test_trainer_is_followed(self) -> None:
        import lightning.pytorch as pl

        from mdot.recording.lightning import RecordCallback

        time = self.time

        class Module(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.body = linear()
                time.follow(self.body)

            def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
                return self.body(batch).square().mean()  # type: ignore[no-any-return]

            def validation_step(self, batch: torch.Tensor, _: int) -> None:
                self.body(batch)

            def on_save_checkpoint(self, _: Any) -> None:
                time.now += OTHER_S

            def configure_optimizers(self) -> Any:
                optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
                time.follow_optimizer(optimizer)
                return optimizer

        callback = RecordCallback(self.job(), self.table, **self.arguments())
        checkpoints = pl.callbacks.ModelCheckpoint(self.folder / "checkpoints", every_n_train_steps=7, save_top_k=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer = pl.Trainer(
                accelerator="cpu", devices=1, max_epochs=6, precision="bf16-mixed", accumulate_grad_batches=2, logger=False,
                callbacks=[callback, checkpoints], enable_progress_bar=False, enable_model_summary=False,
            )  # fmt: skip
            data = torch.utils.data.DataLoader(torch.randn(44, 6), batch_size=4)  # 11 batches: the last step has one pass
            trainer.fit(Module(), data, torch.utils.data.DataLoader(torch.randn(8, 6), batch_size=4))
        row = self.row()
        self.expect_step(row, passes=2)
        self.assertEqual([row[name] for name in ("batch", "precision", "optimizer", "accumulate", "gpus")],
                         ["4", "amp-bf16", "adamw", "2", ""])  # fmt: skip
        self.assertIn("lightning=", row["note"])
        self.assertIn("stalled=0", row["note"])
        self.assertIn("data_wait=0.000", row["note"])
        assert callback.result is not None


@unittest.skipUnless(HAS["transformers"] and HAS["accelerate"], "transformers or accelerate is not installed")
class Transformers(TrainingCase):
    def test_trainer_is_followed(self) -> None:
        import transformers

        from mdot.recording.transformers import RecordCallback

        transformers.utils.logging.set_verbosity_error()
        configuration = transformers.GPT2Config(vocab_size=32, n_positions=8, n_embd=8, n_layer=1, n_head=2)
        model = transformers.GPT2LMHeadModel(configuration)
        self.time.follow(model)
        rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(44)]
        arguments = transformers.TrainingArguments(
            output_dir=str(self.folder / "output"), per_device_train_batch_size=4, gradient_accumulation_steps=2,
            num_train_epochs=6, eval_strategy="steps", eval_steps=5, save_steps=7, bf16=True, use_cpu=True, report_to=[],
            disable_tqdm=True, logging_strategy="no", log_level="error", optim="adamw_torch",
        )  # fmt: skip
        job = mdot.Job.from_transformers("GPT2LMHeadModel", configuration, length=8)
        callback = RecordCallback(job, self.table, **self.arguments())
        trainer = transformers.Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:8], callbacks=[callback])
        time = self.time
        save = trainer._save_checkpoint

        def slow_save(*args: Any, **kwargs: Any) -> Any:
            time.now += OTHER_S
            return save(*args, **kwargs)

        with mock.patch.object(trainer, "_save_checkpoint", slow_save), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            time.follow_optimizer(trainer.create_optimizer())
            trainer.train()
        row = self.row()
        self.expect_step(row, passes=2)
        self.assertEqual([row[name] for name in ("batch", "precision", "optimizer", "accumulate", "compile", "checkpoint")],
                         ["4", "amp-bf16", "adamw", "2", "", ""])  # fmt: skip
        self.assertIn("transformers=", row["note"])
        self.assertIn("stalled=0", row["note"])
        self.assertIn("data_wait=0.000", row["note"])


@unittest.skipUnless(HAS["accelerate"], "accelerate is not installed")
class Accelerate(TrainingCase):
    def test_loop_is_followed(self) -> None:
        import accelerate

        from mdot.recording import accelerate as mdot_accelerate

        accelerator = accelerate.Accelerator(cpu=True, mixed_precision="bf16", gradient_accumulation_steps=3)
        model = linear()
        optimizer = torch.optim.Adam(model.parameters())
        self.time.follow(model, optimizer)
        data = torch.utils.data.DataLoader(torch.randn(40, 6), batch_size=4)  # ten batches: the last step has one pass
        model, optimizer, loader = accelerator.prepare(model, optimizer, data)
        arguments = self.arguments(batch=loader, model=model, optimizer=optimizer)
        with mdot_accelerate.record(accelerator, self.job(), self.table, **arguments) as recorder:
            for _ in range(8):
                for batch in loader:
                    with accelerator.accumulate(model):
                        accelerator.backward(model(batch).square().mean())
                        optimizer.step()
                        optimizer.zero_grad()
                    recorder.step()
        row = self.row()
        self.expect_step(row, passes=3)
        self.assertEqual([row[name] for name in ("batch", "precision", "optimizer", "accumulate", "gpus")],
                         ["4", "amp-bf16", "adam", "3", ""])  # fmt: skip
        self.assertIn("accelerate=", row["note"])


def train_in_process(rank: int, port: int, table: str, job: str) -> None:
    """One of two processes with DistributedDataParallel."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), LOCAL_WORLD_SIZE="1")
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    time = Time()
    model = nn.parallel.DistributedDataParallel(linear())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    time.follow(model, optimizer)
    with mdot.Recorder(job, table, batch=4, gpu="A100", model=model, optimizer=optimizer, host=time) as recorder:
        for _ in range(50):
            model(torch.randn(4, 6)).sum().backward()
            optimizer.step()
            recorder.step()
    assert (recorder.result is None) == (rank != 0)
    torch.distributed.destroy_process_group()


class Distributed(TrainingCase):
    def test_rank_0_records_with_the_world_size(self) -> None:
        job = self.folder / "linear.job"
        self.job().save(job)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        torch.multiprocessing.spawn(train_in_process, (port, str(self.table), str(job)), nprocs=2)
        row = self.row()
        self.expect_step(row, passes=1)
        self.assertEqual([row[name] for name in ("gpus", "nodes", "optimizer")], ["2", "2", "sgd-plain"])


class Profiler(TrainingCase):
    def test_trace_of_a_training_becomes_a_row(self) -> None:
        model = linear()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=5)
        trace = self.folder / "trace.json.gz"
        with torch.profiler.profile(schedule=schedule, activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            for _ in range(7):
                model(torch.randn(4, 6)).sum().backward()
                optimizer.step()
                profiler.step()
        profiler.export_chrome_trace(str(trace))
        recorded = mdot.record_trace(trace, self.job(), self.table, gpu="A100", batch=4)
        self.assertGreater(recorded.step_ms, 0.01)
        self.assertLess(recorded.step_ms, 5000)
        self.assertEqual((recorded.notes["steps"], recorded.notes["kernels"]), ("5", "0"))
        self.assertEqual(self.row()["batch"], "4")


class Observed(support.TestCase):
    def test_optimizers_have_mdots_words(self) -> None:
        parameters = [nn.Parameter(torch.zeros(4, 4))]
        for optimizer, expected in (
            (torch.optim.SGD(parameters, momentum=0.9), {"optimizer": "sgd"}),
            (torch.optim.SGD(parameters, fused=True), {"optimizer": "sgd-plain", "optimizer_kernels": "fused"}),
            (torch.optim.Adam(parameters, fused=True), {"optimizer": "adam-fused"}),
            (torch.optim.AdamW(parameters), {"optimizer": "adamw"}),
            (torch.optim.AdamW(parameters, foreach=False), {"optimizer": "adamw", "optimizer_kernels": "for-loop"}),
            (torch.optim.Adafactor(parameters), {"optimizer": "adafactor"}),
            (torch.optim.Muon(parameters), {"optimizer": "muon"}),
            (torch.optim.RMSprop(parameters), {}),
        ):
            with self.subTest(type(optimizer).__name__):
                self.assertEqual(observed.of_optimizer(optimizer), expected)

    def test_unknown_optimizer_is_named_in_a_warning_and_the_note(self) -> None:
        model, time = linear(), Time()
        optimizer = torch.optim.RMSprop(model.parameters())
        arguments: dict[str, Any] = {"batch": 4, "gpu": "A100", "optimizer": optimizer, "host": time}
        with tempfile.TemporaryDirectory() as folder, self.assertWarnsRegex(mdot.RecordingWarning, "RMSprop"):
            with mdot.Recorder(support.RESNET, f"{folder}/t.csv", **arguments) as recorder:
                for _ in range(50):
                    time.now += 0.01
                    recorder.end_step()
        assert recorder.result is not None
        self.assertEqual(recorder.result.notes["optimizer"], "RMSprop")

    def test_models_show_compilation_precision_and_checkpointing(self) -> None:
        compiled = torch.compile(linear())
        self.assertTrue(observed.of_model(compiled)["compiled"])
        in_place = linear()
        in_place.compile()
        self.assertTrue(observed.of_model(in_place)["compiled"])
        self.assertEqual(observed.of_model(linear().bfloat16()), {"precision": "bf16"})
        self.assertEqual(observed.of_model(linear().double()), {})
        checkpointed = linear()
        checkpointed.is_gradient_checkpointing = True  # type: ignore[assignment]
        self.assertEqual(observed.of_model(checkpointed)["checkpoint"], "blocks")

    def test_recording_compiles_nothing_again(self) -> None:
        """The module is compiled in place before or after the recorder sees it."""
        for is_early in (True, False):
            model, time = linear(), Time()
            if is_early:
                model.compile(backend="eager")
            with tempfile.TemporaryDirectory() as folder:
                with mdot.Recorder(support.RESNET, f"{folder}/t.csv", batch=4, gpu="A100", model=model, host=time) as recorder:
                    if not is_early:
                        model.compile(backend="eager")
                    model(torch.zeros(2, 6))
                    for _ in range(50):
                        time.now += 0.01
                        recorder.step()
                with torch._dynamo.config.patch(error_on_recompile=True):
                    model(torch.zeros(2, 6))
            assert recorder.result is not None
            self.assertTrue(recorder.result.configuration.compiled)
            self.assertEqual(len(model._forward_pre_hooks), 0 if is_early else 1)

    def test_precision_of_fp32_follows_pytorchs_settings(self) -> None:
        before = torch.get_float32_matmul_precision()
        try:
            self.assertEqual(observed.precision_of_fp32(), "pytorch")
            torch.set_float32_matmul_precision("high")
            self.assertEqual(observed.precision_of_fp32(), "tf32")
        finally:
            torch.set_float32_matmul_precision(before)

    def test_fully_sharded_modules_are_recognised(self) -> None:
        class FSDPModule:
            pass

        class Sharded(nn.Linear, FSDPModule):
            pass

        self.assertEqual(observed.of_model(Sharded(2, 2))["zero"], 3)


class Events(support.TestCase):
    def test_events_are_read_when_the_gpu_has_reached_them_and_used_again(self) -> None:
        class Event:
            made = 0

            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                Event.made += 1
                self.is_reached = False
                self.at = 0.0

            def record(self, stream: str) -> None:
                assert stream == "stream"
                self.at += 7
                self.is_reached = False

            def query(self) -> bool:
                return self.is_reached

            def elapsed_time(self, end: Event) -> float:
                return end.at - self.at

            def synchronize(self) -> None:
                self.is_reached = True

        with mock.patch.object(torch.cuda, "Event", Event), mock.patch.object(torch.cuda, "current_stream", lambda _: "stream"):
            clock = CudaClock("cuda:0")
            first, second = clock.mark(), clock.mark()
            second.at += 5
            self.assertIsNone(clock.elapsed_ms(first, second))
            clock.wait(second)
            self.assertEqual(clock.elapsed_ms(first, second), 5)
            clock.release(first)
            self.assertIs(clock.mark(), first)
            self.assertEqual(Event.made, 2)

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_steps_of_a_gpu_are_recorded_without_a_synchronisation(self) -> None:
        model = nn.Linear(2048, 2048).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        inputs = torch.randn(4096, 2048, device="cuda")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(torch.cuda, "synchronize") as synchronize:
            with mdot.record(support.RESNET, f"{folder}/t.csv", batch=4096, model=model, optimizer=optimizer) as recorder:
                for _ in range(200):
                    model(inputs).sum().backward()
                    optimizer.step()
                    recorder.step()
            synchronize.assert_not_called()
        assert recorder.result is not None and recorder.result.allocated_bytes is not None
        self.assertGreater(recorder.result.allocated_bytes, inputs.nbytes)


if __name__ == "__main__":
    for name in (name for name, found in HAS.items() if not found):
        print(f"skipped: {name} is not installed, so that its training is not recorded", file=sys.stderr)
    unittest.main()
