"""A step is a sum of parts, and an option changes the parts that it names: the shipped predictor's explanations of four networks
on two GPUs, over every training option and its values. tests/runtime/predict/test_option_effects.c has the same law
for a predictor of the batch alone."""

from __future__ import annotations

import itertools
import random
import unittest
from typing import Any

import support

import mdot
from mdot.options import CHOICES, ROWS

FORWARD, BACKWARD, UPDATE, HOST, COMMUNICATION, IDLE = "forward", "backward", "update", "host", "communication", "idle"
DATA = "data"
PASSES = {FORWARD, BACKWARD, HOST, COMMUNICATION, IDLE}
"""The host launches them, they hide a part of the communication, and stages wait for each other's."""
EVERY = PASSES | {UPDATE, DATA}
OF_UPDATE = {UPDATE, HOST}

EFFECTS: dict[str, tuple[tuple[Any, ...], set[str]]] = {
    "batch": ((2, 8), PASSES),
    "precision": ((), EVERY),
    "layout": ((), PASSES),
    "optimizer": ((), OF_UPDATE),
    "attention": ((), PASSES),
    "compiled": ((False, True), PASSES),
    "checkpoint": ((), PASSES),
    "accumulate": ((1, 4), PASSES),
    "torch": (("1.12", "2.9"), PASSES),
    "optimizer_kernels": ((), OF_UPDATE),
    "step_in_backward": ((False, True), OF_UPDATE),
    "gradient_type": ((), {UPDATE, COMMUNICATION}),
    "reduce_type": ((), {COMMUNICATION}),
    "offload": ((), {UPDATE, HOST, COMMUNICATION}),
    "offload_activations": ((False, True), {COMMUNICATION}),
    "loss": ((), PASSES),
    "frozen_weights": ((), PASSES),
    "ema": ((False, True), OF_UPDATE),
    "grad_scaler": ((False, True), OF_UPDATE),
    "power_limit": ((250, 300), EVERY),
    "mode": ((), EVERY),
    "host_launch_us": ((10, 40), {HOST, UPDATE, COMMUNICATION, IDLE}),
    "framework": ((), PASSES),
    "loader_rate": ((0, 1, 1e9), {DATA}),
    "cpu_rate": ((1, 1e9), {DATA}),
    "cpus": ((1e-6, 4), {DATA}),
    "gpus": ((1, 8), EVERY),    # degrees follow
    "data_parallel": ((8,), {COMMUNICATION}),
    "tensor_parallel": ((1, 2), EVERY),
    "pipeline_parallel": ((1, 2), EVERY),
    "expert_parallel": ((1, 2), EVERY),
    "context_parallel": ((1, 2), EVERY),
    "sequence_parallel": ((0, 1), PASSES),
    "micro_batches": ((2, 4), EVERY),
    "virtual_stages": ((1, 2), {HOST, COMMUNICATION, IDLE}),
    "first_stage_blocks": ((0, 5), EVERY),
    "last_stage_blocks": ((0, 5), EVERY),
    "pipeline_blocks": ((0, 12), set()),
    "zero": ((0, 1, 2, 3), {UPDATE, COMMUNICATION}),
    "servers": ((0, 2, 4), {UPDATE, HOST, COMMUNICATION}),
    "sync": ((), {COMMUNICATION}),
    "schedule": ((), {HOST, COMMUNICATION, IDLE}),
    "keep_gathered": ((False, True), {COMMUNICATION}),
    "whole_gradients": ((False, True), {COMMUNICATION}),
    "nodes": ((1, 2), {COMMUNICATION}),
    "network": ((1, 50), {COMMUNICATION}),
}
"""Values, or () for all choices, and the parts that may change."""

JOBS = ("gpt2", "resnet50", "sd-unet", "mixtral-8x7b")
GPUS = ("A100-SXM-80GB", "RTX-4090")
BASES: tuple[dict[str, Any], ...] = (
    {"batch": 8, "precision": "amp-bf16"},
    {"batch": 32, "precision": "tf32", "optimizer": "adamw"},
    {"batch": 8, "precision": "mixed-bf16", "optimizer": "adamw", "gpus": 8},
    {"batch": 4, "precision": "bf16", "checkpoint": "blocks", "optimizer": "adamw", "host_launch_us": 1, "gpus": 8, "zero": 3,
     "accumulate": 2},
    {"batch": 8, "precision": "fp8", "optimizer": "adamw", "gpus": 8, "tensor_parallel": 2},
    {"batch": 8, "precision": "mixed-bf16", "optimizer": "adam", "gpus": 4, "pipeline_parallel": 2, "micro_batches": 4},
    {"batch": 8, "precision": "amp", "cpus": 4, "cpu_rate": 1e6},
    {"batch": 8, "precision": "amp", "gpus": 8, "servers": 2},
    {"batch": 8, "precision": "amp", "gpus": 16, "nodes": 2, "network": 10},
)


