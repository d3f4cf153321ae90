"""How a job trains: the options of mdot_configuration as words and numbers. options.py lists them."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import re
from typing import Any, Iterable

from mdot.gpus import GPU
from mdot.job import choose
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError
from mdot.library.libraries import encode_text
from mdot.options import CHOICES, ROWS, WORDS, ConfigurationOptions, Row
from mdot.options import Options as Options
from mdot.quantities import read_rate

PRECISIONS = CHOICES["precision"]
LAYOUTS = CHOICES["layout"]
ATTENTIONS = CHOICES["attention"]
RECOMPUTES = CHOICES["checkpoint"]
LINKS = CHOICES["link"]


def _whole(option: str, value: Any, least: int, most: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = least - 1
    if isinstance(value, bool) or number != value or not least <= number <= most:
        raise InvalidArgumentError(f"{option} must be a whole number from {least} to {most}, not {value!r}")
    return number


def _rate(option: str, value: Any) -> float:
    if isinstance(value, str):
        try:
            return read_rate(value)
        except InvalidArgumentError as reason:
            raise InvalidArgumentError(f"{option} must be a rate: {reason}") from None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise InvalidArgumentError(f"{option} must be a rate in GB/s, not {value!r}")


def _version(option: str, value: Any) -> int:
    """100 * major + minor. The value must be a string, because the numbers 1.1 and 1.10 are equal."""
    found = re.match(r"([1-9]\d?)\.(\d\d?)(?![^.+])", value) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgumentError(f"{option} must be a version such as \"1.12\" or \"2.4\", not {value!r}")
    return 100 * int(found[1]) + int(found[2])


def _number(row: Row, value: Any) -> float:
    """The value of an option as the C struct holds it."""
    if row.kind == "choice":
        choices = CHOICES[row.keyword]
        return choose(row.keyword, choices[0] if value is None else value, choices, WORDS[row.keyword])
    if row.kind == "flag":
        return int(bool(value))
    if row.kind == "version":
        return _version(row.keyword, value) if value is not None else 0
    if row.kind == "rate":
        return _rate(row.keyword, value)
    return _whole(row.keyword, value, int(row.least), int(row.most))


@dataclasses.dataclass(frozen=True)
class Configuration(ConfigurationOptions):
    """How a job trains. The defaults are those in `mdot predict --help`."""

    def replace(self, **options: Any) -> Configuration:
        """A copy with these options changed."""
        return dataclasses.replace(self, **options)

    @property
    def gpu_name(self) -> str:
        """Name of the GPU model, also if the configuration holds spec values."""
        return self.gpu if isinstance(self.gpu, str) else self.gpu.name

    @property
    def _gpus_per_worker(self) -> int:
        return max(self.tensor_parallel, 1) * max(self.pipeline_parallel, 1) * max(self.context_parallel, 1)

    @property
    def workers(self) -> int:
        """Data- and expert-parallel workers, each with its own batch."""
        return self.gpu_total // self._gpus_per_worker

    @property
    def gpu_total(self) -> int:
        """GPUs that work on a step."""
        if self.gpus > 0:
            return self.gpus
        return max(self.data_parallel, 1) * max(self.expert_parallel, 1) * self._gpus_per_worker

    @property
    def samples(self) -> int:
        """Samples of one step over all workers."""
        return self.batch * self.accumulate * self.workers


OPTIONS = tuple(field.name for field in dataclasses.fields(Configuration))


def fill(out: c.mdot_configuration, configuration: Configuration, keep: list[Any]) -> None:
    """Writes the C struct; `keep` holds the objects that it points to. Raises InvalidArgumentError for an invalid number or
    word."""
    out.struct_size = ctypes.sizeof(out)
    if isinstance(configuration.gpu, GPU):
        specs = configuration.gpu._as_struct()
        keep.append(specs)
        out.gpu_spec = ctypes.pointer(specs)
    else:
        out.gpu = encode_text(str(configuration.gpu))
    for row in ROWS:
        setattr(out, row.field, _number(row, getattr(configuration, row.keyword)))
    link = configuration.link
    if link is None or (isinstance(link, str) and not link[:1].isdigit()):
        out.link = choose("link", link or "default", LINKS)
    else:
        out.link_gbps = _rate("link", link)


def as_array(configurations: Iterable[Configuration], keep: list[Any]) -> Any:
    items = list(configurations)
    out = (c.mdot_configuration * max(len(items), 1))()
    for i, configuration in enumerate(items):
        fill(out[i], configuration, keep)
    return out
