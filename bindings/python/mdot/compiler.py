"""Compiles and verifies predictors with libmdotc, which the package mdot-compiler contains."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import Any, Callable, Mapping, Sequence

from mdot.configuration import Configuration, as_array
from mdot.job import Job, _dims, _warn
from mdot.library import structs as c
from mdot.library.errors import Warning
from mdot.library.libraries import c_int64, call, compiler, encode_path, encode_text, read_text
from mdot.predictor import Predictor


class CompilerWarning(Warning):
    """A warning by the compiler or the verifier about an artefact's limits."""


def compile(
    model: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    buckets: Sequence[int] = (),
    targets: Sequence[str] = (),
    kernel_precision: str | None = None,
    dims: Mapping[str, int | str] | None = None,
    name: str | None = None,
    min_length: int = 0,
    allow_dropped: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    dump_pass: str | None = None,
    dump: Callable[[str], None] | None = None,
) -> Predictor:
    """Compiles an ONNX model into an artefact at `output`, and opens it. A mapping compiles several models, each under
    an entry point's name.

    The options are those of mdotc_options (mdotc.h): lengths to specialise for, targets ("cpu" or GPU
    architectures), kernel precisions, symbolic dimensions, the least length, whether refused
    buckets may be omitted, and a pass to write to `dump`. Raises
    ToolchainError if the package mdot-compiler, a linker or NVRTC is missing.
    """
    library = compiler()
    entries = model if isinstance(model, Mapping) else {"predict": model}
    array = (c.mdotc_entry * max(len(entries), 1))()
    for entry, (entry_name, path) in zip(array, entries.items()):
        entry.struct_size = ctypes.sizeof(entry)
        entry.name, entry.model_path = encode_text(entry_name), encode_path(path)
    messages: list[str] = []
    report_progress = progress or (lambda step, done, total: None)
    show = dump or (lambda text: None)
    bound = dims or {}
    options = c.new(
        c.mdotc_options,
        buckets=(c_int64 * max(len(buckets), 1))(*buckets),
        bucket_count=len(buckets),
        targets=(ctypes.c_char_p * max(len(targets), 1))(*[encode_text(target) for target in targets]),
        target_count=len(targets),
        kernel_precision=encode_text(kernel_precision) if kernel_precision is not None else None,
        dims=_dims(bound),
        dim_count=len(bound),
        name=encode_text(name) if name is not None else None,
        min_length=min_length,
        allow_dropped=allow_dropped,
        dump_pass=encode_text(dump_pass) if dump_pass is not None else None,
        dump=c.MESSAGE_FUNCTION(lambda _, text: show(read_text(text))),
        warning=c.MESSAGE_FUNCTION(lambda _, text: messages.append(read_text(text))),
        progress=c.PROGRESS_FUNCTION(lambda _, step, done, total: report_progress(read_text(step), done, total)),
    )
    call(library.mdotc_compile, array, len(entries), encode_path(output), ctypes.byref(options))
    for text in messages:
        _warn(text, CompilerWarning)
    return Predictor(output)


@dataclasses.dataclass(frozen=True)
class Row:
    """The worst difference found for one bucket on one ISA level or GPU (mdotc.h, mdotc_verify_row)."""

    entry: str
    level: str
    passed: bool
    max_length: int
    worst_length: int
    worst_error: float
    bound: float


@dataclasses.dataclass(frozen=True)
class Verification:
    passed: bool
    rows: tuple[Row, ...]

    def __bool__(self) -> bool:
        return self.passed


def verify(
    artefact: str | os.PathLike[str] | Predictor,
    model: str | os.PathLike[str],
    *,
    dims: Mapping[str, int | str] | None = None,
    entry: str | None = None,
    tolerance: float = 0.0,
    seed: int = 0,
    inputs: str | os.PathLike[str] | None = None,
    jobs: Sequence[tuple[Job, Configuration]] = (),
) -> Verification:
    """Compares an artefact's code with the model in double precision, on every ISA level of this machine.

    The options are those of mdotc_verify_options (mdotc.h). The result is true if every row passed.
    """
    library = compiler()
    rows: list[Row] = []
    messages: list[str] = []

    def add_row(_: int, row: ctypes._Pointer[c.mdotc_verify_row]) -> None:
        at = row.contents
        rows.append(
            Row(
                read_text(at.entry),
                read_text(at.level),
                at.passed,
                at.max_length,
                at.worst_length,
                at.worst_error,
                at.bound,
            )
        )

    bound = dims or {}
    keep: list[Any] = []
    options = c.new(
        c.mdotc_verify_options,
        dims=_dims(bound),
        dim_count=len(bound),
        entry=encode_text(entry) if entry is not None else None,
        tolerance=tolerance,
        seed=seed,
        row=c.ROW_FUNCTION(add_row),
        warning=c.MESSAGE_FUNCTION(lambda _, text: messages.append(read_text(text))),
        inputs=encode_path(inputs) if inputs is not None else None,
        jobs=(ctypes.c_void_p * max(len(jobs), 1))(*(job._handle.value for job, _ in jobs)),
        configurations=as_array((configuration for _, configuration in jobs), keep),
        job_count=len(jobs),
    )
    passed = ctypes.c_bool()
    path = artefact.path if isinstance(artefact, Predictor) else artefact
    call(library.mdotc_verify, encode_path(path), encode_path(model), ctypes.byref(options), ctypes.byref(passed))
    for text in messages:
        _warn(text, CompilerWarning)
    return Verification(passed.value, tuple(rows))


CHECK_RESULTS = ("pass", "fail", "unsupported")


@dataclasses.dataclass(frozen=True)
class Check:
    """The result of a model's test data (mdotc.h, mdotc_check_report)."""

    result: str
    """pass, fail or unsupported."""
    worst_error: float
    """Largest `|got - want| / max(|want|, 1)` of a floating output."""
    data_sets: int
    detail: str
    """A failure's output and element, or an unsupported model's operators."""

    def __bool__(self) -> bool:
        return self.result == "pass"


def check(
    directory: str | os.PathLike[str],
    *,
    level: str | None = None,
    relative_tolerance: float = 0.0,
    absolute_tolerance: float = 0.0,
) -> Check:
    """Compiles directory/model.onnx and compares it with every test_data_set_* there, in the layout of ONNX's own tests."""
    options = c.new(
        c.mdotc_check_options,
        level=encode_text(level) if level is not None else None,
        relative_tolerance=relative_tolerance,
        absolute_tolerance=absolute_tolerance,
    )
    report = c.new(c.mdotc_check_report)
    call(compiler().mdotc_check, encode_path(directory), ctypes.byref(options), ctypes.byref(report))
    return Check(CHECK_RESULTS[report.result], report.worst_error, report.data_sets, read_text(report.detail))
