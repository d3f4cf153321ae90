"""mdot_store.h: the store of measured steps and outcomes."""

from __future__ import annotations

from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from mdot.library.structs.base import Sized


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


class mdot_store_host(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("host", c_char_p),
        ("gpu_name", c_char_p),
        ("row_count", c_uint64),
        ("group_count", c_uint64),
        ("ratio", c_double),
        ("p", c_double),
    ]
