"""Tests interval width on known residuals."""

import numpy as np
import pytest
import torch

from mdot_lab.predictor.interval import (FEATURE, FEATURES, LAUNCH_COST, MEASURED_HOSTS, Interval, beyond, of_publishers,
                                             quantiles)


def test_newer_software_makes_no_interval_narrower():
    """The test has newer software that is predicted better than older software."""
    random = np.random.default_rng(0)
    x = torch.zeros(FEATURES, 1000)
    x[0] = 1
    is_newer = x[FEATURE["software"]] = torch.arange(1000) % 2
    residual = torch.tensor(random.normal(0, 1, 1000), dtype=torch.float32) * (0.3 - 0.25 * is_newer)
    interval = Interval()
    interval.fit(x, residual, torch.ones(1000))
    for side in interval.half_widths(x):
        assert side[1] > 1.1 * side[0]      # no whole step with it was measured


def test_the_interval_covers_its_training_residuals():
    random = np.random.default_rng(0)
    x = torch.tensor(random.uniform(0, 1, (FEATURES, 1000)), dtype=torch.float32)
    x[0] = 1
    residual = torch.tensor(random.normal(0, 0.05 + 0.2 * x[1].numpy()), dtype=torch.float32)
    interval = Interval()
    interval.fit(x, residual, torch.ones(1000))
    low, high = (side.detach() for side in interval.half_widths(x))
    inside = (residual > -low) & (residual < high)
    assert inside.float().mean().item() == pytest.approx(0.9, abs=0.03)
    hard = x[1] > 0.7
    assert low[hard].mean() > 1.5 * low[x[1] < 0.3].mean()
    assert inside[hard].float().mean().item() == pytest.approx(0.9, abs=0.08)


def test_half_widths_on_new_gpus_are_scaled_by_the_factors():
    x = torch.zeros(FEATURES, 4)
    x[0], x[FEATURE["new_gpu"]] = 1, torch.tensor([0, 1, 0, 1])
    interval = Interval()
    before = torch.stack(interval.half_widths(x)).detach()
    interval.widen_new_gpus(torch.tensor([1.5, 1.0]))
    ratio = torch.stack(interval.half_widths(x)).detach() / before
    assert ratio.numpy() == pytest.approx(np.array([[1, 1.5, 1, 1.5], [1, 1, 1, 1]]))


def test_unknown_hosts_and_publishers_add_to_half_widths_in_quadrature():
    x = torch.zeros(FEATURES, 4)
    x[0], x[FEATURE["waiting"]] = 1, 0.5
    x[FEATURE["new_gpu"]], x[FEATURE["is_elsewhere"]] = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    interval = Interval()
    fitted = torch.stack(interval.half_widths(x)).detach().numpy()
    interval.publisher.copy_(torch.tensor([0.1, 0.6]))
    widths = torch.stack(interval(x, torch.zeros(1, 4))).detach().numpy()
    of_host, of_publisher = (0.5 * LAUNCH_COST) ** 2, np.array([[0.1], [0.6]]) ** 2
    added = np.array([0, 1, 0, 1]) * of_host + np.array([0, 0, 1, 1]) * of_publisher
    assert widths**2 - fitted**2 == pytest.approx(added, rel=1e-4, abs=1e-7)


def test_few_publishers_that_are_slower_widen_the_interval_above():
    assert of_publishers([0.3, 0.3]).numpy() == pytest.approx([0, 2.92 * 0.3], abs=1e-3)     # Student's t, two degrees
    many = of_publishers([0.3] * 50 + [-0.1] * 50).numpy()
    assert many == pytest.approx(np.array([0.1, 0.3]) * 1.66 / 2**0.5, abs=1e-3)


def test_the_spread_of_launch_costs_is_that_of_measured_hosts():
    of_hosts = np.sqrt(np.mean(np.log(np.array(MEASURED_HOSTS) / 50) ** 2))
    assert LAUNCH_COST == pytest.approx(1.8595 * of_hosts, abs=0.005)


def test_residuals_are_expressed_in_half_widths():
    residual, widths = torch.tensor([-0.2, 0.1, 0.3]), (torch.tensor([0.1, 0.1, 0.1]), torch.tensor([0.2, 0.2, 0.2]))
    ratio = beyond(residual, widths)
    assert ratio.numpy() == pytest.approx(np.array([[2, -1, -3], [-1, 0.5, 1.5]]))
    assert quantiles(ratio, torch.ones(3)) == pytest.approx([2, 1.5])
