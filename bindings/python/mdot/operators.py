"""Operators of a job, and their C structs."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any, Mapping

from mdot.choices import choose
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError, NotFoundError
from mdot.library.libraries import encode_text, read_text, reader, runtime

PHASES = ("forward", "data_gradient", "weight_gradient")


@dataclasses.dataclass(frozen=True)
class Load:
    """FLOPs and bytes. A multiply-add is two FLOPs, and floating elements count as four bytes in every file type."""

    flops: float
    bytes_read: float
    bytes_written: float


@dataclasses.dataclass(frozen=True)
class Operator:
    """One operator (mdot_job.h, mdot_job_operator). At batch B, a phase has B * B * per_square + B * per_sample + per_step
    FLOPs and bytes."""

    type: str
    known: bool
    """False: mdot knows only tensor sizes."""
    settings: Mapping[str, int]
    """The non-zero attributes, by the names of MDOT_SETTING_MAP."""
    parameters: float
    """Elements that training learns."""
    frozen_parameters: float
    inputs: tuple[int, ...]
    """Indices of the operators whose results it reads."""
    block: int
    """The block (layer) that it belongs to, from 1; 0: outside all blocks."""
    module: str | None
    """The module that it was exported from; None: the job holds no names."""
    per_sample: Mapping[str, Load]
    """By phase: forward, data_gradient, weight_gradient."""
    per_step: Mapping[str, Load]
    per_square: Mapping[str, Load] = dataclasses.field(default_factory=dict)
    batch_settings: tuple[str, ...] = ()
    """Names of the settings that multiply with the batch."""
    flags: int = 0
    """Bits of ``MDOT_OPERATOR_…``."""


def fill(out: c.mdot_job_operator, op: Operator, names: list[str], keep: list[Any]) -> None:
    """Writes the C struct; `keep` holds the objects that it points to."""
    unknown = sorted({*op.settings, *op.batch_settings} - set(names))
    if unknown:
        raise InvalidArgumentError(f"unknown setting {unknown[0]!r}; the settings are {', '.join(names)}")
    inputs = (ctypes.c_uint32 * max(len(op.inputs), 1))(*op.inputs)
    keep.append(inputs)
    out.struct_size = ctypes.sizeof(out)
    out.type, out.known = encode_text(op.type), op.known
    out.module = encode_text(op.module) if op.module is not None else None
    out.parameters, out.frozen_parameters, out.block = op.parameters, op.frozen_parameters, op.block
    out.input_count, out.inputs = len(op.inputs), inputs
    for name, value in op.settings.items():
        out.setting[names.index(name)] = value
    out.flags = op.flags
    out.batch_settings = sum(1 << names.index(name) for name in op.batch_settings)
    for of, loads in ((out.per_sample, op.per_sample), (out.per_step, op.per_step), (out.per_square, op.per_square)):
        for phase, load in loads.items():
            of[choose("phase", phase, PHASES)] = c.mdot_load(load.flops, load.bytes_read, load.bytes_written)
    if op.known and reader().mdot_operator_traits_find(encode_text(op.type), ctypes.byref(out.traits)) != 0:
        raise NotFoundError(f"unknown operator type {op.type!r}; set known=False to use it")


def operator_of(op: c.mdot_job_operator) -> Operator:
    """The Python form of a struct."""
    names = setting_names()
    return Operator(
        type=sys.intern(read_text(op.type)),
        known=op.known,
        settings={names[i]: op.setting[i] for i in range(len(names)) if op.setting[i] != 0},
        parameters=op.parameters,
        frozen_parameters=op.frozen_parameters,
        inputs=tuple(op.inputs[i] for i in range(op.input_count)),
        block=op.block,
        module=sys.intern(read_text(op.module)) if op.module is not None else None,
        per_sample=_loads(op.per_sample),
        per_step=_loads(op.per_step),
        per_square=_loads(op.per_square),
        batch_settings=tuple(names[i] for i in range(len(names)) if op.batch_settings >> i & 1),
        flags=op.flags,
    )


def setting_names() -> list[str]:
    names = []
    for i in range(c.SETTING_CAPACITY):
        name = read_text(runtime().mdot_setting_name(i))
        if name == "?":
            break
        names.append(name)
    return names


def _loads(loads: Any) -> dict[str, Load]:
    return {phase: Load(at.flops, at.bytes_read, at.bytes_written) for phase, at in zip(PHASES, loads)}
