"""Job.from_trace: the job of a profiled step has the work of the network's own trace, in each phase and at two batches, for
torch.profiler and for Chakra, and measured kernels stand beside predicted ones."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import gzip
import io
import json
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator

import support
import torch
import torchvision
import transformers
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

import mdot
from mdot.__main__ import main
from mdot.trace.replay import compare, network_of
from mdot.trace.transfer import ERRORS, MDOT, RATIO, WAVES, answers_ms, wave_factor

BATCH, TOLERANCE = 3, 0.01
Made = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any], Any, tuple[Any, ...]]
"""A module, its arguments, and a loss with its targets."""


def image(kind: str, side: int = 64) -> Callable[[], Made]:
    def make() -> Made:
        model = torchvision.models.get_model(kind)
        return model, (torch.randn(BATCH, 3, side, side),), {}, torch.nn.CrossEntropyLoss(), (torch.arange(BATCH),)

    return make


def words(kind: str, **options: Any) -> Callable[[], Made]:
    def make() -> Made:
        made = getattr(transformers, kind)
        sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 160, "vocab_size": 500}
        config = made.config_class(**{**sizes, "max_position_embeddings": 64, "pad_token_id": 0, **options})
        config.use_cache = False
        tokens = torch.randint(5, 400, (BATCH, 24))
        return made(config), (), {"input_ids": tokens, "labels": tokens}, None, ()

    return make


def perceptron() -> Made:
    layers = torch.nn.Linear(40, 90), torch.nn.Tanh(), torch.nn.LayerNorm(90), torch.nn.Linear(90, 90), torch.nn.Linear(90, 7)
    model = torch.nn.Sequential(*layers)
    model[0].requires_grad_(False)
    return model, (torch.randn(BATCH, 40),), {}, torch.nn.MSELoss(), (torch.zeros(BATCH, 7),)


NETWORKS: dict[str, Callable[[], Made]] = {
    "resnet18": image("resnet18"), "mobilenet_v2": image("mobilenet_v2"), "vgg11": image("vgg11"),
    "vit_b_32": image("vit_b_32", 224), "efficientnet_b0": image("efficientnet_b0"), "shufflenet": image("shufflenet_v2_x1_0"),
    "bert": words("BertForMaskedLM"), "albert": words("AlbertForMaskedLM", embedding_size=32),
    "gpt2": words("GPT2LMHeadModel", n_embd=64, n_head=4, n_layer=3),
    "llama": words("LlamaForCausalLM", num_key_value_heads=2), "opt": words("OPTForCausalLM", ffn_dim=160, word_embed_proj_dim=64),
    "qwen3": words("Qwen3ForCausalLM", num_key_value_heads=2, head_dim=16), "perceptron": perceptron,
    "t5": words("T5ForConditionalGeneration", d_model=64, d_ff=128, num_layers=2, num_heads=4, d_kv=16, decoder_start_token_id=0),
}  # fmt: skip
NAMED = [name for name in sys.argv[1:] if name in NETWORKS]
"""Networks of the command line."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def step_of(made: Made, optimizer: Any = None) -> None:
    model, args, kwargs, loss, targets = made
    out = model(*args, **kwargs)
    (loss(out, *targets) if loss is not None else out.loss).backward()
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()


