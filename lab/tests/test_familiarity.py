"""Corrections of jobs that are unlike the training networks."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mdot_lab.predictor import export, familiarity, features, normalisation
from mdot_lab.predictor.operators import Operators


def strength_of(shipped, rows) -> float:
    types, setting, load, count = rows
    full = features.with_states_read(Operators(types, setting, load))
    with torch.no_grad():
        encoded = shipped.members[0].encode(normalisation.split(full)[0])
        return float(shipped.familiarity(encoded, familiarity.weights(full.load, count[:, None])))


def test_a_training_network_keeps_its_corrections(shipped, data):
    for network in data.whole_networks[:5]:
        assert strength_of(shipped, export.rows(data, network)) == pytest.approx(1, abs=2e-3)


def test_an_unlike_job_keeps_the_least(shipped):
    random = np.random.default_rng(1)
    found = [strength_of(shipped, export.random_rows(random, 20)) for _ in range(20)]
    assert min(found) < 0.5 and all(familiarity.LEAST - 1e-6 <= x <= 1 + 1e-6 for x in found)


def test_weights_add_up_to_one_for_any_load():
    load = torch.tensor([[1e30] * 19, [0.0] * 19, [5.0] * 19])
    found = familiarity.weights(load, torch.ones(3, 1))
    assert torch.isfinite(found).all() and float(found.sum()) == pytest.approx(1, rel=1e-5)


