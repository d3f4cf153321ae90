"""Words of the command line that the executable cannot read: traces and names of networks become jobs, and configuration
files of other programs become options."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Sequence

from mdot import command
from mdot.configuration_files import options_from
from mdot.library.errors import InvalidArgumentError, NotFoundError, UnsupportedError
from mdot.options import COMMANDS
from mdot.recording.trace_file import is_trace

_WITH_JOB = {"predict", "plan", "extract", "report", "bench"}
_SUFFIXES = {".sh", ".toml", ".yaml", ".yml"}
_SHORT = {"b": "batch", "g": "gpu"}
"""Short names of options."""


_NETWORK = re.compile(r"(torchvision|timm|transformers|diffusers|hf):([\w.-]+(?:/[\w.-]+)?)")


def _is_trace(word: str) -> bool:
    return ".json" in word and Path(word).is_file() and is_trace(word)


def _is_network(word: str) -> bool:
    """Is it the name of a library's network, and of no ready job?"""
    from mdot.job import Job

    if not _NETWORK.fullmatch(word):
        return False
    try:
        Job.read(word)
    except NotFoundError:
        return True
    return False


def programs_among(words: Sequence[str]) -> list[int]:
    """The indices of words that name a trace or a network, in a command that takes a job."""
    places = range(1, len(words) if words[0] in _WITH_JOB else 1)
    return [i for i in places if _is_trace(words[i]) or _is_network(words[i])]


def as_jobs(words: Sequence[str], programs: Sequence[int], folder: str) -> list[str]:
    """The words with a .job file in `folder` in place of each trace or name of a network."""
    from mdot.job import Job

    made = list(words)
    for i in programs:
        network = _NETWORK.fullmatch(words[i])
        name = Path(network[2]).name if network else Path(words[i]).name.partition(".json")[0]
        if network and network[1] == "hf":
            from mdot.trace.models import hub_config

            try:
                made[i] = hub_config(network[2])
                Job.read(made[i])
                continue  # the executable reads this family's config.json
            except (InvalidArgumentError, UnsupportedError):
                pass
        made[i] = str(Path(folder, name + ".job"))
        (Job.from_name if network else Job.from_trace)(words[i]).save(made[i])
    return made


def with_options(words: Sequence[str]) -> list[str]:
    """The words with the options of each `--config FILE` behind them. Options among the words hold instead of the file's.
    Such a file may also stand in place of JOB. Without JOB, the file's network is the job. Prints the options, and the
    keys that are ignored, on stderr."""
    made: list[str] = []
    files: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, path = word.partition("=")
        if words[0] in _WITH_JOB and Path(word).suffix in _SUFFIXES and Path(word).is_file():
            files.append(word)
            continue
        if name != "--config":
            made.append(word)
            continue
        files.append(path if equals else next(rest, ""))
        if not files[-1]:
            raise InvalidArgumentError("--config requires a file, for example --config deepspeed.json")
    for path in files:
        _add_options(made, path)
    return made


def _operand(words: Sequence[str], help_text: str) -> str | None:
    """The word that names a job. Words behind an option that takes a value are none."""
    valued = re.findall(r"^ +(?:(-\w), )?(--[a-z0-9-]+) \S", help_text, re.M)
    names = {name for pair in valued for name in pair if name}
    rest = iter(words[1:])
    for word in rest:
        if word == "-" or not word.startswith("-"):
            return word
        if word in names:
            next(rest, None)
    return None


def _add_options(words: list[str], path: str) -> None:
    found = options_from(path)
    help_text = command.output([words[0], "--help"])
    given = {_SHORT.get(word[1:2], "") if word[:2] != "--" else word[2:].partition("=")[0] for word in words if word[:1] == "-"}
    accepted = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", help_text, re.M))
    names = {keyword: name for name, keyword in COMMANDS.items() if name != "gpu-spec"}
    options, left = [], []
    ignored = found.ignored
    job = _operand(words, help_text) if words[0] in _WITH_JOB else ""
    if found.job is not None and job is None:
        words.insert(1, found.job.name)
        ignored = [key for key in ignored if key not in found.job.name_keys]
        print(f"mdot: {path}: the job is {found.job.name}", file=sys.stderr)
    if found.job is not None and (job is None or (job and not Path(job).exists())):
        options += [f"--{name}={value}" for name, value in found.job.options.items() if name in accepted and name not in given]
        ignored = [key for key in ignored if key not in found.job.keys]
    kinds: dict[str, Any] = {}
    for keyword, value in found.options.items():
        name, _, kind = names[keyword].partition(" ")
        if name not in accepted:
            left.append(name)
        elif kind:
            kinds[kind] = int(value)
        elif name not in given and value is not False:
            options += [f"--{name}"] if value is True else [f"--{name}={value}"]
    options += _add_parallel(words, kinds)
    words += options
    print(f"mdot: {path} ({found.program}): {' '.join(options) or 'no options'}", file=sys.stderr)
    for title, items in (("ignored keys", ignored), (f"no options of mdot {words[0]}", left)):
        if items:
            print(f"mdot: {path}: {title}: {', '.join(items)}", file=sys.stderr)


def _add_parallel(words: list[str], kinds: dict[str, Any]) -> list[str]:
    """The words for degrees of parallelism. If the user stated others, the file's are added to them."""
    place = next((i for i, word in enumerate(words) if word.partition("=")[0] == "--parallel"), None)
    if place is None:
        return ["--parallel=" + ",".join(f"{kind}={value}" for kind, value in kinds.items())] if kinds else []
    place += words[place] == "--parallel"
    stated = set(re.findall(r"([a-z]+)=", words[place].removeprefix("--parallel=")))
    stated |= {"zero", "dp"} if "fsdp" in stated else set()
    words[place] += "".join(f",{kind}={value}" for kind, value in kinds.items() if kind not in stated)
    return []
