"""mdot_calibrate.h and mdot_record.h: measured steps, calibrations and recorders."""

from __future__ import annotations

from ctypes import POINTER, c_char_p, c_double, c_size_t, c_uint32, c_uint64, c_void_p

from mdot.library.structs.base import Sized
from mdot.library.structs.prediction_structs import mdot_configuration, mdot_prediction

# ---- mdot_calibrate.h ------------------------------------------------------------------------------------------------


class mdot_calibration_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("predictor", c_char_p),
        ("row_count", c_size_t),
        ("gpu_count", c_size_t),
        ("factor", c_double),
        ("interval", c_double),
        ("several_row_count", c_size_t),
        ("several_factor", c_double),
        ("several_interval", c_double),
        ("memory_row_count", c_size_t),
        ("job_count", c_size_t),
    ]


class mdot_measurement(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("job", c_void_p),
        ("configuration", POINTER(mdot_configuration)),
        ("step_ms", c_double),
        ("memory_bytes", c_double),
        ("prediction", POINTER(mdot_prediction)),
        ("place", c_char_p),
    ]


CALIBRATION_EFFECTS = ("site", "gpu", "host", "kernels", "precision", "several", "job", "configuration")
"""MDOT_CALIBRATION_EFFECT_MAP."""


class mdot_calibration_factors(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("factor", c_double),
        ("interval", c_double),
        ("by_effect", c_double * len(CALIBRATION_EFFECTS)),
        ("believed", c_double * len(CALIBRATION_EFFECTS)),
        ("memory_factor", c_double),
        ("memory_interval", c_double),
        ("memory_by_effect", c_double * len(CALIBRATION_EFFECTS)),
        ("memory_believed", c_double * len(CALIBRATION_EFFECTS)),
        ("row_count", c_size_t),
        ("job_row_count", c_size_t),
        ("carried_gpu", c_char_p),
        ("carried_correlation", c_double),
        ("carried_factor", c_double),
    ]


class mdot_calibration_gpu(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("row_count", c_size_t),
        ("factor", c_double),
        ("interval", c_double),
        ("half_row_count", c_size_t),
        ("half_factor", c_double),
        ("half_interval", c_double),
    ]


# ---- mdot_record.h ---------------------------------------------------------------------------------------------------


class mdot_recorder_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("warmup_steps", c_uint32),
        ("window_steps", c_uint32),
    ]


class mdot_recorded(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("step_ms", c_double),
        ("spread", c_double),
        ("window_count", c_uint64),
        ("step_count", c_uint64),
        ("stalled_count", c_uint64),
    ]


class mdot_measured_row(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("job", c_char_p),
        ("configuration", POINTER(mdot_configuration)),
        ("step_ms", c_double),
        ("memory_bytes", c_double),
        ("note", c_char_p),
    ]
