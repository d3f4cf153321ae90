"""trace/: networks of all kinds as jobs. Run it with `scripts/test-torch.sh [NETWORK …]`."""

from __future__ import annotations

import copy
import io
import resource
import subprocess
import sys
import unittest
import warnings
from typing import Any

import networks
import support
import test_readme
import torch
from torch import nn

import mdot
from mdot.trace import onnx_file
from mdot.trace.tracer import trace

CHOSEN = [name for name in sys.argv[1:] if not name.startswith("-")]


def chosen(names: Any) -> list[str]:
    return [name for name in names if not CHOSEN or name in CHOSEN]


def read(name: str) -> tuple[nn.Module, mdot.Job, list[str]]:
    model, args, kwargs = networks.NETWORKS[name]()
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always", mdot.Warning)
        job = mdot.Job.from_torch(model, args, kwargs, batch=networks.BATCH.get(name))
    return model, job, [str(one.message) for one in reported if issubclass(one.category, mdot.Warning)]


class Networks(support.TestCase):
    def test_parameters_match_pytorch_and_every_operator_is_known(self) -> None:
        for name in chosen(networks.NETWORKS):
            with self.subTest(name):
                model, job, reported = read(name)
                # A frozen parameter without other use than as an operand is a constant, for example Whisper's table of
                # sines.
                fixed = sum(p.numel() for p in model.parameters() if not p.requires_grad) - job.frozen_parameters
                self.assertEqual(job.parameters + job.frozen_parameters + fixed, sum(p.numel() for p in model.parameters()))
                self.assertEqual(job.batch, networks.BATCH.get(name) or (8 if name == "dlrm" else 2))
                if name not in networks.DECIDE_BY_DATA:
                    self.assertEqual((job.unknown_count, reported), (0, []))
                self.assertGreater(mdot.predict(job, "A100", 8).step_ms, 0)

    def test_shapes_match_onnx_inference(self) -> None:
        """Checks every result with ONNX's own checker and strict shape inference."""
        import onnx

        for name in chosen(networks.NETWORKS):
            if name in networks.DECIDE_BY_DATA:
                continue  # has operators that ONNX lacks
            with self.subTest(name):
                model, args, kwargs = networks.NETWORKS[name]()
                traced = trace(model, args, kwargs, batch=networks.BATCH.get(name))
                proto = onnx.load_model_from_string(onnx_file.serialise(traced.graph, traced.batch))
                for value in proto.graph.input:
                    for dim in value.type.tensor_type.shape.dim:
                        if dim.dim_param:
                            dim.dim_value = traced.batch
                for node in traced.graph.nodes:  # ONNX lacks an inference rule for it
                    if node.op == "GroupNormalization":
                        (y,) = node.outputs
                        proto.graph.value_info.append(onnx.helper.make_tensor_value_info(y.name, y.dtype, y.shape))
                del proto.graph.output[:]
                proto.graph.output.extend([onnx.helper.make_empty_tensor_value_info(v.name) for v in traced.graph.outputs])
                inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
                known = {value.name: value.type.tensor_type for value in inferred.graph.value_info}
                for node in traced.graph.nodes:
                    for value in node.outputs:
                        if value is None or value.name not in known or not known[value.name].HasField("shape"):
                            continue
                        shape = [dim.dim_value for dim in known[value.name].shape.dim]
                        if 0 in shape and 0 not in value.shape:
                            continue  # the shape is unknown
                        self.assertEqual((tuple(shape), known[value.name].elem_type), (value.shape, value.dtype), node.name)

    def test_a_module_is_unchanged(self) -> None:
        for name in chosen(("resnet50", "mobilenet_v3_small", "gru", "encoder", "ssdlite")):
            with self.subTest(name):
                model, args, kwargs = networks.NETWORKS[name]()
                model.eval()
                before = {key: tensor for key, tensor in [*model.named_parameters(), *model.named_buffers()]}
                copied = {key: copy.deepcopy(tensor.detach()) for key, tensor in before.items() if not tensor.is_meta}
                attributes = {key: dict(vars(module)) for key, module in model.named_modules()}
                state = torch.random.get_rng_state()
                mdot.Job.from_torch(model, args, kwargs)
                self.assertTrue(torch.equal(state, torch.random.get_rng_state()))
                for key, tensor in [*model.named_parameters(), *model.named_buffers()]:
                    self.assertIs(tensor, before[key])
                    if key in copied:
                        self.assertTrue(torch.equal(tensor, copied[key]), key)
                for key, module in model.named_modules():
                    self.assertEqual(vars(module).keys(), attributes[key].keys())
                    self.assertFalse(module.training)

    def test_meta_and_cpu_give_equal_jobs(self) -> None:
        for name in chosen(("resnet50", "dlrm")):
            with self.subTest(name):
                _, on_meta, _ = read(name)
                model, args, kwargs = networks.NETWORKS[name]()
                real = model.to_empty(device="cpu")
                self.assertEqual(list(mdot.Job.from_torch(real, args, kwargs, batch=networks.BATCH.get(name))), list(on_meta))


