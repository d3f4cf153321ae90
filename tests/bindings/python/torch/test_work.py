"""The law of a trace (trace/check.py): a job does the work that its program dispatched, for networks of many kinds."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import io
import os
import sys
import tempfile
import unittest
import warnings
from typing import Any

import support
import torch
import torch.nn.functional as F
import work_networks
from torch import nn
from traced import read

import mdot
from mdot.trace.operators import TRANSLATIONS

MOST_DIFFERENCE = 0.02
EXPLAINED = {
}
"""Differences with a reason, by network."""


def flops(job: mdot.Job, batch: int, *phases: str) -> float:
    return sum(op.per_sample[phase].flops * batch + op.per_step[phase].flops for op in job for phase in phases or ("forward",))


class Law(support.TestCase):
    def test_jobs_do_the_work_of_their_programs(self) -> None:
        """One process reads all networks. Libraries that are absent are named, and their networks left out."""
        absent: set[str] = set()
        count = 0
        for name, make in work_networks.networks().items():
            with self.subTest(name):
                try:
                    model, args, kwargs = make()
                except ModuleNotFoundError as fault:
                    absent.add(str(fault.name))
                    continue
                job, reported = read(model, *args, **kwargs)
                count += 1
                assert job.program is not None
                check = job.program.check
                self.assertGreater(check.dispatched_flops[0], 0)
                for dispatched, own in zip(check.dispatched_flops, check.job_flops):
                    if name not in EXPLAINED and (dispatched > 0 or own == 0):
                        self.assertLessEqual(abs(own - dispatched), MOST_DIFFERENCE * dispatched, f"{check} {reported}")
                self.assertEqual(check.unpriced_operators, 0, [op.type for op in job if not op.known])
                self.assertTrue(job.program.recorded, reported)  # a training step ran
                if name not in EXPLAINED:
                    self.assertGreater(check.recorded_peak, 0)
                    difference = abs(check.predicted_peak - check.recorded_peak)
                    self.assertLessEqual(difference, MOST_DIFFERENCE * check.recorded_peak, f"{check} {reported}")
            gc.collect()
        for library in sorted(absent):
            print(f"left out, because this Python has no {library}")
        self.assertGreaterEqual(count, 200 if not absent else 1)

    def test_a_difference_names_the_module(self) -> None:
        """A translation that forgets a product is found, although nothing else is wrong."""
        linear = TRANSLATIONS["linear"]
        model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8)))

        def doubled(call: Any) -> Any:
            made = linear(call)
            return call.graph.op("Add", [made, linear(call)], made.shape, made.dtype) if call["input"].shape == (4, 16) else made

        self.addCleanup(TRANSLATIONS.__setitem__, "linear", linear)
        TRANSLATIONS["linear"] = doubled
        job, reported = read(model, torch.zeros(4, 8))
        self.assertEqual(len([text for text in reported if "work-differs" in text and "(largest differences in 1.1)" in text]), 1, reported)
        assert job.program is not None
        self.assertEqual(job.program.check.modules, "1.1")
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/network.job"
            job.save(path)
            self.assertEqual(mdot.Job.load(path).program, job.program)


    def test_a_memory_difference_names_the_module(self) -> None:
        """A budget that the samples share: two batches do not show how memory grows."""

        class Budget(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return F.linear(x, self.weight[: (1 << 17) // len(x)]).exp().square()

        job, reported = read(nn.Sequential(nn.Linear(8, 8), Budget(8, 1 << 15)), torch.zeros(4, 8))
        found = [text for text in reported if "memory-differs" in text]
        self.assertEqual(len(found), 1, reported)
        self.assertIn("(largest differences in 1)", found[0])
        assert job.program is not None
        check = job.program.check
        prediction = mdot.Predictor().predict(job, "A100-40GB", 4, optimizer="sgd-plain")
        self.assertLessEqual(prediction.memory_lower_bytes, check.recorded_peak)
        self.assertGreaterEqual(prediction.memory_upper_bytes, check.recorded_peak)
        self.assertIn("work check, peak memory", self.shown(job))

    def test_memory_follows_the_way_that_the_program_takes_at_the_examples_batch(self) -> None:
        """Parts of two samples above twenty samples; distances by a matrix product above 25 rows."""

        class Parts(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.wide = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 2048), nn.ReLU(), nn.Linear(2048, 8))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.first(x)
                return torch.cat([self.wide(part).detach() for part in x.split(2)] if len(x) > 20 else [self.wide(x)]) + x

        class Distances(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(64, 64)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.first(x)
                return torch.cdist(x, x).mean()

        for model, batch, extent in ((Parts(), 16, 8), (Parts(), 64, 8), (Distances(), 8, 64), (Distances(), 64, 64)):
            job, reported = read(model, torch.zeros(batch, extent))
            assert job.program is not None
            check = job.program.check
            self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.001, msg=str(reported))
            self.assertAlmostEqual(check.job_flops[1] / check.dispatched_flops[1], 1, delta=0.02, msg=str(reported))
            work = [op for op in job if not op.known]
            self.assertTrue(all(op.per_square["data_gradient"].flops > 0 for op in work))

    def shown(self, job: mdot.Job) -> str:
        with tempfile.TemporaryDirectory() as folder:
            job.save(f"{folder}/network.job")
            return support.run(os.environ["MDOT_CLI"], "extract", f"{folder}/network.job")

    def test_a_predicted_peak_is_the_predictors(self) -> None:
        """The check's own sum agrees with the answer of the library, where the update takes nothing."""
        for name in ("Linear", "LSTM", "graph_gat", "torchvision_resnet18", "transformers_GPT2LMHeadModel", "peft_LoraConfig"):
            try:
                model, args, kwargs = work_networks.networks()[name]()
            except ModuleNotFoundError:
                continue
            job, _ = read(model, *args, **kwargs)
            assert job.program is not None
            batch = int(job.batch)
            prediction = mdot.Predictor().predict(job, "A100-40GB", batch, optimizer="sgd-plain")
            self.assertAlmostEqual(prediction.peak_memory_bytes / job.program.check.predicted_peak, 1, delta=0.005, msg=name)

    def test_missing_work_lies_within_the_interval(self) -> None:
        job, _ = read(nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048)), torch.zeros(512, 2048))
        assert job.program is not None
        check = job.program.check
        before = mdot.Predictor().predict(job, "A100-40GB", 512)
        cases = (
            (dataclasses.replace(check, dispatched_flops=(4 * check.job_flops[0], check.job_flops[1])), 1, 4),
            (dataclasses.replace(check, dispatched_flops=(check.job_flops[0], check.job_flops[1] / 2)), 0.5, 1),
            (dataclasses.replace(check, dispatched_flops=tuple(1.01 * n for n in check.job_flops)), 1, 1),
        )
        for changed, lower, upper in cases:
            other = job.with_program(dataclasses.replace(job.program, check=changed))  # type: ignore[arg-type]
            after = mdot.Predictor().predict(other, "A100-40GB", 512)
            self.assertAlmostEqual(after.lower_ms / before.lower_ms, lower, places=4)
            self.assertAlmostEqual(after.upper_ms / before.upper_ms, upper, places=4)
        unpriced = dataclasses.replace(check, unpriced_bytes=1e9, unpriced_operators=1)
        other = job.with_program(dataclasses.replace(job.program, check=unpriced))
        after = mdot.Predictor().predict(other, "A100-40GB", 1024)
        plain = mdot.Predictor().predict(job, "A100-40GB", 1024)
        self.assertAlmostEqual(after.upper_ms - plain.upper_ms, 4 * 2e9 / 1555e6, delta=0.2)


