"""mdot_job.h, mdot_program.h and mdotjob.h: jobs, and the programs that they come from."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from mdot.library.structs.base import Sized, Struct, mdot_dim_binding

PHASE_COUNT = 3
SETTING_CAPACITY = 48


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
        ("per_square", mdot_load * PHASE_COUNT),
        ("batch_settings", c_uint64),
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
        ("length", c_int64),
        ("length_name", c_char_p),
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


# ---- mdot_program.h --------------------------------------------------------------------------------------------------


class mdot_peak_moment(Struct):
    _fields_ = [
        ("per_sample", c_double),
        ("per_step", c_double),
        ("weight_copies", c_double),
        ("gradients", c_double),
        ("logits", c_double),
        ("per_square", c_double),
    ]


class mdot_recorded_memory(Struct):
    _fields_ = [
        ("precision", c_int),
        ("recompute", c_int),
        ("moment_count", c_size_t),
        ("moments", POINTER(mdot_peak_moment)),
        ("compiled", c_bool),
    ]


class mdot_job_check(Struct):
    _fields_ = [
        ("dispatched_flops", c_double * 2),
        ("job_flops", c_double * 2),
        ("recorded_peak", c_double),
        ("predicted_peak", c_double),
        ("unpriced_bytes", c_double),
        ("unpriced_operators", c_uint32),
        ("modules", c_char_p),
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
        ("framework", c_uint32),
        ("check", mdot_job_check),
    ]


# ---- mdotjob.h -------------------------------------------------------------------------------------------------------


MESSAGE_FUNCTION = CFUNCTYPE(None, c_void_p, c_char_p)


class mdot_job_adapters(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rank", c_uint32),
        ("targets", POINTER(c_char_p)),
        ("target_count", c_size_t),
    ]


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
        ("other_batch_bytes", c_char_p),
        ("other_batch_size", c_size_t),
        ("other_batch", c_int64),
        ("adapters", POINTER(mdot_job_adapters)),
    ]


class mdot_ready_job(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("title", c_char_p),
        ("parameters", c_double),
        ("length", c_int64),
    ]


READY_JOB_FUNCTION = CFUNCTYPE(None, c_void_p, POINTER(mdot_ready_job))
