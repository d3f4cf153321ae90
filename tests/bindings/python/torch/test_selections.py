"""Programs that select by data have the backward pass and the memory of a training step. The reference for work is
torch.utils.flop_counter over the forward and backward pass.
"""

from __future__ import annotations

import unittest
import warnings
from typing import Any, Callable

import support
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.flop_counter import FlopCounterMode

import mdot

Body = Callable[[Any, torch.Tensor], torch.Tensor]


class Network(nn.Module):
    def __init__(self, body: Body) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(32, 48), nn.Linear(48, 32), nn.Linear(32, 32)
        self.w, self.v, self.body = nn.Parameter(torch.randn(32, 32)), nn.Parameter(torch.randn(32, 48)), body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self, self.c(x))


def experts(m: Any, x: torch.Tensor) -> torch.Tensor:
    """A loop over the experts that have rows, as in transformers."""
    x = x.flatten(0, 1)
    weights, chosen = (x @ m.w[:, :4]).softmax(-1).topk(2)
    mask, out = F.one_hot(chosen, 4).permute(2, 1, 0), torch.zeros_like(x)
    for expert in (mask.sum((-1, -2)) > 0).nonzero():
        place, rows = torch.where(mask[expert[0]])
        out = out.index_add(0, rows, m.b(m.a(x[rows])) * weights[rows, place, None])
    return out


def sorted_rows(m: Any, x: torch.Tensor) -> torch.Tensor:
    """Parts of a table, whose sizes are a list."""
    x = x.flatten(0, 1)
    chosen = x.argmax(-1)
    parts = x[chosen.argsort()].split(torch.bincount(chosen, minlength=32).tolist())
    return torch.cat([m.c(part) for part in parts if len(part) > 0])


def written(m: Any, x: torch.Tensor) -> torch.Tensor:
    mask, out = x.sum(-1) > 0, torch.zeros_like(x)
    out[mask] = m.c(x[mask])
    return m.b(m.a(out))


def dropped(m: Any, x: torch.Tensor) -> torch.Tensor:
    size = x.norm(dim=-1)
    keep = size > size.median()
    return m.b(m.a(x[keep])).sum() / keep.sum()  # type: ignore[no-any-return]


def words(m: Any, x: torch.Tensor) -> torch.Tensor:
    found, places = torch.unique(x.argmax(-1), return_inverse=True)
    return (m.w[found] @ m.v)[places]  # type: ignore[no-any-return]


def checked(m: Any, x: torch.Tensor) -> torch.Tensor:
    """A check of values behind constants of several elements, which mdot reads to store them."""
    y = m.b(m.a(x)) * torch.tensor([2, 3]).repeat(16) + torch.arange(32)
    if torch.any(y.exp() < 0):
        raise ValueError("negative")
    return m.c(y) if y.argmax(-1).flatten().tolist()[0] >= 0 else y  # type: ignore[no-any-return]


def repeated(m: Any, x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = m.c(x).tanh()
        if bool(x.norm() < 1e9):
            break
    return x


def differing(m: Any, x: torch.Tensor) -> torch.Tensor:
    """Numbers and masks of one kind, of which a run on fake tensors reads only some, in one statement and in a loop."""
    if not torch.compiler.is_compiling() and not isinstance(x, FakeTensor):
        assert bool(x.isfinite().all()) and int((x > 9).sum()) >= 0 and x[(x > 1).any(-1)].numel() >= 0
    if bool(x.isinf().any()):
        raise ValueError("infinite")
    rows, few = x[x.sum(-1) > 0], x[:, :4][x[:, :4].sum(-1) > 1]
    length = int((rows.mean(-1) > 0).sum().clamp(1, 9)) + int((few.mean(-1) > 9).sum())
    rows = m.b(m.a(rows))
    for part in (rows, few[None], rows):
        if len(part) > 1 or bool(part.isnan().any()):
            rows = torch.cat([rows, m.c(part[part.sum(-1) > 0])])
    return torch.cat([rows, m.c(few), m.b(m.a(x[0, :length]))])


PROGRAMS: dict[str, Body] = {
    "mask": lambda m, x: m.b(m.a(x[x.sum(-1) > 0])),
    "nonzero": lambda m, x: m.c(x.flatten(0, 1)[(x.sum(-1) > 0).flatten().nonzero()[:, 0]]),
    "where": lambda m, x: m.b(m.a(x[torch.where(x.mean(-1) > 0)])),
    "masked_select": lambda m, x: m.b(m.a(x)).masked_select(x > 0.1),
    "number": lambda m, x: m.b(m.a(x[:, : int((x.mean((1, 2)) > 0).sum()) + 1])),
    "experts": experts,
    "list": sorted_rows,
    "written": written,
    "dropped": dropped,
    "words": words,
    "repeated": repeated,
    "checked": checked,
    "differing": differing,
}


class Selections(support.TestCase):
    def test_a_training_step_follows_the_selections(self) -> None:
        for name, body in PROGRAMS.items():
            with self.subTest(name), warnings.catch_warnings(record=True) as reported:
                warnings.simplefilter("always")
                torch.manual_seed(0)
                model, x = Network(body), torch.randn(6, 10, 32)
                job = mdot.Job.from_torch(model, x)
                with FlopCounterMode(display=False) as forward:
                    out = model(x)
                with FlopCounterMode(display=False) as backward:
                    out.sum().backward()
                assert job.program is not None
                check = job.program.check
                for own, dispatched, counter in zip(check.job_flops, check.dispatched_flops, (forward, backward)):
                    self.assertAlmostEqual(own / counter.get_total_flops(), 1, delta=0.001, msg=str(check))
                    self.assertAlmostEqual(dispatched / counter.get_total_flops(), 1, delta=0.001, msg=str(check))
                self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.02, msg=str(check))
                texts = [str(one.message) for one in reported]
                self.assertEqual([text for text in texts if "estimated from the operators" in text or "differs" in text and "batch-" not in text], [])

    def test_memory_grows_with_the_batch(self) -> None:
        """A record at one batch answers for another one, as a trace there does."""
        torch.manual_seed(0)
        model = Network(PROGRAMS["masked_select"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jobs = [mdot.Job.from_torch(model, torch.randn(batch, 2000, 32)) for batch in (4, 16)]
            peaks = [mdot.Predictor().predict(job, "A100-40GB", 16, optimizer="sgd-plain").peak_memory_bytes for job in jobs]
        self.assertAlmostEqual(peaks[0] / peaks[1], 1, delta=0.02)


if __name__ == "__main__":
    unittest.main()
