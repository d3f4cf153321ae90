"""Tests the order between two GPUs, and errors after scaling each GPU by a constant."""

import numpy as np
import pytest

from mdot_lab.predictor import gpu_ranking

GPU = np.array(["TITAN-Xp", "GTX-1080-Ti", "TITAN-V", "TITAN-Xp"])
SAME = np.array(["a", "a", "a", "b"])
MEASURED = np.array([10.0, 10.5, 20.0, 1.0])


def test_pairs_are_of_one_network_and_differ_clearly():
    pairs = gpu_ranking.order(GPU, SAME, np.array([10.0, 30.0, 20.0, 99.0]), MEASURED)
    assert pairs.tolist() == [[True, False], [False, False]]  # TITAN V against both; the others differ by a twentieth


def test_pairs_with_the_same_die_are_marked():
    pairs = gpu_ranking.order(GPU, SAME, MEASURED, np.array([10.0, 15.0, 20.0, 1.0]))
    assert pairs.tolist() == [[True, True], [True, False], [True, False]]


def test_steps_of_one_gpu_model_are_no_pair():
    assert gpu_ranking.order(np.array(["T4", "T4"]), np.array(["a", "a"]), MEASURED[:2], np.array([1.0, 2.0])).shape == (0, 2)


def test_the_constant_has_the_least_error():
    random = np.random.default_rng(0)
    measured = np.exp(random.normal(size=41))
    predicted = measured * np.exp(random.normal(0.5, 0.4, size=41))
    e = gpu_ranking.with_constants(np.zeros(41), predicted, measured)
    tried = [100 * np.abs(factor * predicted / measured - 1).mean() for factor in np.linspace(0.2, 1.5, 2000)]
    assert e.mape == pytest.approx(min(tried), rel=1e-3)
    assert e.mape <= min(tried) + 1e-9


def test_each_group_has_its_own_constant():
    e = gpu_ranking.with_constants(np.array(["a", "a", "b"]), np.array([2.0, 4.0, 3.0]), np.array([1.0, 2.0, 6.0]))
    assert e.mape == pytest.approx(0)
