"""Numbers with units as text, as the command line takes them: counts, rates of links."""

from __future__ import annotations

import re
from typing import Any

from mdot.library.errors import InvalidArgumentError

_NUMBER = r"[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_COUNT = re.compile(rf"({_NUMBER})([kMGBT]?)", re.IGNORECASE)
_RATE = re.compile(rf"\s*({_NUMBER})\s*(?:([kKmMgGtT])(i(?=[bB]))?((?i:bits?|bytes?)|[bB])(?i:/s|ps|/sec))?")


def whole_number(option: str, value: Any, least: int, most: int) -> int:
    """A whole number in a range. InvalidArgumentError names the option, the range and the value."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if isinstance(value, bool) or number != value or not least <= number <= most:
        raise InvalidArgumentError(f"{option} must be a whole number from {least} to {most}, not {value!r}")
    return number


def check_number(option: str, value: Any) -> Any:
    """A number of samples, tokens or pixels as an integer, of 1 at least; None stays None."""
    return None if value is None else whole_number(option, value, 1, 1 << 24)


def read_count(text: str) -> int:
    """A positive whole number: "100000", "100_000", "1e5", "100k", "1.5M"."""
    found = _COUNT.fullmatch(text)
    value = float(found[1]) * 1000 ** " kmgt".index(found[2].lower().replace("b", "g") or " ") if found else 0.0
    if value < 1 or not value.is_integer():
        raise InvalidArgumentError(f"expected a whole number, for example 100000, 1e5 or 100k, not {text!r}")
    return int(value)


def read_rate(text: str) -> float:
    """A rate in GB/s (10^9 bytes per second): "12.5", "12.5GB/s", "100Gb/s", "400Gbps". B is a byte, b an eighth of it."""
    found = _RATE.fullmatch(text)
    if found is None or float(found[1]) <= 0:
        raise InvalidArgumentError(
            f"expected a rate, for example 12.5, 12.5GB/s or 100Gb/s, not {text!r}: the units are GB/s (bytes) and Gb/s or "
            "Gbps (bits), also with K, M or T in place of G"
        )
    number, prefix, binary, unit = found.groups()
    if unit is None:
        return float(number)
    is_byte = unit == "B" or unit.lower().startswith("byte")
    scale = (1024 if binary else 1000) ** (" kmgt".index(prefix.lower()))
    gbps: float = float(number) * scale / 1e9 / (1 if is_byte else 8)
    return gbps
