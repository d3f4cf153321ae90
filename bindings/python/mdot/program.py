"""How a job's PyTorch program was written: types, weight sizes, kernels, and recorded memory (mdot_program.h)."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

from mdot.library import structs as c
from mdot.library.libraries import encode_text, read_text
from mdot.options import CHOICES

_PRECISION, _RECOMPUTE, _ATTENTION = CHOICES["precision"], CHOICES["checkpoint"], CHOICES["attention"]


@dataclasses.dataclass(frozen=True)
class PeakMoment:
    """Allocated memory at one time in a step, besides weights and optimizer state."""

    per_sample: float
    """Bytes of activations and temporary tensors per sample."""
    per_step: float
    """Bytes that do not depend on the batch."""
    weight_copies: float
    """Bytes in autocast's half-precision copies of weights."""
    gradients: float
    """Fraction of existing gradients, 0 to 1."""
    logits: float = 0.0
    """Bytes of per_sample in tensors as large as a loss's logits."""
    per_square: float = 0.0
    """Bytes per square of the batch."""


@dataclasses.dataclass(frozen=True)
class RecordedMemory:
    """The moments with a possible memory peak."""

    precision: str
    """fp32, amp-fp16 (autocast to either type) or bf16."""
    recompute: str
    moments: tuple[PeakMoment, ...]
    compiled: bool = False
    """The pass of code that torch.compile compiled; `recompute` is selective, or blocks."""


@dataclasses.dataclass(frozen=True)
class WorkCheck:
    """The job's work against the program's, at the traced batch (mdot_program.h, mdot_job_check). FLOPs are of the
    forward and of the backward pass."""

    dispatched_flops: tuple[float, float] = (0.0, 0.0)
    job_flops: tuple[float, float] = (0.0, 0.0)
    recorded_peak: float = 0.0
    predicted_peak: float = 0.0
    unpriced_bytes: float = 0.0
    unpriced_operators: int = 0
    modules: str = ""
    """Modules with the largest differences."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A program as the trace found it. `pytorch` as the precision means parameters in fp32."""

    precision: str
    attention: str
    """eager, flash, or program if it is unknown."""
    trained_bytes: float
    frozen_bytes: float
    buffer_bytes: float
    has_loss: bool
    recorded: tuple[RecordedMemory, ...] = ()
    framework: int = 0
    check: WorkCheck = WorkCheck()


def to_struct(program: Program, keep: list[Any]) -> c.mdot_job_program:
    """The C struct; `keep` holds the arrays that it points to."""
    recorded = (c.mdot_recorded_memory * max(len(program.recorded), 1))()
    for out, memory in zip(recorded, program.recorded):
        moments = (c.mdot_peak_moment * len(memory.moments))()
        for at, moment in zip(moments, memory.moments):
            at.per_sample, at.per_step = moment.per_sample, moment.per_step
            at.weight_copies, at.gradients = moment.weight_copies, moment.gradients
            at.logits, at.per_square = moment.logits, moment.per_square
        out.precision, out.recompute = _PRECISION.index(memory.precision), _RECOMPUTE.index(memory.recompute)
        out.moment_count, out.moments, out.compiled = len(memory.moments), moments, memory.compiled
        keep.append(moments)
    keep.append(recorded)
    check, text = program.check, encode_text(program.check.modules)
    keep.append(text)
    return c.new(
        c.mdot_job_program,
        precision=_PRECISION.index(program.precision),
        attention=_ATTENTION.index(program.attention),
        trained_bytes=program.trained_bytes,
        frozen_bytes=program.frozen_bytes,
        buffer_bytes=program.buffer_bytes,
        has_loss=program.has_loss,
        recorded_count=len(program.recorded),
        recorded=recorded,
        framework=program.framework,
        check=c.mdot_job_check(
            check.dispatched_flops,
            check.job_flops,
            check.recorded_peak,
            check.predicted_peak,
            check.unpriced_bytes,
            check.unpriced_operators,
            text,
        ),
    )


def from_struct(program: c.mdot_job_program) -> Program:
    return Program(
        _PRECISION[program.precision],
        _ATTENTION[program.attention],
        program.trained_bytes,
        program.frozen_bytes,
        program.buffer_bytes,
        bool(program.has_loss),
        tuple(_recorded(program.recorded[i]) for i in range(program.recorded_count)),
        program.framework,
        _check(program.check),
    )


def _check(check: c.mdot_job_check) -> WorkCheck:
    return WorkCheck(
        (check.dispatched_flops[0], check.dispatched_flops[1]),
        (check.job_flops[0], check.job_flops[1]),
        check.recorded_peak,
        check.predicted_peak,
        check.unpriced_bytes,
        check.unpriced_operators,
        read_text(check.modules) if check.modules is not None else "",
    )


def _recorded(memory: c.mdot_recorded_memory) -> RecordedMemory:
    moments: Sequence[c.mdot_peak_moment] = memory.moments[: memory.moment_count]
    return RecordedMemory(
        _PRECISION[memory.precision],
        _RECOMPUTE[memory.recompute],
        tuple(PeakMoment(m.per_sample, m.per_step, m.weight_copies, m.gradients, m.logits, m.per_square) for m in moments),
        memory.compiled,
    )