def record(made: Made, path: Path) -> None:
    trained = [parameter for parameter in made[0].parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(2):
            step_of(made, optimizer)
            profiler.step()
    profiler.export_chrome_trace(str(path))


def direct(made: Made) -> mdot.Job:
    model, args, kwargs, loss, targets = made
    return mdot.Job.from_torch(model, args, kwargs, loss=loss, targets=targets)


def work(job: mdot.Job, batch: int) -> dict[str, float]:
    nothing = mdot.Load(0, 0, 0)
    made = {"parameters": float(job.parameters)}
    for phase in ("forward", "data_gradient", "weight_gradient"):
        loads = [(op.per_step[phase], op.per_sample[phase], op.per_square.get(phase, nothing)) for op in job]
        made[phase] = sum(a.flops + batch * b.flops + batch * batch * c.flops for a, b, c in loads)
    return made


class Traces(support.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        torch.manual_seed(1)

    def expect_equal_work(self, traced: mdot.Job, own: mdot.Job) -> None:
        self.assertEqual(traced.batch, BATCH)
        for batch in (BATCH, 16):
            found, wanted = work(traced, batch), work(own, batch)
            far = {name: found[name] / n - 1 for name, n in wanted.items() if abs(found[name] - n) > TOLERANCE * n}
            self.assertEqual(far, {}, f"batch {batch}: relative differences")

    def test_a_profiled_step_has_the_work_of_the_network(self) -> None:
        for name in NAMED or NETWORKS:
            with self.subTest(name), quiet():
                made, path = NETWORKS[name](), self.folder / f"{name}.json.gz"
                record(made, path)
                self.expect_equal_work(mdot.Job.from_trace(path), direct(made))

    def test_a_chakra_trace_has_the_work_of_the_network(self) -> None:
        for name in ("bert", "gpt2"):
            with self.subTest(name), quiet():
                made, path = NETWORKS[name](), self.folder / f"{name}.json"
                observer = ExecutionTraceObserver().register_callback(str(path))
                observer.start()
                step_of(made)
                observer.stop()
                observer.unregister_callback()
                self.expect_equal_work(mdot.Job.from_trace(path), direct(made))

    def test_the_job_tells_what_the_trace_does_not(self) -> None:
        path = self.folder / "trace.json"
        record(NETWORKS["perceptron"](), path)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            mdot.Job.from_trace(path)
        text = "\n".join(str(one.message) for one in found)
        self.assertIn("the batch is 3", text)
        self.assertIn("memory is an estimate", text)

    def test_a_command_reads_a_trace_in_place_of_a_job(self) -> None:
        path = self.folder / "trace.json"
        record(NETWORKS["perceptron"](), path)
        command = [sys.executable, "-m", "mdot", "extract", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, "Linear" in run.stdout), (0, True), run.stderr)
        self.assertIn("the batch is 3", run.stderr)

    def test_a_command_reads_a_name_of_a_network_in_place_of_a_job(self) -> None:
        def run(name: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "mdot", "extract", name, "-b", "7"]
            return subprocess.run(command, capture_output=True, text=True, check=False)

        for name in ("torchvision:resnet18", "timm:resnet10t", "timm:resnet50"):  # the last one is a ready job
            made, expected = run(name), self.folder / "made.job"
            mdot.Job.from_name(name).save(expected)
            self.assertEqual(made.returncode, 0, made.stderr)
            if name != "timm:resnet50":
                self.assertEqual(made.stdout.splitlines()[1:], run(str(expected)).stdout.splitlines()[1:], name)
        wrong = run("torchvision:resnet18x")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("torchvision has no network", wrong.stderr)

    def test_impossible_traces_are_refused(self) -> None:
        path = self.folder / "trace.json"
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            step_of(NETWORKS["perceptron"]())
        profiler.export_chrome_trace(str(path))
        with self.assertRaisesRegex(mdot.MalformedError, "record_shapes=True"):
            mdot.Job.from_trace(path)
        path.write_text('{"traceEvents": 4}')
        with self.assertRaisesRegex(mdot.MalformedError, "trace.json"):
            mdot.Job.from_trace(path)
        with self.assertRaises(mdot.NotFoundError):
            mdot.Job.from_trace(self.folder / "absent.json")
        record(NETWORKS["perceptron"](), path)
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "batch is 2"):
            mdot.Job.from_trace(path, batch=2)

    def test_kernels_belong_to_the_calls_that_launched_them(self) -> None:
        """Kernels as CUDA's profiler writes them: the external identifier of the operator, a stream, and a duration."""
        path = self.folder / "trace.json"
        record(NETWORKS["resnet18"](), path)
        trace = json.loads(path.read_text())
        operators = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
        durations = {"aten::_convolution": 700, "aten::convolution_backward": 1500, "aten::addmm": 90, "aten::addcdiv_": 4}
        for event in operators:
            if event["name"] in durations:
                about = {"External id": event["args"]["External id"], "device": 0, "stream": 7, "correlation": 1}
                trace["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": event["ts"] + 3, "dur": durations[event["name"]], "args": about})  # fmt: skip
        trace["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}]
        path.write_bytes(gzip.compress(json.dumps(trace).encode()))
        with quiet():
            found = network_of(path)
            job = mdot.Job.from_network(found.network, batch=found.batch)
            explained = mdot.Predictor().explain(job, gpu="A100", batch=BATCH, optimizer="adamw")
        by_call: dict[str, float] = {}
        for module, ms in found.kernels_ms.items():
            name = found.calls.get(module, "")
            by_call[name] = by_call.get(name, 0.0) + ms
        self.assertAlmostEqual(by_call["aten::conv2d"], 20 * (700 + 1500) / 1e3, places=6)
        self.assertAlmostEqual(by_call["aten::linear"], 90 / 1e3, places=6)
        self.assertGreater(by_call[""], 0)  # the optimizer's kernels
        rows = {row.split()[0]: row.split() for row in compare(found, job, explained).splitlines()[1:]}
        self.assertEqual(float(rows["aten::conv2d"][2]), 44.0)
        predicted = sum(share.ms - share.optimizer_ms for op, share in zip(job, explained) if op.module and "conv2d" in op.module)
        self.assertAlmostEqual(float(rows["aten::conv2d"][1]), predicted, places=2)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(main(["explain-trace", str(path), "--optimizer", "adamw"]), 0)
        self.assertIn("aten::conv2d", out.getvalue())
        a100, measured = mdot.gpu("A100"), sum(found.kernels_ms.values())
        answers = answers_ms(found, job, explained, explained, (a100, a100))
        for answer in (answers[WAVES], answers[RATIO]):  # the same card: the trace itself
            self.assertAlmostEqual(answer, measured, places=6)
        self.assertAlmostEqual(answers[MDOT], sum(share.ms for share in explained), places=6)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(main(["explain-trace", str(path), "--to", "V100"]), 0)
        rows = out.getvalue().split("GPU time on V100")[1].splitlines()
        self.assertEqual([row.rpartition(" %")[0].split("  ")[0] for row in rows[1:4]], [MDOT, RATIO, WAVES])
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(main(["explain-trace", str(path), "--to", "V1000"]), 1)
        self.assertIn("V1000", err.getvalue())

    def test_each_form_of_a_trace_has_the_same_kernels(self) -> None:
        """Marked and unmarked steps, launches by External id and by correlation, a second GPU, and collectives."""

        def recorded(steps: int, marks: bool) -> Any:
            made = NETWORKS["perceptron"]()
            optimizer = torch.optim.SGD(made[0].parameters())
            plan = torch.profiler.schedule(wait=1, warmup=1, active=steps) if marks else None
            with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=plan) as profiler:
                for _ in range(steps + 2 * marks):
                    step_of(made, optimizer)
                    profiler.step()
            profiler.export_chrome_trace(str(path))
            return json.loads(path.read_text())

        def with_kernels(trace: Any, by_correlation: bool = False, gpus: int = 1, nccl: bool = False, names: bool = True) -> Any:
            durations = {"aten::addmm": 90, "aten::mm": 70, "aten::native_layer_norm": 8, "aten::add_": 5}
            for event in [one for one in trace["traceEvents"] if one.get("cat") == "cpu_op" and one["name"] in durations]:
                for device in range(gpus):
                    number = len(trace["traceEvents"])
                    launch = {"External id": event["args"]["External id"], "correlation": number}
                    about = {"device": device, "correlation": number, **({} if by_correlation else launch)}
                    base = {"ph": "X", "pid": device, "tid": 7, "args": about}
                    trace["traceEvents"] += [
                        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": event["ts"] + 0.1, "dur": 0.1, "args": launch},
                        {**base, "cat": "kernel", "name": "k", "ts": event["ts"] + 900, "dur": durations[event["name"]] / (1 + device)},
                        *([{**base, "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": event["ts"] + 1, "dur": 77}] if nccl else []),
                    ]  # fmt: skip
            return trace

        path, found = self.folder / "trace.json", {}
        forms: dict[str, tuple[tuple[int, bool], dict[str, Any], str]] = {
            "one step": ((1, False), {}, "marks no step"), "three steps": ((3, False), {}, "marks no step"),
            "one marked step": ((1, True), {}, ""), "three marked steps": ((3, True), {}, ""),
            "correlation": ((3, True), {"by_correlation": True}, ""), "two GPUs": ((2, True), {"gpus": 2}, "kernels of 2 GPUs"),
            "collectives": ((2, True), {"nccl": True}, "NCCL's kernels"),
        }  # fmt: skip
        for name, (steps, kernels, note) in forms.items():
            path.write_bytes(gzip.compress(json.dumps(with_kernels(recorded(*steps), **kernels)).encode()))
            with quiet():
                read = network_of(path)
            found[name] = {call: round(ms, 9) for call, ms in read.kernels_ms.items() if ms > 0}
            self.assertEqual(found[name], found["one step"], name)
            self.assertIn(note, "\n".join(read.notes), name)
        self.assertEqual(len(found["one step"]), 5)  # three linear layers, the norm, and the optimizer

    def test_a_forward_pass_alone_is_inference(self) -> None:
        path = self.folder / "trace.json"
        model, words = torch.nn.Sequential(torch.nn.Embedding(300, 16), torch.nn.Linear(16, 50)), torch.randint(300, (BATCH, 8))
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler, torch.no_grad():
            model(words)
        profiler.export_chrome_trace(str(path))
        trace = json.loads(path.read_text())
        trace["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 9, "args": {"device": 0}})
        path.write_text(json.dumps(trace))
        answers = []
        for mode in ((), ("--mode", "inference"), ("--mode", "train")):
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
                self.assertEqual(main(["explain-trace", str(path), "--gpu", "A100", "--to", "H100", *mode]), 0, err.getvalue())
            answers.append(out.getvalue())
        self.assertIn("the batch is 3", err.getvalue())  # not the table's 300 rows
        self.assertIn("no kernel names the call", err.getvalue())
        self.assertNotIn(WAVES, answers[0])
        self.assertEqual(answers[0], answers[1])
        self.assertNotEqual(answers[0], answers[2])

    def test_a_length_that_the_batch_divides_keeps_its_size(self) -> None:
        """Views within attention have the length first: [12, 4 * 4, 16] has two multiples of the batch 4."""
        path = self.folder / "trace.json"
        layer, x = torch.nn.MultiheadAttention(64, 4, batch_first=True), torch.randn(4, 12, 64)
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            layer(x, x, x)[0].sum().backward()
        profiler.export_chrome_trace(str(path))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            mdot.Job.from_trace(path)
        self.assertNotIn("counts per sample", "\n".join(str(one.message) for one in found))

    def test_waves_lie_between_bandwidth_and_multiprocessors(self) -> None:
        """For random pairs of cards: without FLOPs the ratio of bandwidths, with endless ones that of multiprocessors and
        clocks, between them in order, and the way back from a card with the same balance is the inverse."""
        cards = [mdot.gpu(name) for name in ("A100", "H100", "V100", "T4", "L4", "K80")]
        for have in cards:
            for wanted in cards:
                memory = have.memory_gbps / wanted.memory_gbps
                compute = have.sm_count * have.boost_mhz / (wanted.sm_count * wanted.boost_mhz)
                found = [wave_factor(flops, have, wanted) for flops in (0, 1, 10, 100, 1e3, 1e4, 1e12)]
                self.assertAlmostEqual(found[0], memory)
                self.assertAlmostEqual(found[-1], compute, delta=1e-6 * compute)
                self.assertEqual(found, sorted(found, reverse=compute < memory))
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "sm_count"):
            wave_factor(1, cards[0], dataclasses.replace(cards[1], sm_count=0))

    def test_the_stated_errors_are_those_of_the_lab(self) -> None:
        path = Path(__file__).resolve().parents[4] / "lab/notes/results/habitat_transfer.csv"
        rows = {row["method"]: (float(row["mean"]), float(row["median"])) for row in csv.DictReader(path.read_text().splitlines())}
        for method, row in ((MDOT, "mdot"), (RATIO, "mdot, corrected by the step"), (WAVES, "wave scaling")):
            self.assertEqual(ERRORS[method], rows[row])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(["Traces.test_a_profiled_step_has_the_work_of_the_network"] if NAMED else [])])
