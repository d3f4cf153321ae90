"""mdot predicts how long a deep-learning training step takes on a given GPU.

    import mdot

    job = mdot.Job.from_torch(model, example)       # or from_transformers, from_onnx, load
    print(mdot.predict(job, "A100", batch=64, precision="amp"))
    print(mdot.sweep(job, ["T4", "A100", "H100"], [32, 64, 128]))

Units: times are milliseconds of wall clock and sizes are bytes, as the suffixes in the names state. Threads: any
number may use jobs, predictors and the functions in this module at once. Failures raise `mdot.Error`. Reasons for
less trust in an answer are issued as `mdot.Warning`.
"""

from mdot.artefact import Entry, Image, Tensor
from mdot.beside import Beside, GpuLoad, Pair, beside
from mdot.calibration import Calibration, Correction, Effect, Factors, Measurement
from mdot.compiler import Check, CompilerWarning, Verification, check, compile, verify
from mdot.configuration import Configuration
from mdot.configuration_files import FileOptions, options_from
from mdot.converging import Convergence, steps_to_loss
from mdot.data_loading import loader_rates
from mdot.encoding import Encoding
from mdot.explanation import Explanation, Share
from mdot.federated import Client, ClientTime, Round, federated_round
from mdot.gpus import GPU, gpu, gpus
from mdot.job import Job, optimizer_load
from mdot.library.errors import (
    AnalyticEstimateWarning,
    BatchAboveDataWarning,
    BatchBelowDataWarning,
    CorruptError,
    DeviceError,
    DiffersFromProgramWarning,
    Error,
    FallbackWarning,
    FoldedWarning,
    GpuNotMeasuredWarning,
    ImplausibleWarning,
    IncompatibleError,
    InputOutputError,
    InvalidArgumentError,
    JobWarning,
    MalformedError,
    MaybeFoldedWarning,
    NoParametersWarning,
    NotFoundError,
    OperatorsBeyondDataWarning,
    OptimizerOrGpusNotMeasuredWarning,
    OutOfMemoryError,
    OutOfRangeError,
    OutsideTrainingWarning,
    PrecisionNotMeasuredWarning,
    PredictionWarning,
    RecordingWarning,
    ShortenedWarning,
    SoftwareNotMeasuredWarning,
    StaleGradientsWarning,
    ToolchainError,
    TracedModuleError,
    TypesNotMeasuredWarning,
    UnknownOperatorsWarning,
    UnsupportedError,
    WaitedForDataWarning,
    Warning,
)
from mdot.operators import Load, Operator
from mdot.planning import Layout, Plan, Training, TrainingCost, plan
from mdot.prediction import Prediction, Table
from mdot.predictor import Predictor, explain, largest_batch, predict, sweep
from mdot.recording.hooks import StepHook
from mdot.recording.recorder import Recorder, record
from mdot.recording.row import Recorded
from mdot.recording.traced_row import record_trace
from mdot.shipped_jobs import ReadyJob, ready_jobs
from mdot.trajectory import Phase, Trajectory, trajectory
from mdot.version import VERSION as __version__


def library_version() -> str:
    """The version of libmdot. `__version__` is the Python package's version."""
    from mdot.library.libraries import read_text, runtime

    return read_text(runtime().mdot_version())


def __getattr__(name: str) -> object:
    if name == "Store":
        raise AttributeError("mdot.Store is mdot_store.Store now: install the package mdot-store, and import mdot_store")
    raise AttributeError(f"module 'mdot' has no attribute {name!r}")


__all__ = [
    "AnalyticEstimateWarning",
    "BatchAboveDataWarning",
    "BatchBelowDataWarning",
    "Beside",
    "Calibration",
    "Effect",
    "Factors",
    "Measurement",
    "Check",
    "Client",
    "ClientTime",
    "CompilerWarning",
    "Configuration",
    "Convergence",
    "Correction",
    "CorruptError",
    "DeviceError",
    "DiffersFromProgramWarning",
    "Encoding",
    "Entry",
    "Error",
    "Explanation",
    "FallbackWarning",
    "FileOptions",
    "FoldedWarning",
    "GPU",
    "GpuLoad",
    "GpuNotMeasuredWarning",
    "Image",
    "ImplausibleWarning",
    "IncompatibleError",
    "InputOutputError",
    "InvalidArgumentError",
    "Job",
    "JobWarning",
    "Layout",
    "Load",
    "MalformedError",
    "MaybeFoldedWarning",
    "NoParametersWarning",
    "NotFoundError",
    "Operator",
    "OperatorsBeyondDataWarning",
    "OptimizerOrGpusNotMeasuredWarning",
    "OutOfMemoryError",
    "OutOfRangeError",
    "OutsideTrainingWarning",
    "PrecisionNotMeasuredWarning",
    "Pair",
    "Plan",
    "Prediction",
    "PredictionWarning",
    "Predictor",
    "ReadyJob",
    "Recorded",
    "Recorder",
    "RecordingWarning",
    "Phase",
    "Round",
    "Share",
    "ShortenedWarning",
    "StepHook",
    "SoftwareNotMeasuredWarning",
    "StaleGradientsWarning",
    "Table",
    "Training",
    "TrainingCost",
    "Tensor",
    "ToolchainError",
    "Trajectory",
    "TracedModuleError",
    "TypesNotMeasuredWarning",
    "UnknownOperatorsWarning",
    "UnsupportedError",
    "Verification",
    "WaitedForDataWarning",
    "Warning",
    "__version__",
    "beside",
    "check",
    "compile",
    "explain",
    "federated_round",
    "gpu",
    "gpus",
    "largest_batch",
    "library_version",
    "loader_rates",
    "optimizer_load",
    "options_from",
    "plan",
    "predict",
    "ready_jobs",
    "record",
    "record_trace",
    "steps_to_loss",
    "sweep",
    "trajectory",
    "verify",
]
