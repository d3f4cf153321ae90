"""mdotc.h: compiler and verification."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

from mdot.library.structs.base import Sized, mdot_dim_binding
from mdot.library.structs.job_structs import MESSAGE_FUNCTION
from mdot.library.structs.prediction_structs import mdot_configuration

PROGRESS_FUNCTION = CFUNCTYPE(None, c_void_p, c_char_p, c_size_t, c_size_t)


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
        ("allow_dropped", c_bool),
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


ROW_FUNCTION = CFUNCTYPE(None, c_void_p, POINTER(mdotc_verify_row))


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
