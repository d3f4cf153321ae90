"""trace/: modules in wrappers, their losses and batches, and exceptions with a remedy."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any, Callable
from unittest import mock

import networks
import support
import torch
from torch import nn

import mdot
from mdot.trace.models import Network, build


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


class Wrappers(support.TestCase):
    def test_wrapped_modules_give_the_same_job(self) -> None:
        x = torch.zeros(2, 8)
        expected = [(op.type, op.parameters) for op in mdot.Job.from_torch(small(), x)]
        inner = nn.Module()
        inner.net = torch.compile(small())
        inner.forward = lambda x: inner.net(x)  # type: ignore[method-assign]
        wrapped: dict[str, Any] = {
            "DataParallel": nn.DataParallel(small()),
            "compile": torch.compile(small()),
            "compile inside": inner,
            "export": torch.export.export(small(), (x,)),
            "export().module()": torch.export.export(small(), (x,)).module(),
            "fx": torch.fx.symbolic_trace(small()),
        }
        for name, model in wrapped.items():
            with self.subTest(name):
                self.assertEqual([(op.type, op.parameters) for op in mdot.Job.from_torch(model, x)], expected)

    def test_distributed_modules_are_unwrapped_or_refused(self) -> None:
        """A process group of one process is enough to make them."""
        import torch.distributed as distributed
        from torch.distributed.fsdp import FullyShardedDataParallel

        x = torch.zeros(2, 8)
        with tempfile.TemporaryDirectory() as folder:
            distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            try:
                plain = mdot.Job.from_torch(small(), x)
                job = mdot.Job.from_torch(nn.parallel.DistributedDataParallel(small()), x)
                self.assertEqual(list(job), list(plain))
                sharded = FullyShardedDataParallel(small(), device_id=torch.device("cpu"))
                with self.assertRaisesRegex(mdot.UnsupportedError, "sharded by FSDP; pass the module before .* zero"):
                    mdot.Job.from_torch(sharded, x)
                with self.assertRaisesRegex(mdot.UnsupportedError, "0 is sharded by FSDP"):
                    mdot.Job.from_torch(self.fully_sharded_inside(), x)
            finally:
                distributed.destroy_process_group()

    def fully_sharded_inside(self) -> nn.Module:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        model = small()
        fully_shard(model[0], mesh=init_device_mesh("cpu", (1,)))  # type: ignore[index]
        return model

    def test_methods_of_modules_are_traced(self) -> None:
        class LightningModule(nn.Module):
            def forward(self, *args: Any) -> Any:
                return super().forward(*args)

        class Lit(LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.net = small()

            def training_step(self, batch: Any, _: int) -> torch.Tensor:
                return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        batch = (torch.zeros(2, 8), torch.zeros(2, dtype=torch.int64))
        job = mdot.Job.from_torch(Lit().training_step, (batch, 0))
        self.assertEqual([op.type for op in job], ["Linear", "Relu", "Linear", "SoftmaxCrossEntropyLoss"])
        self.assertEqual((job.parameters, job.batch), (8 * 16 + 16 + 16 * 4 + 4, 2))
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "Lit has no forward function; .*training_step"):
            mdot.Job.from_torch(Lit(), batch)

    def test_sync_batch_norm_counts_as_batch_norm(self) -> None:
        plain = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        x = torch.zeros(2, 3, 16, 16)
        expected = list(mdot.Job.from_torch(plain, x))
        self.assertEqual(list(mdot.Job.from_torch(nn.SyncBatchNorm.convert_sync_batchnorm(plain), x)), expected)

    def test_flex_attention_is_attention(self) -> None:
        from torch.nn.attention import flex_attention as flex

        mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 512, 512, device="cpu")

        class Attends(nn.Module):
            def __init__(self, attend: Any, mask: Any) -> None:
                super().__init__()
                self.project, self.attend, self.mask = nn.Linear(64, 192), attend, mask

            def forward(self, x: torch.Tensor) -> Any:
                q, k, v = self.project(x).view(-1, 512, 3, 4, 16).permute(2, 0, 3, 1, 4)
                return self.attend(q, k, v, block_mask=self.mask)

        for attend in (flex.flex_attention, torch.compile(flex.flex_attention)):
            with self.assertWarnsRegex(mdot.JobWarning, "flex_attention counts .* skips 38% of them"):
                job = mdot.Job.from_torch(Attends(attend, mask), torch.zeros(2, 512, 64))
            self.assertIn("Attention", [op.type for op in job])
            with warnings.catch_warnings():
                warnings.simplefilter("error", mdot.JobWarning)
                mdot.Job.from_torch(Attends(attend, None), torch.zeros(2, 512, 64))
        slopes = torch.zeros(4)
        biased = functools.partial(flex.flex_attention, score_mod=lambda score, b, h, i, j: score + slopes[h] * (i - j))
        with self.assertWarnsRegex(mdot.JobWarning, r"flex_attention counts without its function of scores \(score_mod\)"):
            mdot.Job.from_torch(Attends(biased, None), torch.zeros(2, 512, 64))

    def test_types_leave_the_operators_unchanged(self) -> None:
        """Attention, whose scale is a number in the module's type, is one operator in every type."""

        class Attends(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.project, self.norm = nn.Linear(64, 128), nn.LayerNorm(64)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                q, k, v = self.project(self.norm(x)).view(2, 128, 8, 16).transpose(1, 2).split((4, 2, 2), 1)
                y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                return y * torch.sigmoid(1.702 * y) / 3

        expected = list(mdot.Job.from_torch(Attends(), torch.zeros(2, 128, 64)))
        self.assertIn("Attention", [op.type for op in expected])
        for dtype in (torch.bfloat16, torch.float16, torch.float64):
            with self.subTest(dtype):
                self.assertEqual(list(mdot.Job.from_torch(Attends().to(dtype), torch.zeros(2, 128, 64, dtype=dtype))), expected)


class Caches(support.TestCase):
    def test_a_model_without_a_cache_has_the_operators_of_one_with_it(self) -> None:
        """transformers asks for packed sequences only without a cache of keys, and no example has any."""
        import transformers

        small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
                 "num_key_value_heads": 4, "vocab_size": 99}  # fmt: skip
        older = {"n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 99}
        networks = {"Llama": small, "Qwen2": small, "Mistral": small | {"sliding_window": None}, "Olmo2": small,
                    "GPTBigCode": older, "GPT2": older}  # fmt: skip
        for kind, values in networks.items():
            names = f"{kind}{'LMHeadModel' if kind == 'GPT2' else 'ForCausalLM'}", f"{kind}Config"
            model, config = (getattr(transformers, name) for name in names)
            for dtype in (torch.float32, torch.bfloat16):
                jobs = []
                for keeps in (True, False):
                    tokens = torch.zeros(2, 64, dtype=torch.int64)
                    network = model(config(**values, use_cache=keeps)).to(dtype)
                    jobs.append(mdot.Job.from_torch(network, example_kwargs={"input_ids": tokens, "labels": tokens}))
                with self.subTest(kind, dtype=dtype):
                    for batch in (1, 8):
                        with_cache, without = (mdot.predict(job, "A100-SXM-80GB", batch, precision="bf16") for job in jobs)
                        self.assertEqual(with_cache.step_ms, without.step_ms)


class Refused(support.TestCase):
    def refuse(self, pattern: str, model: Any, *args: Any, kind: type[Exception] = mdot.InvalidArgumentError) -> None:
        with self.subTest(pattern), self.assertRaisesRegex(kind, pattern):
            mdot.Job.from_torch(model, *args)

    def test_objects_that_are_no_module_have_a_remedy(self) -> None:
        x = torch.zeros(2, 8)
        self.refuse("OrderedDict holds parameters but no operators; pass the torch.nn.Module", small().state_dict(), x)
        self.refuse("<lambda> is a function, whose parameters are unknown", lambda x: x, x)
        self.refuse("Linear is a class; pass an instance", nn.Linear, x)
        self.refuse("for a name, use Job.from_name, and for a file, Job.read", "resnet50", x)
        for scripted in (torch.jit.script(small()), torch.jit.trace(small(), x)):
            self.refuse("TorchScript module, .* pass the torch.nn.Module from which", scripted, x, kind=mdot.UnsupportedError)

    def test_unsuitable_inputs_have_a_remedy(self) -> None:
        self.refuse("example inputs are missing: pass a batch of tensors", nn.Linear(8, 8), ())
        self.refuse("no example input is a tensor: pass a batch of tensors", nn.Linear(8, 8), (2, 8))

    def test_exceptions_of_the_module_itself_have_a_remedy(self) -> None:
        class Raises(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                return self.inner(x)

        def asserts(x: torch.Tensor) -> None:
            assert x.ndim == 4

        def refuses(_: torch.Tensor) -> None:
            raise ValueError("pooling max is unknown")

        def recurs(x: torch.Tensor) -> None:
            recurs(x)

        def imports(_: torch.Tensor) -> None:
            import a_missing_library  # type: ignore[import-not-found]  # noqa: F401

        for inner, pattern in (
            (asserts, r"AssertionError: assert x\.ndim == 4; the module itself raised it"),
            (refuses, "ValueError: pooling max is unknown; the module itself raised it: run it .* outside of mdot"),
            (recurs, "RecursionError: .*; its modules or functions call each other without an end"),
            (imports, "ModuleNotFoundError: .*; install a_missing_library"),
        ):
            model = Raises()
            model.inner = inner  # type: ignore[assignment]
            self.refuse(pattern, nn.Sequential(small(), model), torch.zeros(2, 8), kind=mdot.TracedModuleError)

    def test_hooks_on_gradients_are_ignored(self) -> None:
        class Hooked(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = small()

            def forward(self, x: torch.Tensor) -> Any:
                y = self.net(x)
                y.retain_grad()
                y.register_hook(lambda gradient: 2 * gradient).remove()
                return y

        x = torch.zeros(2, 8)
        self.assertEqual([op.type for op in mdot.Job.from_torch(Hooked(), x)], ["Linear", "Relu", "Linear"])

    def test_exceptions_name_the_module(self) -> None:
        inner = nn.Sequential(nn.Linear(8, 8), small())
        with self.assertRaisesRegex(mdot.TracedModuleError, r"^Sequential: 1\.2 raised RuntimeError: .*; check the shapes") as seen:
            inner[1][2] = nn.Linear(3, 3)  # type: ignore[operator]
            mdot.Job.from_torch(inner, torch.zeros(2, 8))
        self.assertIsInstance(seen.exception.__cause__, RuntimeError)
        self.assertNotIn("\n", str(seen.exception))
        self.refuse("1 raised ValueError: .*at least two samples", nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.zeros(1, 4))
        self.refuse("TypeError: .*example_kwargs holds those with names", small(), (torch.zeros(2, 8), 1))

    def test_a_failed_trace_prints_nothing(self) -> None:
        code = "import mdot, torch\ntry: mdot.Job.from_torch(torch.nn.Linear(8, 8), torch.zeros(2, 7))\nexcept mdot.Error: pass"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Sparse(support.TestCase):
    def test_results_without_data_keep_their_elements(self) -> None:
        forms: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "plain": lambda w: w, "coalesced": lambda w: w.coalesce(), "twice": lambda w: w.coalesce().coalesce(),
            "scaled": lambda w: w.coalesce() * 2, "transposed": lambda w: w.t().coalesce(), "negative": lambda w: -w.coalesce(),
        }  # fmt: skip

        class Adapter(nn.Module):
            def __init__(self, form: Callable[[torch.Tensor], torch.Tensor]) -> None:
                super().__init__()
                self.values, self.layer, self.form = nn.Parameter(torch.randn(600)), nn.Linear(48, 48), form
                self.register_buffer("places", torch.stack([torch.arange(600) % 48, torch.arange(600) // 48]))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                weight = self.form(torch.sparse_coo_tensor(self.places, self.values, (48, 48)))  # type: ignore[arg-type]
                return torch.sparse.mm(weight, self.layer(x).t())  # type: ignore[no-any-return]

        checks = {}
        for name, form in forms.items():
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("error", mdot.JobWarning)
                job = mdot.Job.from_torch(Adapter(form), torch.randn(4, 48))
                self.assertEqual(job.parameters, 600 + 48 * 49)
                checks[name] = job.program.check.job_flops
        self.assertEqual(set(checks.values()), {checks["plain"]}, checks)

    def test_sparse_tables_have_gradients_of_their_rows(self) -> None:
        """Two tables of 256 MB: dense gradients would take memory and time."""

        class Tables(nn.Module):
            def __init__(self, sparse: bool) -> None:
                super().__init__()
                self.one = nn.Embedding(1_000_000, 64, sparse=sparse)
                self.bag = nn.EmbeddingBag(1_000_000, 64, mode="sum", sparse=sparse)
                self.top = nn.Linear(128, 1)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out: torch.Tensor = self.top(torch.cat([self.one(x[:, 0]), self.bag(x)], 1))
                return out

        jobs = [mdot.Job.from_torch(networks.meta(Tables, kind), networks.tokens(4, 2)) for kind in (False, True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdot.Warning)
            dense, sparse = (mdot.predict(job, "A100", 1024) for job in jobs)
        self.assertEqual(jobs[0].parameters, jobs[1].parameters)
        self.assertEqual(dense.weight_bytes, sparse.weight_bytes)
        self.assertGreater(dense.gradient_bytes, 512e6)
        self.assertLess(sparse.gradient_bytes, 2e6)
        self.assertLess(sparse.step_ms, 0.5 * dense.step_ms)


class Budgets(support.TestCase):
    def test_large_products_are_not_computed_to_find_proposals(self) -> None:
        """The job is the same, because the choice of proposals needs only shapes of most results."""
        from mdot.trace import budget

        class Proposes(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ConvTranspose2d(8, 4, 3))
                self.head = nn.Linear(4, 2)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                features = self.body(x).flatten(2).transpose(1, 2).reshape(-1, 4)
                out: torch.Tensor = self.head(features[(features[:, 0] > -1e9).nonzero()[:, 0]]) @ torch.ones(2, 2)
                return out

        model, x = Proposes(), torch.zeros(2, 3, 16, 16)
        with self.assertWarnsRegex(mdot.JobWarning, "current weights$"):
            computed = mdot.Job.from_torch(model, x)
        with mock.patch.object(budget, "MOST_FLOPS", 0), self.assertWarnsRegex(mdot.JobWarning, "were random numbers$"):
            self.assertEqual(list(mdot.Job.from_torch(model, x)), list(computed))

    def test_detection_networks_have_the_flops_of_their_proposals(self) -> None:
        """A run with all results computed had 255.8 GFLOPs per image of 800 x 800."""
        network = build("fasterrcnn_resnet50_fpn")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdot.Warning)
            job = mdot.Job.from_network(network, batch=2)
        self.assertEqual(job.parameters, sum(p.numel() for p in network.model.parameters()))
        self.assertAlmostEqual(sum(op.per_sample["forward"].flops for op in job) / 255.8e9, 1, delta=0.01)


class Counting(support.TestCase):
    def test_layer_scale_and_scalars_count_as_parameters(self) -> None:
        """EfficientFormer scales a normalised map by a vector, and NFNet scales it by a scalar."""

        class Scaled(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
                self.gamma, self.gain = nn.Parameter(torch.ones(8, 1, 1)), nn.Parameter(torch.ones(()))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.gamma * self.norm(self.conv(x)) * self.gain

        model = Scaled()
        job = mdot.Job.from_torch(model, torch.zeros(2, 3, 16, 16))
        self.assertEqual([op.type for op in job], ["Conv", "Mul", "Mul"])
        self.assertEqual(job.parameters, sum(p.numel() for p in model.parameters()))

    def test_parameters_in_no_operator_give_a_warning(self) -> None:
        class Shift(nn.Module):  # the reader takes the scale and the shift for those of an exported normalisation
            def __init__(self) -> None:
                super().__init__()
                self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
                self.gamma, self.beta = nn.Parameter(torch.ones(8, 1, 1)), nn.Parameter(torch.ones(8, 1, 1))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.norm(self.conv(x)) * self.gamma + self.beta

        with self.assertWarnsRegex(mdot.JobWarning, "16 parameters belong to no operator"):
            mdot.Job.from_torch(Shift(), torch.zeros(2, 3, 16, 16))


class Losses(support.TestCase):
    def test_a_loss_is_part_of_the_job(self) -> None:
        """A function and a module with targets add the same operator, and leave the paths of modules as they are."""
        model, x, classes = nn.Sequential(nn.Linear(8, 100)), torch.zeros(4, 8), torch.zeros(4, dtype=torch.int64)
        plain = mdot.Job.from_torch(model, x)
        job = mdot.Job.from_torch(model, x, loss=nn.CrossEntropyLoss(), targets=classes)
        self.assertEqual([op.type for op in job], ["Linear", "SoftmaxCrossEntropyLoss"])
        self.assertEqual((job[0].module, job[1].module, job.batch), (plain[0].module, "loss", 4))
        function = nn.functional.cross_entropy
        also = mdot.Job.from_torch(model, x, loss=lambda out, y: function(out, y), targets=(classes,))
        self.assertEqual([op.type for op in also], [op.type for op in job])
        memory = [mdot.predict(one, "A100", 1 << 20).memory_gib for one in (plain, job)]
        self.assertGreater(memory[1], 1.3 * memory[0])

    def test_parameters_of_a_loss_are_trained(self) -> None:
        class Weighted(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))

            def forward(self, out: torch.Tensor) -> torch.Tensor:
                return (out * self.scale).square().mean()

        job = mdot.Job.from_torch(nn.Linear(8, 4), torch.zeros(2, 8), loss=Weighted())
        self.assertEqual(job.parameters, 8 * 4 + 4 + 4)

    def test_unusable_losses_are_refused(self) -> None:
        model, x = nn.Linear(8, 8), torch.zeros(2, 8)
        with self.assertRaisesRegex(mdot.InvalidArgumentError, r"loss returned a tensor of shape \[2, 8\]"):
            mdot.Job.from_torch(model, x, loss=lambda out: out)
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "pass loss="):
            mdot.Job.from_torch(model, x, targets=torch.zeros(2))
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "loss is .mse.: pass a function"):
            mdot.Job.from_torch(model, x, loss="mse")  # type: ignore[arg-type]

    def test_large_logits_without_a_loss_give_a_warning(self) -> None:
        model = networks.meta(nn.Linear, 8, 1 << 15)
        with self.assertWarnsRegex(mdot.JobWarning, r"no loss; a cross-entropy of the result \[2, 64, 32768\] would take 16 to 24"):
            mdot.Job.from_torch(model, torch.zeros(2, 64, 8))

    def test_networks_by_name_have_their_losses(self) -> None:
        small = {"num_hidden_layers": 1}
        expected: dict[str, tuple[int, dict[str, Any]]] = {
            "resnet18": (1, {}),
            "inception_v3": (2, {}),
            "fcn_resnet50": (1, {"size": 64}),
            "timm:deit_tiny_distilled_patch16_224": (1, {}),
            "transformers:GPT2LMHeadModel": (1, {"n_layer": 1}),
            "transformers:GPT2ForSequenceClassification": (1, {"n_layer": 1}),
            "transformers:T5ForConditionalGeneration": (1, {"num_layers": 1}),
            "transformers:BertForQuestionAnswering": (2, small),
            "transformers:BertForPreTraining": (2, small),
            "transformers:BertForMultipleChoice": (1, small),
            "transformers:ViTForImageClassification": (1, small),
            "transformers:SegformerForSemanticSegmentation": (1, {"size": 128}),
        }
        for name, (losses, settings) in expected.items():
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("error", mdot.Warning)
                job = mdot.Job.from_name(name, **settings)
                self.assertEqual([op.type for op in job].count("SoftmaxCrossEntropyLoss"), losses)

    def test_a_network_that_rejects_the_labels_is_read_without(self) -> None:
        network = Network("short", nn.Linear(8, 8), (torch.zeros(2, 8),), {}, labels={"labels": torch.zeros(2)})
        with self.assertWarnsRegex(mdot.JobWarning, "short: the job has no loss, because the network rejected .* labels: "):
            self.assertEqual(len(mdot.Job.from_network(network)), 1)

    def test_the_command_exports_the_loss(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for suffix in (".job", ".onnx"):
                command = [sys.executable, "-m", "mdot", "export", "resnet18", "-o", folder + "/a" + suffix]
                subprocess.run(command, check=True, capture_output=True)
                self.assertEqual(mdot.Job.read(folder + "/a" + suffix)[-1].type, "SoftmaxCrossEntropyLoss")


class Batches(support.TestCase):
    def test_sequence_first_modules_give_the_batch(self) -> None:
        x = torch.zeros(100, 4, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128)
        for model in (nn.LSTM(64, 64), nn.GRU(64, 64), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)):
            with self.subTest(type(model).__name__):
                with self.assertWarnsRegex(mdot.JobWarning, "takes the sequence first; pass batch="):
                    job = mdot.Job.from_torch(model, x)
                given = mdot.Job.from_torch(model, x, batch=4)
                self.assertEqual((job.batch, list(job)), (4, list(given)))
                self.assertEqual(mdot.Job.from_torch(model, x, batch=100).batch, 100)

    def test_batch_first_modules_keep_the_first_dimension(self) -> None:
        class Turned(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.LSTM(64, 64)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out: torch.Tensor = self.inner(x.transpose(0, 1))[0]
                return out

        for model in (nn.LSTM(64, 64, batch_first=True), Turned()):
            with warnings.catch_warnings():
                warnings.simplefilter("error", mdot.JobWarning)
                self.assertEqual(mdot.Job.from_torch(model, torch.zeros(4, 100, 64)).batch, 4)


if __name__ == "__main__":
    unittest.main()
