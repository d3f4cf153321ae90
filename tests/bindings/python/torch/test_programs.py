"""Facts of PyTorch programs in jobs: types, frozen parameters, regions without gradient, checkpointing, and peak memory.

The reference for memory is PyTorch's own torch.distributed._tools.mem_tracker on fake tensors.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import math
import unittest
import warnings
from typing import Any, Callable
from unittest import mock

import support
import torch
import torchvision
import transformers
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils.checkpoint import checkpoint

import mdot
from mdot.trace import losses, timeline, training_run
from mdot.trace.modules import InAutocast

Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
Make = Callable[[int], Made]


def peak_bytes(make: Make, batch: int, dtype: torch.dtype = torch.float32) -> int:
    """The peak of the second training step with SGD and momentum, by PyTorch's tracker."""
    # transformers cannot read positions of fake tensors, and would build a mask for packed sequences.
    unpacked = mock.patch("transformers.masking_utils.find_packed_sequence_indices", lambda *_, **__: None)
    with FakeTensorMode(), unpacked:
        torch.set_default_dtype(dtype)
        try:
            model, args, kwargs = make(batch)
        finally:
            torch.set_default_dtype(torch.float32)
        model.train()
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9, foreach=True)
        tracker = MemTracker()  # type: ignore[no-untyped-call]
        tracker.track_external(model, optimizer)
        with tracker:  # type: ignore[no-untyped-call]
            for step in range(2):
                out = model(*args, **kwargs)
                loss = out.loss if hasattr(out, "loss") else out.sum()
                del out
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                loss = None
                if step == 0:
                    tracker.reset_mod_stats()
        snapshot = tracker.get_tracker_snapshot("peak")
    return int(next(sizes for device, sizes in snapshot.items() if device.type == "cpu")["Total"])


def replaced_functions() -> tuple[Any, ...]:
    """PyTorch functions replaced by a trace."""
    checkpointing, functional = torch.utils.checkpoint.CheckpointFunction, nn.functional
    contexts = torch.no_grad, torch.enable_grad, torch.inference_mode, torch.set_grad_enabled, torch.amp.autocast_mode.autocast
    of_contexts = [getattr(cls, name) for cls in contexts for name in ("__init__", "__enter__", "__exit__")]
    attention = functional.scaled_dot_product_attention
    backward: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    return *of_contexts, checkpointing.forward, functional.dropout, attention, nn.SyncBatchNorm.forward, backward


def read(make: Make) -> mdot.Job:
    torch.set_default_device("meta")
    try:
        model, args, kwargs = make(2)
    finally:
        torch.set_default_device("cpu")
    args = tuple(torch.zeros(t.shape, dtype=t.dtype) for t in args)
    return mdot.Job.from_torch(model, args, {name: torch.zeros(t.shape, dtype=t.dtype) for name, t in kwargs.items()})


def job_of(model: nn.Module, *args: torch.Tensor) -> mdot.Job:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdot.Warning)
        return mdot.Job.from_torch(model, args)


# ---- Networks --------------------------------------------------------------------------------------------------------


def resnet(batch: int) -> Made:
    return torchvision.models.resnet18(), (torch.zeros(batch, 3, 96, 96),), {}


def gpt2(attention: str) -> Make:
    def make(batch: int) -> Made:
        config = transformers.GPT2Config(
            n_layer=2, n_embd=128, n_head=4, vocab_size=5000, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0
        )
        config._attn_implementation, config.use_cache = attention, False
        ids = torch.zeros(batch, 256, dtype=torch.int64)
        return transformers.GPT2LMHeadModel(config), (), {"input_ids": ids, "labels": ids}

    return make


def llama(is_checkpointed: bool, layers: int = 4, words: int = 2000, is_adapted: bool = False) -> Make:
    """An adapted model learns its attention alone."""

    def make(batch: int) -> Made:
        config = transformers.LlamaConfig(
            hidden_size=128, intermediate_size=512, num_hidden_layers=layers, num_attention_heads=4, vocab_size=words
        )
        config.use_cache = False
        model = transformers.LlamaForCausalLM(config)
        for name, parameter in model.named_parameters():
            parameter.requires_grad = not is_adapted or "self_attn" in name
        if is_checkpointed:
            model.gradient_checkpointing_enable()
        ids = torch.zeros(batch, 256, dtype=torch.int64)
        return model, (), {"input_ids": ids, "labels": ids}

    return make


