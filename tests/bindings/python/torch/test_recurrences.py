"""Recurrences over packed sequences, and losses over lengths, have the work and the memory of a training step.

The reference for work is arithmetic: each step of each sample meets each matrix once forward and twice backward.
"""

from __future__ import annotations

import contextlib
import itertools
import unittest
from typing import Any, Callable

import support
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn
from traced import read

import mdot

LENGTHS = (12, 9, 5, 3, 12, 1)
STEPS = sum(LENGTHS)
KINDS: tuple[type[nn.RNNBase], ...] = (nn.LSTM, nn.GRU, nn.RNN)
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"bidirectional": True}, {"num_layers": 3, "bidirectional": True, "dropout": 0.1}, {"bias": False})


class Network(nn.Module):
    """A recurrence on the way `body`, between linears."""

    def __init__(self, kind: type[nn.RNNBase], body: Callable[..., torch.Tensor], **options: Any) -> None:
        super().__init__()
        self.first, self.layers, self.body = nn.Linear(24, 32), kind(32, 48, **options), body
        self.last = nn.Linear((options.get("proj_size") or 48) * (2 if options.get("bidirectional") else 1), 8)

    def forward(self, *inputs: Any) -> torch.Tensor:
        return self.body(self, self.first(inputs[0]), *inputs[1:])

    def flops(self) -> float:
        """In the forward pass of all samples, by module."""
        return 2 * STEPS * sum(w.numel() for w in self.layers.parameters() if w.ndim == 2)


