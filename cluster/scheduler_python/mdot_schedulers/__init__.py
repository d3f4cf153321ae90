"""Shared rules of mdot's integrations in Python: requests, predictions of untrusted jobs, limits, priorities and places.

cluster/slurm has the same rules in C; a test compares both."""

from mdot_schedulers.decision import Answer, Decision, Unpredictable, decide, priority, step_quantile_ms
from mdot_schedulers.outcomes import Outcomes
from mdot_schedulers.prediction import predict_apart, predict_here
from mdot_schedulers.request import Request
from mdot_schedulers.site import Place, Site

__all__ = [
    "Answer",
    "Decision",
    "Outcomes",
    "Place",
    "Request",
    "Site",
    "Unpredictable",
    "decide",
    "predict_apart",
    "predict_here",
    "priority",
    "step_quantile_ms",
]
