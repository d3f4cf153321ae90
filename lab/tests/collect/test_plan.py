"""Tests the catalogue's rows and the measuring order."""

from collections import Counter
from itertools import islice

import pytest

from mdot_lab.collect import plan
from mdot_lab.collect.architecture import LIBRARIES
from mdot_lab.collect.catalogue import BY_NAME, CATALOGUE
from mdot_lab.collect.measured_configuration import OPTIMIZERS, PRECISIONS, Configuration
from mdot_lab.collect.tasks import TASKS

VISITS = list(plan.visits(CATALOGUE))
KEYS = [c.key for visit in VISITS for c in visit.configurations]


def test_catalogue_is_large_and_its_names_are_unique():
    assert len(CATALOGUE) >= 120
    assert len(BY_NAME) == len(CATALOGUE)


def test_catalogue_has_the_kinds_that_the_data_set_promises():
    families = {row.family for row in CATALOGUE}
    assert {"resnet", "vit", "bert", "gpt", "t5", "llama", "mixture", "unet", "diffusion unet", "lstm", "gru", "mlp",
            "dlrm", "maxvit"} <= families
    assert sum(row.library == "torch" for row in CATALOGUE) >= 30       # these can be measured on every machine with PyTorch


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
def test_row_is_well_formed(row):
    assert row.library in LIBRARIES and row.name.startswith(row.library + "/")
    assert row.task in TASKS
    assert list(row.batches) == sorted(set(row.batches)) and row.batches[0] >= 1
    assert len(set(row.sizes)) == len(row.sizes) >= 1
    assert "|" not in row.name


def test_keys_are_unique_and_read_back():
    assert len(KEYS) == len(set(KEYS)) > 5000
    assert all(Configuration.from_key(key).key == key for key in KEYS[:500])


@pytest.mark.parametrize("key", ["", "a|s1|b1", "a|s1|bx|fp32|nchw|sgd|foreach", "a|s1|b1|fp32|other|sgd|foreach"])
def test_a_broken_key_is_refused(key):
    with pytest.raises(ValueError, match="not a configuration's key"):
        Configuration.from_key(key)


def test_every_family_comes_before_any_comes_twice():
    families = [row.family for row in plan.interleave(CATALOGUE)]
    count = len(set(families))
    assert len(set(families[:count])) == count


def test_the_first_round_visits_every_architecture_once():
    first = VISITS[: len(CATALOGUE)]
    assert {visit.architecture.name for visit in first} == set(BY_NAME)


def test_a_hundred_architectures_come_within_the_first_four_hundred_configurations():
    assert len({Configuration.from_key(key).architecture for key in KEYS[:400]}) >= 100


def test_an_interrupted_run_is_balanced_over_precisions_layouts_and_optimizers():
    cut = [Configuration.from_key(key) for key in KEYS[:400]]
    by_precision = Counter(c.precision for c in cut)
    assert set(by_precision) == set(PRECISIONS) and min(by_precision.values()) > 70
    by_optimizer = Counter((c.optimizer, c.implementation) for c in cut)
    assert set(by_optimizer) == set(OPTIMIZERS) and min(by_optimizer.values()) > 20
    images = [c.channels_last for c in cut if BY_NAME[c.architecture].channels_last]
    assert 0.4 < sum(images) / len(images) < 0.6


def test_batches_of_a_visit_ascend_and_differ():
    for visit in VISITS[:200]:
        batches = [c.batch for c in visit.configurations]
        assert batches == sorted(batches)
        assert len(set(batches)) > 1


def test_rounds_alternate_between_sizes():
    row = BY_NAME["torchvision/resnet50"]
    sizes = [visit.size for visit in VISITS if visit.architecture is row]
    assert set(sizes[: len(row.sizes)]) == set(row.sizes)


def test_the_order_is_deterministic():
    assert [c.key for visit in islice(plan.visits(CATALOGUE), 50) for c in visit.configurations] == \
        [c.key for visit in VISITS[:50] for c in visit.configurations]


def test_shards_are_disjoint_and_complete():
    parts = [[c.key for visit in plan.shard(VISITS, index, 7) for c in visit.configurations] for index in range(7)]
    joined = [key for part in parts for key in part]
    assert sorted(joined) == sorted(KEYS)
    assert len(set(joined)) == len(joined)


def test_repeats_are_a_fixed_twentieth():
    chosen = plan.to_repeat(KEYS, 0.05)
    assert 0.03 * len(KEYS) < len(chosen) < 0.07 * len(KEYS)
    assert chosen == plan.to_repeat(reversed(KEYS), 0.05)
    # A longer run repeats the configurations of a shorter one, and others.
    assert set(plan.to_repeat(KEYS[:300], 0.05)) <= set(chosen)


def test_visits_of_keys_measure_only_these_keys():
    chosen = plan.to_repeat(KEYS, 0.05)
    assert sorted(c.key for visit in plan.visits_of(CATALOGUE, chosen) for c in visit.configurations) == chosen
