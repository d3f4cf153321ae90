"""Loads libmdotstore, and declares the types of its functions. It is searched where mdot.library.libraries searches mdot's own
libraries, and in this package's folder `lib`."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

from mdot.library import errors
from mdot.library.libraries import load, runtime
from mdot.library.structs.base import mdot_error

from mdot_store import structs as c

_ERROR = POINTER(mdot_error)

# Function: return type, argument types.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "mdot_store_open": (c_int, [c_char_p, POINTER(c.mdot_store_options), POINTER(c_void_p), _ERROR]),
    "mdot_store_close": (None, [c_void_p]),
    "mdot_store_get_info": (c_int, [c_void_p, POINTER(c.mdot_store_info), _ERROR]),
    "mdot_store_migrate": (c_int, [c_char_p, POINTER(c_uint32), _ERROR]),
    "mdot_store_check": (c_int, [c_void_p, _ERROR]),
    "mdot_store_recover": (c_int, [c_char_p, c_char_p, POINTER(c.mdot_store_recovery), _ERROR]),
    "mdot_store_free": (None, [c_void_p]),
    "mdot_store_add_job": (c_int, [c_void_p, c_void_p, c_char_p, c_char_p, _ERROR]),
    "mdot_store_get_job": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), _ERROR]),
    "mdot_store_visit_jobs": (c_int, [c_void_p, c_void_p, c_void_p, _ERROR]),
    "mdot_store_add_rows": (c_int, [c_void_p, POINTER(c.mdot_store_row), c_size_t, POINTER(c_size_t), _ERROR]),
    "mdot_store_visit_rows": (c_int, [c_void_p, POINTER(c.mdot_store_filter), c_void_p, c_void_p, _ERROR]),
    "mdot_store_import_csv": (
        c_int,
        [
            c_void_p,
            c_char_p,
            c_size_t,
            c_char_p,
            POINTER(c_void_p),
            c_size_t,
            POINTER(c.mdot_store_import),
            _ERROR,
        ],
    ),
    "mdot_store_export_csv": (
        c_int,
        [c_void_p, POINTER(c.mdot_store_export), POINTER(c_void_p), POINTER(c_size_t), _ERROR],
    ),
    "mdot_outcome_name": (c_char_p, [c_int]),
    "mdot_store_visit_outcomes": (c_int, [c_void_p, c_void_p, c_void_p, _ERROR]),
    "mdot_store_import_sacct": (
        c_int,
        [
            c_void_p,
            c_char_p,
            c_size_t,
            POINTER(c.mdot_store_accounting),
            POINTER(c.mdot_store_import),
            _ERROR,
        ],
    ),
    "mdot_store_refresh": (c_int, [c_void_p, POINTER(c.mdot_store_refresh_report), _ERROR]),
    "mdot_store_visit_groups": (
        c_int,
        [c_void_p, POINTER(c.mdot_store_filter), c_char_p, c_void_p, c_void_p, _ERROR],
    ),
    "mdot_store_set_predictions": (
        c_int,
        [c_void_p, c_char_p, POINTER(c.mdot_store_prediction), c_size_t, _ERROR],
    ),
    "mdot_store_find_drift": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p, _ERROR]),
    "mdot_store_find_hosts": (c_int, [c_void_p, c_void_p, c_void_p, _ERROR]),
}


@functools.lru_cache(maxsize=None)
def store() -> ctypes.CDLL:
    """Loads libmdotstore. Raises UnsupportedError if it or libsqlite3 is missing."""
    runtime()
    try:
        return load("mdotstore", FUNCTIONS, Path(__file__).resolve().parent)
    except OSError as fault:
        raise errors.UnsupportedError(f"libmdotstore cannot be loaded; it needs libsqlite3 ({fault})") from fault
