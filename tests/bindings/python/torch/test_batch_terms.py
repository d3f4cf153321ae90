"""Work that grows with the square of the batch: a job traced at one batch equals the job traced at any other."""

from __future__ import annotations

import itertools
import unittest
import warnings
from typing import Callable
from unittest import mock

import support
import torch
from torch import nn
from torch.nn import functional as F

import mdot
from mdot.trace import tracer

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


def distances(z: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """From 26 rows on, PyTorch multiplies them."""
    return torch.cdist(z, z).amax(1).mean() + scores.mean()


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


FREE: dict[str, Form] = {
    "state": lambda m, x, b: m.last(x + x.new_zeros(b, 32)),
    "class token": lambda m, x, b: m.last(torch.cat([m.row[None].expand(b, 1, 32), x[:, None]], 1)),
    "repeated row": lambda m, x, b: m.last(m.row.repeat(b, 1) + x),
    "product of a row": lambda m, x, b: m.last(x) + torch.ones(b, 1) @ m.row,
    "rows written": lambda m, x, b: m.last(torch.zeros(b, 32).index_add(0, torch.arange(b), x)),
    "padded by the batch": lambda m, x, b: m.last(torch.cat([torch.zeros(b, 32), x])),
    "upper triangle": lambda m, x, b: (x @ x.T)[tuple(torch.triu_indices(b, b, 1))].exp(),
    "combinations": lambda m, x, b: m.last(x)[torch.combinations(torch.arange(b))].sum(1),
    "all pairs": lambda m, x, b: m.last(x.repeat_interleave(b, 0) * x.repeat(b, 1)),
    "differences": lambda m, x, b: m.last((x[:, None] - x[None, :]).reshape(b * b, 32)),
    "one-hot": lambda m, x, b: m.last(F.one_hot(torch.arange(b), b).float() @ x),
    "without diagonal": lambda m, x, b: (x @ x.T)[~torch.eye(b, dtype=torch.bool)].view(b, b - 1).exp().sum(),
    "grid": lambda m, x, b: torch.stack(torch.meshgrid(torch.arange(b), torch.arange(b), indexing="ij")).sum() + m.last(x),
    "half": lambda m, x, b: m.last(x[: b // 2]),
    "halves": lambda m, x, b: m.last(torch.cat([part.exp() for part in x.split(b // 2)])),
    "triangular systems": lambda m, x, b: torch.linalg.solve_triangular(m.last.weight.tril(), x.T, upper=False).exp(),
    "memory bank": lambda m, x, b: F.cross_entropy(torch.cat([x @ x.T, x @ torch.zeros(32, 1024)], 1), torch.arange(b)),
}  # fmt: skip
"""Programs that read the batch from their inputs, and whose operators are the same at 4 and at 64."""


OTHER_STEPS: dict[str, Form] = {
    "loop": lambda m, x, b: torch.stack([m.last(x[i]) for i in range(b)]),
    "loop of slices": lambda m, x, b: torch.cat([m.last(x[i : i + 1]) for i in range(b)]),
    "loop into a sum": lambda m, x, b: sum((m.last(x[i]).sum() for i in range(b)), torch.zeros(())),
    "loop before a layer": lambda m, x, b: m.last(torch.stack([x[i].exp() for i in range(b)])),
    "split": lambda m, x, b: torch.cat([m.last(part) for part in x.split(1)]),
    "unbind": lambda m, x, b: torch.stack([m.last(part) for part in x.unbind(0)]),
    "chunk": lambda m, x, b: torch.cat([m.last(part) for part in x.chunk(b)]),
    "parts of 8": lambda m, x, b: torch.cat([m.last(part) for part in x.split(8)]),
    "blocks": lambda m, x, b: torch.block_diag(*[x[i : i + 1] for i in range(b)]).sum() + m.last(x),  # type: ignore[no-untyped-call]
    "threshold": lambda m, x, b: m.last(x) if b < 32 else m.last(m.last(x)),
    "rounds": lambda m, x, b: [x := m.last(x) for _ in range(b.bit_length())][-1],
    "rounded up": lambda m, x, b: m.last(F.pad(x, (0, 0, 0, -b % 8))),
    "most": lambda m, x, b: m.last(x[: min(b, 10)]),
    "triples": lambda m, x, b: (x[:, None, None] + x[None, :, None] + x[None, None]).exp(),
    "neighbours": lambda m, x, b: m.last(x[1:] - x[:-1]),
    "cube": lambda m, x, b: (m.last(x) @ x.T) @ (x @ x.T),
    "independence criterion": lambda m, x, b: torch.trace((x @ x.T) @ (torch.eye(b) - 1 / b) @ (m.last(x) @ x.T)),
    "rounds over pairs": lambda m, x, b: torch.linalg.matrix_power(x @ x.T, 4) @ m.last(x),
    "factors of pairs": lambda m, x, b: torch.linalg.cholesky(m.last(x) @ x.T + torch.eye(b)),
    "inverse of pairs": lambda m, x, b: torch.linalg.inv(m.last(x) @ x.T + torch.eye(b)),
    "triangles": lambda m, x, b: torch.einsum("ij,jk,ki->i", x @ x.T, m.last(x) @ x.T, x @ x.T),
    "attention over pairs": lambda m, x, b: F.scaled_dot_product_attention(*((m.last(x) @ x.T)[None],) * 3),
}  # fmt: skip
"""Programs whose work is no polynomial of the batch."""

LOOPS = ("loop", "loop of slices", "loop into a sum", "loop before a layer", "chunk", "blocks")
"""Those that silently leave samples out if the batch is a number."""


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
    "upper triangle": lambda m, x, n: (x @ x.T)[tuple(torch.triu_indices(n, n))],
    "rows of the triangle": lambda m, x, n: m.last(x)[torch.tril_indices(n, n)[0]],
    "combinations": lambda m, x, n: m.last(x)[torch.combinations(torch.arange(n))].sum(1),
    "padded by the batch": lambda m, x, n: m.last(torch.cat([torch.zeros(n, 32), x])),
    "padded": lambda m, x, n: m.last(F.pad(x, (0, 0, 0, n))),
    "repeat_interleave": lambda m, x, n: m.last(x.repeat_interleave(n, 0)),
    "repeat_interleave as a function": lambda m, x, n: m.last(torch.repeat_interleave(x, n, 0)),
    "all pairs": lambda m, x, n: m.last(x.repeat_interleave(n, 0) * x.repeat(n, 1)),
    "classes": lambda m, x, n: m.last(F.one_hot(torch.arange(n), n).float() @ x),
    "mixup": lambda m, x, n: m.last(x + x[torch.randperm(n)]),
    "rows written": lambda m, x, n: m.last(torch.zeros(n, 32).index_add(0, torch.arange(n), x)),
    "ramp": lambda m, x, n: m.last(x * torch.linspace(0, 1, n)[:, None]),
    "grid": lambda m, x, n: torch.stack(torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")).sum() + m.last(x),
    "crossed views": lambda m, x, n: F.cross_entropy(
        torch.cat([x, m.last(x)]) @ torch.cat([x, m.last(x)]).T, torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
    ),
    "unflatten": lambda m, x, n: m.last(x.unflatten(0, (n, 1)).squeeze(1)),
    "strides": lambda m, x, n: m.last(x.as_strided((n, 32), (32, 1))),
    "empty strides": lambda m, x, n: m.last(x + torch.empty_strided((n, 32), (32, 1))),
    "full": lambda m, x, n: m.last(torch.full((n, 32), 0.5) * x),
    "normal": lambda m, x, n: m.last(x + torch.normal(0.0, 1.0, (n, 32))),
    "random numbers": lambda m, x, n: m.last(x[torch.randint(0, n, (n,))]) + torch.randint(0, 9, (n, 1)),
    "draws": lambda m, x, n: m.last(x[torch.multinomial(torch.ones(n), n)]),
    "window": lambda m, x, n: m.last(torch.hann_window(n)[:, None] * x),
    "logarithmic ramp": lambda m, x, n: m.last(torch.logspace(0, 1, n)[:, None] * x),
    "tensor_split": lambda m, x, n: m.last(torch.cat([x, x]).tensor_split([n])[0]),
    "interpolate": lambda m, x, n: m.last(F.interpolate(x[None, None], size=(n, 32))[0, 0]),
    "resized": lambda m, x, n: m.last(x + torch.empty(0).resize_(n, 32)),
    "powers": lambda m, x, n: m.last(x) + torch.vander(torch.arange(n).float(), 32),
    "steps of a range": lambda m, x, n: m.last(x[torch.arange(0, n, 1)]),
    # The same by keywords.
    "size=": lambda m, x, n: m.last(torch.zeros(size=(n, 32)) + x) + torch.full(size=(n, 32), fill_value=0.5),
    "size= of methods": lambda m, x, n: m.last(m.row.expand(size=(n, 32)) + x.view(size=(n, -1))) + x.new_zeros(size=(n, 32)),
    "shape=": lambda m, x, n: m.last(torch.reshape(input=x, shape=(n, -1))),
    "repeats=": lambda m, x, n: m.last(m.row.repeat(repeats=(n, 1)) * x),
    "repeats= of rows": lambda m, x, n: m.last(x.repeat_interleave(repeats=n, dim=0)),
    "end=": lambda m, x, n: m.last(x[torch.arange(end=n)]),
    "length=": lambda m, x, n: m.last(torch.cat([x, x]).narrow(dim=0, start=0, length=n)),
    "split_size=": lambda m, x, n: m.last(torch.cat(torch.cat([x, x]).split(split_size=n, dim=0), 1).view(n, 2, 32)),
    "n=": lambda m, x, n: (x @ x.T) * (1 - torch.eye(n=n)),
    "pad=": lambda m, x, n: m.last(F.pad(input=x, pad=(0, 0, 0, n))),
    "num_classes=": lambda m, x, n: m.last(F.one_hot(torch.arange(n), num_classes=n).float() @ x),
    "row=": lambda m, x, n: (x @ x.T)[tuple(torch.triu_indices(row=n, col=n))],
    "steps=": lambda m, x, n: m.last(x * torch.linspace(0, 1, steps=n)[:, None]),
}  # fmt: skip


NEUTRAL: dict[str, Form] = {
    "quotient": lambda m, x, b: m.last(x) / (b - 1),
    "quotient in place": lambda m, x, b: m.last(x).div_(b - 1),
    "quotient by a half": lambda m, x, b: m.last(x) / (b / 2),
    "quotient by a tensor": lambda m, x, b: m.last(x) / torch.tensor(float(b - 1)),
    "quotient by rows": lambda m, x, b: m.last(x) / torch.full((b, 1), b - 1.0),
    "whole quotient": lambda m, x, b: torch.floor_divide(torch.arange(b), max(b - 1, 1)).float() @ m.last(x),
    "product": lambda m, x, b: m.last(x) * (b - 1),
    "product from the left": lambda m, x, b: (b - 1) * m.last(x),
    "product in place": lambda m, x, b: m.last(x).mul_(b - 2),
    "product with a tensor": lambda m, x, b: m.last(x) * torch.full((1,), b - 1.0),
    "power": lambda m, x, b: m.last(x) ** (b / 2),
    "sum": lambda m, x, b: m.last(x) + (b - 2),
    "sum from the left": lambda m, x, b: (b - 1) + m.last(x),
    "sum in place": lambda m, x, b: m.last(x).add_(b - 2),
    "scaled sum": lambda m, x, b: torch.add(m.last(x), torch.ones(b, 32), alpha=b - 1),
    "sum of zeros": lambda m, x, b: m.last(x) + torch.full((32,), b - 2.0),
    "difference": lambda m, x, b: m.last(x) - (b - 2),
    "scaled difference": lambda m, x, b: torch.sub(m.last(x), x, alpha=b - 1),
    "difference from the left": lambda m, x, b: (b - 2) - m.last(x),
    "covariance": lambda m, x, b: (m.last(x).T @ x) / max(b - 1, 1),
    "deviation": lambda m, x, b: (m.last(x) - 1).square().mean(0) / max(b - 1, 1),
    "limits": lambda m, x, b: m.last(x).clamp(-float(b - 1), float(b)),
    "mixture": lambda m, x, b: torch.lerp(m.last(x), x, 1 / b),
    "condition": lambda m, x, b: torch.where(torch.full((b, 1), b > 2), m.last(x), x),
    "mask": lambda m, x, b: m.last(x).masked_fill(torch.full((b, 1), b > 2), 0.0),
    "average": lambda m, x, b: torch.addcmul(m.last(x), x, x, value=1 / b),
    "slope": lambda m, x, b: F.leaky_relu(m.last(x), 1 / b),
    "temperature": lambda m, x, b: (m.last(x) @ x.T / (b / 2)).softmax(-1) @ x,
}  # fmt: skip
"""Numbers that follow from the batch, and that have no effect at 1, 2, 3 or 4."""


class Squares(support.TestCase):
    def near(self, found: float, wanted: float, relative: float, what: object) -> None:
        self.assertLessEqual(abs(found - wanted), relative * wanted, f"{what}: {found}, not {wanted}")

    def test_a_batch_below_a_threshold_has_the_work_of_smaller_ones(self) -> None:
        """Larger batches run other operators."""
        layered = lambda z, s: (torch.tanh(z).mean() if len(z) > 25 else z.mean()) + s.mean()  # noqa: E731
        for loss, batch in itertools.product((distances, layered), (20, 22, 23, 24)):
            with self.subTest(loss, batch=batch):
                small, large = traced(loss, 12), traced(loss, batch)
                for number, at in itertools.product(("flops", "bytes_read", "bytes_written"), (8, 16, batch)):
                    self.assertAlmostEqual(work(large, at, number) / work(small, at, number), 1, delta=1e-3, msg=f"{number} at {at}")

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

    def test_a_batch_of_the_inputs_is_right_at_every_batch(self) -> None:
        """Each program is traced at 4 for 64. FLOPs, bytes and memory are those of a trace at 64."""
        for name, form in FREE.items():
            with self.subTest(name):
                self.equal(self.formed(form, 4, None), self.formed(form, 64, None))

    def test_a_batch_as_a_number_equals_the_batch_of_the_inputs(self) -> None:
        """Each program has the batch as a number, and is traced at 4 for 64."""
        for name, form in BY_NUMBER.items():
            with self.subTest(name):
                fixed, texts = self.told(form, 4, 4)
                if name in ("causal over samples",):  # another operator from 32 samples on
                    self.assertTrue(any("batch-differs" in text for text in texts), texts)
                    continue
                self.equal(fixed, self.formed(form, 64, None))
                self.equal(fixed, self.formed(form, 64, 64))

    def test_numbers_without_effect_at_one_batch_have_work(self) -> None:
        """PyTorch runs x / (batch - 1) at batch 2, too."""
        for name, form in NEUTRAL.items():
            wanted = self.formed(form, 64, None)
            for batch in (1, 2, 3, 4):
                with self.subTest(name, batch=batch):
                    found, texts = self.told(form, batch, None)
                    if (name, batch) in (("power", 4), ("covariance", 1)):  # a square is a product, and one column a row
                        self.assertEqual(len([text for text in texts if "batch" in text]), 1)
                        continue
                    self.assertEqual([], [text for text in texts if "batch" in text])
                    self.assertEqual([op.type for op in found], [op.type for op in wanted])
                    self.equal(found, wanted)

    def test_work_that_is_no_polynomial_is_told(self) -> None:
        for name, form in OTHER_STEPS.items():
            for number in (None, 4) if name in LOOPS else (None,):
                with self.subTest(name, number=number):
                    _, texts = self.told(form, 4, number)
                    about = [text for text in texts if "batch-" in text or "counts per sample" in text]
                    self.assertTrue(about and "\n" not in about[0], texts)

    def test_cubes_are_told_however_small_their_share_is(self) -> None:
        """Behind layers with a thousand times as much work at both traced batches."""
        for name in ("cube", "independence criterion", "factors of pairs", "triangles", "triples"):
            with self.subTest(name):
                wide: Form = lambda m, x, b, name=name: OTHER_STEPS[name](m, x @ torch.ones(32, 1 << 16) @ torch.ones(1 << 16, 32), b)  # type: ignore[misc]
                _, texts = self.told(wide, 4, None)
                self.assertEqual(len([text for text in texts if "faster than the square" in text]), 1, texts)

    def test_cubes_of_the_length_are_told(self) -> None:
        class Lengths(nn.Module):
            def __init__(self, power: int) -> None:
                super().__init__()
                self.layer, self.power = nn.Linear(32, 32), power

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.layer(x)
                return torch.linalg.matrix_power(x @ x.mT, self.power) @ x

        for power in (1, 2, 3):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                mdot.Job.from_torch(Lengths(power), torch.randn(2, 64, 32), length=64)
            texts = [str(one.message) for one in caught if "length-differs" in str(one.message)]
            self.assertEqual(len(texts), int(power > 1), texts)

    def test_usual_programs_cause_no_warning(self) -> None:
        """Numbers that equal the batch by chance, and rows that a program picks."""
        forms: dict[str, Form] = {
            "two parts": lambda m, x, b: torch.cat([part.exp() for part in m.last(x).chunk(2, 1)]),
            "heads": lambda m, x, b: m.last(x.view(b, 4, 8).transpose(1, 2).reshape(b, 32)),
            "covariance": lambda m, x, b: (m.last(x).T @ x / b - torch.eye(32)).pow(2).sum(),
            "first row": lambda m, x, b: m.last(x) + x[0],
            "queue": lambda m, x, b: F.cross_entropy(x @ torch.zeros(32, 1024), torch.zeros(b, dtype=torch.long)),
        }
        for batch in (2, 4, 32):
            for name, form in forms.items():
                with self.subTest(name, batch=batch):
                    _, texts = self.told(form, batch, None)
                    self.assertFalse([text for text in texts if "batch" in text])

    def test_regular_sizes_need_one_other_batch(self) -> None:
        """The operators run at the batch and at a prime of at least 64. Sizes of other kinds need more batches."""
        usual: dict[str, Form] = {
            "layers": lambda m, x, b: m.last(x.relu()),
            "heads": lambda m, x, b: m.last(x.view(b, 4, 8).transpose(1, 2).reshape(b, 32)),
            "class token": FREE["class token"],
            "state": FREE["state"],
        }
        other: dict[str, Form] = {
            "three degrees": lambda m, x, b: torch.addcmul(x @ x.T, x[:, :1], torch.zeros(8, 1, 1)).exp(),
            "half": FREE["half"],
            "memory bank": FREE["memory bank"],
        }
        for name, form in {**usual, **other}.items():
            with self.subTest(name), mock.patch.object(tracer, "_run", wraps=tracer._run) as runs:
                self.formed(form, 4, None)
                self.assertEqual(runs.call_count == 2, name in usual, runs.call_count)

    def equal(self, found: mdot.Job, wanted: mdot.Job) -> None:
        for number in ("flops", "bytes_read", "bytes_written"):
            self.near(work(found, 64, number), work(wanted, 64, number), 0.001, number)
        peaks = [mdot.predict(job, "H100", 64, precision="fp32").peak_memory_bytes for job in (found, wanted)]
        self.near(peaks[0], peaks[1], 0.001, "peak")

    def formed(self, form: Form, batch: int, number: int | None) -> mdot.Job:
        return self.told(form, batch, number)[0]

    def told(self, form: Form, batch: int, number: int | None) -> tuple[mdot.Job, list[str]]:
        """The job, and the warnings of its trace."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            job = mdot.Job.from_torch(Formed(form, number), torch.randn(batch, 32))
        return job, [str(warning.message) for warning in caught]

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


    def test_memory_of_pairs_across_halves_grows_with_the_square(self) -> None:
        def distances(m: nn.Module, x: torch.Tensor, b: int) -> torch.Tensor:
            return (x[: b // 2, None] - x[None, b // 2 :]).square().sum(-1).neg().exp()

        def triangle(m: nn.Module, x: torch.Tensor, b: int) -> torch.Tensor:
            half = x[: b // 2]
            return (half @ half.T)[tuple(torch.triu_indices(b // 2, b // 2, 1))].exp()

        for form, near in ((distances, 0.01), (triangle, 0.1), (FREE["upper triangle"], 0), (FREE["combinations"], 0)):
            wanted = self.peak(form, 512, 512)
            for batch in (4, 6, 25, 64):
                self.near(self.peak(form, batch, 512), wanted, near, (form, batch))

    def test_memory_of_parts_grows_with_the_batch(self) -> None:
        """Sizes of whole samples in a part of the batch are never exactly in proportion to it."""
        for part in (2, 3, 5, 8):
            form: Form = lambda m, x, b: m.last(x[: max(b // part, 1)].relu().exp())
            for batch in (4, 5, 17, 22, 24, 25, 27, 32, 35, 51, 64):
                peaks = [self.peak(form, batch, other) for other in (4096, 8192)]
                self.near(peaks[1] / peaks[0], 2, 0.05, (part, batch))

    def peak(self, form: Form, batch: int, other: int) -> float:
        """The peak at another batch, of a job that was traced at this one."""
        return mdot.predict(self.formed(form, batch, None), "H100", other, precision="fp32").peak_memory_bytes


if __name__ == "__main__":
    unittest.main()
