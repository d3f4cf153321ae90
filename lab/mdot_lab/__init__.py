"""The recipe of mdot's predictor: measurements, data set, training, evaluation, baselines and checks. See README.md."""
