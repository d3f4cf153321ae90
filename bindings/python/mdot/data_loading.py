"""Rates of data loaders from measurements at two numbers of CPUs."""

from __future__ import annotations

from collections.abc import Mapping

from mdot.library.errors import InvalidArgumentError

MOST = 1e9
"""Samples per second that stand for "unlimited" where a rate is needed."""


def loader_rates(measured: Mapping[float, float]) -> dict[str, float]:
    """The options loader_rate and cpu_rate from the samples per second that data loaders provide with two numbers of
    CPUs, measured without training::

        rates = mdot.loader_rates({4: 800, 16: 2000})
        mdot.predict(job, "A100", cpus=8, **rates)

    A sample takes a part that CPUs divide, and a part that they do not, for example the disk's. Rates that grow faster
    than the CPUs have no second part, and rates that do not grow have no first part; both then give the geometric mean.
    """
    numbers = [value for pair in measured.items() for value in pair] if isinstance(measured, Mapping) else []
    are_rates = all(isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < MOST for value in numbers)
    if len(numbers) != 4 or not are_rates:
        raise InvalidArgumentError(f"loader_rates takes two numbers of CPUs, each with a rate above 0, not {measured!r}")
    (few, slow), (many, fast) = sorted(measured.items())
    divided = (1 / slow - 1 / fast) / (1 / few - 1 / many)  # seconds of a CPU for a sample
    fixed = 1 / slow - divided / few
    if divided <= 0:
        return {"loader_rate": (slow * fast) ** 0.5, "cpu_rate": MOST}
    if fixed <= 0:
        return {"loader_rate": 0.0, "cpu_rate": (slow / few * fast / many) ** 0.5}
    return {"loader_rate": 1 / fixed, "cpu_rate": 1 / divided}
