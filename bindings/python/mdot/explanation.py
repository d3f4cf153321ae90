"""Explanations: how the time and the memory of one step divide among operators (mdot_explain.h, mdot_explanation)."""

from __future__ import annotations

import ctypes
import dataclasses
import weakref
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, overload

from mdot.configuration import Configuration, as_array
from mdot.job import Job
from mdot.operators import Operator
from mdot.library import structs as c
from mdot.library.errors import require
from mdot.library.libraries import call, check, runtime

if TYPE_CHECKING:
    import pandas

    from mdot.predictor import Predictor

# Bits in mdot_explanation_info.approximate, in order (MDOT_EXPLAINED_…).
APPROXIMATIONS = ("roofline", "model")


@dataclasses.dataclass(frozen=True)
class Share:
    """One operator's part of a step, or several operators' together: times in milliseconds, sizes in bytes."""

    forward_ms: float
    data_gradient_ms: float
    weight_gradient_ms: float
    optimizer_ms: float
    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    """Live tensors at the memory peak."""

    @property
    def ms(self) -> float:
        """Milliseconds over all phases: forward pass, data and weight gradients, and optimizer."""
        return self.forward_ms + self.data_gradient_ms + self.weight_gradient_ms + self.optimizer_ms

    @property
    def memory_bytes(self) -> float:
        """Bytes of weights, gradients, optimizer state and activations."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes + self.activation_bytes

    def __add__(self, other: Share) -> Share:
        return Share(*(mine + its for mine, its in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


_SHARE = [field.name for field in dataclasses.fields(Share)]
NOTHING = Share(*[0.0] * len(_SHARE))


@dataclasses.dataclass(frozen=True)
class Explanation(Sequence[Share]):
    """The explanation of one GPU's step; in a pipeline, of the busiest GPU's. The seven times add up to step_ms, and
    the four sizes to the prediction's peak memory. As a sequence, it holds each operator's Share in the job's order."""

    job: Job
    configuration: Configuration
    step_ms: float
    """The predicted time before calibration. A calibration scales all times of the GPU alike."""
    forward_ms: float
    data_gradient_ms: float
    """Includes the time of recomputation."""
    weight_gradient_ms: float
    optimizer_ms: float
    host_ms: float
    """The GPU's waiting time for launches by the host."""
    communication_ms: float
    """Time that the GPU waits for communication between GPUs."""
    idle_ms: float
    """Time that a pipeline stage waits for other stages."""
    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    gpu_busy_ms: float
    """Sum over operator times: forward, both gradients, optimizer."""
    host_busy_ms: float
    """Time in which the host launches kernels."""
    overlap_ms: float
    """Time in which both are busy: gpu_busy_ms + host_busy_ms - overlap_ms + communication_ms + idle_ms + data_ms is
    step_ms."""
    data_ms: float
    """Time that the GPU waits for data loaders."""
    approximate: tuple[str, ...]
    """Reasons why the explanation is only an estimate. roofline: the predictor lacks an entry point for explanations,
    so that the GPU's peak rates divide the step. model: the analytic estimate adjusted operator times. Empty: the
    times are as predicted."""
    operators: tuple[Share, ...]

    @overload
    def __getitem__(self, index: int) -> Share: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Share, ...]: ...
    def __getitem__(self, index: int | slice) -> Share | tuple[Share, ...]:
        return self.operators[index]

    def __len__(self) -> int:
        return len(self.operators)

    def by(self, key: Callable[[Operator], object]) -> dict[object, Share]:
        """Sums the shares of operators with equal `key(operator)`, and orders them by decreasing time."""
        sums: dict[object, Share] = {}
        for operator, share in zip(self.job, self.operators):
            name = key(operator)
            sums[name] = sums.get(name, NOTHING) + share
        return dict(sorted(sums.items(), key=lambda item: -item[1].ms))

    def by_type(self) -> Mapping[object, Share]:
        """Sums by operator type, for example "Conv", "Linear", "Attention"."""
        return self.by(lambda operator: operator.type)

    def by_module(self) -> Mapping[object, Share]:
        """Sums by the module that operators were exported from; None: the job holds no module name."""
        return self.by(lambda operator: operator.module)

    def by_block(self) -> Mapping[object, Share]:
        """Sums by the number of the block (layer); 0: operators outside all blocks."""
        return self.by(lambda operator: operator.block)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each operator. Requires pandas."""
        rows = [
            {"type": op.type, "module": op.module, "block": op.block, **dataclasses.asdict(share), "ms": share.ms}
            for op, share in zip(self.job, self.operators)
        ]
        frame: pandas.DataFrame = require("pandas").DataFrame.from_records(rows)
        return frame

    def __str__(self) -> str:
        parts = {
            "forward": self.forward_ms,
            "gradients of data": self.data_gradient_ms,
            "gradients of weights": self.weight_gradient_ms,
            "optimizer": self.optimizer_ms,
            "waiting for the host": self.host_ms,
            "waiting for other GPUs": self.communication_ms,
            "waiting for other stages": self.idle_ms,
            "waiting for data": self.data_ms,
        }
        lines = [f"{name:<26}{ms:10.2f} ms {ms / self.step_ms:5.0%}" for name, ms in parts.items() if ms > 0]
        lines += [f"  {str(name):<24}{share.ms:10.2f} ms {share.ms / self.step_ms:5.0%}"
                  for name, share in list(self.by_type().items())[:8]]  # fmt: skip
        return "\n".join(lines)

    __repr__ = __str__


class Handle:
    """Owns an mdot_explanation and destroys it with the last reference."""

    def __init__(self, predictor: Predictor, job: Job, configuration: c.mdot_configuration) -> None:
        self.pointer = ctypes.c_void_p()
        call(
            runtime().mdot_explain,
            predictor._context(),
            job._handle,
            ctypes.byref(configuration),
            ctypes.byref(self.pointer),
        )
        weakref.finalize(self, runtime().mdot_explanation_destroy, self.pointer)


def explain_step(predictor: Predictor, job: Job, configuration: Configuration) -> Explanation:
    """Implements `Predictor.explain` for a configuration."""
    keep: list[Any] = []
    handle = Handle(predictor, job, as_array([configuration], keep)[0])
    info = c.new(c.mdot_explanation_info)
    check(runtime().mdot_explanation_get_info(handle.pointer, ctypes.byref(info)))
    shares = []
    at = c.new(c.mdot_operator_time)
    for i in range(info.operator_count):
        check(runtime().mdot_explanation_get_operator(handle.pointer, i, ctypes.byref(at)))
        shares.append(Share(*(getattr(at, name) for name in _SHARE)))
    copied = {
        field.name: getattr(info, field.name)
        for field in dataclasses.fields(Explanation)
        if field.name not in ("job", "configuration", "approximate", "operators")
    }
    return Explanation(
        job=job,
        configuration=configuration,
        approximate=tuple(name for bit, name in enumerate(APPROXIMATIONS) if info.approximate >> bit & 1),
        operators=tuple(shares),
        **copied,
    )