class Exporters(support.TestCase):
    def test_the_sequence_matches_pytorchs_exporter(self) -> None:
        """Compares type, settings, parameters, dependencies, FLOPs and bytes of every operator. PyTorch computes tables from
        parameters in each step, for example of positions, and readers of a file compute them once. Networks with such tables
        have the file's operators in its order, and others without FLOPs between them."""
        for name in chosen(networks.EXPORTED):
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model, args, kwargs = networks.EXPORTED[name]()
                with torch.no_grad():  # all initializers differ, because equal ones would be merged
                    for tensor in [*model.parameters(), *model.buffers()]:
                        if tensor.is_floating_point():
                            tensor.uniform_(0.5, 1.5)
                stream = io.BytesIO()
                training = torch.onnx.TrainingMode.TRAINING
                torch.onnx.export(model.train(), args, stream, dynamo=False, opset_version=18,
                                  do_constant_folding=False, training=training)  # fmt: skip
                exported = mdot.Job.from_onnx(stream.getvalue(), keep_names=False)
                traced = mdot.Job.from_torch(model, args, kwargs)
                if name not in networks.WITH_TABLES:
                    self.assertEqual([_without_names(op) for op in traced], [_without_names(op) for op in exported])
                    continue
                self.assertEqual(traced.parameters, exported.parameters)
                others = list(map(_work, traced))
                for op in map(_work, exported):
                    self.assertIn(op, others)
                    between, others = others[: others.index(op)], others[others.index(op) + 1 :]
                    self.assertFalse(any(flops for _, flops, _ in between), f"{between} before {op}")
                self.assertEqual(others, [])


def _work(op: mdot.Operator) -> tuple[str, float, float]:
    """Type, and FLOPs of the forward pass and of the operands' gradients."""
    forward, backward = (op.per_sample[phase].flops + op.per_step[phase].flops for phase in ("forward", "data_gradient"))
    return op.type, forward, backward


def _without_names(op: mdot.Operator) -> tuple[Any, ...]:
    return op.type, op.settings, op.parameters, op.inputs, op.per_sample, op.per_step


class Parameters(support.TestCase):
    def job(self, model: nn.Module, *args: torch.Tensor) -> mdot.Job:
        return mdot.Job.from_torch(model, args)

    def test_expert_parallelism_divides_a_mixture(self) -> None:
        """Eight GPUs have an expert of each layer. A token goes to two experts and back, forward and backward, over a
        slow link: the step waits for the bytes alone. Only other parameters' gradients are summed."""
        if CHOSEN and "mixtral" not in CHOSEN:
            self.skipTest("not chosen")
        model, job, _ = read("mixtral")
        layers, experts, chosen_experts, hidden, tokens = 2, 8, 2, 128, networks.tokens().shape[1]
        batch, gigabytes = 4, 1e-4
        in_experts = sum(p.numel() for name, p in model.named_parameters() if ".experts." in name)
        self.assertEqual(in_experts, layers * experts * 3 * 128 * 256)
        others = job.parameters - in_experts
        one = mdot.predict(job, "H100", batch, precision="fp32")
        found = mdot.explain(job, "H100", batch, precision="fp32", gpus=8, expert_parallel=8, link=gigabytes)
        ways = mdot.predict(job, "H100", batch, precision="fp32", gpus=8, expert_parallel=8, link=gigabytes)
        buffers = one.weight_bytes - 4 * job.parameters
        self.assertTrue(0 <= buffers < 1024)
        self.assertEqual(ways.weight_bytes, 4 * (others + in_experts / experts) + buffers)
        self.assertEqual(ways.optimizer_bytes, 4 * (others + in_experts / experts))
        self.assertLess(ways.memory_gib, one.memory_gib)
        sent = 4 * batch * tokens * chosen_experts * hidden         # bytes of one layer's tokens, in one direction
        expected = 7 / 8 * (4 * layers * sent + 2 * 4 * others) / (gigabytes * 1e6)
        self.assertAlmostEqual(found.communication_ms / expected, 1, delta=0.1)
        self.assertGreater(ways.step_ms, one.step_ms)
        fast = mdot.predict(job, "H100", batch, precision="fp32", gpus=8, expert_parallel=8, link=1e4)
        self.assertLess(fast.step_ms, ways.step_ms)
        workers = mdot.explain(job, "H100", batch, precision="fp32", gpus=8, link=gigabytes)
        summed = 7 / 8 * 2 * 4 * job.parameters / (gigabytes * 1e6)
        self.assertAlmostEqual(workers.communication_ms / summed, 1, delta=0.1)

    def test_tied_weights_count_once_and_equal_ones_separately(self) -> None:
        tied, apart = networks.LanguageModel(True), networks.LanguageModel(False)
        words = networks.tokens(35, 20)
        self.assertEqual(self.job(apart, words).parameters - self.job(tied, words).parameters, 10000 * 200)
        equal = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        equal[1].load_state_dict(equal[0].state_dict())
        self.assertEqual(self.job(equal, torch.zeros(2, 8)).parameters, 2 * 72)

    def test_parameters_without_gradients_are_frozen(self) -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        model[0].requires_grad_(False)
        job = self.job(model, torch.zeros(2, 8))
        self.assertEqual((job.parameters, job.frozen_parameters), (68, 144))
        self.assertEqual(job[0].per_sample["weight_gradient"].flops, 0)

    def test_unread_inputs_give_a_warning(self) -> None:
        model = nn.Sequential(nn.Linear(8, 8))
        model.spare = nn.Linear(3, 3)
        model.forward = lambda x: model[0](x)  # type: ignore[method-assign]
        with self.assertWarnsRegex(mdot.JobWarning, "spare.weight and 1 more"), warnings.catch_warnings():
            warnings.simplefilter("always", mdot.JobWarning)
            self.assertEqual(self.job(model, torch.zeros(2, 8)).parameters, 72)

    def test_modules_keep_their_names(self) -> None:
        job = self.job(networks.encoder(), torch.zeros(2, 10, 64))
        self.assertEqual(job.block_count, 2)
        self.assertIn("layers.1.linear2", {op.module for op in job})


