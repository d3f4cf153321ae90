"""Catalogue rows, and how this machine's libraries build them as modules."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, field
from typing import Any

SIZE = "$size"
"""Placeholder in constructor arguments for the configuration's size, for modules whose parameters depend on it."""

LIBRARIES = ("torch", "torchvision", "timm", "transformers")


@dataclass(frozen=True)
class Architecture:
    """One network: the data needed to build it again on any machine, without its weights."""

    name: str                           # unique in the catalogue: "<library>/<name>"
    family: str                         # unit of leave-one-family-out; the order interleaves families
    library: str                        # one of LIBRARIES; "torch" means implemented in mdot_lab.collect.models
    builder: str                        # the constructor, in the syntax of the library's adapter below
    task: str                           # row of tasks.TASKS: inputs and loss
    sizes: tuple[int, ...]              # resolutions, sequence lengths or feature counts
    batches: tuple[int, ...]            # ascending
    arguments: dict[str, Any] = field(default_factory=dict)
    channels_last: bool = False         # whether to measure NHWC: true for networks with 2-D convolutions

    def arguments_at(self, size: int) -> dict[str, Any]:
        """Constructor arguments with SIZE replaced."""
        return {name: size if value == SIZE else value for name, value in self.arguments.items()}


class Unavailable(Exception):
    """The libraries of this machine cannot build the architecture: the library is missing or too old. This is no failed
    measurement."""


def missing_libraries() -> list[str]:
    """LIBRARIES that are missing here."""
    return [library for library in LIBRARIES if importlib.util.find_spec(library) is None]


def _build_torch(builder: str, arguments: dict[str, Any]):
    module, function = builder.split(".")
    return getattr(importlib.import_module(f"mdot_lab.collect.models.{module}"), function)(**arguments)


def _build_torchvision(builder: str, arguments: dict[str, Any]):
    from torchvision import models

    if builder not in models.list_models(module=models):
        raise Unavailable(f"this torchvision has no {builder}")
    return models.get_model(builder, weights=None, **arguments)


def _build_timm(builder: str, arguments: dict[str, Any]):
    import timm

    if not timm.is_model(builder):
        raise Unavailable(f"this timm has no {builder}")
    return timm.create_model(builder, pretrained=False, **arguments)


def _build_transformers(builder: str, arguments: dict[str, Any]):
    import transformers

    from mdot_lab.collect.models.wrapped import LogitsOnly

    prefix, head = builder.split(":")   # "Bert:ForMaskedLM" is BertForMaskedLM(BertConfig(...))
    config_class = getattr(transformers, f"{prefix}Config", None)
    model_class = getattr(transformers, f"{prefix}{head}", None)
    if config_class is None or model_class is None:
        raise Unavailable(f"this transformers has no {prefix}{head}")
    return LogitsOnly(model_class(config_class(**arguments)))


_ADAPTERS = {"torch": _build_torch, "torchvision": _build_torchvision, "timm": _build_timm,
             "transformers": _build_transformers}


def build(architecture: Architecture, size: int, device: str):
    """Builds the module with random weights on `device`, in training mode.

    Raises Unavailable, or the exception of the constructor.
    """
    import torch

    if importlib.util.find_spec(architecture.library) is None:
        raise Unavailable(f"{architecture.library} is not installed")
    adapter, arguments = _ADAPTERS[architecture.library], architecture.arguments_at(size)
    torch.manual_seed(0)
    try:
        # Initialising a few hundred million weights takes seconds on a host and milliseconds on the GPU.
        with torch.device(device):
            model = adapter(architecture.builder, arguments)
    except (TypeError, RuntimeError, NotImplementedError) as fault:
        if device == "cpu" or isinstance(fault, torch.OutOfMemoryError):
            raise
        # Some constructors pass tensors through NumPy or mix devices. Those are built on the host.
        model = adapter(architecture.builder, arguments)
    return model.to(device).train()
