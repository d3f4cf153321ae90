"""trace/: mixtures of experts as programs run them."""

from __future__ import annotations

import re
import types
import unittest
import warnings
from unittest import mock

import networks
import support
import test_programs
import torch
from torch import nn
from traced import read

import mdot
from mdot.trace import experts, tracer

LENGTH, EXPERTS, WIDTH, INNER, LAYERS = 64, 4, 64, 96, 2


def mixtral(way: str, on_meta: bool = False) -> test_programs.Make:
    def make(batch: int) -> test_programs.Made:
        import transformers

        config = transformers.MixtralConfig(
            hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=4,
            num_local_experts=EXPERTS, vocab_size=200, experts_implementation=way,
        )  # fmt: skip
        config.use_cache = False
        build = transformers.MixtralForCausalLM
        ids = torch.zeros(batch, LENGTH, dtype=torch.int64)
        return networks.meta(build, config) if on_meta else build(config), (), {"input_ids": ids, "labels": ids}

    return make


class Mixture(nn.Module):
    """Each token reads one expert, chosen by the largest logit or the token's position."""

    def __init__(self, is_routed: bool) -> None:
        super().__init__()
        self.router = nn.Linear(16, 3)
        self.experts = nn.Parameter(torch.zeros(3, 8, 16))
        self.is_routed = is_routed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, chosen = self.router(x).topk(1)
        index = chosen[:, 0] if self.is_routed else torch.arange(len(x)) % 3
        return torch.bmm(self.experts[index].to(x.dtype), x.unsqueeze(-1)).squeeze(-1)


class Experts(support.TestCase):
    def test_copies_for_each_token_are_reported_with_the_remedy(self) -> None:
        """A token goes to two experts, each with three matrices of WIDTH times INNER fp32 numbers."""
        model, args, kwargs = mixtral("batched_mm", on_meta=True)(2)
        job, reported = read(model, *args, **kwargs)
        gib = LAYERS * LENGTH * 2 * 3 * WIDTH * INNER * 4 / 2**30
        self.assertEqual(len(reported), 1)
        self.assertIn("model.layers.0.mlp.experts.gate_up_proj and of 3 more parameters, ", reported[0])
        self.assertIn(f"take {gib:.3g} GiB per sample ", reported[0])
        self.assertIn('model.set_experts_implementation("grouped_mm")', reported[0])
        with self.assertRaisesRegex(mdot.InvalidArgumentError, "lacks experts"):
            mdot.predict(job, "A100", 8, gpus=4, expert_parallel=4)

        model.set_experts_implementation("grouped_mm")  # type: ignore[operator]
        grouped, reported = read(model, *args, **kwargs)
        self.assertEqual(reported, [])
        self.assertEqual(grouped.parameters, job.parameters)
        self.assertLess(mdot.predict(grouped, "A100", 8).memory_gib, mdot.predict(job, "A100", 8).memory_gib - 7 * gib)
        self.assertGreater(mdot.predict(grouped, "A100", 8, gpus=4, expert_parallel=4).step_ms, 0)

    def test_memory_matches_pytorch_with_and_without_copies(self) -> None:
        for way in ("batched_mm", "grouped_mm"):
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(way, dtype=dtype), warnings.catch_warnings():
                    warnings.simplefilter("ignore", mdot.Warning)
                    job = test_programs.read(mixtral(way))
                    precision = "bf16" if dtype == torch.bfloat16 else "fp32"
                    predicted = mdot.predict(job, "A100", 8, precision=precision, optimizer="sgd").peak_memory_bytes
                    reference = test_programs.peak_bytes(mixtral(way), 8, dtype)
                    self.assertAlmostEqual(predicted / reference, 1.0, delta=0.02)

    def test_only_copies_that_grow_with_computed_choices_are_reported(self) -> None:
        _, reported = read(Mixture(True), torch.zeros(8, 16))
        self.assertEqual(len(reported), 1)
        self.assertIn("of its matrices of experts, which take", reported[0])
        _, fewer_than_experts = read(Mixture(True), torch.zeros(2, 16))
        _, fixed = read(Mixture(False), torch.zeros(8, 16))
        self.assertFalse([text for text in fewer_than_experts + fixed if "copies" in text])

    def test_experts_that_choose_their_rows_read_all_samples(self) -> None:
        """Also where the experts are as many as the samples."""

        class Choice(nn.Module):
            def __init__(self, count: int) -> None:
                super().__init__()
                self.router, self.experts = nn.Linear(16, count), nn.Parameter(torch.zeros(count, 16, 16))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                rows = x.flatten(0, 1)
                gates, chosen = self.router(rows).T.topk(len(rows) // 2)
                made = rows[chosen] @ self.experts * gates[..., None]
                return torch.zeros_like(rows).index_add(0, chosen.flatten(), made.flatten(0, 1)).square().mean()

        for count, batch in ((3, 4), (4, 4), (8, 4), (6, 3)):
            with self.subTest(count=count, batch=batch):
                self.assertEqual(read(Choice(count), torch.zeros(batch, 32, 16))[1], [])

    def test_a_loop_over_experts_is_reported_with_the_remedy(self) -> None:
        model, args, kwargs = mixtral("eager", on_meta=True)(2)
        _, reported = read(model, *args, **kwargs)
        remedy = r'its experts are a loop: call model.set_experts_implementation\("grouped_mm"\)$'
        self.assertEqual(len([text for text in reported if re.search(f"depend on computed values: .*; {remedy}", text)]), 1)
        with mock.patch.object(tracer, "MOST_REAL_BYTES", 1), self.assertRaisesRegex(mdot.UnsupportedError, remedy):
            read(model, *args, **kwargs)

    def test_a_network_without_experts_has_no_such_remedy(self) -> None:
        """transformers gives each of its networks a way to run experts."""

        class Plain(nn.Linear):
            config = types.SimpleNamespace(_experts_implementation="eager")

            def set_experts_implementation(self, way: str) -> None:
                raise AssertionError(way)

        class Experts(nn.Module):
            pass

        plain = Plain(8, 8)
        self.assertIsNone(experts.remedy_for_loop(plain))
        plain.add_module("experts", Experts())
        self.assertIsNotNone(experts.remedy_for_loop(plain))


if __name__ == "__main__":
    unittest.main()