def parts(why: mdot.Explanation) -> dict[str, float]:
    return {FORWARD: why.forward_ms, BACKWARD: why.data_gradient_ms + why.weight_gradient_ms, UPDATE: why.optimizer_ms,
            HOST: why.host_busy_ms, COMMUNICATION: why.communication_ms, IDLE: why.idle_ms, DATA: why.data_ms}


class Parts(support.TestCase):
    def explain(self, job: mdot.Job, gpu: str, options: dict[str, Any]) -> dict[str, float] | None:
        """None: mdot refuses the combination."""
        try:
            why = mdot.explain(job, gpu, **options)
        except (ValueError, mdot.Error):
            return None
        whole = why.gpu_busy_ms + why.host_busy_ms - why.overlap_ms + why.communication_ms + why.idle_ms
        whole += why.data_ms
        self.assertAlmostEqual(whole, why.step_ms, delta=1e-5 * why.step_ms, msg=f"{gpu}: {options}")
        return {**parts(why), "step": why.step_ms}

    def test_every_option_has_a_row(self) -> None:
        self.assertEqual(sorted(EFFECTS), sorted(row.keyword for row in ROWS))

    def test_an_option_changes_its_own_parts_alone(self) -> None:
        faults, compared = [], dict.fromkeys(EFFECTS, 0)
        jobs = {name: mdot.Job.read(name) for name in JOBS}
        for name, gpu, base in itertools.product(JOBS, GPUS, BASES):
            job = jobs[name]
            for option, (values, allowed) in EFFECTS.items():
                asked = ((value, self.explain(job, gpu, {**base, option: value})) for value in values or CHOICES[option])
                answers = [(value, found) for value, found in asked if found is not None]
                for b, after in answers[1:]:
                    a, before = answers[0]
                    compared[option] += 1
                    waited = {COMMUNICATION} if "servers" in base and option == "optimizer" else set()  # for their update
                    faults += [f"{name} on {gpu}, {base}: {option} {a} -> {b} changes {part} from {before[part]:g} to {after[part]:g} ms"
                               for part in EVERY - allowed - waited if abs(before[part] - after[part]) > 1e-6 * before["step"]]
        self.assertEqual(faults[:20], [], f"{len(faults)} faults")
        unasked = [option for option, count in compared.items() if count == 0]
        self.assertEqual(unasked, ["data_parallel"])     # it follows from the number of GPUs and the other degrees

    def test_options_add_up_in_random_configurations(self) -> None:
        choose, faults, compared = random.Random(47), [], 0
        jobs = {name: mdot.Job.read(name) for name in (*JOBS, "t5-small", "dlrm-kaggle", "llama-3-8b")}
        for _ in range(600):
            name, gpu = choose.choice(list(jobs)), choose.choice((*GPUS, "H100", "V100-SXM-16GB", "B200", "MI300X"))
            option = choose.choice([each for each in EFFECTS if each not in ("gpus", "nodes", "mode", "data_parallel")])
            base = {"batch": 8, "gpus": choose.choice((1, 8))}
            others = [each for each in EFFECTS if each not in ("gpus", "batch", "mode", "power_limit", option)]
            for other in choose.sample(others, choose.randint(0, 4)):
                base[other] = choose.choice(EFFECTS[other][0] or CHOICES[other])
            values, allowed = EFFECTS[option]
            asked = choose.choices(values or CHOICES[option], k=2)
            before, after = (self.explain(jobs[name], gpu, {**base, option: value}) for value in asked)
            if before is None or after is None:
                continue
            compared += 1
            if {"servers", "offload"} & base.keys() and UPDATE in allowed:      # the host's update is exchanged, and waits
                allowed = allowed | {COMMUNICATION}
            if {"loader_rate", "cpu_rate"} & base.keys():                       # loaders take the rest of their time
                allowed = allowed | {DATA}
            if name == "dlrm-kaggle" and option in ("batch", "accumulate"):     # rows of its sparse tables
                allowed = allowed | {UPDATE}
            if UPDATE in allowed:                                               # the host launches it
                allowed = allowed | {HOST}
            faults += [f"{name} on {gpu}, {base}: {option} changes {part} from {before[part]:g} to {after[part]:g} ms"
                       for part in EVERY - allowed if abs(before[part] - after[part]) > 1e-6 * max(before["step"], after["step"])]
        self.assertEqual("\n".join(faults), "")
        self.assertGreater(compared, 200)


if __name__ == "__main__":
    unittest.main()
