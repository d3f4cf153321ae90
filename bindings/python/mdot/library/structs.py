"""Structs of mdot's public headers, field by field, with the headers' names.

tests/bindings/python compares sizes and offsets with those that the C compiler finds in include/mdot. A struct that begins
with struct_size grows only at its end. The libraries accept a shorter one, so that this file may be older than they are.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import TypeVar

from mdot.options import CONFIGURATION_FIELDS

MAX_RANK = 8
SETTING_CAPACITY = 48
PHASE_COUNT = 3


class Struct(ctypes.Structure):
    """A struct of the headers."""


class Sized(Struct):
    """A struct that begins with struct_size and may grow."""


SizedType = TypeVar("SizedType", bound=Sized)


def new(kind: type[SizedType], **fields: object) -> SizedType:
    """MDOT_INIT: sets the size and leaves all fields that are not named at zero."""
    return kind(struct_size=ctypes.sizeof(kind), **fields)


# ---- mdot_base.h -----------------------------------------------------------------------------------------------------


class mdot_error(Struct):
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class mdot_dim_binding(Struct):
    _fields_ = [("name", c_char_p), ("value", c_int64), ("same_as", c_char_p)]


# ---- mdot_run.h: predictors ------------------------------------------------------------------------------------------


class mdot_open_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cpu_isa", c_char_p),
        ("device", c_char_p),
        ("device_timeout_ms", c_uint32),
        ("allocate", c_void_p),
        ("release", c_void_p),
        ("user", c_void_p),
        ("kernel_precision", c_char_p),
    ]


class mdot_predictor_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("compiler", c_char_p),
        ("kernel_precision", c_char_p),
        ("cpu_isa", c_char_p),
        ("entry_count", c_size_t),
        ("image_count", c_size_t),
        ("weights_bytes", c_size_t),
        ("file_bytes", c_size_t),
        ("device", c_char_p),
        ("device_name", c_char_p),
        ("device_kernel_precision", c_char_p),
        ("device_reason", c_char_p),
        ("cpu_reason", c_char_p),
    ]


class mdot_dim(Struct):
    _fields_ = [("scale", c_int64), ("offset", c_int64)]


class mdot_tensor_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int),
        ("dim", mdot_dim * MAX_RANK),
        ("columns", c_char_p),
    ]


class mdot_kernel_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("kind", c_char_p),
        ("flops", c_double),
        ("step", c_size_t),
    ]


class mdot_bucket_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("max_length", c_int64),
        ("scratch_bytes", c_size_t),
        ("flops", c_double),
        ("kernel_count", c_size_t),
    ]


class mdot_entry_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("input_count", c_size_t),
        ("output_count", c_size_t),
        ("bucket_count", c_size_t),
        ("has_length", c_bool),
        ("schema_hash", c_uint64),
        ("min_length", c_int64),
        ("items_together", c_size_t),
    ]


class mdot_image_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_char_p),
        ("target", c_char_p),
        ("kernel_precision", c_char_p),
        ("image_bytes", c_size_t),
        ("weights_bytes", c_size_t),
    ]


class mdot_image_kernel_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("threads", c_uint),
        ("grid_barriers", c_uint),
        ("registers", c_uint),
        ("tensor_instructions", c_uint),
        ("barriers", c_uint),
        ("shared_bytes", c_size_t),
        ("local_bytes", c_size_t),
        ("spill_bytes", c_size_t),
        ("inline_input_bytes", c_size_t),
        ("scratch_bytes", c_size_t),
        ("code_bytes", c_size_t),
    ]


class mdot_context_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_uint32),
        ("reserved", c_uint32),
        ("parallel_for", c_void_p),
        ("user", c_void_p),
    ]


class mdot_input(Struct):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int),
        ("dims", POINTER(c_int64)),
        ("data", c_void_p),
    ]


class mdot_output(Struct):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("size_bytes", c_size_t)]


class mdot_item(Struct):
    _fields_ = [("length", c_int64), ("inputs", POINTER(c_void_p)), ("outputs", POINTER(c_void_p))]


# ---- mdot_job.h ------------------------------------------------------------------------------------------------------


class mdot_load(Struct):
    _fields_ = [("flops", c_double), ("bytes_read", c_double), ("bytes_written", c_double)]


class mdot_operator_traits(Struct):
    _fields_ = [
        ("number", c_uint32),
        ("autocast", c_uint32),
        ("saved_written", c_uint32),
        ("saved_fused", c_uint32),
        ("saved_recomputed", c_uint32),
        ("reserve", c_uint32),
        ("traits", c_uint32),
        ("reserved", c_uint32 * 9),
    ]


class mdot_job_operator(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_char_p),
        ("known", c_bool),
        ("setting", c_int64 * SETTING_CAPACITY),
        ("per_sample", mdot_load * PHASE_COUNT),
        ("per_step", mdot_load * PHASE_COUNT),
        ("parameters", c_double),
        ("input_count", c_size_t),
        ("inputs", POINTER(c_uint32)),
        ("depth", c_uint32),
        ("height", c_uint32),
        ("out_degree", c_uint32),
        ("traits", mdot_operator_traits),
        ("block", c_uint32),
        ("equal_blocks", c_uint32),
        ("flags", c_uint32),
        ("module", c_char_p),
        ("frozen_parameters", c_double),
    ]


class mdot_job_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("operator_count", c_size_t),
        ("unknown_count", c_size_t),
        ("parameters", c_double),
        ("batch", c_int64),
        ("has_optimizer", c_bool),
        ("optimizer", c_int),
        ("block_count", c_uint32),
        ("notes", c_uint32),
        ("frozen_parameters", c_double),
    ]


class mdot_peak_moment(Struct):
    _fields_ = [
        ("per_sample", c_double),
        ("per_step", c_double),
        ("weight_copies", c_double),
        ("gradients", c_double),
        ("logits", c_double),
    ]


class mdot_recorded_memory(Struct):
    _fields_ = [
        ("precision", c_int),
        ("recompute", c_int),
        ("moment_count", c_size_t),
        ("moments", POINTER(mdot_peak_moment)),
    ]


class mdot_job_program(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("precision", c_int),
        ("attention", c_int),
        ("trained_bytes", c_double),
        ("frozen_bytes", c_double),
        ("buffer_bytes", c_double),
        ("has_loss", c_bool),
        ("recorded_count", c_size_t),
        ("recorded", POINTER(mdot_recorded_memory)),
    ]


class mdot_job_freezing(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("frozen", POINTER(c_char_p)),
        ("frozen_count", c_size_t),
        ("trained", POINTER(c_char_p)),
        ("trained_count", c_size_t),
    ]


class mdot_job_description(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("operators", POINTER(mdot_job_operator)),
        ("operator_count", c_size_t),
        ("batch", c_int64),
        ("has_optimizer", c_bool),
        ("optimizer", c_int),
        ("notes", c_uint32),
        ("reserved", c_uint32),
    ]


# ---- mdot_predict.h --------------------------------------------------------------------------------------------------


class mdot_gpu(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("compute_capability", c_double),
        ("sm_count", c_double),
        ("boost_mhz", c_double),
        ("memory_gib", c_double),
        ("memory_gbps", c_double),
        ("l2_mib", c_double),
        ("fp32_tflops", c_double),
        ("tf32_tflops", c_double),
        ("fp16_tflops", c_double),
        ("nvlink_gbps", c_double),
        ("pcie_gbps", c_double),
        ("watts", c_double),
        ("fp8_tflops", c_double),
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
        ("configuration", ctypes.POINTER(mdot_configuration)),
        ("step_ms", c_double),
        ("memory_bytes", c_double),
        ("prediction", ctypes.POINTER(mdot_prediction)),
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
        ("configuration", ctypes.POINTER(mdot_configuration)),
        ("step_ms", c_double),
        ("memory_bytes", c_double),
        ("note", c_char_p),
    ]


# ---- mdotjob.h -------------------------------------------------------------------------------------------------------

MESSAGE_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class mdot_job_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dims", POINTER(mdot_dim_binding)),
        ("dim_count", c_size_t),
        ("warning", MESSAGE_FUNCTION),
        ("user", c_void_p),
        ("keep_names", c_uint32),
        ("reserved", c_uint32),
        ("output", c_char_p),
        ("freezing", POINTER(mdot_job_freezing)),
    ]


# ---- mdotc.h ---------------------------------------------------------------------------------------------------------

PROGRESS_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_size_t, c_size_t)


class mdotc_entry(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("model_path", c_char_p)]


class mdotc_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("buckets", POINTER(c_int64)),
        ("bucket_count", c_size_t),
        ("targets", POINTER(c_char_p)),
        ("target_count", c_size_t),
        ("kernel_precision", c_char_p),
        ("dims", POINTER(mdot_dim_binding)),
        ("dim_count", c_size_t),
        ("name", c_char_p),
        ("dump_pass", c_char_p),
        ("dump", MESSAGE_FUNCTION),
        ("warning", MESSAGE_FUNCTION),
        ("progress", PROGRESS_FUNCTION),
        ("user", c_void_p),
        ("min_length", c_int64),
    ]


class mdotc_verify_row(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("entry", c_char_p),
        ("level", c_char_p),
        ("passed", c_bool),
        ("max_length", c_int64),
        ("worst_length", c_int64),
        ("worst_error", c_double),
        ("bound", c_double),
    ]


ROW_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p, POINTER(mdotc_verify_row))


class mdotc_verify_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dims", POINTER(mdot_dim_binding)),
        ("dim_count", c_size_t),
        ("entry", c_char_p),
        ("tolerance", c_double),
        ("seed", c_uint64),
        ("row", ROW_FUNCTION),
        ("warning", MESSAGE_FUNCTION),
        ("user", c_void_p),
        ("inputs", c_char_p),
        ("jobs", POINTER(c_void_p)),
        ("configurations", POINTER(mdot_configuration)),
        ("job_count", c_size_t),
    ]


class mdotc_check_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("level", c_char_p),
        ("relative_tolerance", c_double),
        ("absolute_tolerance", c_double),
    ]


class mdotc_check_report(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("result", c_int),
        ("worst_error", c_double),
        ("data_sets", c_size_t),
        ("detail", c_char * 1024),
    ]

# ---- mdot_store.h ----------------------------------------------------------------------------------------------------


class mdot_store_options(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("busy_ms", c_uint32),
    ]


class mdot_store_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("schema_version", c_uint32),
        ("is_shared_disk", c_uint32),
        ("row_count", c_uint64),
        ("job_count", c_uint64),
        ("outcome_count", c_uint64),
    ]


class mdot_store_recovery(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("row_count", c_uint64),
        ("job_count", c_uint64),
        ("outcome_count", c_uint64),
        ("scanned_count", c_uint64),
        ("damaged_count", c_uint64),
    ]


class mdot_store_job(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("digest", c_char_p),
        ("name", c_char_p),
        ("operator_count", c_int64),
        ("parameters", c_double),
        ("added_at", c_int64),
        ("size_bytes", c_uint64),
        ("row_count", c_uint64),
    ]


class mdot_store_row(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("id", c_int64),
        ("uid", c_uint64),
        ("digest", c_char_p),
        ("job", c_char_p),
        ("name", c_char_p),
        ("gpu", c_char_p),
        ("gpu_name", c_char_p),
        ("batch", c_int64),
        ("ms", c_double),
        ("memory_gib", c_double),
        ("settings", c_char_p),
        ("software", c_char_p),
        ("host", c_char_p),
        ("predictor", c_char_p),
        ("note", c_char_p),
        ("measured_at", c_int64),
        ("weight", c_double),
    ]


class mdot_store_filter(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("gpu", c_char_p),
        ("digest", c_char_p),
        ("software", c_char_p),
        ("since", c_int64),
        ("after_id", c_int64),
        ("below_weight", c_double),
    ]


class mdot_store_import(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("added_count", c_size_t),
        ("updated_count", c_size_t),
        ("known_count", c_size_t),
        ("step_count", c_size_t),
        ("malformed_count", c_size_t),
    ]


class mdot_store_export(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("reserved", c_uint32),
        ("filter", POINTER(mdot_store_filter)),
        ("job_folder", c_char_p),
        ("unpredicted_by", c_char_p),
    ]


class mdot_store_outcome(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("id", c_int64),
        ("cluster", c_char_p),
        ("job_id", c_char_p),
        ("submitted_at", c_int64),
        ("name", c_char_p),
        ("user", c_char_p),
        ("account", c_char_p),
        ("partition", c_char_p),
        ("state", c_char_p),
        ("digest", c_char_p),
        ("gpu", c_char_p),
        ("gpu_count", c_int64),
        ("node_count", c_int64),
        ("started_at", c_int64),
        ("ended_at", c_int64),
        ("elapsed_s", c_int64),
        ("limit_s", c_int64),
        ("exit_code", c_int64),
        ("outcome", c_int),
        ("reserved", c_uint32),
    ]


class mdot_store_accounting(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("cluster", c_char_p),
        ("malformed", c_void_p),
        ("user", c_void_p),
    ]


class mdot_store_group(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("id", c_int64),
        ("digest", c_char_p),
        ("job", c_char_p),
        ("gpu_name", c_char_p),
        ("settings", c_char_p),
        ("software", c_char_p),
        ("batch", c_int64),
        ("row_count", c_uint64),
        ("outlier_count", c_uint64),
        ("ms", c_double),
        ("spread", c_double),
        ("memory_gib", c_double),
        ("first_at", c_int64),
        ("last_at", c_int64),
        ("predicted_ms", c_double),
        ("lower_ms", c_double),
        ("upper_ms", c_double),
    ]


class mdot_store_refresh_report(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("new_row_count", c_uint64),
        ("read_row_count", c_uint64),
        ("changed_group_count", c_uint64),
        ("group_count", c_uint64),
    ]


class mdot_store_prediction(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("group", c_int64),
        ("ms", c_double),
        ("lower_ms", c_double),
        ("upper_ms", c_double),
    ]


class mdot_store_drift(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("gpu_name", c_char_p),
        ("software", c_char_p),
        ("row_count", c_uint64),
        ("group_count", c_uint64),
        ("job_count", c_uint64),
        ("ratio", c_double),
        ("level_z", c_double),
        ("level_p", c_double),
        ("dated_row_count", c_uint64),
        ("changed_at", c_int64),
        ("change_ratio", c_double),
        ("change_statistic", c_double),
        ("change_p", c_double),
        ("previous_software", c_char_p),
        ("pair_count", c_uint64),
        ("software_ratio", c_double),
        ("software_t", c_double),
        ("software_p", c_double),
    ]
