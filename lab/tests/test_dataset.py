"""Tests of building the training set from sequences and labels."""

import numpy as np

from mdot_lab.predictor import batches, dataset, tables
from mdot_lab.predictor.labels import Network


def test_equal_operators_are_one_row_with_a_count(make_sequence, make_label):
    data = dataset.build({Network("a", 224): make_sequence(5)}, [make_label("a", 8, 1.0)])
    operators, count = data.multiset(0)
    assert len(data.type) == len(operators) == 2
    assert sorted(count) == [5, 5]


def test_networks_share_the_operator_table(make_sequence, make_label):
    sequences = {Network("a", 224): make_sequence(5), Network("b", 224): make_sequence(2)}
    data = dataset.build(sequences, [make_label("a", 8, 1.0), make_label("b", 8, 1.0)])
    assert len(data.type) == 2
    assert len(data.operator) == 14


def test_labels_of_a_larger_network_with_the_same_name_are_skipped(make_sequence, make_label):
    sequence = make_sequence(5)
    parameters_m = sequence.load[:, -1].sum() / 1e6
    data = dataset.build({Network("a", 224): sequence}, [
        make_label("a", 8, 1.0, parameters_m=parameters_m), make_label("a", 8, 9.0, parameters_m=2 * parameters_m)])
    assert data.step_ms.tolist() == [1.0]


def test_labels_without_a_graph_are_skipped(make_sequence, make_label):
    data = dataset.build({Network("a", 224): make_sequence(1)}, [make_label("a", 8, 1.0), make_label("b", 8, 2.0)])
    assert data.network_name.tolist() == ["a"]
    assert len(data.step_ms) == 1


def test_a_saved_data_set_reads_back(data, tmp_path):
    data.save(tmp_path / "data.npz")
    again = dataset.Dataset.load_file(tmp_path / "data.npz")
    for name, value in vars(data).items():
        assert np.array_equal(value, getattr(again, name)), name


def test_operator_load_has_the_width_of_the_schema(data):
    assert data.load.shape[1] == tables.LOAD_COUNT == 19


def test_labels_of_inference_have_their_mode(make_sequence, make_label):
    labels = [make_label("a", 8, 1.0, kind=kind) for kind in ("train", "infer", "backward")]
    data = dataset.build({Network("a", 224): make_sequence(1)}, labels)
    assert data.mode.tolist() == [dataset.TRAINING, dataset.INFERENCE, dataset.TRAINING]


def test_the_optimizer_is_part_of_a_step_that_names_one(make_sequence, make_label):
    labels = [make_label("a", 8, 1.0, kind="backward", run="superbench", optimizer=name) for name in ("adamw", "sgd", "")]
    data = dataset.build({Network("a", 224): make_sequence(1)}, labels)
    adam, sgd, none = (batches.make(data, np.array([i])) for i in range(3))
    assert [x.has_optimizer.item() for x in (adam, sgd, none)] == [1, 1, 0]
    assert [x.configurations.is_adam.item() for x in (adam, sgd, none)] == [1, 0, 0]
    assert adam.launches == sgd.launches > none.launches
