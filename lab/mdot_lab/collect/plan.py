"""The order of measurements. It covers a wide range first, so that a run that is cut off anywhere is a balanced data
set.

A visit builds one architecture at one size and measures a few configurations with it. Rounds visit every
architecture once, and families take turns. Each round takes another size and the next configurations. An
architecture's configurations follow a Kronecker sequence over (batch, precision, layout, optimizer). Every prefix of
it is spread evenly over each axis, and the start differs between architectures. The order depends only on the
catalogue, and is independent of past measurements and of the machine.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Iterable, Iterator, Sequence

from mdot_lab.collect.architecture import Architecture
from mdot_lab.collect.measured_configuration import OPTIMIZERS, PRECISIONS, Configuration

ROUNDS = (3, 3, 4, 4, 5, 5, 6, 6)
"""Configurations of a visit, round by round. Three justify the time to build the model, and limit a round to about half an
hour."""

_STEPS = {"batch": 0.6180339887, "precision": 0.7548776662, "layout": 0.4142135624, "optimizer": 0.3247179572}
"""Irrational steps of the sequence: golden ratio − 1, inverse of the plastic number, √2 − 1, plastic number − 1."""


@dataclass(frozen=True)
class Visit:
    architecture: Architecture
    size: int
    # in ascending batch order, because a batch without enough memory rules out all later ones
    configurations: tuple[Configuration, ...]


def fraction_of(text: str) -> float:
    """A fixed pseudorandom number in [0, 1)."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2.0 ** 64


def interleave(rows: Iterable[Architecture]) -> list[Architecture]:
    """One architecture from each family, then the second one, and so on. Families follow their first rows."""
    families: dict[str, list[Architecture]] = defaultdict(list)
    for row in rows:
        families[row.family].append(row)
    longest = max(map(len, families.values()), default=0)
    return [rows[turn] for turn in range(longest) for rows in families.values() if turn < len(rows)]


def _pick(choices: Sequence, axis: str, name: str, index: int):
    position = (fraction_of(f"{axis}:{name}") + index * _STEPS[axis]) % 1.0
    return choices[int(position * len(choices))]


def configuration_at(row: Architecture, size: int, index: int) -> Configuration:
    """The index-th configuration of an architecture."""
    layouts = (False, True) if row.channels_last else (False,)
    optimizer, implementation = _pick(OPTIMIZERS, "optimizer", row.name, index)
    return Configuration(row.name, size, _pick(row.batches, "batch", row.name, index),
                         _pick(PRECISIONS, "precision", row.name, index), _pick(layouts, "layout", row.name, index),
                         optimizer, implementation)


def visits(catalogue: Sequence[Architecture], rounds: Sequence[int] = ROUNDS) -> Iterator[Visit]:
    """All visits in order. Each key occurs at most once."""
    order, first, taken = interleave(catalogue), 0, set()
    for turn, count in enumerate(rounds):
        for row in order:
            size = row.sizes[turn % len(row.sizes)]
            candidates = {c.key: c for c in (configuration_at(row, size, first + i) for i in range(count))}
            fresh = [c for key, c in candidates.items() if key not in taken]
            taken.update(candidates)
            if fresh:
                yield Visit(row, size, tuple(sorted(fresh, key=lambda c: c.batch)))
        first += count


def shard(all_visits: Iterable[Visit], index: int, count: int) -> Iterator[Visit]:
    """Every count-th visit, from the index-th."""
    for position, visit in enumerate(all_visits):
        if position % count == index:
            yield visit


def to_repeat(keys: Iterable[str], fraction: float) -> list[str]:
    """The configurations that are measured twice for the noise floor, a fixed choice by key."""
    return sorted(key for key in set(keys) if fraction_of(f"repeat:{key}") < fraction)


def visits_of(catalogue: Sequence[Architecture], keys: Iterable[str]) -> Iterator[Visit]:
    """The visits that measure exactly these keys, in the catalogue's interleaved order."""
    wanted: dict[tuple[str, int], list[Configuration]] = defaultdict(list)
    for key in keys:
        configuration = Configuration.from_key(key)
        wanted[configuration.architecture, configuration.size].append(configuration)
    for row in interleave(catalogue):
        for size in row.sizes:
            if (row.name, size) in wanted:
                yield Visit(row, size, tuple(sorted(wanted[row.name, size], key=lambda c: (c.batch, c.key))))
