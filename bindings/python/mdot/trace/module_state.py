"""A module's state during a trace: stand-ins for tensors, and the restoration afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from mdot.trace.known_calls import outside


def plain(out: Any) -> Any:
    """The fields of dataclasses, as in transformers and diffusers."""
    if dataclasses.is_dataclass(out) and not isinstance(out, type):
        return [getattr(out, field.name, None) for field in dataclasses.fields(out)]
    return list(out.values()) if isinstance(out, Mapping) else out


_HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
"""Dictionaries of a module's hooks."""


@contextlib.contextmanager
def left_alone(model: nn.Module) -> Iterator[None]:
    """Restores all modules' attributes, parameters, buffers and hooks afterwards, because some modules keep computed
    values and some install hooks in the first run."""
    members = ("_parameters", "_buffers", "_modules", *_HOOKS)
    before = [
        (module, dict(vars(module)), [dict(getattr(module, name)) for name in members]) for module in model.modules()
    ]
    try:
        yield
    finally:
        _clear_caches({kind for module, *_ in before for kind in type(module).__mro__})
        for module, attributes, dictionaries in before:
            vars(module).clear()
            vars(module).update(attributes)
            for name, content in zip(members, dictionaries):
                getattr(module, name).clear()
                getattr(module, name).update(content)


def _clear_caches(kinds: Iterable[type]) -> None:
    """Empties functools.lru_cache of the modules' methods, because a run may have left tensors without data there."""
    for kind in kinds:
        for member in vars(kind).values():
            _clear_cache(getattr(member, "__func__", member), 4)


def _clear_cache(function: Any, depth: int) -> None:
    """`depth` is the number of decorators around the method."""
    if isinstance(function, functools._lru_cache_wrapper):
        function.cache_clear()
    for cell in getattr(function, "__closure__", None) or () if depth > 0 else ():
        with contextlib.suppress(ValueError):  # an empty cell
            _clear_cache(cell.cell_contents, depth - 1)


def replace_tensors(model: nn.Module, make: Callable[[torch.Tensor, str, bool], torch.Tensor]) -> None:
    """Replaces parameters, buffers, and attributes that are sparse or on the meta device. `make` is called with each tensor,
    its path, and whether it is a parameter. Tied tensors stay tied."""
    made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # old tensors stay alive, so that no new one has the same
                                                             # id
    for path, module in model.named_modules():
        plain = {key: one for key, one in vars(module).items() if isinstance(one, torch.Tensor) and (one.is_meta or one.is_sparse)}
        for members, is_parameter in ((module._parameters, True), (module._buffers, False), (plain, False)):
            for name, tensor in members.items():
                if tensor is None:
                    continue
                if id(tensor) not in made:
                    made[id(tensor)] = tensor, make(tensor, f"{path}.{name}" if path else name, is_parameter)
                members[name] = made[id(tensor)][1]
        vars(module).update(plain)
        if isinstance(module, nn.RNNBase):  # keeps a separate parameter list
            names: Any = module._flat_weights_names
            module._flat_weights = [getattr(module, name, None) for name in names]


def stand_in(
    tensor: torch.Tensor, mode: FakeTensorMode, *, dtype: torch.dtype | None = None, shape: Sequence[int] | None = None
) -> FakeTensor:
    """A fake tensor on the CPU, for a tensor on any device. The type or the shape may differ. One in the COO layout has as
    many elements, or as many for each sample."""
    wanted = dtype if dtype is not None else tensor.dtype
    if tensor.layout == torch.sparse_coo:
        with outside():
            sizes, total, dimensions, is_coalesced = tuple(tensor.shape if shape is None else shape), tensor._nnz(), tensor.sparse_dim(), tensor.is_coalesced()
        count = total * math.prod(sizes) // max(math.prod(tensor.shape), 1)
        with mode:
            values, indices = torch.empty((count, *sizes[dimensions:]), dtype=wanted), torch.empty((dimensions, count), dtype=torch.int64)
            return torch.sparse_coo_tensor(indices, values, sizes, check_invariants=False, is_coalesced=is_coalesced)  # type: ignore[return-value]
    with outside():
        if shape is None or tuple(shape) == tuple(tensor.shape):
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=wanted, device="meta")
        else:
            made = torch.empty(tuple(shape), dtype=wanted, device="meta")
        return FakeTensor(mode, made, torch.device("cpu"))
