"""Operators around FakeTensorMode have the same results as this mode's."""

from __future__ import annotations

import itertools
import unittest
from typing import Any
from unittest import mock

import support
import torch
import torchvision
import transformers
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from mdot.trace.meta_kernels import ELEMENTWISE, IN_CPP, MetaKernels
from mdot.trace.training_run import run

SHAPES = ((4, 6, 8), (8,), (6, 8), (1, 1, 8), (4, 6, 1), (4, 8, 1, 1), (2, 3, 4, 4), ())
NUMBERS = (2, 0.5, True, 1 + 2j)


def operands() -> list[torch.Tensor]:
    """Fake tensors with several shapes, types and strides, in the active mode."""
    made = [*(torch.empty(shape) for shape in SHAPES), torch.empty(4, 6, 8, dtype=torch.bfloat16)]
    made += [torch.empty(4, 6, 8, dtype=torch.int64), torch.empty(4, 6, 8, dtype=torch.complex64), torch.tensor(3.0)]
    made += [torch.empty(4, 8, 6).transpose(1, 2), torch.empty(8).expand(4, 6, 8), torch.empty(8, 6, 8)[::2], torch.empty(0, 8)]
    made += [torch.empty(*shape).to(memory_format=torch.channels_last) for shape in ((4, 8, 1, 1), (2, 3, 4, 4))]
    return made


def described(out: Any, inputs: tuple[Any, ...]) -> Any:
    """Everything about a result that later operators can see."""
    if not isinstance(out, torch.Tensor):
        return type(out)
    shared = [isinstance(x, torch.Tensor) and x.untyped_storage()._cdata == out.untyped_storage()._cdata for x in inputs]
    layout = out.shape, out.stride(), out.storage_offset(), out.dtype, out.device, out.untyped_storage().nbytes()
    return type(out), layout, shared, out.requires_grad


def attempt(call: Any, inputs: tuple[Any, ...]) -> Any:
    try:
        return described(call(), inputs)
    except Exception as error:  # both ways have to refuse the same operands
        return type(error)


class SameAsTheMode(support.TestCase):
    def expect_same(self, mode: FakeTensorMode, func: Any, args: tuple[Any, ...], **kwargs: Any) -> int:
        kernels = MetaKernels(mode)
        found, expected = attempt(lambda: kernels.run(func, args, kwargs), args), attempt(lambda: func(*args, **kwargs), args)
        self.assertEqual(found, expected, f"{func} of {[getattr(x, 'shape', x) for x in args]}")
        return kernels.shortcuts

    def test_elementwise_operators(self) -> None:
        with FakeTensorMode() as mode, torch.no_grad():
            tensors, shortcuts = operands(), dict.fromkeys(ELEMENTWISE, 0)
            for func in ELEMENTWISE:
                kinds = [str(argument.type) for argument in func._schema.arguments if not argument.kwarg_only]
                required = [a for a in func._schema.arguments if not a.kwarg_only and not a.has_default_value()]
                pools: list[Any] = [tensors if kind == "Tensor" else NUMBERS for kind in kinds[: len(required)]]
                for args in itertools.product(*pools):
                    shortcuts[func] += self.expect_same(mode, func, args)
        self.assertEqual([str(func) for func, count in shortcuts.items() if count == 0], [])

    def test_views_and_matmuls(self) -> None:
        aten = torch.ops.aten
        with FakeTensorMode() as mode, torch.no_grad():
            x, y, z = torch.empty(4, 6, 8), torch.empty(6, 8), torch.empty(8, 6)
            cases: list[tuple[Any, tuple[Any, ...]]] = [
                (aten.view.default, (x, [24, 8])), (aten._unsafe_view.default, (x, [4, 48])), (aten.t.default, (y,)),
                (aten.transpose.int, (x, 1, 2)), (aten.permute.default, (x, [2, 0, 1])), (aten.select.int, (x, 1, 3)),
                (aten.slice.Tensor, (x, 1, 2, 5)), (aten.squeeze.dim, (x[:1], 0)), (aten.unsqueeze.default, (x, 1)),
                (aten.expand.default, (y, [4, 6, 8])), (aten.detach.default, (x,)), (aten.alias.default, (x,)),
                (aten.mm.default, (y, z)), (aten.mm.default, (z.t(), y.t())), (aten.addmm.default, (y[:, 0], y, z)),
                (aten.bmm.default, (x, x.transpose(1, 2))), (aten.mm.default, (y, y)), (aten.mm.default, (y, z.bfloat16())),
                (aten.view.default, (x.transpose(1, 2), [32, 6])),
            ]  # fmt: skip
            shortcuts = dict.fromkeys((func for func, _ in cases), 0)
            for func, args in cases:
                self.assertIn(func, IN_CPP)
                shortcuts[func] += self.expect_same(mode, func, args)
        self.assertEqual([str(func) for func, count in shortcuts.items() if count == 0], [])

    def test_other_tensors_reach_the_mode(self) -> None:
        real = torch.ones(6, 8)
        with FakeTensorMode():
            foreign = torch.empty(6, 8)
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            constant, fake, meta = torch.tensor(1.0), torch.empty(6, 8), torch.empty(6, 8, device="meta")
            for args in ((real, real), (fake, real), (constant, constant), (meta, meta), (fake, meta), (foreign, foreign)):
                for func in (torch.ops.aten.mul.Tensor, torch.ops.aten.mm.default):
                    self.assertEqual(self.expect_same(mode, func, args), 0)

    def test_timelines_of_networks(self) -> None:
        config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500)
        config.use_cache = False
        ids = torch.zeros(2, 32, dtype=torch.int64)
        cases: list[tuple[nn.Module, tuple[Any, ...], dict[str, Any]]] = [
            (torchvision.models.resnet18(), (torch.zeros(2, 3, 64, 64),), {}),
            (torchvision.models.resnet18().to(memory_format=torch.channels_last), (torch.zeros(2, 3, 64, 64),), {}),
            (torchvision.models.mobilenet_v3_small(), (torch.zeros(2, 3, 64, 64),), {}),
            (transformers.GPT2LMHeadModel(config), (), {"input_ids": ids, "labels": ids}),
        ]
        for model, args, kwargs in cases:
            for options in ({}, {"autocast": True}, {"dtype": torch.bfloat16}):
                found = run(model, args, kwargs, 2, **options).timeline
                with mock.patch.object(MetaKernels, "run", lambda _, func, args, kwargs: func(*args, **kwargs)):
                    expected = run(model, args, kwargs, 2, **options).timeline
                self.assertEqual((found.clock, found.allocations), (expected.clock, expected.allocations))


if __name__ == "__main__":
    unittest.main()
