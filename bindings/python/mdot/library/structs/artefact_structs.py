"""mdot_run.h: predictors, entry points and images, and tensors."""

from __future__ import annotations

from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

from mdot.library.structs.base import Sized, Struct

MAX_RANK = 8


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
        ("assumed_torch", c_uint32),
        ("reserved", c_uint32),
    ]


class mdot_dim(Struct):
    _fields_ = [("scale", c_int64), ("offset", c_int64)]


class mdot_dim_floor(Struct):
    _fields_ = [("times", c_int32), ("step", c_int32), ("start", c_int32), ("divisor", c_int32)]


class mdot_tensor_info(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int),
        ("dim", mdot_dim * MAX_RANK),
        ("columns", c_char_p),
        ("floor", mdot_dim_floor * MAX_RANK),
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