class Data(support.TestCase):
    def test_known_values_decide_branches(self) -> None:
        """A mask that the user passes does not force the tracer to compute values."""

        class Masked(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
                out: torch.Tensor = self.inner(x if mask.all() else x[:, mask[0]])
                return out

        with torch.device("meta"):
            model = Masked()
        whole, half = torch.ones(2, 6, dtype=torch.bool), torch.tensor([[True, False] * 3] * 2)
        for mask, rows in ((whole, 6), (half, 3)):
            job = mdot.Job.from_torch(model, (torch.zeros(2, 6, 8), mask))
            self.assertEqual(job[-1].settings["size_out"], rows)

    def test_computed_values_decide_branches_only_on_the_cpu(self) -> None:
        class Decides(nn.Module):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.inner = nn.Linear(width, width)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.inner(x)
                out: torch.Tensor = self.inner(y) if y.sum() > 0 else y
                return out

        small = Decides(8)
        with torch.no_grad():
            small.inner.weight.fill_(1)
        with self.assertWarnsRegex(mdot.JobWarning, "one run on the CPU"), warnings.catch_warnings():
            warnings.simplefilter("always", mdot.JobWarning)
            job = mdot.Job.from_torch(small, torch.ones(2, 8))
        self.assertEqual([op.type for op in job].count("Linear"), 2)
        self.assertEqual(len(job), 4)  # the sum and the comparison decide
        with torch.device("meta"):
            large = Decides(1 << 16)
        with self.assertRaisesRegex(mdot.UnsupportedError, "meta device: pass a module with weights"):
            mdot.Job.from_torch(large, torch.ones(2, 1 << 16))

    def test_tied_weights_stay_tied_if_values_decide_on_the_meta_device(self) -> None:
        class Decides(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(16, 16)
                self.heads = nn.ModuleList(nn.Linear(16, 32) for _ in range(6))
                for head in self.heads[1:]:
                    head.weight, head.bias = self.heads[0].weight, self.heads[0].bias

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.first(x)
                out: torch.Tensor = sum(head(y * 2 if y.sum() > 1e9 else y) for head in self.heads)
                return out

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdot.JobWarning)
            for model in (Decides(), networks.meta(Decides)):
                parameters = sum(p.numel() for p in model.parameters())
                self.assertEqual(mdot.Job.from_torch(model, torch.zeros(2, 16)).parameters, parameters)


LARGE = {
    "GPT2LMHeadModel": "n_layer=48,n_embd=1600,n_head=25,n_positions=1024",
    "LlamaForCausalLM": "hidden_size=4096",
}


class Large(support.TestCase):
    @unittest.skipIf(bool(CHOSEN), "networks were chosen")
    def test_language_models_from_configurations_take_little_memory(self) -> None:
        """GPT-2 XL and Llama-2-7B, each in its own process, stay below 4 GB."""
        for kind, parameters in (("GPT2LMHeadModel", 1_557_611_200), ("LlamaForCausalLM", 6_738_415_616)):
            settings = [word for item in LARGE[kind].split(",") for word in ("--set", item)]
            command = [sys.executable, "-m", "mdot", "export", f"transformers:{kind}", "--length", "1024", "-o", "/dev/null"]
            with self.subTest(kind):
                output = self.folder() + "/large.job"
                done = subprocess.run([*command[:-1], output, *settings], capture_output=True, text=True)
                self.assertIn(f"{parameters} parameters", done.stdout, done.stderr)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 4 << 20)

    def folder(self) -> str:
        import tempfile

        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        return made.name


class Readme(support.TestCase):
    @unittest.skipIf(bool(CHOSEN), "networks were chosen")
    def test_examples_with_pytorch_run_as_written(self) -> None:
        for path, blocks in test_readme.examples(with_torch=True).items():
            with self.subTest(path):
                self.assertIn("A100", test_readme.run(blocks))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[1:] if word.startswith("-")]])