class Kinds(support.TestCase):
    def test_work_on_parameters_alone_is_independent_of_the_batch(self) -> None:
        class Merged(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.w = nn.Parameter(torch.zeros(64, 64), requires_grad=False)
                self.a, self.b = nn.Parameter(torch.zeros(4, 64)), nn.Parameter(torch.zeros(64, 4))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return F.linear(x, self.w + self.b @ self.a)

        job, _ = read(Merged(), torch.zeros(16, 64))
        product = next(op for op in job if op.type == "MatMul")
        self.assertEqual(product.per_step["forward"].flops, 2 * 64 * 64 * 4)
        self.assertEqual(product.per_step["weight_gradient"].flops, 2 * 2 * 64 * 64 * 4)
        self.assertEqual(product.per_sample["forward"].flops, 0)
        linear = next(op for op in job if op.type == "Linear")
        self.assertEqual(linear.per_sample["weight_gradient"].flops, 2 * 64 * 64)
        self.assertEqual(job.parameters, 2 * 4 * 64)
        self.assertEqual(job.frozen_parameters, 64 * 64)

    def test_a_second_pass_costs_as_much_as_the_first(self) -> None:
        network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 8))

        class Passes(nn.Module):
            def __init__(self, count: int) -> None:
                super().__init__()
                self.network, self.count = network, count

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return sum(self.network(x).square().mean() for _ in range(self.count))  # type: ignore[return-value]

        one, three = (flops(read(Passes(count), torch.zeros(8, 64))[0], 8) for count in (1, 3))
        self.assertAlmostEqual(three / one, 3, delta=0.01)

    def test_packed_recurrences_cost_as_padded_ones(self) -> None:
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            packed = work_networks.Packed(kind(48, 64, batch_first=True))
            half, _ = read(packed, torch.zeros(4, 12, 48), torch.tensor([12, 6, 4, 2]))
            whole, _ = read(packed, torch.zeros(4, 12, 48), torch.full((4,), 12))
            padded, _ = read(kind(48, 64, batch_first=True), torch.zeros(4, 12, 48))
            self.assertAlmostEqual(flops(whole, 4) / flops(padded, 4), 1, delta=0.02)
            self.assertAlmostEqual(flops(half, 4) / flops(whole, 4), 0.5, delta=0.02)

    def test_grouped_products_cost_their_rows(self) -> None:
        if not hasattr(torch, "_grouped_mm"):
            self.skipTest("this PyTorch has no _grouped_mm")

        class Experts(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.w = nn.Parameter(torch.zeros(7, 32, 48))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch._grouped_mm(x, self.w, offs=torch.full((7,), len(x), dtype=torch.int32))

        for rows in (8, 64, 100):
            job, reported = read(Experts(), torch.zeros(rows, 32))
            self.assertEqual(flops(job, rows), 2 * rows * 32 * 48, reported)

    def test_not_of_a_boolean_mask_is_known(self) -> None:
        job, reported = read(work_networks.Function(lambda m, x: m.last(x.masked_fill(~(x > 0), 0.0))), torch.zeros(4, 24))
        self.assertIn("Not", [op.type for op in job])
        self.assertEqual(job.unknown_count, 0, reported)

    def test_frozen_float8_weights_are_dequantised(self) -> None:
        class Frozen(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(64, 64)
                self.w = nn.Parameter(torch.zeros(64, 64, dtype=torch.float8_e4m3fn), requires_grad=False)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return F.linear(self.first(x), self.w.to(x.dtype))

        job, _ = read(Frozen(), torch.zeros(4, 64))
        cast = next(op for op in job if op.type == "Cast")
        self.assertEqual(cast.per_step["forward"].bytes_written, 4 * 64 * 64)
        self.assertEqual(cast.per_sample["forward"].bytes_written, 0)

    def test_autocast_is_seen_however_it_is_made(self) -> None:
        for how in ("with", "decorator", "stored", "setter"):
            job, reported = read(Autocast(how), torch.zeros(4, 64))
            assert job.program is not None
            self.assertEqual(job.program.precision, "amp-bf16", how)
            self.assertFalse(torch.is_autocast_enabled("cpu"))

    def test_regions_record_their_type(self) -> None:
        job, _ = read(Autocast("half"), torch.zeros(4, 64))
        assert job.program is not None
        full, half = 1 << 3, 1 << 4
        flags = [op.flags & (full | half) for op in job if op.type == "Linear"]
        self.assertEqual(flags, [full, 0] if job.program.precision == "amp-bf16" else [0, half])

    def test_checkpoint_policies_say_what_runs_again(self) -> None:
        from torch.utils import checkpoint

        keep = [torch.ops.aten.mm.default, torch.ops.aten.addmm.default]
        for policy, expected in ((None, [1, 0]), (keep, [0, 0])):  # the run ends before the last product
            context = {} if policy is None else {"context_fn": lambda: checkpoint.create_selective_checkpoint_contexts(keep)}

            class Block(nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

                def forward(self, x: torch.Tensor) -> torch.Tensor:
                    return checkpoint.checkpoint(self.layers, x, use_reentrant=False, **context)  # type: ignore[no-any-return]

            job, _ = read(nn.Sequential(nn.Linear(16, 16), Block()), torch.zeros(4, 16))
            self.assertEqual([op.flags & 1 for op in job if op.type == "Linear"], [0, *expected])
            self.assertEqual([op.flags & 1 for op in job if op.type == "Gelu"], [1])

    def test_checkpoints_inside_of_checkpoints_run_again_as_often_as_they_are_nested(self) -> None:
        """The outer region's second run has the inner region's, whose own backward pass runs it a third time. Without
        reentrant checkpoints, PyTorch ends a run early where the outer region needs nothing behind the inner one."""
        from torch.utils import checkpoint
        from torch.utils.flop_counter import FlopCounterMode

        class Part(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second, self.runs = nn.Linear(16, 32), nn.Linear(32, 16), 0

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                self.runs += 1
                return x + self.second(self.first(x).tanh()).tanh()

        class Nested(nn.Module):
            """"a(b)c": Part a, a checkpoint with Part b, and Part c."""

            def __init__(self, text: str, is_reentrant: bool) -> None:
                super().__init__()
                self.parts = nn.ModuleDict({name: Part() for name in text if name.isalpha()})
                self.first, self.text, self.is_reentrant = nn.Linear(16, 16), text, is_reentrant

            def run(self, text: str, x: torch.Tensor) -> torch.Tensor:
                while text:
                    if text[0] != "(":
                        x, text = self.parts[text[0]](x), text[1:]
                        continue
                    depth = [text[:i].count("(") - text[:i].count(")") for i in range(1, len(text) + 1)]
                    end = depth.index(0)
                    x = checkpoint.checkpoint(self.run, text[1:end], x, use_reentrant=self.is_reentrant)
                    text = text[end + 1 :]
                return x

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.run(self.text, self.first(x))

        forms = ("ab", "a(b)c", "(ab)", "a(b(c)d)e", "(a(b))", "((a)b)", "((a)(b))", "((a))", "(a(b(c)d)e)", "(a(b(c)))", "(((a)b)(c)d)", "((((a)b)c)d)")
        for text in forms:
            for is_reentrant in (False, True):
                with self.subTest(text, is_reentrant=is_reentrant):
                    model = Nested(text, is_reentrant)
                    job, reported = read(model, torch.zeros(4, 16))
                    self.assertEqual(reported, [])
                    for part in model.parts.values():
                        part.runs = 0
                    with FlopCounterMode(display=False) as counter:
                        model(torch.zeros(4, 16)).sum().backward()
                    again = [(op, (op.flags & 1) + (op.flags >> 5 & 3)) for op in job]
                    for op, count in again:
                        if op.type == "Tanh":
                            name = (op.module or "").rpartition(".")[2]
                            self.assertEqual(1 + count, model.parts[name].runs, name)
                    products = sum(count * 4 * 2 * 16 * 32 for op, count in again if op.type == "Linear")
                    assert job.program is not None
                    self.assertEqual(sum(job.program.check.dispatched_flops) + products, counter.get_total_flops())
        _, reported = read(Nested("(((((a)b)c)d)e)", True), torch.zeros(4, 16))
        self.assertRegex("\n".join(reported), "work-differs: the job has recomputed .* FLOPs instead of .*largest differences in parts.a")

    def test_offloaded_regions_are_marked(self) -> None:
        class Offloading(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                with torch.autograd.graph.save_on_cpu():
                    x = self.first(x)
                return self.second(x)

        job, _ = read(Offloading(), torch.zeros(4, 16))
        self.assertEqual([op.flags >> 2 & 1 for op in job if op.type == "Linear"], [1, 0])

    def test_offloaded_tensors_leave_the_memory(self) -> None:
        """Each of eight layers saves its result; offloaded, the backward pass takes one back at a time."""

        class Layers(nn.Module):
            def __init__(self, offloads: bool, pins: bool = False) -> None:
                super().__init__()
                self.layers, self.offloads, self.pins = nn.ModuleList([nn.Linear(16, 16) for _ in range(8)]), offloads, pins

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                with torch.autograd.graph.save_on_cpu(self.pins) if self.offloads else contextlib.nullcontext():
                    for layer in self.layers:
                        x = layer(x).tanh()
                return x

        plain, *others = (read(Layers(*how), torch.zeros(4, 16))[0] for how in ((False,), (True,), (True, True)))
        before = mdot.Predictor().predict(plain, "A100-40GB", 1 << 16).activation_bytes
        for job in others:
            after = mdot.Predictor().predict(job, "A100-40GB", 1 << 16).activation_bytes
            self.assertLess(after, before - 5 * (1 << 16) * 16 * 4)
            self.assertGreater(after, 2 * (1 << 16) * 16 * 4)

    def test_caches_of_methods_hold_no_tensor_of_a_trace(self) -> None:
        """The second run, with values, would read a tensor without data from the cache of the first."""
        import functools

        def cached(function: Any) -> Any:
            inner = functools.lru_cache(maxsize=4)(function)
            return lambda *args: inner(*args)

        class Anchored(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.out = nn.Linear(16, 16)

            @cached
            def anchors(self, count: int) -> torch.Tensor:
                return torch.arange(count).float()

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.out(x) + self.anchors(16)
                return y if float(y.sum()) > 0 else y * 2

        model = Anchored()
        read(model, torch.zeros(4, 16))
        self.assertIs(type(model.anchors(16)), torch.Tensor)

    def test_half_precision_before_fp32_layers_in_autocast(self) -> None:
        class Nano(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table, self.out = nn.Embedding(100, 64).bfloat16(), nn.Linear(64, 64)

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    return self.out(self.table(ids)).float()

        job, reported = read(Nano(), torch.zeros(4, 8, dtype=torch.int64))
        self.assertEqual(job.unknown_count, 0, reported)
        self.assertEqual([text for text in reported if "work-differs" in text], [])

    def test_a_successful_trace_is_silent(self) -> None:
        class Fixed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.k, self.out = nn.Parameter(torch.zeros(1, 24, 40)), nn.Linear(40, 3)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.out(torch.bmm(x, self.k.expand(6, 24, 40)).mean(1))

        with contextlib.redirect_stderr(io.StringIO()) as text:
            read(Fixed(), torch.zeros(6, 12, 24))
        self.assertNotIn("Traceback", text.getvalue())


    def test_a_batch_in_the_program_follows_the_inputs(self) -> None:
        """Functions with the number of samples as a constant; a table of the parameters alone stays as it is."""
        from torch.utils import checkpoint

        forms = {
            "view": lambda x, n: x.view(n, 24),
            "parts": lambda x, n: x.view(n * 3, 8).reshape(n, 24),
            "expand": lambda x, n: x + torch.ones(1, 24).expand(n, -1),
            "zeros": lambda x, n: x + torch.zeros((n, 24)),
        }

        class Scores(nn.Module):
            def __init__(self, form: Any, batch: int, repeats: bool) -> None:
                super().__init__()
                self.table, self.layers = nn.Parameter(torch.zeros(192, 64)), nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
                self.head, self.form, self.batch, self.repeats = nn.Linear(24, 64), form, batch, repeats

            def read(self, x: torch.Tensor) -> torch.Tensor:
                return self.head(self.form(x, self.batch or len(x))).tanh()

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = checkpoint.checkpoint(self.read, x, use_reentrant=False) if self.repeats else self.read(x)
                return x @ self.layers(self.table).T

        for name, form in forms.items():
            for traced, asked, repeats in ((4, 64, False), (64, 4, True)):
                with self.subTest(name, traced=traced):
                    free, _ = read(Scores(form, 0, repeats), torch.zeros(traced, 24))
                    fixed, reported = read(Scores(form, traced, repeats), torch.zeros(traced, 24))
                    self.assertTrue(any(f"hold the batch of {traced} as a number" in text for text in reported), reported)
                    self.assertEqual(flops(fixed, asked, "forward", "weight_gradient"), flops(free, asked, "forward", "weight_gradient"))
                    a, b = (mdot.Predictor().predict(job, "A100-40GB", asked) for job in (fixed, free))
                    self.assertAlmostEqual(a.peak_memory_bytes / b.peak_memory_bytes, 1, delta=0.001)

    def test_a_division_by_the_batch_is_one_at_every_batch(self) -> None:
        """A mean over a batch of 8 divides by a power of two."""
        for batch in (2, 6, 8, 64):
            _, reported = read(work_networks.Function(lambda m, x: m.last(x).sum() / len(x)), torch.zeros(batch, 24))
            self.assertEqual([text for text in reported if "all work counts per sample" in text], [])

    def test_long_texts_take_little_memory(self) -> None:
        """131,072 tokens, whose mask has 17 billion elements and whose passes have more than 2^53 FLOPs."""
        code = (
            "import mdot, resource, warnings; warnings.simplefilter('ignore'); import transformers;"
            "config = transformers.LlamaConfig(hidden_size=4096, num_hidden_layers=24, num_attention_heads=32, vocab_size=64,"
            " intermediate_size=64, max_position_embeddings=131072, use_cache=False);"
            "job = mdot.Job.from_transformers('LlamaForCausalLM', config, length=131072, batch=2);"
            "job = mdot.Job.from_bytes(job.to_bytes());"
            "print(job.program.check.job_flops[0] > 2**53, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20)"
        )
        self.assertIn("True True", support.run(sys.executable, "-c", code))

    def test_a_length_serves_all_lengths(self) -> None:
        """FLOPs, time and memory agree with those of a trace at the length, above and below the traced ones."""

        class Attention(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table = nn.Embedding(500, 64)
                self.layers = nn.ModuleList([nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(3)])
                self.out = nn.Linear(64, 500)

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                x = self.table(ids)
                for layer in self.layers:
                    x = layer(x)
                return F.cross_entropy(self.out(x).flatten(0, 1), ids.flatten())

        cases: tuple[tuple[Any, Any], ...] = (
            (Attention(), lambda length: torch.zeros(4, length, dtype=torch.int64)),
            (nn.LSTM(32, 64, batch_first=True), lambda length: torch.zeros(4, length, 32)),
        )
        for model, inputs in cases:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                job = mdot.Job.from_torch(model, inputs(256), length=256)
            for length in (48, 192, 256, 1000):
                direct, _ = read(model, inputs(length))
                found = job.with_length(length)
                self.assertAlmostEqual(flops(found, 4) / flops(direct, 4), 1, delta=0.001)
                for precision in ("fp32", "amp-bf16"):
                    a, b = (mdot.Predictor().predict(one, "A100-40GB", 4, precision=precision) for one in (found, direct))
                    self.assertAlmostEqual(a.step_ms / b.step_ms, 1, delta=0.01)
                    self.assertAlmostEqual(a.peak_memory_bytes / b.peak_memory_bytes, 1, delta=0.01)
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "length=100"):
            mdot.Job.from_torch(cases[0][0], cases[0][1](256), length=100)

    def test_compiled_programs_are_asked_as_compiled(self) -> None:
        def network() -> nn.Sequential:
            layers = [nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU(), nn.Dropout(0.1)) for _ in range(4)]
            return nn.Sequential(*layers)

        def answer(model: Any, **options: Any) -> Any:
            job, _ = read(model, torch.zeros(64, 128, 512))
            found = mdot.Predictor().predict(mdot.Job.from_bytes(job.to_bytes()), "A100-40GB", 64, **options)
            return found.step_ms, found.peak_memory_bytes

        inside, parts = network(), network()
        inside.compile()
        for i, part in enumerate(parts):
            parts[i] = torch.compile(part)  # type: ignore[assignment]
        one = network()
        one[0] = torch.compile(one[0])  # type: ignore[assignment]
        compiled, plain = answer(network(), compiled=True), answer(network())
        self.assertNotEqual(compiled, plain)
        for model in (torch.compile(network()), inside, parts):
            self.assertEqual(answer(model), compiled)
        self.assertEqual(answer(one), plain)
        self.assertEqual(answer(torch.compile(network()), torch="1.12"), answer(network(), torch="1.12"))


class Autocast(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.first, self.second, self.how = nn.Linear(64, 64), nn.Linear(64, 64), how
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this Python may have no CUDA
            self.stored = torch.autocast("cuda", dtype=torch.bfloat16)
            self.decorated = torch.autocast("cuda", dtype=torch.bfloat16)(self.run)

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())  # type: ignore[no-any-return]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "decorator":
            return self.decorated(x)  # type: ignore[no-any-return]
        if self.how == "stored":
            with self.stored:
                return self.run(x)
        if self.how == "setter":
            before = torch.is_autocast_enabled("cuda")
            torch.set_autocast_dtype("cuda", torch.bfloat16)
            torch.set_autocast_enabled("cuda", True)
            try:
                return self.run(x)
            finally:
                torch.set_autocast_enabled("cuda", before)
        x = self.first(x) if self.how == "half" else x
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.second(x) if self.how == "half" else self.run(x)  # type: ignore[no-any-return]


if __name__ == "__main__":
    unittest.main()
