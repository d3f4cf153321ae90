"""Recording on a GPU agrees with an independent clock, and the row predicts its job.

Skipped without a GPU of PyTorch. The other recording tests replace the GPU's clock.
"""

from __future__ import annotations

import csv
import tempfile
import unittest
from pathlib import Path
from typing import Any

import support
import torch
from torch import nn

import mdot
from mdot.recording import overhead

BATCH, STEPS, WARMUP = 64, 120, 20


def convolutions() -> nn.Module:
    """Large enough that the GPU, rather than the host, sets the pace."""
    layers: list[nn.Module] = [nn.Conv2d(3, 128, 3, padding=1)]
    for _ in range(6):
        layers += [nn.Conv2d(128, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))


@unittest.skipUnless(torch.cuda.is_available(), "PyTorch finds no GPU")
class OnGpu(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.table = Path(folder.name) / "measured.csv"
        torch.manual_seed(0)
        self.job = mdot.Job.from_torch(convolutions(), torch.zeros(2, 3, 64, 64))

    def train(self, **options: Any) -> tuple[Any, list[torch.cuda.Event]]:
        """Records STEPS steps, and marks the end of each with an own event."""
        model = convolutions().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        images, labels = torch.randn(BATCH, 3, 64, 64, device="cuda"), torch.randint(100, (BATCH,), device="cuda")
        torch.cuda.reset_peak_memory_stats()
        ends = []
        with mdot.Recorder(self.job, self.table, batch=BATCH, model=model, optimizer=optimizer, **options) as recorder:
            for _ in range(STEPS):
                with torch.autocast("cuda", torch.bfloat16):
                    loss = nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                recorder.step()
                ends.append(torch.cuda.Event(enable_timing=True))
                ends[-1].record()
        torch.cuda.synchronize()
        return recorder.result, ends

    def test_step_and_memory_are_those_of_independent_counters(self) -> None:
        result, ends = self.train(warmup_steps=WARMUP)
        assert result is not None
        own_ms = ends[WARMUP].elapsed_time(ends[-1]) / (STEPS - 1 - WARMUP)
        self.assertAlmostEqual(result.step_ms, own_ms, delta=0.05 * own_ms)
        self.assertEqual(result.allocated_bytes, torch.cuda.max_memory_allocated())
        self.assertEqual(result.reserved_bytes, torch.cuda.max_memory_reserved())
        print(f"recorded {result.step_ms:.3f} ms, events {own_ms:.3f} ms, {result.windows} windows")

    def test_row_names_the_gpu_and_corrects_the_prediction(self) -> None:
        result, _ = self.train()
        assert result is not None
        with self.table.open(newline="") as file:
            (row,) = csv.DictReader(file)
        gpu = mdot.gpu(row["gpu"])
        self.assertEqual((row["batch"], row["precision"], row["optimizer"]), (str(BATCH), "amp-bf16", "sgd"))
        options = {"precision": row["precision"], "optimizer": row["optimizer"], "torch": row["torch"]}
        cold = mdot.predict(self.job, gpu, BATCH, **options)
        warm = mdot.predict(self.job, gpu, BATCH, measured=[{"ms": result.step_ms}], **options)
        print(f"{gpu.name}: measured {result.step_ms:.3f} ms, predicted {cold.step_ms:.3f} ms, "
              f"after calibration {warm.step_ms:.3f} ms")  # fmt: skip
        self.assertLess(abs(warm.step_ms / result.step_ms - 1), max(0.05, abs(cold.step_ms / result.step_ms - 1)))

    def test_overhead_is_a_small_part_of_a_step(self) -> None:
        found = overhead.measure(step_ms=100.0, steps=2000)
        print(f"recording takes {1e3 * found.cost_ms:.2f} us of a step, by {found.clock}")
        self.assertEqual(found.clock, "CUDA events")
        self.assertLess(found.share, 0.001)


if __name__ == "__main__":
    unittest.main(verbosity=2)
