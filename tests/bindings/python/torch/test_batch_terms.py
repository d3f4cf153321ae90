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

Form = Callable[[nn.Module, torch.Tensor, int], torch.Tensor]
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


class Formed(nn.Module):
    """Layers around a function with the batch as a number, or as the length of its input."""

    def __init__(self, form: Form, batch: int | None) -> None:
        super().__init__()
        self.first, self.last, self.form, self.batch = nn.Linear(32, 32), nn.Linear(32, 32), form, batch
        self.row = nn.Parameter(torch.zeros(1, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.form(self, self.first(x), self.batch or len(x))


BY_NUMBER: dict[str, Form] = {
    "index": lambda m, x, n: m.last(x[torch.arange(n)]),
    "two indices": lambda m, x, n: m.last(x)[torch.arange(n), torch.zeros(n, dtype=torch.long)].exp(),
    "index_select": lambda m, x, n: m.last(x.index_select(0, torch.arange(n))),
    "gather": lambda m, x, n: m.last(x.gather(0, torch.arange(n)[:, None].expand(n, 32))),
    "slice": lambda m, x, n: m.last(torch.cat([x, x])[:n]),
    "slices": lambda m, x, n: m.last(torch.cat([x, x])[:n]) * m.last(torch.cat([x, x])[n:]),
    "from the end": lambda m, x, n: m.last(torch.cat([x, x])[-n:]),
    "narrow": lambda m, x, n: m.last(torch.cat([x, x]).narrow(0, 0, n)),
    "split": lambda m, x, n: m.last(torch.cat(torch.cat([x, x]).split(n), 1).view(n, 2, 32)),
    "state": lambda m, x, n: m.last(torch.zeros(n, 32) + x),
    "state of layers": lambda m, x, n: m.last(torch.zeros(3, n, 32) + x).sum(0),
    "noise": lambda m, x, n: m.last(x + torch.randn(n, 32)),
    "view": lambda m, x, n: m.last(x.view(n, -1)),
    "heads": lambda m, x, n: m.last(x.view(n, 4, 8).transpose(1, 2).reshape(n, 32)),
    "expand": lambda m, x, n: m.last(m.row.expand(n, -1) + x),
    "expand behind": lambda m, x, n: m.last(m.row[None].expand(3, n, 32) + x).sum(0),
    "class token": lambda m, x, n: m.last(torch.cat([m.row[None].expand(n, 1, 32), x[:, None]], 1)),
    "repeat": lambda m, x, n: m.last(m.row.repeat(n, 1) * x),
    "tile": lambda m, x, n: m.last(torch.tile(m.row, (n, 1)) * x),
    "broadcast_to": lambda m, x, n: m.last(torch.broadcast_to(m.row, (n, 32)) * x),
    "one-hot": lambda m, x, n: F.one_hot(torch.arange(n) % 32, 32).float() * m.last(x),
    "diagonal": lambda m, x, n: (x @ x.T).masked_fill(torch.eye(n, dtype=torch.bool), -9.0).exp(),
    "without diagonal": lambda m, x, n: (x @ x.T) * (1 - torch.eye(n)),
    "causal over samples": lambda m, x, n: (x @ x.T).masked_fill(torch.tril(torch.ones(n, n)) == 0, -9.0).softmax(-1) @ x,
    "targets": lambda m, x, n: F.cross_entropy(x @ x.T, torch.arange(n)),
    "two views": lambda m, x, n: F.cross_entropy(torch.cat([x, m.last(x)]) @ x.T, torch.arange(2 * n) % n),
    "crossed views": lambda m, x, n: F.cross_entropy(
        torch.cat([x, m.last(x)]) @ torch.cat([x, m.last(x)]).T, torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
    ),
}  # fmt: skip


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

    def test_a_batch_as_a_number_equals_the_batch_of_the_inputs(self) -> None:
        """Each program has the batch as a number, and is traced at 4 for 64. FLOPs, memory and bytes are those of the
        program that reads the batch from its inputs."""
        for name, form in BY_NUMBER.items():
            with self.subTest(name):
                fixed, free = (self.formed(form, 4, number) for number in (4, None))
                there = self.formed(form, 64, 64)
                for number in ("flops", "bytes_read", "bytes_written"):
                    self.near(work(fixed, 64, number), work(free, 64, number), 0.001, number)
                self.near(work(fixed, 64, "flops"), work(there, 64, "flops"), 0.02, "flops")
                peaks = [mdot.predict(job, "H100", 64, precision="fp32").peak_memory_bytes for job in (fixed, free, there)]
                self.near(peaks[0], peaks[1], 0.001, "peak")
                self.near(peaks[0], peaks[2], 0.02, "peak")

    def formed(self, form: Form, batch: int, number: int | None) -> mdot.Job:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mdot.Job.from_torch(Formed(form, number), torch.randn(batch, 32))

    def test_a_program_with_a_fixed_batch_says_so_in_one_line(self) -> None:
        class Fixed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(6, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                if len(x) != 8:
                    raise ValueError("this program takes 8 samples,\nno others")
                result: torch.Tensor = self.layer(x).sum()
                return result

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mdot.Job.from_torch(Fixed(), torch.randn(8, 6))
        texts = [str(w.message) for w in caught if "counts per sample" in str(w.message)]
        self.assertEqual(len(texts), 1, texts)
        self.assertNotIn("\n", texts[0])


if __name__ == "__main__":
    unittest.main()
