"""What others published for predicting the time of a training step, written again and run on the predictor's folds."""
