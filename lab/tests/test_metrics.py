"""Tests of error metrics."""

import numpy as np
import pytest

from mdot_lab.predictor.metrics import errors


def test_errors_are_relative_to_measurements():
    e = errors(np.array([11.0, 90.0, 100.0]), np.array([10.0, 100.0, 200.0]))
    assert e.mape == pytest.approx((10 + 10 + 50) / 3)
    assert e.median == pytest.approx(10)
    assert e.mae_ms == pytest.approx((1 + 10 + 100) / 3)
    assert e.rmse_ms == pytest.approx(np.sqrt((1 + 100 + 10000) / 3))
    assert e.count == 3


def test_within_10_counts_errors_of_at_most_ten_percent():
    assert errors(np.array([105.0, 120.0]), np.array([100.0, 100.0])).within_10 == 50
