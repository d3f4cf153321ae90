"""Curves for judging `mdot converge`: data sets pass once each epoch, and every fresh training lowers its loss."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from mdot_lab.convergence import trainings


class Recorder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.seen = torch.nn.Parameter(torch.zeros(13, 3)), []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += [tuple(row) for row in x.tolist()]
        return x @ self.weight


def test_a_pass_takes_each_sample_once() -> None:
    model = Recorder()
    loss = trainings.measured_loss(model, 1, "wine", 89)
    for _ in range(4):      # two passes over 178 samples
        loss()
    assert len(set(model.seen[:178])) == len(set(model.seen)) == 178
    assert model.seen[:178] != model.seen[178:]


@pytest.mark.parametrize("number", range(len(trainings.fresh())))
def test_fresh_trainings_learn(number: int) -> None:
    name, steps, make, optimizer, rate, schedule = trainings.fresh()[number]
    rows = trainings.train((name, 400, make, optimizer, 3 * rate, schedule), seed=1)
    first, last = (sum(loss for _, loss in part) / len(part) for part in (rows[:20], rows[-20:]))
    assert len(rows) == 200 and last < first
