"""Tests a job's distance from the training data."""

import numpy as np
import pytest
import torch

from mdot_lab.predictor import embedding_distance
from mdot_lab.predictor.interval import FEATURES, Interval
from mdot_lab.predictor.embedding_distance import CENTRES, DIRECTIONS, FARTHEST, EmbeddingDistance


@pytest.fixture
def encodings():
    """Three kinds of networks."""
    random = np.random.default_rng(0)
    middle = np.repeat(random.normal(0, 3, (3, 20)), 50, axis=0)
    return torch.tensor(middle + random.normal(0, 0.3, middle.shape), dtype=torch.float32)


@pytest.fixture
def fitted(encodings):
    found = EmbeddingDistance(encodings.shape[1])
    found.fit(encodings, torch.arange(len(encodings)) < 100)
    return found


def distance(fitted, profile):
    return fitted.distances(profile)[0]


def test_the_distance_is_measured_to_the_nearest_centre(fitted, encodings):
    profiles = fitted.profiles(encodings + 0.5)
    expected = torch.cdist(profiles, fitted.centres).min(dim=1).values
    assert distance(fitted, profiles.T).numpy() == pytest.approx(expected.numpy(), abs=1e-3)


def test_an_unfamiliar_network_has_the_maximum_distance(fitted, encodings):
    near, far = distance(fitted, fitted.profiles(encodings).T), distance(fitted, fitted.profiles(-encodings).T)
    assert far.min() > 2 * near.max()
    assert distance(fitted, fitted.profiles(1e6 * encodings).T).tolist() == [FARTHEST] * len(encodings)


def test_a_kind_left_out_of_training_is_far(fitted, encodings):
    before = distance(fitted, fitted.profiles(encodings[:50]).T)
    fitted.fit_centres(encodings[50:], torch.ones(100, dtype=torch.bool))
    assert distance(fitted, fitted.profiles(encodings[:50]).T).min() > 2 * before.max()


def test_kinds_without_measured_steps_are_farther_from_those_with_steps(fitted, encodings):
    unlike = fitted.distances(fitted.profiles(encodings).T)[1]
    assert unlike[:100].max() == 0 and unlike[100:].min() == 1
    fitted.fit_centres(encodings, torch.zeros(len(encodings), dtype=torch.bool))
    assert fitted.distances(fitted.profiles(encodings).T)[1].min() > 0.5


def test_a_network_beyond_all_others_is_unlike_networks_with_steps(fitted, encodings):
    """Points on the line from the networks with steps to one without, and beyond it."""
    profiles = fitted.profiles(encodings)
    away = profiles[-1] - profiles[:100].mean(dim=0)
    distance, unlike = fitted.distances((profiles[-1] + torch.linspace(0, 20, 50)[:, None] * away).T)
    assert distance.max() == FARTHEST and unlike.min() > 0.99


def test_few_networks_are_their_own_centres(encodings):
    fitted = EmbeddingDistance(encodings.shape[1])
    fitted.fit(encodings[:5], torch.ones(5, dtype=torch.bool))
    assert fitted.centres.shape == (CENTRES, DIRECTIONS) and len(np.unique(fitted.centres.numpy(), axis=0)) == 5
    assert distance(fitted, fitted.profiles(encodings[:5]).T).max() < 1e-2


def test_a_networks_mean_encoding_weights_operators_by_time(data):
    from mdot_lab.predictor import batches, training
    from mdot_lab.predictor.model import Options, Predictor

    torch.manual_seed(0)
    model = Predictor(Options(width=16, hidden=16)).eval()
    _, labels = embedding_distance.networks(data)
    found = embedding_distance.mean_encodings(model, data, labels[:1])
    batch = batches.make(data, labels[:1])
    with torch.no_grad():
        encoded, fraction = model.encode(batch.operators)[batch.of_pair], training.time_fractions(model, batch)
    assert fraction.sum().item() == pytest.approx(1)
    assert found[0].numpy() == pytest.approx((encoded * fraction).sum(dim=0).numpy(), rel=1e-4, abs=1e-6)


def test_the_interval_widens_with_distance_if_distant_labels_had_larger_errors():
    random = np.random.default_rng(0)
    x = torch.zeros(FEATURES, 1000)
    x[0], x[-1] = 1, torch.tensor(random.uniform(0, 4, 1000))
    residual = torch.tensor(random.normal(0, 0.05 + 0.1 * x[-1].numpy()), dtype=torch.float32)
    interval = Interval()
    interval.fit(x, residual, torch.ones(1000))
    for side in interval.half_widths(x):
        assert side[x[-1] > 3].min() > 1.5 * side[x[-1] < 1].max()
