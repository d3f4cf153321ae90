"""Failures as exceptions, and reasons for less trust in a prediction as warnings.

There is an exception for each status of mdot_base.h, with the library's own message. Each is also a subclass of the Python
exception with the same meaning, so that `except ValueError` catches a batch of zero.
"""

from __future__ import annotations


class Error(Exception):
    """Base class of mdot's exceptions. `status` is the name in mdot_base.h, for example "MDOT_NOT_FOUND"; the message names
    file, node and reason."""

    status = "MDOT_OK"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class InvalidArgumentError(Error, ValueError):
    status = "MDOT_INVALID_ARGUMENT"


class NotFoundError(Error, LookupError):
    status = "MDOT_NOT_FOUND"


class InputOutputError(Error, OSError):
    status = "MDOT_IO"


class MalformedError(Error, ValueError):
    status = "MDOT_MALFORMED"


class UnsupportedError(Error, NotImplementedError):
    status = "MDOT_UNSUPPORTED"


class IncompatibleError(Error):
    status = "MDOT_INCOMPATIBLE"


class CorruptError(Error):
    status = "MDOT_CORRUPT"


class OutOfRangeError(Error, IndexError):
    status = "MDOT_OUT_OF_RANGE"


class OutOfMemoryError(Error, MemoryError):
    status = "MDOT_OUT_OF_MEMORY"


class ToolchainError(Error, RuntimeError):
    status = "MDOT_TOOLCHAIN"


class DeviceError(Error, RuntimeError):
    status = "MDOT_DEVICE"


class TracedModuleError(InvalidArgumentError, RuntimeError):
    """A PyTorch module raised an exception while it was traced. `__cause__` is that exception."""


BY_STATUS: tuple[type[Error], ...] = (
    Error,
    InvalidArgumentError,
    NotFoundError,
    InputOutputError,
    MalformedError,
    UnsupportedError,
    IncompatibleError,
    CorruptError,
    OutOfRangeError,
    OutOfMemoryError,
    ToolchainError,
    DeviceError,
)
"""In the order of MDOT_STATUS_MAP."""


def of_status(status: int, message: str) -> Error:
    return (BY_STATUS[status] if 0 < status < len(BY_STATUS) else Error)(message)


class Warning(UserWarning):
    """Base class of mdot's warnings. `warnings.filterwarnings("ignore", category=mdot.Warning)` silences all of them."""


class JobWarning(Warning):
    """Issued while a job is read: something was repaired, guessed or not understood."""


class RecordingWarning(Warning):
    """Issued if a training cannot be recorded as expected: no row is written, or a part of its configuration is unknown. The
    training continues."""


class PredictionWarning(Warning):
    """A reason to trust a prediction less. Each kind is a class of its own, named as in MDOT_WARNING_MAP."""


class UnknownOperatorsWarning(PredictionWarning):
    name = "unknown-operators"


class OutsideTrainingWarning(PredictionWarning):
    name = "outside-training"


class ShortenedWarning(PredictionWarning):
    name = "shortened"


class FallbackWarning(PredictionWarning):
    name = "fallback"


class AnalyticEstimateWarning(PredictionWarning):
    name = "analytic-estimate"


class ImplausibleWarning(PredictionWarning):
    name = "implausible"


class NoParametersWarning(PredictionWarning):
    name = "no-parameters"


class FoldedWarning(PredictionWarning):
    name = "folded"


class MaybeFoldedWarning(PredictionWarning):
    name = "maybe-folded"


class BatchBelowDataWarning(OutsideTrainingWarning):
    name = "batch-below-data"


class BatchAboveDataWarning(OutsideTrainingWarning):
    name = "batch-above-data"


class OperatorsBeyondDataWarning(OutsideTrainingWarning):
    name = "operators-beyond-data"


class GpuNotMeasuredWarning(OutsideTrainingWarning):
    name = "gpu-not-measured"


class PrecisionNotMeasuredWarning(OutsideTrainingWarning):
    name = "precision-not-measured"


class SoftwareNotMeasuredWarning(OutsideTrainingWarning):
    name = "software-not-measured"


class TypesNotMeasuredWarning(OutsideTrainingWarning):
    name = "types-not-measured"


class OptimizerOrGpusNotMeasuredWarning(OutsideTrainingWarning):
    name = "optimizer-or-gpus-not-measured"


class DiffersFromProgramWarning(PredictionWarning):
    name = "differs-from-program"


BY_NAME: dict[str, type[PredictionWarning]] = {
    kind.name: kind
    for kind in (
        UnknownOperatorsWarning,
        OutsideTrainingWarning,
        ShortenedWarning,
        FallbackWarning,
        AnalyticEstimateWarning,
        ImplausibleWarning,
        NoParametersWarning,
        FoldedWarning,
        MaybeFoldedWarning,
        BatchBelowDataWarning,
        BatchAboveDataWarning,
        OperatorsBeyondDataWarning,
        GpuNotMeasuredWarning,
        PrecisionNotMeasuredWarning,
        SoftwareNotMeasuredWarning,
        TypesNotMeasuredWarning,
        OptimizerOrGpusNotMeasuredWarning,
        DiffersFromProgramWarning,
    )
}
