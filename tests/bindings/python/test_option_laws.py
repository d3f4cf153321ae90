"""The direction of each numeric option: random questions to the shipped predictor, on many jobs and GPU models. A step may
move against it by half a percent, and by two with one rate of a GPU, which learned times follow less exactly."""

from __future__ import annotations

import dataclasses
import random
import unittest
import warnings
from typing import Any, Callable

import support

import mdot
from mdot.options import ROWS

LONGER, SHORTER = 1, -1
SLACK, SLACK_OF_RATES = 0.005, 0.02

DIRECTIONS: dict[str, tuple[int, tuple[float, ...]] | str] = {
    "batch": (LONGER, ()),
    "accumulate": (LONGER, ()),
    "power_limit": (SHORTER, (80, 150, 250, 400)),
    "host_launch_us": (LONGER, (5, 20, 50, 150)),
    "loader_rate": (SHORTER, (10, 100, 1000, 10000)),
    "cpu_rate": (SHORTER, (10, 100, 1000)),
    "cpus": (SHORTER, (1, 4, 16)),
    "network": (SHORTER, (1, 5, 20, 100)),
    "link": (SHORTER, (3, 20, 100, 400)),
    "servers": (SHORTER, (1, 2, 4, 8)),
    "ema": (LONGER, (0, 1)),
    "grad_scaler": (LONGER, (0, 1)),
    "offload_activations": (LONGER, (0, 1)),
    "keep_gathered": (SHORTER, (0, 1)),
    "whole_gradients": (SHORTER, (0, 1)),
    "torch": "newer versions have other kernels",
    "compiled": "compiled code lacks a framework's own kernels",
    "step_in_backward": "it loops over tensors, whose traffic is that of lists",
    "gpus": "it follows from the degrees",
    "data_parallel": "more workers in a node use more of its network ports",
    "tensor_parallel": "a GPU has less work and more exchanges",
    "pipeline_parallel": "a GPU has less work and more exchanges",
    "expert_parallel": "a GPU has less work and more exchanges",
    "context_parallel": "a GPU has less work and more exchanges",
    "sequence_parallel": "it replaces other exchanges",
    "micro_batches": "stages wait less, and kernels are smaller",
    "virtual_stages": "stages wait less, and exchange more",
    "first_stage_blocks": "stages may become more equal",
    "last_stage_blocks": "stages may become more equal",
    "pipeline_blocks": "it must be the job's number",
    "zero": "stage 3 gathers weights under the passes, and the others behind the update",
    "nodes": "fewer GPUs share a host's memory, and more share no link",
}
"""The step with a larger value, and the values, or () for twice the value; or why there is no law."""

RATES = ("memory_gbps", "fp32_tflops", "tf32_tflops", "fp16_tflops", "fp8_tflops", "nvlink_gbps", "pcie_gbps")
JOBS = ("bert-base", "gpt2", "distilbert-base", "t5-small", "vit-base-patch16-224", "olmoe-1b-7b", "resnet50", "mobilenet_v2",
        "swin_t", "dlrm-kaggle", "dit-xl-2", "llama-3.2-1b")
PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "pytorch", "mixed-bf16", "mixed-fp16", "fp8", "fp8-rowwise", "mxfp8")
OPTIMIZERS = ("sgd", "sgd-plain", "adam", "adamw", "adam8bit", "adafactor", "lion", "muon", "adamw-fused")


def draw(choose: random.Random) -> dict[str, Any]:
    """Options that most jobs accept."""
    options: dict[str, Any] = {"batch": choose.choice((1, 2, 4, 8, 16, 32, 64, 128, 256)), "precision": choose.choice(PRECISIONS),
                               "optimizer": choose.choice(OPTIMIZERS)}
    rare = {"layout": ("nhwc",), "compiled": (True,), "accumulate": (2, 4), "checkpoint": ("blocks", "selective"),
            "framework": ("hf-trainer", "liger", "transformer-engine", "megatron"), "attention": ("eager", "flash"),
            "host_launch_us": (5, 20, 80), "loss": ("chunked", "fused"), "frozen_weights": ("int8", "nf4"),
            "optimizer_kernels": ("foreach", "fused", "for-loop"), "cpu_rate": (10, 1000), "cpus": (2, 8)}
    options.update({name: choose.choice(values) for name, values in rare.items() if choose.random() < 0.2})
    if choose.random() < 0.4:
        workers, nodes = choose.choice((2, 8, 32)), choose.choice((1, 2))
        options.update({"gpus": workers, "data_parallel": workers, "nodes": nodes, "zero": choose.choice((0, 1, 2, 3))})
    return options


