"""Tests of folds."""

import numpy as np
import pytest

from mdot_lab.predictor import collected, dataset, splits
from mdot_lab.predictor.labels import Network


@pytest.fixture
def named(make_sequence, make_label):
    names = {"resnet18": 2, "tv_resnet18": 2, "resnet34": 3, "vit_base": 4, "swin_tiny": 5, "mixer_b16_224": 6}
    sequences = {Network(name, 224): make_sequence(blocks) for name, blocks in names.items()}
    return dataset.build(sequences, [make_label(name, batch, 1.0) for name in names for batch in (8, 16)])


BY_NETWORK = (splits.RANDOM, splits.FAMILIES)


@pytest.mark.parametrize("split", BY_NETWORK)
def test_every_label_is_tested_once_and_never_trained_on_then(named, split):
    tested = []
    for _, train, test in splits.folds(named, split):
        assert not set(train) & set(test)
        assert len(train) + len(test) == len(named.step_ms)
        tested.extend(test)
    assert sorted(tested) == list(range(len(named.step_ms)))


@pytest.mark.parametrize("split", BY_NETWORK)
def test_labels_of_a_network_are_on_one_side(named, split):
    for _, train, test in splits.folds(named, split):
        assert not set(named.label_network[train]) & set(named.label_network[test])


def test_equal_sequences_with_two_names_are_on_one_side(named):
    number = {str(name): i for i, name in enumerate(named.network_name)}
    for _, _, test in splits.folds(named, splits.RANDOM):
        sides = [np.isin(number[name], named.label_network[test]) for name in ("resnet18", "tv_resnet18")]
        assert sides[0] == sides[1]


def test_networks_of_publishers_leave_the_random_folds_as_they_are(make_sequence, make_label):
    own = [f"net{i:02}" for i in range(0, 60, 2)]
    others = [f"net{i:02}" for i in range(1, 60, 2)]        # between them in the alphabet
    sequences = {Network(name, 224): make_sequence(2 + int(name[3:])) for name in own + others}
    labels = [make_label(name, 8, 1.0) for name in own]

    def fold_of(run):
        all_of = labels + [make_label(name, 8, 1.0, run=run, kind="backward") for name in others if run]
        data = dataset.build({network: s for network, s in sequences.items() if run or network.name in own}, all_of)
        return {str(data.network_name[n]): fold for fold, _, test in splits.folds(data, splits.RANDOM) for n in data.label_network[test]}

    assert len(set(fold_of(None).values())) > 1
    for run in ("neusight", "pollux", "gavel"):
        assert fold_of(run) == fold_of(None)


@pytest.fixture
def measured(make_sequence, make_label):
    """Two networks with all kinds of labels."""
    sequences = {Network(name, 224): make_sequence(blocks) for name, blocks in (("resnet18", 2), ("vit_base", 4))}
    labels = []
    for name in ("resnet18", "vit_base"):
        labels += [make_label(name, 64, 1.0, software=software) for software in ("pt110", "pt111", "pt112")]
        labels += [make_label(name, 64, 1.0, software="pt240", gpu="RTX-4090", kind="infer")]
        labels += [make_label(name, 12, 1.0, software="pt17", gpu=gpu, precision="fp32", kind="backward")
                   for gpu in ("TITAN-Xp", "GTX-1080-Ti", "TITAN-V")]
    return dataset.build(sequences, labels)


@pytest.mark.parametrize("split", (splits.RANDOM, splits.FAMILIES))
def test_folds_test_whole_steps_of_networks_outside_training(measured, split):
    for _, train, test in splits.folds(measured, split):
        assert set(measured.kind[test]) == {"train"} and set(measured.software[test]) == {"pt111", "pt112"}
        assert not set(measured.label_network[train]) & set(measured.label_network[test])


def test_a_gpu_model_is_held_out_with_its_twin(measured):
    folds = {name: (train, test) for name, train, test in splits.folds(measured, splits.GPUS)}
    assert set(folds) == {"GTX-1080-Ti TITAN-Xp", "TITAN-V"}
    for train, test in folds.values():
        assert not set(measured.gpu[train]) & set(measured.gpu[test])
        assert set(measured.kind[test]) == {"backward"}


def test_newer_software_is_held_out_for_every_kind_of_label(measured):
    (_, train, test), = splits.folds(measured, splits.SOFTWARE)
    assert set(measured.software[train]) == {"pt110", "pt111", "pt17"}
    assert set(measured.software[test]) == {"pt112"}


def test_own_networks_are_left_out_of_our_own_records_alone(make_sequence, make_label):
    own = [f"collected.timm.net{i}" for i in range(6)]
    sequences = {Network(name, 224): make_sequence(i + 2) for i, name in enumerate([*own, "resnet18"])}
    labels = [make_label(name, 8, 1.0, kind=kind, gpu="H200-SXM-141GB", run=collected.RUN) for name in own
              for kind in ("backward", "infer")]
    data = dataset.build(sequences, [*labels, make_label("resnet18", 8, 1.0, kind="infer"), make_label(own[0], 8, 1.0)])
    tested = []
    for _, train, test in splits.folds(data, splits.COLLECTED):
        assert set(data.run[test]) == {collected.RUN}
        assert not set(data.label_network[train]) & set(data.label_network[test])
        tested.extend(test)
    assert sorted(tested) == list(np.flatnonzero(data.run == collected.RUN))
    of_inference = [label for _, _, test in splits.folds(data, splits.INFERENCE_FAMILIES) for label in test]
    assert collected.RUN not in set(data.run[of_inference])


