"""Finds the module to trace in a user's object, and refuses untraceable objects, with a remedy."""

from __future__ import annotations

import inspect
from typing import Any, Iterator, Mapping

import torch
from torch import nn

from mdot.example_inputs import named
from mdot.library.errors import InvalidArgumentError, UnsupportedError

_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "DeepSpeedEngine": "module",
    "OptimizedModule": "_orig_mod",  # torch.compile
}
"""Classes around a module with whole parameters, and the attribute with the module."""
_UNSHARDED = "and describe the sharding with the options data_parallel, tensor_parallel and zero of the prediction"


class Shell(nn.Module):
    """Runs a module in another way than its forward function. The module's paths stay the same."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def named_modules(
        self, memo: set[nn.Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Module]]:
        yield from self.model.named_modules(memo, prefix, remove_duplicate)


class Method(Shell):
    """Runs a method of a module, for example training_step."""

    def __init__(self, method: Any) -> None:
        super().__init__(method.__self__)
        self.method = method

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.method(*args, **kwargs)


class InAutocast(Shell):
    """Runs a module in 16-bit autocast."""

    def __init__(self, model: nn.Module, dtype: torch.dtype) -> None:
        super().__init__(model)
        self.dtype = dtype

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cuda", self.dtype):
            return self.model(*args, **kwargs)


def title(model: nn.Module) -> str:
    """The module's class name, with the running method's name."""
    if isinstance(model, Method):
        return f"{type(model.model).__name__}.{model.method.__name__}"
    return type(model).__name__


def prepare(given: Any) -> nn.Module:
    """The module with whole parameters behind wrappers such as DistributedDataParallel, torch.compile and torch.export, or a
    module that runs a bound method."""
    if isinstance(given, torch.export.ExportedProgram):
        return given.module()
    if inspect.ismethod(given) and isinstance(given.__self__, nn.Module):
        _check(given.__self__)
        return Method(given)
    while type(given).__name__ in _WRAPPERS and isinstance(given, nn.Module):
        given = getattr(given, _WRAPPERS[type(given).__name__])
    if not isinstance(given, nn.Module):
        raise InvalidArgumentError(_reason(given))
    _check(given)
    if not _has_forward(given):
        kind = type(given).__name__
        remedy = "its method that returns the loss, for example model.training_step with the batch and 0 as inputs"
        raise InvalidArgumentError(f"{kind} has no forward function; pass the module that it trains, or {remedy}")
    return given


def compiled(model: nn.Module) -> list[nn.Module]:
    """The outermost modules that torch.compile compiles, or else the module itself, without a loss around it."""
    found = [module for module in model.modules() if _is_compiled(module)]
    inside = {id(part) for module in found for part in module.modules() if part is not module}
    if found:
        return [module for module in found if id(module) not in inside]
    while isinstance(model, Shell) and (isinstance(model, InAutocast) or hasattr(model, "loss")):
        model = model.model
    return [model]


def is_compiled(given: Any) -> bool:
    """Whether torch.compile compiles most of an object's parameters: all of it, or modules inside."""
    if inspect.ismethod(given):
        given = given.__self__
    if not isinstance(given, nn.Module):
        return False
    inside: dict[int, int] = {}
    for module in given.modules():
        if _is_compiled(module):
            inside.update((id(p), p.numel()) for p in module.parameters())
    return 2 * sum(inside.values()) > sum(p.numel() for p in given.parameters())


def _is_compiled(module: nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def _reason(given: Any) -> str:
    kind = type(given).__name__
    if isinstance(given, Mapping):
        return f"the {kind} holds parameters but no operators; pass the torch.nn.Module that load_state_dict loads it into"
    if isinstance(given, type):
        return f"{given.__name__} is a class; pass an instance, for example one made under torch.device('meta')"
    if callable(given):
        name = getattr(given, "__name__", kind)
        return f"{name} is a function, whose parameters are unknown; pass a torch.nn.Module or a method of one"
    return f"model is {named(given)}, no torch.nn.Module: pass the module to trace"


def _check(model: nn.Module) -> None:
    for path, module in model.named_modules():
        where = f"{path} is" if path else "the module is"
        if isinstance(module, torch.jit.ScriptModule):
            raise UnsupportedError(
                f"{where} a TorchScript module, whose operators run outside of Python; pass the torch.nn.Module from which "
                "torch.jit.script or torch.jit.trace made it"
            )
        names = {kind.__name__ for kind in type(module).__mro__ if kind.__module__.startswith("torch.distributed")}
        if names & {"FSDPModule", "FullyShardedDataParallel"}:
            raise UnsupportedError(f"{where} sharded by FSDP; pass the module before it is wrapped, {_UNSHARDED}")
    for path, parameter in model.named_parameters():
        if nn.parameter.is_lazy(parameter):
            raise InvalidArgumentError(f"the parameter {path} has no shape yet; call the module once on the example inputs")
        if type(parameter).__name__ == "DTensor" or type(parameter.data).__name__ == "DTensor" or hasattr(parameter, "ds_id"):
            raise UnsupportedError(f"the parameter {path} is distributed; pass the module before it is sharded, {_UNSHARDED}")


def _has_forward(model: nn.Module) -> bool:
    """Whether a class below nn.Module and LightningModule, or the object itself, defines forward."""
    if "forward" in vars(model):
        return True
    owner = next(kind for kind in type(model).__mro__ if "forward" in vars(kind))
    return owner is not nn.Module and owner.__name__ != "LightningModule"


def train(model: nn.Module) -> None:
    """Sets the training mode. Exported programs keep the mode in which they were exported."""
    try:
        model.train()
    except NotImplementedError:
        pass
