"""A refit of one part moves the steps of this part alone."""

from dataclasses import replace

import numpy as np
import pytest

from mdot_lab.predictor import partial_refit, training
from mdot_lab.predictor.model import Options, Predictor

SCHEDULE = replace(partial_refit.SCHEDULE, parts=4, learning_rate=0.05)


@pytest.mark.parametrize("refit, field, value", [(partial_refit.nhwc, "is_nhwc", (False, True)),
                                                 (partial_refit.old_versions, "software", ("pt111", "pt110"))])
def test_only_its_part_moves(data, refit, field, value):
    is_part = data.batch == data.batch.max()
    data = replace(data, step_ms=np.where(is_part, 3 * data.step_ms, data.step_ms), **{field: np.where(is_part, value[1], value[0])})
    model, labels = Predictor(Options(width=8, hidden=8)).eval(), np.arange(len(is_part))
    before = training.predict_labels((model, None), data, labels)
    refit(model, data, SCHEDULE)
    after = training.predict_labels((model, None), data, labels)
    assert after[~is_part] == pytest.approx(before[~is_part], rel=1e-6)
    assert np.abs(np.log(after / data.step_ms))[is_part].mean() < 0.8 * np.abs(np.log(before / data.step_ms))[is_part].mean()
