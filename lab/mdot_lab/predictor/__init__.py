"""Trains the shipped predictor: data set, model, training, evaluation. See README.md."""
