"""A user's request: training options, the training length, and the wish for a place."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from typing import Any, Mapping

from mdot.options import ROWS

MAX_STEPS = 1 << 53
"""Maximum step count. A double holds each smaller integer exactly."""

MAX_TEXT = 1024
OF_THE_CLUSTER = ("gpus", "nodes", "network")
"""Options that follow from the requested resources instead of the user's text."""

CHOICES = ("no", "time", "cost")


class InvalidRequest(ValueError):
    """A request with an invalid key or value. The message names both and states the accepted values."""


def whole(what: str, value: object, maximum: int) -> int:
    """`value` if it is an integer from 1 to `maximum`, which True is not. Raises InvalidRequest otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
        raise InvalidRequest(f"{what} must be an integer from 1 to {maximum}, not {str(value)[:40]!r}")
    return value


def _digits(key: str, text: str, minimum: float, maximum: float) -> int:
    value = int(text) if re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) else -1
    if not minimum <= value <= maximum:
        raise InvalidRequest(f"{key} must be an integer from {minimum:.0f} to {maximum:.0f}, not {text[:40]!r}")
    return value


def _flag(key: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise InvalidRequest(f"{key} must be one of no, yes, not {text[:40]!r}")
    return text == "yes"


def _rate(key: str, text: str) -> float:
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text, re.ASCII) is None:
        raise InvalidRequest(f"{key} must be a number, for example 10.3, not {text[:40]!r}")
    return float(text)


@dataclasses.dataclass(frozen=True)
class Request:
    """`options` are keywords of mdot.Configuration without GPU, GPUs and nodes. The length is a step count, or epochs over a
    data set; 0: unspecified."""

    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    steps: int = 0
    epochs: int = 0
    dataset: int = 0
    choose: str | None = None
    """Criterion for a place: no, time or cost. None: the site's."""
    deadline: datetime.datetime | None = None
    """The training should be complete at this time."""

    @classmethod
    def parse(cls, text: str) -> Request:
        """Parses KEY=VALUE,…: `batch=64,precision=amp,epochs=90,dataset=1281167`. Keys are the options of `mdot predict`
        with `-` or `_`, the degrees of --parallel, Python's keywords, and steps, epochs, dataset, choose and deadline.

        Raises InvalidRequest, whose message names the key.
        """
        if not isinstance(text, str):
            raise InvalidRequest(f"the options must be text, for example batch=64,steps=1000, not {type(text).__name__}")
        if len(text) > MAX_TEXT:
            raise InvalidRequest(f"the options have more than {MAX_TEXT} characters")
        if not all(c.isprintable() for c in text):
            raise InvalidRequest("the options have a control character")
        rows = {name: row for row in ROWS for name in (row.keyword, row.command.replace("-", "_"))}
        options: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for setting in filter(None, (part.strip() for part in text.split(","))):
            key, equals, value = setting.partition("=")
            name = key.replace("-", "_")
            if not equals:
                raise InvalidRequest(f"{setting[:40]!r} must have the form KEY=VALUE, for example batch=64")
            row = rows.get(name)
            target, name = (own, name) if row is None else (options, row.keyword)
            if name in target:
                raise InvalidRequest(f"{key} is given twice")
            if name in OF_THE_CLUSTER:
                raise InvalidRequest(f"{key} follows from the requested resources; leave it out")
            if row is None:
                target[name] = cls._own(name, value)
            elif row.kind == "whole":
                target[name] = _digits(key, value, row.least, row.most)
            else:
                target[name] = _flag(key, value) if row.kind == "flag" else _rate(key, value) if row.kind == "rate" else value
        if ("epochs" in own) != ("dataset" in own):
            raise InvalidRequest("epochs and dataset require each other")
        if "epochs" in own and "steps" in own:
            raise InvalidRequest("steps and epochs exclude each other")
        return cls(options, **own)

    @staticmethod
    def _own(name: str, value: str) -> Any:
        if name in ("steps", "epochs", "dataset"):
            return _digits(name, value, 1, MAX_STEPS)
        if name == "choose":
            if value not in CHOICES:
                raise InvalidRequest(f"choose must be one of {', '.join(CHOICES)}, not {value[:40]!r}")
            return value
        if name == "deadline":
            try:
                found = datetime.datetime.fromisoformat(re.sub("Z$", "+00:00", value))
            except ValueError:
                found = None
            if found is None or found.tzinfo is None:
                raise InvalidRequest(
                    f"deadline must be a time with its zone, for example 2026-12-01T18:00:00Z, not {value[:40]!r}"
                )
            return found
        raise InvalidRequest(f"{name[:40]!r} is not an option of a job")

    def step_count(self, samples: int) -> int:
        """The training's steps of `samples` samples each; 0 if the length is unspecified."""
        return self.steps if self.steps > 0 else math.ceil(self.dataset / samples) * self.epochs

    def seconds_left(self, now: datetime.datetime) -> float | None:
        """Seconds until the deadline, at least 0. None if there is no deadline."""
        return None if self.deadline is None else max((self.deadline - now).total_seconds(), 0)