def gpt_neox(is_checkpointed: bool, layers: int) -> Make:
    """Both parts of a block read the result of the block before."""

    def make(batch: int) -> Made:
        config = transformers.GPTNeoXConfig(
            hidden_size=128, intermediate_size=512, num_hidden_layers=layers, num_attention_heads=4, vocab_size=100
        )
        config.use_cache = False
        model = transformers.GPTNeoXForCausalLM(config)
        if is_checkpointed:
            model.gradient_checkpointing_enable()
        ids = torch.zeros(batch, 256, dtype=torch.int64)
        return model, (), {"input_ids": ids, "labels": ids}

    return make


class GeluByHand(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class NormByHand(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def stack(make_middle: Callable[[], nn.Module]) -> Make:
    def make(batch: int) -> Made:
        layers = [m for _ in range(3) for m in (nn.Linear(64, 512), make_middle(), nn.Linear(512, 64))]
        return nn.Sequential(*layers), (torch.zeros(batch, 128, 64),), {}

    return make


class Backbone(nn.Module):
    """A backbone under torch.no_grad() or detached, and a head."""

    def __init__(self, region: str) -> None:
        super().__init__()
        self.region = region
        self.backbone = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(256, 256), nn.ReLU())])
        self.head = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad() if self.region == "no_grad" else contextlib.nullcontext():
            features = self.backbone(x)
        return self.head(features.detach() if self.region == "detach" else features)


def backbone(region: str) -> Make:
    return lambda batch: (Backbone(region), (torch.zeros(batch, 64, 256),), {})


class Checkpointed(nn.Module):
    def __init__(self, is_reentrant: bool | None) -> None:
        super().__init__()
        self.is_reentrant = is_reentrant
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) if self.is_reentrant is None else checkpoint(layer, x, use_reentrant=self.is_reentrant)
        return x


