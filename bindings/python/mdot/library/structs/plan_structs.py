"""mdot_plan.h: searches and whole trainings."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from mdot.library.structs.base import Sized, Struct
from mdot.library.structs.prediction_structs import mdot_configuration, mdot_gpu, mdot_prediction

progress_function = CFUNCTYPE(c_bool, c_void_p, c_double)


class mdot_plan_axis(Struct):
    _fields_ = [("option", c_char_p), ("values", POINTER(c_double)), ("count", c_size_t)]


class mdot_plan_space(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("base", POINTER(mdot_configuration)),
        ("gpus", POINTER(mdot_gpu)),
        ("gpu_model_count", c_size_t),
        ("sizes", POINTER(c_uint32)),
        ("size_count", c_size_t),
        ("node_gpus", c_uint32),
        ("global_batch", c_int64),
        ("axes", POINTER(mdot_plan_axis)),
        ("axis_count", c_size_t),
        ("kept", c_uint32),
        ("reserved", c_uint32),
        ("progress", progress_function),
        ("progress_state", c_void_p),
        ("calibration", c_void_p),
    ]


class mdot_plan_layout(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("configuration", mdot_configuration),
        ("prediction", mdot_prediction),
        ("gpu_model", c_size_t),
        ("samples", c_double),
        ("pipeline_share", c_double),
    ]


class mdot_plan_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("layout_count", c_size_t),
        ("priced", c_uint64),
        ("too_large", c_uint64),
        ("indivisible", c_uint64),
        ("refused", c_uint64),
        ("cancelled", c_uint32),
    ]


_RUN = (
    "samples",
    "evaluation_samples",
    "evaluation_steps",
    "checkpoint_bytes",
    "storage_gbps",
    "checkpoint_minutes",
    "gpu_failure_hours",
    "interruptions_per_hour",
    "restart_minutes",
    "startup_minutes",
    "price",
    "grid_grams_per_kwh",
    "deadline_hours",
    "budget",
)
_COST = (
    "steps",
    "hours",
    "lower_hours",
    "upper_hours",
    "gpu_hours",
    "cost",
    "lower_cost",
    "upper_cost",
    "kwh",
    "co2_kg",
    "step_hours",
    "evaluation_hours",
    "checkpoint_hours",
    "failure_hours",
    "startup_hours",
    "checkpoint_minutes",
    "in_time",
    "in_budget",
)


class mdot_training_run(Sized):
    _fields_ = [("struct_size", c_size_t), *((name, c_double) for name in _RUN)]


class mdot_training_cost(Sized):
    _fields_ = [("struct_size", c_size_t), *((name, c_double) for name in _COST)]


class mdot_training_phase(Struct):
    _fields_ = [("layout", POINTER(mdot_plan_layout)), ("epochs", c_double)]


class mdot_convergence(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("steps", c_double),
        ("lower_steps", c_double),
        ("upper_steps", c_double),
        ("reach_probability", c_double),
        ("asymptote", c_double),
        ("exponent", c_double),
    ]
