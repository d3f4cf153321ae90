"""Exceptions of the traced module as mdot.TracedModuleError: they name the module and the remedy."""

from __future__ import annotations

import contextlib
import inspect
import logging
import re
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Iterator, Sequence

import torch
from torch import nn

from mdot.library.errors import Error, TracedModuleError, UnsupportedError
from mdot.trace.replacements import ComputesGradients


@contextlib.contextmanager
def explained(model: nn.Module, name: str, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> Iterator[None]:
    """Converts exceptions of a module with these inputs. The original exception is the cause of the new one."""
    try:
        with quiet():
            yield
    except Error:
        raise
    except Exception as fault:
        path = _path_of(model, fault)
        where = f"{name}: {path}" if path else name
        if isinstance(fault, ComputesGradients):
            what = f"{where} runs a backward pass of its own ({fault}), which a job adds by itself"
            raise UnsupportedError(f"{what}; {_LOSS}") from None
        first = str(fault).strip().partition("\n")[0] or _raising_line(fault)
        what = f"{where} raised {type(fault).__name__}: {first}; {_remedy(fault, model, args, kwargs)}"
        if isinstance(fault, StopIteration):  # contextlib would raise a cause of this kind instead
            raise TracedModuleError(what) from None
        raise TracedModuleError(what) from fault


_LOSS = "pass a module or a step that returns the loss without a call of backward"


_OWN = "the module itself raised it: run it on the example inputs outside of mdot, as model.train()(*example_inputs)"


def _raising_line(fault: BaseException) -> str:
    """The line that raised an exception without a text."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    return frame.line or f"line {frame.lineno} of {frame.filename}"


def _is_own(fault: BaseException) -> bool:
    """Whether code outside of PyTorch raised the exception in a statement of its own."""
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    libraries = (*torch.__path__, str(Path(__file__).parent))
    return not frame.filename.startswith(libraries) and (frame.line or "").startswith(("raise", "assert"))


def _remedy(fault: Exception, model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    text = str(fault)
    mappings = [one for one in args if isinstance(one, Mapping)]
    if any(frame.filename.endswith("accelerate/hooks.py") for frame in traceback.extract_tb(fault.__traceback__)):
        return "trace it before accelerate's hooks are added: accelerate.hooks.remove_hook_from_module(model, recurse=True) removes them"
    number = re.search(r"must be (?:Tensor|a tensor), not (int|float|bool|NoneType|list|tuple|str)\b", text)
    if "more than 1 value per channel" in text:
        return "use example inputs with at least two samples"
    if len(mappings) == len(args) > 1 and len({frozenset(one) for one in mappings}) == 1:
        return "the example inputs are a list of samples: pass a batch of them, torch.utils.data.default_collate(samples)"
    if isinstance(fault, TypeError) and len(mappings) == len(args) == 1 and set(mappings[0]) <= _parameters(model):
        return "the example input is a dictionary of arguments: pass it as example_kwargs"
    if isinstance(fault, KeyError) and fault.args and all(fault.args[0] not in one for one in (*mappings, kwargs)):
        held = sorted({str(key) for one in (*mappings, kwargs) for key in one})
        return f"the example inputs hold {', '.join(held)}" if held else "the example inputs hold no dictionary with this key"
    if number is not None:
        return f"pass a tensor there instead of a value of type {number[1]}"
    if isinstance(fault, TypeError) and "argument" in text:
        return "check the example inputs: example_inputs holds positional arguments, and example_kwargs holds those with names"
    if re.search("multiplies equal types|should be the same|scalar type|same dtype|dtype .* does not match", text):
        return "give the example inputs the type that the weights have, for example x.float()"
    if (layout := re.match(r"Sparse (CSR|CSC|BSR|BSC) tensors", text)) is not None:
        made = f"replace each {layout[1]} tensor by tensor.to_dense().to_sparse(), which has the same elements"
        return f"a trace takes sparse tensors in the COO layout alone: {made}"
    if "same device" in text:
        return "the example inputs are traced on the CPU: let the module make tensors on its input's device, as x.device"
    if ".numpy()" in text:
        return "a trace has tensors without data: convert them outside of the module"
    if isinstance(fault, RecursionError):
        return "its modules or functions call each other without an end"
    if isinstance(fault, ModuleNotFoundError):
        return f"install {fault.name}, or let the module run without it"
    if _is_own(fault):
        return _OWN
    if isinstance(fault, (RuntimeError, IndexError, ValueError, TypeError)):
        return "check the shapes and types of the example inputs; the module runs in training mode on tensors without data"
    return "check that the module runs in training mode on the example inputs"


def _parameters(model: nn.Module) -> set[str]:
    """The names of the forward function's arguments."""
    return set(inspect.signature(getattr(model, "model", model).forward).parameters)


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
