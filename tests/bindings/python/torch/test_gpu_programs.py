"""The recorded training step runs as on a GPU, although its tensors have no data and lie on the CPU."""

from __future__ import annotations

import unittest
import warnings

import support
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import mdot
from mdot.trace.moments import selectively
from mdot.trace.training_run import SAMPLES, TrainingRun, run


class Counter(nn.Module):
    """A norm with a new buffer at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.register_buffer("steps", torch.zeros(64, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            self.steps = self.steps + 1
            x = self.linear(x).sin()
        return x


class LearnedMask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.zeros(1, 4, 64, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)


class CheckpointedDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.body, x, use_reentrant=False)


class Hooked(nn.Linear):
    """Installs a hook in its first run, as transformers does."""

    is_hooked = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.is_hooked:
            self.is_hooked = True
            self.register_forward_hook(lambda *_: None)
        return super().forward(x)


class Adapted(nn.Module):
    """A linear layer with a low-rank adapter, behind a function whose gradient needs the sum of both."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Linear(64, 256, bias=False).requires_grad_(False)
        self.down, self.up = nn.Linear(64, 4, bias=False), nn.Linear(4, 256, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.weight(x) + self.up(self.down(x)) * 2.0)


class Recurrence(nn.Module):
    """Layers of a recurrence, as in PyTorch's issue 2895: cuDNN's reserve space has 736,000,000 bytes for an LSTM and
    864,000,000 for a GRU with 25,000 steps of all samples."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layers = kind(123, 320, num_layers=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(x.transpose(0, 1))[0]
        return result


class CrossEntropy(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(super().forward(x), torch.zeros(x.shape[0], dtype=torch.int64))


def run_of(model: nn.Module, *shape: int, autocast: bool = False) -> TrainingRun:
    return run(model, (torch.zeros(2, *shape, requires_grad=True),), {}, 2, autocast=autocast)


def sizes(found: TrainingRun) -> list[int]:
    return [allocation.bytes for allocation in found.timeline.allocations]


def forward_sizes(found: TrainingRun) -> list[int]:
    return [a.bytes for a in found.timeline.allocations if a.start < found.timeline.backward_start]


class GpuPrograms(support.TestCase):
    def test_tensor_at_the_address_of_a_replaced_buffer_counts(self) -> None:
        self.assertEqual(forward_sizes(run_of(Counter(), 64)).count(SAMPLES * 64 * 4), 9)  # the input, linears and sines

    def test_attention_with_a_learned_mask_is_fused(self) -> None:
        self.assertNotIn(SAMPLES * 4 * 64 * 64 * 4, forward_sizes(run_of(LearnedMask(), 4, 64, 32)))

    def test_recomputed_dropout_has_a_mask_of_bytes(self) -> None:
        self.assertEqual(sizes(run_of(CheckpointedDropout(), 64)).count(SAMPLES * 64), 2)

    def test_dropout_in_place_has_a_mask_of_the_type_and_no_result(self) -> None:
        model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.1, inplace=True))
        found = forward_sizes(run_of(model, 64))
        self.assertEqual(found.count(SAMPLES * 64 * 4), 3)  # the input, the linear and the mask
        self.assertEqual(found.count(SAMPLES * 64), 0)

    def test_functions_of_pytorch_are_restored(self) -> None:
        names = ("dropout", "rms_norm", "scaled_dot_product_attention", "linear", "cross_entropy")
        before = [getattr(F, name) for name in names]
        run_of(CheckpointedDropout(), 64)
        self.assertEqual([getattr(F, name) for name in names], before)

    def test_hooks_of_the_first_run_are_removed(self) -> None:
        model = Hooked(8, 8)
        run_of(model, 8)
        self.assertEqual(len(model._forward_hooks), 0)

    def test_selective_recomputation_keeps_one_tensor_of_a_weight_and_its_adapter(self) -> None:
        for autocast in (False, True):
            timeline = run_of(Adapted(), 64, autocast=autocast).timeline
            kept = [i.bytes for i in selectively(timeline) if i.start < timeline.backward_start <= i.end]
            self.assertEqual(kept.count(SAMPLES * 256 * (2 if autocast else 4)), 1)

    def test_selective_recomputation_keeps_both_products_of_which_one_is_read_twice(self) -> None:
        class Twice(Adapted):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.weight(x)
                return F.silu(y + self.up(self.down(x)) * 2.0) * y

        timeline = run_of(Twice(), 64).timeline
        products = [a for a in timeline.allocations if a.is_matmul and a.bytes == SAMPLES * 256 * 4]
        self.assertEqual(len([a for a in products if a.start < timeline.backward_start]), 2)

    def test_recurrences_keep_the_reserve_space_of_cudnn(self) -> None:
        for kind, reserve in ((nn.LSTM, 736e6), (nn.GRU, 864e6)):
            timeline = run_of(Recurrence(kind), 100, 123).timeline
            result, inputs = 4 * 320 * SAMPLES * 100, 4 * 123 * SAMPLES * 100
            kept = sum(a.bytes for a in timeline.allocations if timeline.is_saved(a) and a.bytes >= 4 * 320 * SAMPLES)
            wanted = reserve / 25000 * SAMPLES * 100 + result + inputs
            self.assertLess(abs(kept / wanted - 1), 0.004, f"{kind.__name__}: {kept}, not {wanted}")

    def test_recurrences_compute_the_gradients_that_cudnn_computes(self) -> None:
        """Those of the input and of the first state, although nobody reads them; the job's work counts them."""
        for make in (nn.GRU, nn.RNN, nn.LSTM):
            for width, layers, both in ((8, 1, False), (64, 1, False), (8, 3, False), (24, 2, True)):
                with self.subTest(f"{make.__name__}({width}, {layers} layers, {both})"), warnings.catch_warnings():
                    warnings.simplefilter("error", mdot.Warning)
                    model = make(width, 16, layers, bidirectional=both, batch_first=True)
                    mdot.Job.from_torch(model, (torch.zeros(4, 5, width),))

    def test_cells_keep_what_the_fused_kernels_of_cuda_keep(self) -> None:
        """Tensors of 16 channels beside the input, and the loss: those of a plain dispatch mode on fake CUDA tensors
        (lab/mdot_lab/checks/cuda)."""
        for kind, tensors in ((nn.LSTMCell, 14), (nn.GRUCell, 12)):
            timeline = run_of(kind(16, 16), 16).timeline
            kept = sum(a.bytes for a in timeline.allocations if timeline.is_saved(a))
            self.assertEqual(kept, SAMPLES * 16 * 4 * (tensors + 1) + 4, kind.__name__)

    def test_norms_keep_statistics_in_fp32(self) -> None:
        for norm, count in ((nn.BatchNorm1d(24), 24), (nn.LayerNorm(24), SAMPLES)):
            timeline = run(nn.Sequential(nn.Linear(24, 24), norm), (torch.zeros(2, 24),), {}, 2, dtype=torch.bfloat16).timeline
            kept = [a.bytes for a in timeline.allocations if timeline.is_saved(a)]
            self.assertEqual(kept.count(4 * count), 2, kept)

    def test_log_sigmoid_keeps_its_operand_alone(self) -> None:
        timeline = run_of(nn.Sequential(nn.Linear(16, 32), nn.LogSigmoid()), 16).timeline
        kept = [a.bytes for a in timeline.allocations if timeline.is_saved(a)]
        self.assertEqual(kept.count(SAMPLES * 32 * 4), 1, kept)

    def test_autocast_promotes_operands_as_on_cuda(self) -> None:
        """Half-precision operands beside an fp32 weight become fp32; half-precision ones alone stay as they are."""

        class Mixed(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = super().forward(x)
                return F.bilinear(y, y, torch.ones(24, 16, 16)) + F.grid_sample(
                    y.view(-1, 1, 4, 4), torch.zeros(len(y), 4, 6, 2, dtype=y.dtype)
                ).flatten(1)

        found = forward_sizes(run_of(Mixed(16, 16), 16, autocast=True))
        self.assertGreaterEqual(found.count(SAMPLES * 24 * 4), 2)  # the product and the sum
        self.assertEqual(found.count(SAMPLES * 24 * 2), 1)  # the samples of the grid

    def test_cross_entropy_under_autocast_reads_half_precision(self) -> None:
        found = forward_sizes(run_of(CrossEntropy(64, 512), 64, autocast=True))
        self.assertEqual(found.count(SAMPLES * 512 * 2), 2)  # the logits and their log_softmax


if __name__ == "__main__":
    unittest.main()
