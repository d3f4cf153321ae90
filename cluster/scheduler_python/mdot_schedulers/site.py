"""The administrator's configuration of a cluster, as mdot.conf is for Slurm."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Mapping

import mdot


@dataclasses.dataclass(frozen=True)
class Place:
    """GPUs of one type: a ResourceFlavor of Kueue, or an accelerator of SkyPilot."""

    name: str
    gpu: str
    """mdot's GPU name, as in `mdot gpus`."""
    price: float = 0.0
    """Per GPU and hour, in any currency; 0: unspecified."""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Labels of the nodes, where Kueue does not state them."""


@dataclasses.dataclass(frozen=True)
class Site:
    places: tuple[Place, ...] = ()
    predictor: str = ""
    """Path of an artefact. It is native code: name a trusted file. Empty: the shipped one."""
    calibration: str = ""
    """Path of a file from `mdot calibrate`; empty: none."""
    limits: bool = True
    """Set a time limit for jobs without one."""
    limits_doubtful: bool = False
    """Set limits also for jobs outside the predictor's training data."""
    quantile: float = 0.95
    margin: float = 1.1
    startup_s: float = 600.0
    """The limit is this quantile of the training time, times the margin, plus the startup time."""
    choose: str = "no"
    """Criterion for a place if the request names none: no, time or cost."""
    priority_weight: int = 0
    """Priority of the shortest job; 0: no priorities."""
    order: str = "service"
    """Measure of a short job: time, or service (time multiplied by GPUs)."""
    shortest_s: float = 60.0
    longest_s: float = 30 * 86400.0
    """Lengths that get the full weight and zero."""
    max_job_bytes: int = 1 << 19
    max_operators: int = 10000
    """Maximum number of operators times places in one prediction."""
    prediction_s: float = 20.0
    """Maximum time of one prediction."""
    prediction_mib: int = 2048
    """Maximum address space of one prediction."""
    gpu_resources: tuple[str, ...] = ("nvidia.com/gpu", "amd.com/gpu")
    """Names of GPUs in a pod's resources."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Site:
        """Reads a YAML file, whose keys are the fields. Raises ValueError with the file, the key and the accepted values."""
        import yaml  # type: ignore[import-untyped]

        with open(path, encoding="utf-8") as file:
            try:
                return cls.from_mapping(yaml.safe_load(file) or {})
            except (ValueError, yaml.YAMLError) as fault:
                raise ValueError(f"{os.fspath(path)}: {fault}") from fault

    @classmethod
    def from_mapping(cls, values: Any) -> Site:
        """Checks the values. Raises ValueError otherwise."""
        found = _fields(cls, values, "the configuration")
        found["places"] = tuple(Place(**_fields(Place, row, "a place")) for row in found.get("places", ()))
        names = [place.name for place in found["places"]]
        if len(set(names)) != len(names):
            raise ValueError(f"places: {next(name for name in names if names.count(name) > 1)!r} appears twice")
        for place in found["places"]:
            try:
                mdot.gpu(place.gpu)
            except mdot.Error as fault:
                raise ValueError(f"place {place.name!r}: {fault}") from fault
        site = cls(**found)
        for name, accepted in (("choose", ("no", "time", "cost")), ("order", ("time", "service"))):
            if getattr(site, name) not in accepted:
                raise ValueError(f"{name} must be one of {', '.join(accepted)}, not {getattr(site, name)!r}")
        if not 0 < site.quantile < 1:
            raise ValueError(f"quantile must be between 0 and 1, not {site.quantile}")
        if not 0 < site.shortest_s < site.longest_s:
            raise ValueError("shortest_s must be above 0 and below longest_s")
        if site.priority_weight > 1 << 30:
            raise ValueError(f"priority_weight must be at most {1 << 30}, not {site.priority_weight}")
        return site


_KINDS: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "float": (int, float), "bool": bool}


def _fields(kind: type, values: Any, what: str) -> dict[str, Any]:
    """The values of a dataclass, with their types checked. Numbers are at least 0."""
    if not isinstance(values, dict):
        raise ValueError(f"{what} must be a mapping, not {type(values).__name__}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = [str(name) for name in values if name not in fields]
    if unknown:
        raise ValueError(f"{what} has the unknown key {unknown[0][:40]!r}; the keys are {', '.join(fields)}")
    missing = [name for name, f in fields.items() if name not in values and f.default is f.default_factory]
    if missing:
        raise ValueError(f"{what} lacks the key {missing[0]!r}")
    checked = dict(values)
    for name, value in values.items():
        expected = str(fields[name].type)
        if expected in _KINDS:
            is_right = isinstance(value, _KINDS[expected]) and (expected == "bool" or not isinstance(value, bool))
            is_right = is_right and (expected in ("str", "bool") or 0 <= value < float("inf"))
        elif expected.startswith("tuple"):
            is_right = isinstance(value, list)
            checked[name] = tuple(value) if is_right else ()
        else:
            is_right = isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)
        if not is_right:
            raise ValueError(
                f"{what}: {name} must be {expected}{'' if expected == 'str' else ', at least 0'}, not {str(value)[:40]!r}"
            )
    return checked
