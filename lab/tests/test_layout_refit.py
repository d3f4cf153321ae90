"""A refit of NHWC moves steps in NHWC alone."""

from dataclasses import replace

import numpy as np

from mdot_lab.predictor import layout_refit, training
from mdot_lab.predictor.model import Options, Predictor


def test_only_nhwc_moves(data):
    half = data.batch == data.batch.max()
    data = replace(data, is_nhwc=half, step_ms=np.where(half, 3 * data.step_ms, data.step_ms))
    model, labels = Predictor(Options(width=8, hidden=8)).eval(), np.arange(len(half))
    before = training.predict_labels((model, None), data, labels)
    layout_refit.refit(model, data, replace(layout_refit.SCHEDULE, parts=4, learning_rate=0.05))
    after = training.predict_labels((model, None), data, labels)
    assert (after[~half] == before[~half]).all()
    assert np.abs(np.log(after / data.step_ms))[half].mean() < 0.8 * np.abs(np.log(before / data.step_ms))[half].mean()
