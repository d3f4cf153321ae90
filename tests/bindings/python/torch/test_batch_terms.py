"""Work that grows with the square of the batch: a job traced at one batch equals the job traced at any other."""

from __future__ import annotations

import unittest
import warnings
from typing import Callable

import support
import torch
from torch import nn
from torch.nn import functional as F

import mdot

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Pairs(nn.Module):
    """A similarity of all samples, and a loss on it."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.features, self.loss = nn.Linear(48, 32), loss

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = F.normalize(self.features(x))
        return self.loss(z, z @ z.T)


def clip(z: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores * 20, torch.arange(len(z), device=z.device))


def supervised(z: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    labels = torch.arange(len(z), device=z.device) // 2
    same = (labels[:, None] == labels[None, :]).float()
    return -(same * (scores - scores.exp().sum(1, keepdim=True).log())).sum(1).mean()


def without_diagonal(z: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return scores.flatten()[1:].view(len(z) - 1, len(z) + 1)[:, :-1].exp().mean()


def attention(z: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(z[None], z[None], z[None]).mean() + scores.mean()


def traced(loss: Loss, batch: int) -> mdot.Job:
    return mdot.Job.from_torch(Pairs(loss), torch.randn(batch, 48))


def work(job: mdot.Job, batch: int, number: str) -> float:
    terms = ((1, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    return sum(n * getattr(load, number) for op in job for n, term in terms for load in getattr(op, term).values())


class Squares(support.TestCase):
    def near(self, found: float, wanted: float, relative: float, what: object) -> None:
        self.assertLessEqual(abs(found - wanted), relative * wanted, f"{what}: {found}, not {wanted}")

    def test_a_job_is_right_at_every_batch(self) -> None:
        for loss in (clip, supervised, without_diagonal, attention):
            job = traced(loss, 16)
            for batch in (64, 8192):
                wanted, place = traced(loss, batch), (loss.__name__, batch)
                for number in ("flops", "bytes_read", "bytes_written"):
                    self.near(work(job, batch, number), work(wanted, batch, number), 0.02, (*place, number))
                found, there = (mdot.predict(j, "H100", batch, precision="fp32") for j in (job, wanted))
                self.near(found.peak_memory_bytes, there.peak_memory_bytes, 0.03, place)
                self.near(found.step_ms, there.step_ms, 0.05, place)

    def test_memory_of_the_squares_decides_what_fits(self) -> None:
        job = traced(clip, 16)
        peaks = [mdot.predict(job, "H100", batch, precision="fp32").peak_memory_bytes for batch in (16384, 32768)]
        self.assertTrue(3.8 < peaks[1] / peaks[0] <= 4.05, peaks)

    def test_usual_networks_have_no_squares(self) -> None:
        net = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 4))
        for op in mdot.Job.from_torch(net, torch.randn(8, 48), loss=lambda y: y.sum()):
            self.assertEqual(op.batch_settings, ())
            self.assertFalse(any(load.flops + load.bytes_written for load in op.per_square.values()))

    def test_a_program_with_a_fixed_batch_says_so_in_one_line(self) -> None:
        class Fixed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(6, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                result: torch.Tensor = self.layer(x.view(8, 6)).sum()
                return result

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mdot.Job.from_torch(Fixed(), torch.randn(8, 6))
        texts = [str(w.message) for w in caught if "counts per sample" in str(w.message)]
        self.assertEqual(len(texts), 1, texts)
        self.assertNotIn("\n", texts[0])


if __name__ == "__main__":
    unittest.main()
