"""What trees are told of a job."""

import numpy as np
import pytest

from predictor import baselines, batches


def test_totals_have_all_traffic_of_an_operator(data):
    """Also what the predictor prices apart."""
    labels = np.arange(len(data.step_ms))
    batch = batches.make(data, labels)
    x = baselines.describe(data, labels)
    for amount in (batch.work.bytes, batch.work.norm_bytes):
        for phase in range(amount.shape[1]):
            total = np.zeros(len(labels))
            np.add.at(total, batch.row.numpy(), (batch.count[:, 0] * amount[:, phase]).numpy())
            assert total.min() > 0
            assert any(column == pytest.approx(np.log1p(total)) for column in x.T)
