"""How a job trains: the options of mdot_configuration as words and numbers. options.py lists them."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import re
from typing import Any, Iterable, Mapping

from mdot.choices import choose
from mdot.gpus import GPU
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError, UnknownOptionError, suggest
from mdot.library.libraries import encode_text
from mdot.option_words import NEAREST, OPTION_WORDS, WORDS
from mdot.options import CHOICES, COMMANDS, ROWS, ConfigurationOptions, Row
from mdot.options import Options as Options
from mdot.quantities import read_rate, whole_number

PRECISIONS = CHOICES["precision"]
LAYOUTS = CHOICES["layout"]
ATTENTIONS = CHOICES["attention"]
RECOMPUTES = CHOICES["checkpoint"]
LINKS = CHOICES["link"]


def refuse_list(option: str, value: Any) -> None:
    if isinstance(value, (list, tuple, range, set)) or hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        raise InvalidArgumentError(
            f"{option} is one value here, not {value!r}; sweep takes lists: mdot.sweep(job, gpu, batch, …)"
        )


def _rate(option: str, value: Any, unit: str | None) -> float:
    """A number from 0 on; with a unit, also a rate as text."""
    if unit is not None and isinstance(value, str):
        try:
            return read_rate(value)
        except InvalidArgumentError as reason:
            raise InvalidArgumentError(f"{option} must be a rate: {reason}") from None
    try:
        number = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if math.isfinite(number) and number >= 0:
        return number
    what = "a number from 0 on" if unit is None else f"a rate in {unit}"
    raise InvalidArgumentError(f"{option} must be {what}, not {value!r}")


def _version(option: str, value: Any) -> int:
    """100 * major + minor. The value must be a string, because the numbers 1.1 and 1.10 are equal."""
    found = re.match(r"([1-9]\d?)\.(\d\d?)(?![^.+])", value) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgumentError(f"{option} must be a version such as \"1.12\" or \"2.4\", not {value!r}")
    return 100 * int(found[1]) + int(found[2])


def _words_elsewhere(keyword: str) -> dict[str, str]:
    """Words that a single other option takes, with its text, for example frozen_weights='nf4'."""
    found: dict[str, set[str]] = {}
    for other, choices in CHOICES.items():
        words = {} if other == keyword else {**{choice.replace("_", "-"): choice for choice in choices}, **WORDS.get(other, {})}
        for word, choice in words.items():
            found.setdefault(word, set()).add(f"{other}={choice!r}")
    return {word: next(iter(texts)) for word, texts in found.items() if len(texts) == 1 and len(word) > 2}


def _number(row: Row, value: Any) -> float:
    """The value of an option as the C struct holds it."""
    refuse_list(row.keyword, value)
    if row.kind == "choice":
        choices = CHOICES[row.keyword]
        if isinstance(value, bool) and row.bare is not None:
            value = row.bare if value else choices[0]
        return choose(
            row.keyword, choices[0] if value is None else value, choices, WORDS[row.keyword], NEAREST[row.keyword],
            lambda: _words_elsewhere(row.keyword),
        )
    if row.kind == "flag":
        return int(bool(value))
    if row.kind == "version":
        return _version(row.keyword, value) if value is not None else 0
    if row.kind == "rate":
        return _rate(row.keyword, value, "GB/s" if row.keyword == "network" else None)
    return whole_number(row.keyword, value, int(row.least), int(row.most))


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


    @property
    def without_effect(self) -> str | None:
        """The options for several GPUs that one GPU ignores, with the remedy, or None."""
        if self.gpu_total > 1:
            return None
        ignored = [row.keyword for row in ROWS if row.several and getattr(self, row.keyword) != _DEFAULTS[row.keyword]]
        ignored = [name for name in [*ignored, *(["link"] if self.link is not None else [])] if getattr(self, name) != 1]
        if not ignored:
            return None
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in ignored)
        return f"{given} has no effect on one GPU: pass gpus=N"


_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Configuration)}
OPTIONS = tuple(_DEFAULTS)
DEGREES = {command.split()[1]: keyword for command, keyword in COMMANDS.items() if command.startswith("parallel ")}
"""Keywords by the keys of --parallel, for example dp and tp."""


ELSEWHERE = (
    (r"(^|_)len(gth)?$|^block_size$", ", because the length belongs to the job: use job.with_length(N), or length=N where you make the job"),
    (r"^(lr|learning_rate|weight_decay|warmup|seed|max_grad_norm|lora_alpha|lora_dropout|neftune|dataset_num_proc)", ", because neither time nor memory depends on it: leave it out"),
    (r"^(lora_)?r$|^lora_rank$|^peft_config$", ", because adapters belong to the job: make it of the module that has them"),
    (r"^((num_train_)?epochs|max_steps)$", ", because a prediction is one step: pass it to prediction.hours()"),
    (r"packing$", ", because packing changes the samples alone: state the packed length where you make the job"),
)
"""Options of other programs that belong elsewhere, and the reasons with remedies."""


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their keywords. Also takes the keys of --parallel, and fsdp=N for data_parallel=N with zero=3.
    Raises UnknownOptionError for other names."""
    read: dict[str, Any] = {}
    for name, value in options.items():
        keyword = DEGREES.get(name, name)
        if keyword not in OPTIONS and keyword != "fsdp":
            word = OPTION_WORDS.get(name.replace("_", "-")) or suggest(name, [*OPTIONS, *DEGREES, *OPTION_WORDS])
            word = OPTION_WORDS.get(word or "", word)
            hint = f" (did you mean {word}?)" if word is not None else ""
            hint = next((reason for names, reason in ELSEWHERE if re.search(names, name)), hint)
            raise UnknownOptionError(f"unknown option {name!r}{hint}; the options are {', '.join(OPTIONS)}")
        if keyword in read:
            raise InvalidArgumentError(f"{keyword} is given twice, also as {name}")
        read[keyword] = value
    shards = read.pop("fsdp", None)
    if shards is None:
        return read
    if isinstance(shards, str) and not shards.isdecimal():
        raise InvalidArgumentError(
            f"fsdp is the number of GPUs that shard the model, not {shards!r}: pass fsdp=N for full_shard, or data_parallel=N "
            "and zero=2 for shard_grad_op"
        )
    degree = whole_number("fsdp, the number of GPUs that shard the model,", shards, 1, 1 << 16)
    if read.get("zero") not in (None, 3) or read.get("data_parallel") not in (None, degree):
        raise InvalidArgumentError(f"fsdp={degree} is data_parallel={degree} and zero=3, which exclude other values")
    return {**read, "data_parallel": degree, "zero": 3}