class Laws(support.TestCase):
    def setUp(self) -> None:
        self.predictor = mdot.Predictor()
        self.jobs = {name: mdot.Job.read(name) for name in JOBS}
        self.faults: list[str] = []

    def step(self, job: mdot.Job, gpu: mdot.GPU, options: dict[str, Any]) -> float | None:
        """None: mdot refuses the combination."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.predictor.predict(job, gpu, **options).step_ms
            except (ValueError, mdot.Error):
                return None

    def compare(self, what: str, steps: list[float | None], direction: int, slack: float = SLACK) -> int:
        known = [step for step in steps if step is not None]
        for before, after in zip(known, known[1:]):
            if direction * (after - before) < -slack * before:
                self.faults.append(f"{what}: {before:g} -> {after:g} ms")
        return max(len(known) - 1, 0)

    def ask(self, seed: int, questions: int, law: Callable[[random.Random, mdot.Job, mdot.GPU, dict[str, Any], str], int]) -> int:
        choose, compared, models = random.Random(seed), 0, mdot.gpus()
        for _ in range(questions):
            name, gpu, options = choose.choice(JOBS), choose.choice(models), draw(choose)
            compared += law(choose, self.jobs[name], gpu, options, f"{name} on {gpu.name}, {options}")
        self.assertEqual(self.faults[:10], [], f"{len(self.faults)} of {compared} comparisons")
        return compared

    def test_every_numeric_option_has_a_row(self) -> None:
        numeric = {row.keyword for row in ROWS if row.kind != "choice"}
        self.assertEqual(numeric - set(DIRECTIONS), set())

    def test_a_larger_value_moves_the_step_in_its_direction(self) -> None:
        lawful = [name for name, law in DIRECTIONS.items() if not isinstance(law, str)]

        def law(choose: random.Random, job: mdot.Job, gpu: mdot.GPU, options: dict[str, Any], what: str) -> int:
            option = choose.choice(lawful)
            direction, values = DIRECTIONS[option]
            if option == "servers":
                options = {**options, "zero": 0}
            given = values or [factor * options.get(option, 1) for factor in (1, 2, 4)]
            steps = [self.step(job, gpu, {**options, option: value}) for value in given]
            return self.compare(f"{what}: {option} {given}", steps, int(direction))

        self.assertGreater(self.ask(47, 400, law), 300)

    def test_a_faster_gpu_never_lengthens_a_step(self) -> None:
        def law(choose: random.Random, job: mdot.Job, gpu: mdot.GPU, options: dict[str, Any], what: str) -> int:
            rate, factor = choose.choice(RATES), choose.choice((1.05, 1.3, 2))
            if rate == "fp16_tflops" and str(options["precision"]).startswith(("fp8", "mxfp8")):
                return 0    # FP8 takes the learned time in bf16 times a ratio at a batch of 32: up to 32 % longer
            faster = dataclasses.replace(gpu, **{rate: factor * getattr(gpu, rate)})
            return self.compare(f"{what}: {factor} {rate}", [self.step(job, each, options) for each in (gpu, faster)], SHORTER,
                                SLACK_OF_RATES)

        self.assertGreater(self.ask(48, 300, law), 140)

    def test_a_fused_loss_pays_for_large_batches(self) -> None:
        """Its parts read the head's weights again once a step, whatever the batch is."""
        for name in ("bert-base", "gpt2", "distilbert-base", "llama-3.2-1b"):
            for gpu in ("T4", "RTX-A6000", "A100", "H100"):
                for batch in (64, 192, 512):
                    steps = [self.step(self.jobs[name], mdot.gpu(gpu), {"batch": batch, "precision": "amp-fp16", "loss": loss})
                             for loss in ("whole", "fused")]
                    self.compare(f"{name} on {gpu}, {batch}", steps, SHORTER)
        self.assertEqual(self.faults, [])

    def test_work_on_the_host_is_no_shortcut(self) -> None:
        """Muon's matmuls take longer on a host, and in any type of the weights as long as in bf16."""
        def law(choose: random.Random, job: mdot.Job, gpu: mdot.GPU, options: dict[str, Any], what: str) -> int:
            if job.block_count == 0 or job.parameters < 5e7:     # launches to a GPU take longer than a small update on the host
                return 0
            options = {**options, "optimizer": "muon", "zero": 0}
            offloaded = [self.step(job, gpu, {**options, "offload": part}) for part in ("nothing", "optimizer")]
            types = [self.step(job, gpu, {**options, "precision": each}) for each in ("bf16", "amp-bf16")]
            return self.compare(f"{what}: offload", offloaded, LONGER) + self.compare(f"{what}: types", types, LONGER, SLACK_OF_RATES)

        self.assertGreater(self.ask(49, 60, law), 40)


if __name__ == "__main__":
    unittest.main()
