"""Published methods for predicting the time of a training step, reimplemented and evaluated on the predictor's folds."""