def fill(out: c.mdot_configuration, configuration: Configuration, keep: list[Any]) -> None:
    """Writes the C struct; `keep` holds the objects that it points to. Raises InvalidArgumentError for an invalid number or
    word."""
    out.struct_size = ctypes.sizeof(out)
    if isinstance(configuration.gpu, GPU):
        specs = configuration.gpu._as_struct()
        keep.append(specs)
        out.gpu_spec = ctypes.pointer(specs)
    else:
        refuse_list("gpu", configuration.gpu)
        if not isinstance(configuration.gpu, str):
            raise InvalidArgumentError(f"gpu must be a name or an mdot.GPU, not {configuration.gpu!r}; mdot.gpus() has all")
        out.gpu = encode_text(configuration.gpu)
    for row in ROWS:
        setattr(out, row.field, _number(row, getattr(configuration, row.keyword)))
    link = configuration.link
    refuse_list("link", link)
    if link is None or (isinstance(link, str) and not link[:1].isdigit()):
        out.link = choose("link", link or "default", LINKS)
    else:
        out.link_gbps = _rate("link", link, "GB/s")


def as_array(configurations: Iterable[Configuration], keep: list[Any]) -> Any:
    items = list(configurations)
    out = (c.mdot_configuration * max(len(items), 1))()
    for i, configuration in enumerate(items):
        fill(out[i], configuration, keep)
    return out
