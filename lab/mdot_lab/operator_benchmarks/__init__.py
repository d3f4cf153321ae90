"""Measured operators of many GPUs, and analytic models fitted to them, to find how well a GPU's spec values alone predict
times."""
