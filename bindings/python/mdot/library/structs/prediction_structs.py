"""mdot_predict.h, mdot_explain.h and mdot_beside.h: GPUs, configurations, predictions and explanations."""

from __future__ import annotations

from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64
from dataclasses import fields

from mdot.library.structs.base import Sized
from mdot.options import CONFIGURATION_FIELDS, GPUColumns

# ---- mdot_predict.h --------------------------------------------------------------------------------------------------


class mdot_gpu(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        *((column.name, c_double) for column in fields(GPUColumns) if column.name != "name"),
    ]


class mdot_configuration(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        *((name, POINTER(mdot_gpu) if name == "gpu_spec" else kind) for name, kind in CONFIGURATION_FIELDS),
    ]


class mdot_prediction(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("step_ms", c_double),
        ("lower_ms", c_double),
        ("upper_ms", c_double),
        ("peak_memory_bytes", c_uint64),
        ("fits", c_bool),
        ("warnings", c_uint32),
        ("status", c_int),
        ("implausible", c_uint32),
        ("parameters", c_double),
        ("flops_per_sample", c_double),
        ("compute_share", c_double),
        ("memory_share", c_double),
        ("unknown_share", c_double),
        ("weight_bytes", c_double),
        ("gradient_bytes", c_double),
        ("optimizer_bytes", c_double),
        ("activation_bytes", c_double),
        ("memory_lower_bytes", c_uint64),
        ("memory_upper_bytes", c_uint64),
        ("reserved_bytes", c_uint64),
        ("usable_bytes", c_uint64),
        ("rounding_bytes", c_double),
        ("context_bytes", c_double),
        ("workspace_bytes", c_double),
        ("collective_bytes", c_double),
        ("average_watts", c_double),
        ("energy_joules", c_double),
        ("first_stage_bytes", c_uint64),
        ("last_stage_bytes", c_uint64),
        ("host_share", c_double),
        ("gpu_ms", c_double),
        ("gpu_lower_ms", c_double),
        ("gpu_upper_ms", c_double),
        ("loader_ms", c_double),
    ]


# ---- mdot_explain.h --------------------------------------------------------------------------------------------------


class mdot_explanation_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("operator_count", c_size_t),
        ("step_ms", c_double),
        ("forward_ms", c_double),
        ("data_gradient_ms", c_double),
        ("weight_gradient_ms", c_double),
        ("optimizer_ms", c_double),
        ("host_ms", c_double),
        ("communication_ms", c_double),
        ("idle_ms", c_double),
        ("weight_bytes", c_double),
        ("gradient_bytes", c_double),
        ("optimizer_bytes", c_double),
        ("activation_bytes", c_double),
        ("approximate", c_uint32),
        ("reserved", c_uint32),
        ("gpu_busy_ms", c_double),
        ("host_busy_ms", c_double),
        ("overlap_ms", c_double),
        ("data_ms", c_double),
    ]


class mdot_operator_time(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("forward_ms", c_double),
        ("data_gradient_ms", c_double),
        ("weight_gradient_ms", c_double),
        ("optimizer_ms", c_double),
        ("weight_bytes", c_double),
        ("gradient_bytes", c_double),
        ("optimizer_bytes", c_double),
        ("activation_bytes", c_double),
    ]


# ---- mdot_beside.h ---------------------------------------------------------------------------------------------------


class mdot_gpu_load(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("step_ms", c_double),
        ("gpu_busy_ms", c_double),
        ("host_busy_ms", c_double),
        ("operator_count", c_double),
        ("compute_share", c_double),
        ("memory_share", c_double),
        ("fp32_tflops", c_double),
        ("memory_gbps", c_double),
        ("peak_memory_bytes", c_uint64),
        ("reserved_bytes", c_uint64),
        ("usable_bytes", c_uint64),
    ]


class mdot_beside(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("slowdown", c_double),
        ("lower_slowdown", c_double),
        ("upper_slowdown", c_double),
        ("step_ms", c_double),
        ("reserved_bytes", c_double),
        ("fits", c_bool),
        ("extrapolated", c_uint32),
    ]
