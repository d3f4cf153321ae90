"""Builds a step without computing its weights: on fake CUDA tensors for the reference, and on the meta device for mdot."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from mdot_lab.checks.memory.step import Step, convert, replace_tensors


class _RealSequences(TorchFunctionMode):
    """Computes torch.linspace and functions on the results, because constructors read stochastic-depth rates from it."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.linspace:
            with unset_fake_temporarily():
                return func(*args, **{**kwargs, "device": "cpu"})
        tensors = [leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if tensors and all(not isinstance(tensor, FakeTensor) and tensor.device.type == "cpu" for tensor in tensors):
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        return func(*args, **kwargs)


@contextlib.contextmanager
def _convertible() -> Iterator[None]:
    """Module.to and its kin replace the parameters of fake modules, because PyTorch's own way fails on fake tensors."""

    def apply(module: torch.nn.Module, change: Callable, recurse: bool = True) -> torch.nn.Module:
        replace_tensors(module, change)
        return module

    original = torch.nn.Module._apply
    torch.nn.Module._apply = apply
    try:
        yield
    finally:
        torch.nn.Module._apply = original


def on_fake_cuda(make: Callable[[], Step], precision: str, mode: FakeTensorMode) -> Step:
    """The step on fake CUDA tensors. A network whose constructor reads values is built on the CPU and then becomes fake."""
    try:
        with mode, torch.device("cuda"), _RealSequences(), _convertible():
            step = make()
    except DataDependentOutputException:
        step = make()
    with mode:
        return convert(step, precision, "cuda")


def on_meta(make: Callable[[], Step], precision: str) -> Step:
    """The step on the meta device with inputs of zeros on the CPU, or all on the CPU if the constructor reads values."""
    device = "meta"
    try:
        with torch.device("meta"), _RealSequences():
            step = make()
    except (RuntimeError, NotImplementedError):
        step, device = make(), "cpu"
    step = convert(step, precision, device)

    def zeros(value: Any) -> Any:
        return torch.zeros(value.shape, dtype=value.dtype) if isinstance(value, torch.Tensor) else value

    return Step(step.module, _pytree.tree_map(zeros, step.arguments), _pytree.tree_map(zeros, step.keywords))
