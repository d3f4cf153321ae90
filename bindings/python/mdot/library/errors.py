"""Failures as exceptions, and reasons for less trust in a prediction as warnings.

There is an exception for each status in mdot_base.h, with the library's own message. Each is also a subclass of the Python
exception with the same meaning, so that `except ValueError` catches a batch of zero.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any, Iterable


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
    """An argument is wrong."""

    status = "MDOT_INVALID_ARGUMENT"


class UnknownOptionError(InvalidArgumentError, TypeError):
    """A keyword is no option. The message has the nearest name."""


def suggest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like an unknown one, or None if all differ much."""
    found = difflib.get_close_matches(name.lower(), list(known), 1)
    return found[0] if found else None


class NotFoundError(Error, LookupError):
    """A file or a name does not exist."""

    status = "MDOT_NOT_FOUND"


class InputOutputError(Error, OSError):
    """Reading or writing failed."""

    status = "MDOT_IO"


class MalformedError(Error, ValueError):
    """A file breaks the rules of its format."""

    status = "MDOT_MALFORMED"


class UnsupportedError(Error, NotImplementedError):
    """Valid, but beyond what mdot handles."""

    status = "MDOT_UNSUPPORTED"


class IncompatibleError(Error):
    """Made for another version or another machine."""

    status = "MDOT_INCOMPATIBLE"


class CorruptError(Error):
    """A checksum differs: the file is damaged."""

    status = "MDOT_CORRUPT"


class OutOfRangeError(Error, IndexError):
    """A length or an index is outside its bounds."""

    status = "MDOT_OUT_OF_RANGE"


class OutOfMemoryError(Error, MemoryError):
    """Memory ran out."""

    status = "MDOT_OUT_OF_MEMORY"


class ToolchainError(Error, RuntimeError):
    """LLVM, the linker or NVRTC failed."""

    status = "MDOT_TOOLCHAIN"


class DeviceError(Error, RuntimeError):
    """An accelerator failed."""

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


def require(package: str) -> Any:
    """Imports an optional package. NotFoundError with the command that installs it."""
    try:
        return importlib.import_module(package)
    except ImportError as fault:
        raise NotFoundError(f"this needs {package}, which cannot be imported ({fault}): pip install {package}") from fault


def of_status(status: int, message: str) -> Error:
    return (BY_STATUS[status] if 0 < status < len(BY_STATUS) else Error)(message)


class Warning(UserWarning):
    """Base class of mdot's warnings. `warnings.filterwarnings("ignore", category=mdot.Warning)` silences all of them."""


class JobWarning(Warning):
    """Issued while a job is read: something was repaired, guessed or not understood."""


class RecordingWarning(Warning):
    """Issued if a training cannot be recorded as expected: no row is written, or a part of the configuration is unknown. The
    training continues."""


class PredictionWarning(Warning):
    """A reason for less trust in a prediction. Each kind is a class, named as in MDOT_WARNING_MAP."""


class UnknownOperatorsWarning(PredictionWarning):
    """The job has operator types that are absent from the predictor's training data."""

    name = "unknown-operators"


class OutsideTrainingWarning(PredictionWarning):
    """Batch, GPU, precision, software, FLOPs or bytes are outside of the predictor's training data."""

    name = "outside-training"


class ShortenedWarning(PredictionWarning):
    """Operators were merged to fit the predictor's longest sequence."""

    name = "shortened"


class FallbackWarning(PredictionWarning):
    """The prediction ran on the CPU because the GPU failed."""

    name = "fallback"


class AnalyticEstimateWarning(PredictionWarning):
    """The predictor lacks inputs for part of the configuration; an analytic estimate replaces them."""

    name = "analytic-estimate"


class ImplausibleWarning(PredictionWarning):
    """The step would use more of the GPU's peak rate than real programs reach, or almost zero."""

    name = "implausible"


class NoParametersWarning(PredictionWarning):
    """The job lacks trainable parameters: its graph was exported without them."""

    name = "no-parameters"


class FoldedWarning(PredictionWarning):
    """An exporter folded BatchNormalizations into weights; the job contains them again."""

    name = "folded"


class MaybeFoldedWarning(PredictionWarning):
    """The job has convolutions but lacks normalisation; an exporter probably folded it into the weights."""

    name = "maybe-folded"


class BatchBelowDataWarning(OutsideTrainingWarning):
    """The batch is smaller than any in the training data."""

    name = "batch-below-data"


class BatchAboveDataWarning(OutsideTrainingWarning):
    """The batch is larger than any in the training data."""

    name = "batch-above-data"


class OperatorsBeyondDataWarning(OutsideTrainingWarning):
    """The job has operators larger than any in the training data."""

    name = "operators-beyond-data"


class GpuNotMeasuredWarning(OutsideTrainingWarning):
    """The training data lack steps on this GPU model; left-out models were off by a factor of 1.2, and AMD's kernels by
    1.3 to 2.3."""

    name = "gpu-not-measured"


class PrecisionNotMeasuredWarning(OutsideTrainingWarning):
    """The training data lack steps in this precision."""

    name = "precision-not-measured"


class SoftwareNotMeasuredWarning(OutsideTrainingWarning):
    """The training data lack steps with this version of PyTorch."""

    name = "software-not-measured"


class TypesNotMeasuredWarning(OutsideTrainingWarning):
    """The job has operator types that the training data lack."""

    name = "types-not-measured"


class OptimizerOrGpusNotMeasuredWarning(OutsideTrainingWarning):
    """The training data lack steps with this optimizer, or steps on several GPUs."""

    name = "optimizer-or-gpus-not-measured"


class DiffersFromProgramWarning(PredictionWarning):
    """The requested precision or attention differs from that of the traced program."""

    name = "differs-from-program"


class WaitedForDataWarning(PredictionWarning):
    """A measured step of this job waited for its data loaders, which this answer leaves out; set --loader-rate."""

    name = "waited-for-data"


class StaleGradientsWarning(PredictionWarning):
    """Gradients are as old as the other workers' steps, so that training may need more steps."""

    name = "stale-gradients"


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
        WaitedForDataWarning,
        StaleGradientsWarning,
    )
}
