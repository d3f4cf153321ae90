"""mdot: how long a deep-learning training step takes, on which GPU.

    import mdot

    job = mdot.Job.from_torch(model, example)       # or from_transformers, from_onnx, load
    print(mdot.predict(job, "A100", batch=64, precision="amp"))
    print(mdot.sweep(job, ["T4", "A100", "H100"], [32, 64, 128]))

Units: times are milliseconds of wall clock, sizes are bytes, as the names say. Threads: jobs, predictors and the functions
here may be used from any number of threads at once. Errors are `mdot.Error`, what answers stand on `mdot.Warning`.
"""

from mdot.calibration import Calibration
from mdot.compiler import CompilerWarning, Verification, compile, verify
from mdot.configuration import Configuration
from mdot.gpus import GPU, gpu, gpus
from mdot.job import Job, Load, Operator
from mdot.library.errors import (
    BatchAboveDataWarning,
    BatchBelowDataWarning,
    CardNotMeasuredWarning,
    CorruptError,
    DeviceError,
    Error,
    FallbackWarning,
    FoldedWarning,
    ImplausibleWarning,
    IncompatibleError,
    InputOutputError,
    InvalidArgumentError,
    JobWarning,
    MalformedError,
    MaybeFoldedWarning,
    ModelledWarning,
    NoParametersWarning,
    NotFoundError,
    OperatorsBeyondDataWarning,
    OptimizerOrGpusNotMeasuredWarning,
    OutOfMemoryError,
    OutOfRangeError,
    OutsideTrainingWarning,
    PrecisionNotMeasuredWarning,
    PredictionWarning,
    ShortenedWarning,
    SoftwareNotMeasuredWarning,
    ToolchainError,
    TypesNotMeasuredWarning,
    UnknownOperatorsWarning,
    UnsupportedError,
    Warning,
)
from mdot.prediction import Prediction, Table
from mdot.predictor import Predictor, largest_batch, predict, sweep
from mdot.version import VERSION as __version__


def library_version() -> str:
    """Of libmdot in use; `__version__` is the package's."""
    from mdot.library.libraries import read_text, runtime

    return read_text(runtime().mdot_version())


__all__ = [
    "BatchAboveDataWarning",
    "BatchBelowDataWarning",
    "Calibration",
    "CardNotMeasuredWarning",
    "CompilerWarning",
    "Configuration",
    "CorruptError",
    "DeviceError",
    "Error",
    "FallbackWarning",
    "FoldedWarning",
    "GPU",
    "ImplausibleWarning",
    "IncompatibleError",
    "InputOutputError",
    "InvalidArgumentError",
    "Job",
    "JobWarning",
    "Load",
    "MalformedError",
    "MaybeFoldedWarning",
    "ModelledWarning",
    "NoParametersWarning",
    "NotFoundError",
    "Operator",
    "OperatorsBeyondDataWarning",
    "OptimizerOrGpusNotMeasuredWarning",
    "OutOfMemoryError",
    "OutOfRangeError",
    "OutsideTrainingWarning",
    "PrecisionNotMeasuredWarning",
    "Prediction",
    "PredictionWarning",
    "Predictor",
    "ShortenedWarning",
    "SoftwareNotMeasuredWarning",
    "Table",
    "ToolchainError",
    "TypesNotMeasuredWarning",
    "UnknownOperatorsWarning",
    "UnsupportedError",
    "Verification",
    "Warning",
    "__version__",
    "compile",
    "gpu",
    "gpus",
    "largest_batch",
    "library_version",
    "predict",
    "sweep",
    "verify",
]