@pytest.fixture
def with_language(make_sequence, make_label):
    """An image network of torchvision's benchmark and two language models, each on two GPUs."""
    names = ("torchvision.vgg", "language.gpt", "language.bert")
    sequences = {Network(name, 224): make_sequence(blocks) for blocks, name in enumerate(names, 2)}
    labels = [make_label(names[0], 12, 1.0, gpu=gpu, kind="backward") for gpu in ("A100-SXM-40GB", "TITAN-V")]
    labels += [make_label(name, 1, 1.0, gpu=gpu, kind="backward", run="neusight")
               for name in names[1:] for gpu in ("V100-PCIe-32GB", "L4")]
    return dataset.build(sequences, labels)


def test_language_models_are_evaluated_separately(with_language):
    for _, _, test in splits.folds(with_language, splits.GPUS):
        assert set(with_language.run[test]) == {"run"}
    for split in (splits.LANGUAGE_MODELS, splits.LANGUAGE_GPUS):
        tested = np.concatenate([test for _, _, test in splits.folds(with_language, split)])
        assert sorted(tested) == list(np.flatnonzero(with_language.run == "neusight"))


def test_a_language_model_is_held_out_on_all_gpus(with_language):
    for _, train, test in splits.folds(with_language, splits.LANGUAGE_MODELS):
        assert not set(with_language.label_network[train]) & set(with_language.label_network[test])


@pytest.mark.parametrize("split", (splits.GPUS, splits.LANGUAGE_GPUS))
def test_gpu_models_with_one_die_are_held_out_together(with_language, split):
    volta = np.isin(with_language.gpu, ("TITAN-V", "V100-PCIe-32GB"))
    found = [train for _, train, test in splits.folds(with_language, split) if volta[test].any()]
    assert len(found) == 1 and not volta[found[0]].any()


def test_a_publisher_is_held_out_with_all_of_its_labels(with_language):
    folds = {name: (train, test) for name, train, test in splits.folds(with_language, splits.SOURCES)}
    assert set(folds) == {"neusight", splits.TORCHVISION_BENCHMARK}
    train, test = folds["neusight"]
    assert set(with_language.run[train]) == {"run"} and set(with_language.run[test]) == {"neusight"}


def test_timm_is_a_publisher_that_stays(measured):
    assert set(splits.sources(measured)) == {splits.TIMM}
    assert not list(splits.folds(measured, splits.SOURCES))


def test_image_networks_of_publishers_are_no_language_models(make_sequence, make_label):
    sequences = {Network(name, 224): make_sequence(2) for name in ("torchvision.resnet50", "language.bert")}
    labels = [make_label(name, 8, 1.0, run="superbench", kind="backward", gpu="A100-SXM-40GB", software="pt108")
              for name in ("torchvision.resnet50", "language.bert")]
    data = dataset.build(sequences, labels)
    for split in (splits.LANGUAGE_MODELS, splits.LANGUAGE_GPUS):
        assert [test.tolist() for _, _, test in splits.folds(data, split)] == [[1]]
    assert not list(splits.folds(data, splits.GPUS))


@pytest.mark.parametrize("split", (splits.INFERENCE_FAMILIES, splits.INFERENCE_GPUS))
def test_inference_is_held_out_by_family_and_by_gpu(measured, split):
    tested = []
    for _, train, test in splits.folds(measured, split):
        assert (measured.mode[test] == dataset.INFERENCE).all()
        column = measured.label_network if split == splits.INFERENCE_FAMILIES else measured.gpu
        assert not set(column[train]) & set(column[test])
        tested.extend(test)
    assert sorted(tested) == list(np.flatnonzero(measured.mode == dataset.INFERENCE))


@pytest.mark.parametrize("split", (splits.RANDOM, splits.FAMILIES))
def test_inner_folds_divide_the_training_labels_of_an_outer_fold(named, split):
    for outer, train, test in splits.folds(named, split):
        inner = list(splits.inner_folds(named, split, outer))
        assert 1 <= len(inner) <= splits.INNER_FOLDS
        assert sorted(np.concatenate([inner_test for _, _, inner_test in inner])) == sorted(train)
        for _, inner_train, inner_test in inner:
            assert not set(inner_train) & set(inner_test)
            assert not (set(inner_train) | set(inner_test)) & set(test)
            assert not set(named.label_network[inner_train]) & set(named.label_network[inner_test])


def test_a_split_with_one_fold_has_no_inner_folds(measured):
    (outer, _, _), = splits.folds(measured, splits.SOFTWARE)
    assert not list(splits.inner_folds(measured, splits.SOFTWARE, outer))


def test_amd_is_an_architecture_of_its_own():
    assert splits._architecture("MI300X") == splits.AMD
    assert splits._architecture("H100-SXM-80GB") == "Hopper"