class LoraInOneModule(nn.Linear):
    def __init__(self) -> None:
        super().__init__(512, 512, bias=False)
        self.weight.requires_grad_(False)
        self.lora_a, self.lora_b = nn.Parameter(torch.zeros(8, 512)), nn.Parameter(torch.zeros(512, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + x @ self.lora_a.t() @ self.lora_b.t()


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.layer(x).float()


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("packed", torch.zeros(1024, 1024, dtype=torch.int8))
        self.adapter = nn.Linear(1024, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.packed.to(x.dtype)) + self.adapter(x)  # type: ignore[operator]


class Packed(nn.Module):
    """Two 4-bit weights in each byte of a frozen parameter, and an adapter."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = nn.Parameter(torch.zeros(512, 1024, dtype=torch.uint8), requires_grad=False)
        self.down, self.up = nn.Linear(1024, 8, bias=False), nn.Linear(8, 1024, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.cat([self.packed & 15, self.packed >> 4]).to(x.dtype)
        return nn.functional.linear(x, weights) + self.up(self.down(x))  # type: ignore[no-any-return]


class Dequantised(Packed):
    def __init__(self) -> None:
        super().__init__()
        del self.packed
        self.register_buffer("packed", torch.zeros(1024, 1024, dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.packed.to(x.dtype)) + self.up(self.down(x))  # type: ignore[no-any-return]


# ---- Memory ----------------------------------------------------------------------------------------------------------


class Memory(support.TestCase):
    def assert_peak(self, make: Make, batch: int, dtype: torch.dtype = torch.float32, tolerance: float = 0.02) -> None:
        job = read(make)
        precision = "bf16" if dtype == torch.bfloat16 else "fp32"
        predicted = mdot.predict(job, "A100", batch, precision=precision, optimizer="sgd").peak_memory_bytes
        self.assertAlmostEqual(predicted / peak_bytes(make, batch, dtype), 1.0, delta=tolerance)

    def test_peak_matches_pytorch(self) -> None:
        networks: dict[str, Make] = {
            "resnet": resnet,
            "gpt2 with fused attention": gpt2("sdpa"),
            "gpt2 with decomposed attention": gpt2("eager"),
            "llama": llama(False),
            "checkpointed llama": llama(True),
            "gelu": stack(nn.GELU),
            "gelu by hand": stack(GeluByHand),
            "norm by hand": stack(lambda: NormByHand(512)),
            "backbone without gradient": backbone("no_grad"),
        }
        for name, make in networks.items():
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(name, dtype=dtype):
                    self.assert_peak(make, 8, dtype)

    def test_recomputed_blocks_match_a_checkpointed_program(self) -> None:
        options: dict[str, Any] = {"precision": "fp32", "optimizer": "sgd"}
        for layers, words, is_adapted in itertools.product((2, 5), (100, 2000), (False, True)):
            with self.subTest(layers=layers, words=words, is_adapted=is_adapted):
                plain, checkpointed = (read(llama(which, layers, words, is_adapted)) for which in (False, True))
                by_option = mdot.predict(plain, "A100", 16, checkpoint="blocks", **options).peak_memory_bytes
                by_program = mdot.predict(checkpointed, "A100", 16, **options).peak_memory_bytes
                self.assertAlmostEqual(by_option / by_program, 1.0, delta=0.02)
        for layers in (2, 5):
            with self.subTest("parallel residual", layers=layers):
                made = [mdot.predict(read(gpt_neox(which, layers)), "A100", 16, checkpoint=None if which else "blocks", **options) for which in (False, True)]
                self.assertAlmostEqual(made[0].peak_memory_bytes / made[1].peak_memory_bytes, 1.0, delta=0.02)

    def test_products_that_mix_types_run_in_autocast(self) -> None:
        """Modules with parameters in 16 bits before fp32 ones, as nanochat's embedding, which the program calls inside of autocast:
        the job is that of the module with autocast inside."""
        tokens, rows = torch.zeros(4, 16, dtype=torch.long), torch.zeros(4, 16, 32).bfloat16()
        images = torch.zeros(4, 3, 16, 16).bfloat16()
        forms: dict[str, tuple[Any, torch.Tensor, torch.dtype]] = {
            "embedding": (lambda: nn.Sequential(nn.Embedding(50, 32).bfloat16(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 50)), tokens, torch.bfloat16),
            "embedding in fp16": (lambda: nn.Sequential(nn.Embedding(50, 32).half(), nn.Linear(32, 50)), tokens, torch.float16),
            "first linear": (lambda: nn.Sequential(nn.Linear(32, 48).bfloat16(), nn.GELU(), nn.Linear(48, 8)), rows, torch.bfloat16),
            "stem": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3).bfloat16(), nn.ReLU(), nn.Conv2d(8, 8, 3)), images, torch.bfloat16),
            "attention": (lambda: nn.Sequential(nn.Embedding(50, 32).bfloat16(), nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)), tokens, torch.bfloat16),
        }
        for name, (make, x, dtype) in forms.items():
            with self.subTest(name):
                with self.assertWarnsRegex(UserWarning, "mix fp32 and 16 bits"):
                    outside = mdot.Job.from_torch(make(), (x,), batch=4)
                with warnings.catch_warnings(record=True) as found:
                    warnings.simplefilter("always")
                    inside = mdot.Job.from_torch(InAutocast(make(), dtype), (x,), batch=4)
                self.assertFalse([str(one.message) for one in found if "opaque" in str(one.message)])
                assert outside.program is not None and inside.program is not None
                self.assertEqual(outside.program.check.job_flops, inside.program.check.job_flops)
                self.assertEqual(outside.program.check.dispatched_flops, inside.program.check.job_flops)
                self.assertEqual(outside.program.check.recorded_peak, inside.program.check.recorded_peak)

    def test_module_with_a_fixed_batch_is_recorded(self) -> None:
        class Fixed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(64, 64)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.layer(x.view(2, 32, 64)).relu()

        job = job_of(Fixed(), torch.zeros(2, 32 * 64))
        assert job.program is not None
        per_sample = max(moment.per_sample for moment in job.program.recorded[0].moments)
        self.assertGreaterEqual(per_sample, 3 * 32 * 64 * 4)  # the input and two results
        self.assertLess(per_sample, 6 * 32 * 64 * 4)

    def test_later_precisions_repeat_no_failed_attempt(self) -> None:
        class Decides(nn.Module):
            def __init__(self, batch: int | None) -> None:
                super().__init__()
                self.linear = nn.Linear(8, 8)
                self.batch = batch

            def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
                y = self.linear(x)
                if self.batch is not None:
                    return y.view(self.batch, 8)
                return y if bool(mask.all()) else 2 * y

        for batch in (4, None):  # a fixed batch, and a decision by the values of an input
            with mock.patch.object(training_run, "_run", wraps=training_run._run) as attempts:
                job = mdot.Job.from_torch(Decides(batch), (torch.ones(4, 8), torch.ones(4, dtype=torch.bool)), batch=4)
            self.assertEqual({memory.precision for memory in job.program.recorded}, {"fp32", "amp-fp16", "bf16"})
            first = 1 if batch else 2  # the trace of the operators tells how a fixed batch was replaced
            self.assertEqual(attempts.call_count, first + 1 + 1 + 1)  # and the batch of the examples

    def test_another_batch_repeats_no_attempt_without_contents(self) -> None:
        class Decides(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
                y = self.linear(x)
                return y.view(4, 8) if bool(mask.all()) else y

        with mock.patch.object(training_run, "_run", wraps=training_run._run) as attempts:
            job = mdot.Job.from_torch(Decides(), (torch.ones(4, 8), torch.ones(4, dtype=torch.bool)), batch=4)
        self.assertEqual({memory.precision for memory in job.program.recorded}, {"fp32", "amp-fp16", "bf16"})
        # without contents, with them; two precisions; and the batch of the examples
        self.assertEqual(attempts.call_count, 2 + 1 + 1 + 1)

    def test_longest_step_is_recorded_and_a_longer_one_is_given_up(self) -> None:
        model, example = nn.Sequential(*[nn.Linear(8, 8) for _ in range(4)]), torch.ones(2, 8)
        length = training_run.run(model, (example,), {}, 2, autocast=True).timeline.clock  # casts are operators, too
        with mock.patch.object(timeline, "MOST_OPERATORS", length):
            job = mdot.Job.from_torch(model, (example,))
            self.assertEqual({memory.precision for memory in job.program.recorded}, {"fp32", "amp-fp16", "bf16"})
        length = training_run.run(model, (example,), {}, 2).timeline.clock
        with mock.patch.object(timeline, "MOST_OPERATORS", length - 1):
            with mock.patch.object(training_run, "_run", wraps=training_run._run) as attempts:
                with self.assertWarnsRegex(mdot.Warning, f"estimated from the operators.*more than {length - 1:,} operators"):
                    job = mdot.Job.from_torch(model, (example,))
            self.assertEqual(job.program.recorded, ())
            self.assertEqual(attempts.call_count, 1)  # another batch would be as long

    def test_loss_is_the_field_or_the_result_of_one_element(self) -> None:
        loss = torch.ones(())
        self.assertIs(losses.own_loss({"loss": loss, "logits": torch.ones(2)}), loss)
        self.assertIs(losses.own_loss(loss), loss)
        self.assertIsNone(losses.own_loss(torch.ones(2)))
        self.assertIsNone(losses.own_loss({"loss": None}))

    def test_buffers_take_memory(self) -> None:
        job = job_of(nn.Sequential(*[Quantised() for _ in range(4)]), torch.zeros(2, 1024))
        assert job.program is not None
        self.assertEqual(job.program.buffer_bytes, 4 << 20)
        self.assertGreaterEqual(mdot.predict(job, "A100", 2).weight_bytes, 4 * (job.parameters + (1 << 20)))

    def test_dequantised_weights_take_memory(self) -> None:
        """A floating-point copy of integers exists in each precision, in contrast to autocast's weight copies."""

        def make(batch: int) -> Made:
            return nn.Sequential(*[Dequantised() for _ in range(4)]), (torch.zeros(batch, 1024),), {}

        for dtype in (torch.float32, torch.bfloat16):
            with self.subTest(dtype=dtype):
                self.assert_peak(make, 8, dtype)

    def test_packed_weights_are_known_operators_and_take_memory(self) -> None:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            job = mdot.Job.from_torch(nn.Sequential(*[Packed() for _ in range(4)]), torch.zeros(2, 1024))
        self.assertEqual([str(found.message) for found in warned], [])
        self.assertEqual(job.parameters, 4 * 2 * 8 * 1024)
        assert job.program is not None
        self.assertEqual(job.program.frozen_bytes, 4 * 512 * 1024)


# ---- Operators -------------------------------------------------------------------------------------------------------


class Operators(support.TestCase):
    def test_region_without_gradient_has_no_backward_pass(self) -> None:
        for region in ("no_grad", "detach"):
            with self.subTest(region):
                job = job_of(Backbone(region), torch.zeros(2, 64, 256))
                self.assertEqual((job.parameters, job.frozen_parameters), (256 * 10 + 10, 4 * (256 * 256 + 256)))
                gradients = [op for op in job if op.per_sample["weight_gradient"].flops > 0]
                self.assertEqual([op.module for op in gradients], ["head"])

    def test_each_parameter_is_frozen_by_itself(self) -> None:
        lora = job_of(nn.Sequential(*[LoraInOneModule() for _ in range(3)]), torch.zeros(2, 512))
        self.assertEqual((lora.parameters, lora.frozen_parameters), (3 * 2 * 8 * 512, 3 * 512 * 512))
        model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(3)])
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.endswith("bias"))
        biases = job_of(model, torch.zeros(2, 512))
        self.assertEqual((biases.parameters, biases.frozen_parameters), (3 * 512, 3 * 512 * 512))

    def test_checkpointed_program_recomputes(self) -> None:
        x = torch.zeros(2, 64, 256)
        plain = mdot.predict(job_of(Checkpointed(None), x), "A100", 64)
        for is_reentrant in (False, True):
            with self.subTest(is_reentrant=is_reentrant):
                model = Checkpointed(is_reentrant)
                job = job_of(model, x.requires_grad_())
                self.assertEqual(job.parameters, sum(p.numel() for p in model.parameters()))
                step = mdot.predict(job, "A100", 64)
                self.assertGreater(step.step_ms, plain.step_ms)
                self.assertLess(step.activation_bytes, plain.activation_bytes)

    def test_composition_is_one_operator_for_each_call(self) -> None:
        by_hand = read(stack(GeluByHand))
        self.assertGreater(len(by_hand), len(read(stack(nn.GELU))) + 3 * 5)
        self.assertNotIn("Gelu", {op.type for op in by_hand})