def padded(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return m.last(rnn.pad_packed_sequence(m.layers(packed)[0], batch_first=True)[0])  # type: ignore[no-any-return]


def length_first(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    packed = rnn.pack_padded_sequence(x.transpose(0, 1), lengths, enforce_sorted=False)
    return m.last(rnn.pad_packed_sequence(m.layers(packed)[0], padding_value=-1.0, total_length=15)[0])  # type: ignore[no-any-return]


def from_ids(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Lengths that the program counts."""
    ids = (torch.arange(12) < lengths[:, None]).long()
    return padded(m, x, (ids != 0).sum(1).cpu())


def data(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return m.last(m.layers(packed)[0].data)  # type: ignore[no-any-return]


def listed(m: Any, x: torch.Tensor, *_: Any) -> torch.Tensor:
    packed = rnn.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    return m.last(m.layers(packed)[0].data)  # type: ignore[no-any-return]


def sequences(m: Any, x: torch.Tensor, *_: Any) -> torch.Tensor:
    packed = rnn.pack_sequence([x[i, : LENGTHS[i]] for i in range(len(x))], enforce_sorted=False)
    return m.last(torch.cat(rnn.unpack_sequence(m.layers(packed)[0])))  # type: ignore[no-any-return]


def sorted_rows(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    order = lengths.argsort(descending=True)
    packed = rnn.pack_padded_sequence(x[order], lengths[order], batch_first=True)
    return m.last(m.layers(packed)[0].data)  # type: ignore[no-any-return]


BODIES = (padded, length_first, from_ids, data, listed, sequences, sorted_rows)


def flops(job: mdot.Job, batch: int) -> tuple[float, float]:
    terms = ((1, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    forward, backward = (
        sum(power * getattr(op, term)[phase].flops for op in job if op.type != "Linear" for power, term in terms for phase in phases)
        for phases in (("forward",), ("data_gradient", "weight_gradient"))
    )
    return forward, backward


class Recurrences(support.TestCase):
    def check(self, model: Network, *inputs: torch.Tensor) -> None:
        job, reported = read(model, *inputs)
        assert job.program is not None
        check = job.program.check
        rest = 2.0 * inputs[0].shape[0] * 12 * 24 * 32
        self.assertEqual([text for text in reported if "batch-" not in text and "every batch" not in text and "per sample" not in text], [])
        self.assertEqual(check.unpriced_operators, 0)
        for own, dispatched in zip(check.job_flops, check.dispatched_flops):
            self.assertAlmostEqual(own / dispatched, 1, delta=0.001, msg=str(check))
        self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.001, msg=str(check))
        forward = job.program.check.dispatched_flops[0] - rest
        rows = (forward - model.flops()) / (2 * model.last.weight.numel())  # of the last linear: steps, or the padded ones
        self.assertIn(round(rows, 6), (STEPS, 6 * 12, 6 * 15))
        self.assertAlmostEqual(check.dispatched_flops[1], 2 * check.dispatched_flops[0] - rest, delta=1)  # the first linear's input has no gradient

    def test_packed_sequences_cost_their_steps(self) -> None:
        x, lengths = torch.zeros(6, 12, 24), torch.tensor(LENGTHS)
        for kind, options in itertools.product(KINDS, OPTIONS):
            with self.subTest(kind=kind.__name__, **options):
                self.check(Network(kind, padded, **options), x, lengths)
        for body in BODIES:
            with self.subTest(body.__name__):
                self.check(Network(nn.LSTM, body), x, lengths)
        for options in ({}, {"bidirectional": True, "num_layers": 2}):
            with self.subTest("projection", **options):
                self.check(Network(nn.LSTM, padded, proj_size=16, **options), x, lengths)

    def test_packed_sequences_keep_the_memory_of_their_steps(self) -> None:
        """Sequences of one length need as much as padded ones, and half the steps half as much."""

        def plain(m: Any, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return m.last(m.layers(x)[0])  # type: ignore[no-any-return]

        x, peaks = torch.zeros(32, 400, 24), []
        for body, length in ((plain, 400), (data, 400), (data, 200)):
            model = Network(nn.LSTM, body, num_layers=3, batch_first=True)
            job, _ = read(model, x, torch.full((32,), length))
            peaks.append(mdot.Predictor().predict(job, "A100-40GB", 32, optimizer="sgd-plain").activation_bytes)
        self.assertAlmostEqual(peaks[1] / peaks[0], 1, delta=0.01)  # the packed operand takes the place of the padded one
        padding = 32 * 400 * (24 + 32) * 4
        self.assertAlmostEqual((peaks[1] - padding) / (peaks[2] - padding), 2, delta=0.08)  # states and weights stay

    def test_lengths_repeat_at_multiples_of_the_batch(self) -> None:
        model, lengths = Network(nn.GRU, padded, bidirectional=True), torch.tensor(LENGTHS)
        job, _ = read(model, torch.zeros(6, 12, 24), lengths)
        for times in (4, 50):
            direct, _ = read(model, torch.zeros(6 * times, 12, 24), lengths.repeat(times))
            for own, there in zip(flops(job, 6 * times), flops(direct, 6 * times)):
                self.assertAlmostEqual(own / there, 1, delta=0.001)
            a, b = (mdot.Predictor().predict(one, "A100-40GB", 6 * times, optimizer="sgd-plain") for one in (job, direct))
            self.assertAlmostEqual(a.peak_memory_bytes / b.peak_memory_bytes, 1, delta=0.005)

    def test_wrong_lengths_have_the_message_of_pytorch(self) -> None:
        for lengths, text in (([12, 9], "equal to batch_size"), ([9, 8, 7, 6, 5, 0], "greater than 0"), ([1, 2, 3, 4, 5, 6], "sorted in decreasing order")):
            def body(m: Any, x: torch.Tensor) -> torch.Tensor:
                return m.last(m.layers(rnn.pack_padded_sequence(x, lengths, batch_first=True))[0].data)  # type: ignore[no-any-return]

            with self.assertRaisesRegex(mdot.Error, text):
                read(Network(nn.LSTM, body), torch.zeros(6, 12, 24))

    def test_autocast_converts_all_operands(self) -> None:
        """Half precision before a recurrence in fp32, which only runs in autocast, and a program's own autocast."""

        class Half(nn.Module):
            def __init__(self, kind: type[nn.RNNBase], is_half: bool) -> None:
                super().__init__()
                self.table, self.layers = nn.Embedding(100, 32), kind(32, 48, batch_first=True)
                self.table = self.table.bfloat16() if is_half else self.table

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                with torch.autocast("cuda", dtype=torch.bfloat16) if self.table.weight.dtype == torch.float32 else contextlib.nullcontext():
                    return self.layers(self.table(ids))[0]  # type: ignore[no-any-return]

        for kind, is_half in itertools.product(KINDS, (True, False)):
            with self.subTest(kind=kind.__name__, is_half=is_half):
                job, reported = read(Half(kind, is_half), torch.zeros(4, 16, dtype=torch.int64))
                assert job.program is not None
                check = job.program.check
                self.assertEqual(job.unknown_count, 0, reported)
                self.assertEqual(job.program.precision, "amp-bf16")
                self.assertEqual(check.job_flops, check.dispatched_flops)
                self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.001)

    def test_losses_over_lengths_have_a_training_step(self) -> None:
        """Lengths are tensors or numbers, and labels a matrix or a row: the work is the same, and needs no run with values."""

        def loss(m: Any, x: torch.Tensor, targets: torch.Tensor, lengths: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
            packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            y = m.last(rnn.pad_packed_sequence(m.layers(packed)[0], batch_first=True)[0]).log_softmax(-1).transpose(0, 1)
            labels = torch.cat([row[:n] for row, n in zip(targets, sizes.tolist())]) if m.is_flat else targets
            given = (tuple(lengths.tolist()), tuple(sizes.tolist())) if m.has_numbers else (lengths, sizes)
            return F.ctc_loss(y, labels, *given, zero_infinity=True)

        found = []
        for is_flat, has_numbers in itertools.product((False, True), repeat=2):
            model: Any = Network(nn.LSTM, loss, bidirectional=True)
            model.is_flat, model.has_numbers = is_flat, has_numbers
            lengths, sizes = torch.tensor([12, 9, 12, 10, 12, 11]), torch.tensor([5, 4, 3, 5, 2, 5])
            job, reported = read(model, torch.zeros(6, 12, 24), torch.ones(6, 5, dtype=torch.int64), lengths, sizes)
            assert job.program is not None
            check = job.program.check
            for own, dispatched in zip(check.job_flops, check.dispatched_flops):
                self.assertAlmostEqual(own / dispatched, 1, delta=0.01, msg=f"{check} {reported}")
            self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.01, msg=f"{check} {reported}")
            self.assertEqual([text for text in reported if "computed values" in text], [])
            found.append(check.dispatched_flops[0])
        self.assertLess(max(found) / min(found), 1.01)


if __name__ == "__main__":
    unittest.main()
