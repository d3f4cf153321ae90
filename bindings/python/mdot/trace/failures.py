"""Exceptions of the traced module as mdot.TracedModuleError: they name the module and the remedy."""

from __future__ import annotations

import contextlib
import logging
import warnings
from typing import Iterator

import torch
from torch import nn

from mdot.library.errors import Error, TracedModuleError, UnsupportedError
from mdot.trace.replacements import ComputesGradients


@contextlib.contextmanager
def explained(model: nn.Module, name: str) -> Iterator[None]:
    """Converts exceptions. The original exception is the cause of the new one."""
    try:
        with quiet():
            yield
    except Error:
        raise
    except Exception as fault:
        path = _path_of(model, fault)
        where = f"{name}: {path}" if path else name
        if isinstance(fault, ComputesGradients):
            what = f"{where} computes gradients in its forward pass ({fault}), which a job cannot express"
            raise UnsupportedError(f"{what}; {_LOSS}") from None
        first = str(fault).strip().partition("\n")[0]
        raise TracedModuleError(f"{where} raised {type(fault).__name__}: {first}; {_remedy(fault)}") from fault


_LOSS = (
    "pass a module or a step that returns the value before the gradient, for example an energy instead of its forces, or a loss "
    "without a call of backward"
)


def _remedy(fault: Exception) -> str:
    text = str(fault)
    if "more than 1 value per channel" in text:
        return "use example inputs with at least two samples"
    if isinstance(fault, TypeError) and "argument" in text:
        return "check the example inputs: example_inputs holds positional arguments, and example_kwargs holds those with names"
    if isinstance(fault, (RuntimeError, IndexError, ValueError, TypeError)):
        return "check the shapes and types of the example inputs; the module runs in training mode on tensors without data"
    return "check that the module runs in training mode on the example inputs"


def _path_of(model: nn.Module, fault: BaseException) -> str:
    """The path of the innermost module whose code the exception passed through."""
    paths = {id(module): name for name, module in model.named_modules()}
    found, frame = "", fault.__traceback__
    while frame is not None:
        owner = frame.tb_frame.f_locals.get("self")
        if isinstance(owner, nn.Module):
            found = paths.get(id(owner)) or found
        frame = frame.tb_next
    return found


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silences PyTorch's own log for an exception with an explanation by mdot, and its warning about mdot's hooks."""
    logger = logging.getLogger(torch._subclasses.fake_tensor.__name__)
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)`")
            yield
    finally:
        logger.disabled = before
