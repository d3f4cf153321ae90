"""Finds and loads libmdot, libmdotjob and libmdotc, and declares function types.

The search order: the folders in the environment variable MDOT_LIBRARIES (separated by colons; a build tree's
runtime, frontend and compiler); the package's own folder `lib`, which a wheel fills with libmdot and
libmdotjob; the package mdot_compiler with libmdotc; and the system loader's search path.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import tempfile
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any, Callable, Iterator

from mdot.library import errors
from mdot.library import structs as c
from mdot.options import COMMANDS, GPU_KEYS

SOVERSION = "0.4"
PACKAGE = Path(__file__).resolve().parent.parent

_ERROR = POINTER(c.mdot_error)

# Function: return type, argument types. A returned c_int is an mdot_status if the last argument is _ERROR.
_RUNTIME: dict[str, tuple[Any, list[Any]]] = {
    "mdot_version": (c_char_p, []),
    "mdot_status_text": (c_char_p, [c_int]),
    "mdot_dtype_name": (c_char_p, [c_int]),
    "mdot_dtype_size_bytes": (c_size_t, [c_int]),
    "mdot_warning_name": (c_char_p, [c_uint32]),
    "mdot_warning_text": (c_char_p, [c_uint32]),
    "mdot_implausible_name": (c_char_p, [c_uint32]),
    "mdot_implausible_text": (c_char_p, [c_uint32]),
    "mdot_setting_name": (c_char_p, [c_int]),
    "mdot_gpu_names": (POINTER(c_char_p), []),
    "mdot_gpu_find": (c_int, [c_char_p, POINTER(c.mdot_gpu), _ERROR]),
    "mdot_predictor_open": (c_int, [c_char_p, POINTER(c.mdot_open_options), POINTER(c_void_p), _ERROR]),
    "mdot_predictor_close": (None, [c_void_p]),
    "mdot_predictor_get_info": (c_int, [c_void_p, POINTER(c.mdot_predictor_info)]),
    "mdot_predictor_find_entry": (c_int, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "mdot_predictor_get_entry": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_entry_info)]),
    "mdot_predictor_get_input": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(c.mdot_tensor_info)]),
    "mdot_predictor_get_output": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(c.mdot_tensor_info)]),
    "mdot_predictor_get_bucket": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(c.mdot_bucket_info)]),
    "mdot_predictor_get_kernel": (c_int, [c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c.mdot_kernel_info)]),
    "mdot_predictor_get_image": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_image_info)]),
    "mdot_predictor_get_image_kernel": (
        c_int,
        [c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c.mdot_image_kernel_info)],
    ),
    "mdot_run": (
        c_int,
        [c_void_p, c_size_t, POINTER(c.mdot_input), c_size_t, POINTER(c.mdot_output), c_size_t, _ERROR],
    ),
    "mdot_run_many": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_item), c_size_t, _ERROR]),
    "mdot_context_create_with": (c_int, [c_void_p, POINTER(c.mdot_context_options), POINTER(c_void_p), _ERROR]),
    "mdot_context_destroy": (None, [c_void_p]),
    "mdot_context_get_device_status": (c_int, [c_void_p, POINTER(c_char_p)]),
    "mdot_job_load": (c_int, [c_char_p, POINTER(c_void_p), _ERROR]),
    "mdot_job_create": (c_int, [POINTER(c.mdot_job_description), POINTER(c_void_p), _ERROR]),
    "mdot_job_parse": (c_int, [c_char_p, c_size_t, POINTER(c_void_p), _ERROR]),
    "mdot_job_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "mdot_job_destroy": (None, [c_void_p]),
    "mdot_job_get_info": (c_int, [c_void_p, POINTER(c.mdot_job_info)]),
    "mdot_job_get_operator": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_job_operator)]),
    "mdot_job_freeze": (c_int, [c_void_p, POINTER(c.mdot_job_freezing), POINTER(c_void_p), _ERROR]),
    "mdot_job_with_program": (c_int, [c_void_p, POINTER(c.mdot_job_program), POINTER(c_void_p), _ERROR]),
    "mdot_job_get_program": (c_int, [c_void_p, POINTER(c.mdot_job_program)]),
    "mdot_job_of_lengths": (c_int, [POINTER(c_void_p), POINTER(c_int64), c_char_p, POINTER(c_void_p), _ERROR]),
    "mdot_job_with_length": (c_int, [c_void_p, c_int64, POINTER(c_void_p), _ERROR]),
    "mdot_operators_freeze": (c_int, [POINTER(c.mdot_job_freezing), POINTER(c.mdot_job_operator), c_size_t, _ERROR]),
    "mdot_optimizer_load": (c.mdot_load, [c_int, c_double]),
    "mdot_predict_many": (
        c_int,
        [
            c_void_p,
            POINTER(c_void_p),
            POINTER(c.mdot_configuration),
            c_size_t,
            POINTER(c.mdot_prediction),
            _ERROR,
        ],
    ),
    "mdot_encoding_create": (c_int, [c_void_p, c_void_p, POINTER(c_void_p), _ERROR]),
    "mdot_encoding_destroy": (None, [c_void_p]),
    "mdot_job_inputs_create": (
        c_int,
        [c_void_p, c_size_t, c_void_p, POINTER(c.mdot_configuration), POINTER(c_void_p), _ERROR],
    ),
    "mdot_job_inputs_destroy": (None, [c_void_p]),
    "mdot_job_inputs_get": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_input)]),
    "mdot_evaluate": (
        c_int,
        [c_void_p, c_void_p, POINTER(c.mdot_configuration), c_size_t, POINTER(c.mdot_prediction), _ERROR],
    ),
    "mdot_gpu_load_of": (
        c_int,
        [c_void_p, c_void_p, POINTER(c.mdot_configuration), POINTER(c.mdot_gpu_load), _ERROR],
    ),
    "mdot_predict_beside": (
        c_int,
        [c_void_p, POINTER(c.mdot_gpu_load), POINTER(c.mdot_gpu_load), POINTER(c.mdot_beside), _ERROR],
    ),
    "mdot_steps_to_loss": (
        c_int,
        [POINTER(c_double), POINTER(c_double), c_size_t, c_double, POINTER(c.mdot_convergence), _ERROR],
    ),
    "mdot_explain": (c_int, [c_void_p, c_void_p, POINTER(c.mdot_configuration), POINTER(c_void_p), _ERROR]),
    "mdot_explanation_destroy": (None, [c_void_p]),
    "mdot_explanation_get_info": (c_int, [c_void_p, POINTER(c.mdot_explanation_info)]),
    "mdot_explanation_get_operator": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_operator_time)]),
    "mdot_calibrate_measured": (
        c_int,
        [c_void_p, POINTER(c.mdot_measurement), c_size_t, POINTER(c_void_p), _ERROR],
    ),
    "mdot_calibration_apply_to_job": (
        c_int,
        [c_void_p, c_void_p, POINTER(c.mdot_configuration), POINTER(c.mdot_prediction), _ERROR],
    ),
    "mdot_calibration_explain": (
        c_int,
        [
            c_void_p,
            POINTER(c.mdot_configuration),
            c_void_p,
            POINTER(c.mdot_prediction),
            POINTER(c.mdot_calibration_factors),
            _ERROR,
        ],
    ),
    "mdot_calibration_load": (c_int, [c_char_p, POINTER(c_void_p), _ERROR]),
    "mdot_calibration_parse": (c_int, [c_char_p, c_size_t, POINTER(c_void_p), _ERROR]),
    "mdot_calibration_get_info": (c_int, [c_void_p, POINTER(c.mdot_calibration_info)]),
    "mdot_calibration_get_gpu": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_calibration_gpu)]),
    "mdot_calibration_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "mdot_calibration_destroy": (None, [c_void_p]),
    "mdot_recorder_create": (c_int, [POINTER(c.mdot_recorder_options), POINTER(c_void_p), _ERROR]),
    "mdot_recorder_step": (None, [c_void_p, c_double]),
    "mdot_recorder_finish": (c_int, [c_void_p, POINTER(c.mdot_recorded), _ERROR]),
    "mdot_recorder_destroy": (None, [c_void_p]),
    "mdot_measured_append": (c_int, [c_char_p, POINTER(c.mdot_measured_row), _ERROR]),
    "mdot_plan_create": (
        c_int,
        [POINTER(c_void_p), c_size_t, c_void_p, POINTER(c.mdot_plan_space), POINTER(c_void_p), _ERROR],
    ),
    "mdot_plan_destroy": (None, [c_void_p]),
    "mdot_plan_get_info": (c_int, [c_void_p, POINTER(c.mdot_plan_info)]),
    "mdot_plan_get_layout": (c_int, [c_void_p, c_size_t, POINTER(c.mdot_plan_layout)]),
    "mdot_training_cost_of": (
        c_int,
        [POINTER(c.mdot_training_run), POINTER(c.mdot_plan_layout), POINTER(c.mdot_training_cost), _ERROR],
    ),
    "mdot_training_cost_of_phases": (
        c_int,
        [
            POINTER(c.mdot_training_run),
            POINTER(c.mdot_training_phase),
            c_size_t,
            POINTER(c.mdot_training_cost),
            _ERROR,
        ],
    ),
    "mdot_sweep": (
        c_int,
        [c_void_p, c_void_p, POINTER(c.mdot_configuration), c_size_t, POINTER(c.mdot_prediction), _ERROR],
    ),
}
_READER: dict[str, tuple[Any, list[Any]]] = {
    "mdot_ready_jobs": (c_int, [c.READY_JOB_FUNCTION, c_void_p, _ERROR]),
    "mdot_job_read": (c_int, [c_char_p, POINTER(c.mdot_job_options), POINTER(c_void_p), _ERROR]),
    "mdot_job_read_bytes": (
        c_int,
        [c_char_p, c_size_t, c_char_p, POINTER(c.mdot_job_options), POINTER(c_void_p), _ERROR],
    ),
    "mdot_operator_traits_find": (c_int, [c_char_p, POINTER(c.mdot_operator_traits)]),
}
_COMPILER: dict[str, tuple[Any, list[Any]]] = {
    "mdotc_compile": (c_int, [POINTER(c.mdotc_entry), c_size_t, c_char_p, POINTER(c.mdotc_options), _ERROR]),
    "mdotc_check": (c_int, [c_char_p, POINTER(c.mdotc_check_options), POINTER(c.mdotc_check_report), _ERROR]),
    "mdotc_verify": (c_int, [c_char_p, c_char_p, POINTER(c.mdotc_verify_options), POINTER(c_bool), _ERROR]),
}
__all__ = ["call", "check", "compiler", "load", "read_text", "reader", "runtime", "shipped_predictor", "c_int64"]


# ---- Finding ---------------------------------------------------------------------------------------------------------


def _folders(own: Path) -> Iterator[Path]:
    for folder in os.environ.get("MDOT_LIBRARIES", "").split(os.pathsep):
        if folder:
            yield Path(folder)
    yield own / "lib"
    extra = importlib.util.find_spec("mdot_compiler")
    for folder in (extra.submodule_search_locations or []) if extra is not None else []:
        yield Path(folder) / "lib"


def load(name: str, functions: dict[str, tuple[Any, list[Any]]], own: Path = PACKAGE) -> ctypes.CDLL:
    """Loads lib<name> and declares the types of its functions. `own` is the folder of the package whose `lib` may hold it."""
    file = f"lib{name}.so.{SOVERSION}"
    path = next((folder / file for folder in _folders(own) if (folder / file).is_file()), Path(file))
    library = ctypes.CDLL(str(path))
    for function, (returns, takes) in functions.items():
        symbol = getattr(library, function)
        symbol.restype, symbol.argtypes = returns, takes
    return library


@functools.lru_cache(maxsize=None)
def runtime() -> ctypes.CDLL:
    """Loads libmdot."""
    return load("mdot", _RUNTIME)


@functools.lru_cache(maxsize=None)
def reader() -> ctypes.CDLL:
    """Loads libmdotjob, which needs libmdot."""
    runtime()
    return load("mdotjob", _READER)


@functools.lru_cache(maxsize=None)
def compiler() -> ctypes.CDLL:
    """Loads libmdotc. Raises ToolchainError if the package that contains it is not installed."""
    runtime()
    try:
        return load("mdotc", _COMPILER)
    except OSError as fault:
        raise errors.ToolchainError(
            f"the compiler is not installed; run pip install 'mdot-predict[compiler]' ({fault})"
        ) from fault


def shipped_predictor() -> Path:
    """The path in MDOT_PREDICTOR, or else the predictor in the package. Raises NotFoundError if both are missing."""
    chosen = os.environ.get("MDOT_PREDICTOR", "")
    if chosen:
        return Path(chosen)
    path = PACKAGE / "share" / "mdot" / "predictor.mdot"
    if path.is_file():
        return path
    raise errors.NotFoundError(f"there is no predictor at {path}; pass a path, or set MDOT_PREDICTOR")


def saved_bytes(save: Callable[[str], None]) -> bytes:
    """The bytes of the file that `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved")
        save(path)
        return Path(path).read_bytes()


# ---- Calling ---------------------------------------------------------------------------------------------------------


def encode_text(text: str) -> bytes:
    """Text for a C function. ValueError if it contains a NUL, at which C would cut it."""
    if "\0" in text:
        raise ValueError(f"embedded null character in {text!r}")
    return text.encode()


def encode_path(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bytes:
    """A path for a C function. ValueError if it contains a NUL, as from open()."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise errors.InvalidArgumentError(f"expected the path of a file, not {type(path).__name__}")
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"embedded null byte in the path {os.fspath(path)!r}")
    return encoded


def read_text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value is not None else ""


_OPTION = re.compile(r"--(gpu-spec (?P<key>\w+)|" + "|".join(sorted(COMMANDS, key=len, reverse=True)) + r")(?![\w-])")


def in_python(message: str) -> str:
    """A library's message with Python's keywords in place of the command line's options: "--parallel tp" is
    tensor_parallel."""

    def keyword(found: re.Match[str]) -> str:
        return COMMANDS[found[1]] if found["key"] is None else f"the GPU's {GPU_KEYS.get(found['key'], found['key'])}"

    return _OPTION.sub(keyword, message)


def check(status: int, error: c.mdot_error | None = None) -> None:
    """Raises the exception that corresponds to a status."""
    if status == 0:
        return
    message = in_python(read_text(error.message)) if error is not None else ""
    raise errors.of_status(status, message or read_text(runtime().mdot_status_text(status)))


def call(function: Any, *arguments: Any) -> None:
    """Calls a function with a status as its result and an mdot_error as its last argument."""
    error = c.mdot_error()
    check(function(*arguments, ctypes.byref(error)), error)