# ---- Configurations --------------------------------------------------------------------------------------------------


class Configurations(support.TestCase):
    def test_types_of_the_program_are_the_default(self) -> None:
        model, x = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)), torch.zeros(2, 256)
        half = job_of(model.bfloat16(), x.bfloat16())
        assert half.program is not None
        self.assertEqual(half.program.precision, "bf16")
        by_default = mdot.predict(half, "A100", 64)
        self.assertEqual(by_default.step_ms, mdot.predict(half, "A100", 64, precision="bf16").step_ms)
        self.assertEqual(by_default.weight_bytes, 2 * half.parameters)
        cast = job_of(Autocast(), x)
        assert cast.program is not None
        self.assertEqual(cast.program.precision, "amp-bf16")

    def test_differing_option_is_a_warning(self) -> None:
        half = job_of(nn.Linear(256, 256).bfloat16(), torch.zeros(2, 256, dtype=torch.bfloat16))
        self.assertIn("differs-from-program", mdot.predict(half, "A100", 64, precision="fp32").warnings)
        self.assertNotIn("differs-from-program", mdot.predict(half, "A100", 64).warnings)

    def test_attention_of_the_program_is_the_default(self) -> None:
        for attention, kernels in (("eager", "eager"), ("sdpa", "flash")):
            job = read(gpt2(attention))
            with self.subTest(attention):
                by_default = mdot.predict(job, "A100", 64)
                self.assertEqual(by_default.step_ms, mdot.predict(job, "A100", 64, attention=kernels).step_ms)

    def test_trace_restores_pytorch(self) -> None:
        before = replaced_functions()
        job_of(Autocast(), torch.zeros(2, 256))
        with self.assertRaises(mdot.TracedModuleError):
            job_of(Autocast(), torch.zeros(2, 255))
        self.assertEqual(before, replaced_functions())
        x = torch.zeros(2, 8)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(nn.functional.layer_norm(x.bfloat16(), (8,)).dtype, torch.bfloat16)

    def test_traces_of_several_threads_restore_pytorch(self) -> None:
        before = replaced_functions()
        model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(20)))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            sizes = list(pool.map(lambda _: len(mdot.Job.from_torch(model, torch.zeros(4, 8))), range(8)))
        self.assertEqual(sizes, [20] * 8)
        self.assertEqual(before, replaced_functions())


class Frameworks(unittest.TestCase):
    """The packages of a model's modules tell what launches its kernels."""

    def test_a_module_of_a_package_names_its_framework(self) -> None:
        packages = {
            "megatron.core.layers": 5,
            "transformer_engine.pytorch": 4,
            "liger_kernel.transformers": 3,
            "torch.nn": 0,
        }
        for package, number in packages.items():
            layer = type("Layer", (nn.Linear,), {"__module__": package})
            job = mdot.Job.from_torch(nn.Sequential(layer(8, 8), nn.ReLU()), torch.zeros(2, 8))
            assert job.program is not None
            self.assertEqual(job.program.framework, number, package)


if __name__ == "__main__":
    unittest.main()
