"""Predictions for jobs that Kueue queues: a controller and a mutating webhook (README.md)."""
