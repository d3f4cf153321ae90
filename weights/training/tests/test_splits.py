"""Folds."""

import numpy as np
import pytest

from predictor import dataset, splits
from predictor.labels import Network


@pytest.fixture
def named(make_sequence, make_label):
    names = {"resnet18": 2, "tv_resnet18": 2, "resnet34": 3, "vit_base": 4, "swin_tiny": 5, "mixer_b16_224": 6}
    sequences = {Network(name, 224): make_sequence(blocks) for name, blocks in names.items()}
    return dataset.build(sequences, [make_label(name, batch, 1.0) for name in names for batch in (8, 16)])


@pytest.mark.parametrize("split", splits.SPLITS)
def test_every_label_is_tested_once_and_never_trained_on_then(named, split):
    tested = []
    for _, train, test in splits.folds(named, split):
        assert not set(train) & set(test)
        assert len(train) + len(test) == len(named.step_ms)
        tested.extend(test)
    assert sorted(tested) == list(range(len(named.step_ms)))


@pytest.mark.parametrize("split", splits.SPLITS)
def test_labels_of_a_network_stand_on_one_side(named, split):
    for _, train, test in splits.folds(named, split):
        assert not set(named.label_network[train]) & set(named.label_network[test])


def test_equal_sequences_under_two_names_stand_on_one_side(named):
    number = {str(name): i for i, name in enumerate(named.network_name)}
    for _, _, test in splits.folds(named, splits.RANDOM):
        sides = [np.isin(number[name], named.label_network[test]) for name in ("resnet18", "tv_resnet18")]
        assert sides[0] == sides[1]
