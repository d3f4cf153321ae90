"""Refuses example inputs that a trace cannot use, each with the remedy, before the module sees them."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping, Set
from typing import Any, Iterator, Sequence

from mdot.library.errors import InvalidArgumentError


def is_module(value: Any) -> bool:
    """A module of PyTorch, whether or not PyTorch can be imported."""
    return any(kind.__module__ == "torch.nn.modules.module" and kind.__name__ == "Module" for kind in type(value).__mro__)


def named(value: Any) -> str:
    """A value in messages: its class, or short text."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    if _is_tensor(value):
        return "a nested tensor" if value.is_nested else "a tensor"
    text = repr(value)
    is_short = len(text) < 40 and "\n" not in text and " at 0x" not in text and text != kind
    return text if is_short else f"a{'n' if kind[0] in 'aeioAEIO' else ''} {kind}"


def check_text(option: str, value: Any) -> None:
    if not isinstance(value, str):
        remedy = "; for a module, use Job.from_torch" if is_module(value) else ""
        raise InvalidArgumentError(f"{option} is {named(value)}: pass a name{remedy}")


def check_inputs(args: Sequence[Any], kwargs: Mapping[str, Any], targets: Sequence[Any], batch: int | None) -> None:
    """Raises InvalidArgumentError for missing inputs, an empty batch, arrays, loaders, texts, and numbers alone."""
    if not isinstance(kwargs, Mapping):
        raise InvalidArgumentError(f"example_kwargs is {named(kwargs)}: pass a dictionary of arguments by name")
    wrong = next((name for name in kwargs if not isinstance(name, str)), None)
    if wrong is not None:
        raise InvalidArgumentError(f"example_kwargs has the key {wrong!r}: keys are names of arguments")
    if not args and not kwargs and batch is None:
        raise InvalidArgumentError(
            "example inputs are missing: pass a batch of tensors as the module takes them, for example torch.zeros(8, 3, 224, 224)"
        )
    inputs = [(f"example_inputs[{i}]", one) for i, one in enumerate(args)]
    inputs += [(f"example_kwargs[{name!r}]", one) for name, one in kwargs.items()]
    leaves = [leaf for name, one in inputs for leaf in _leaves(name, one)]
    for name, value in [*leaves, *(leaf for i, one in enumerate(targets) for leaf in _leaves(f"targets[{i}]", one))]:
        remedy = _remedy(value)
        if remedy is not None:
            raise InvalidArgumentError(f"{name} is {named(value)}: {remedy}")
    if batch is None:
        _check_numbers(leaves)
        name, first = next(((name, leaf) for name, leaf in leaves if _is_tensor(leaf) and leaf.ndim > 0), ("", None))
        if first is not None and first.shape[0] == 0:
            raise InvalidArgumentError(f"{name} is a batch of 0, with the shape {list(first.shape)}: pass at least two samples")


def _check_numbers(leaves: Sequence[tuple[str, Any]]) -> None:
    """Refuses inputs of numbers alone, because they have no batch."""
    if not leaves or not all(value is None or isinstance(value, numbers.Number) for _, value in leaves):
        return
    name, first = leaves[0]
    extents = [value for _, value in leaves if isinstance(value, int) and value > 0]
    is_shape = 1 < len(extents) == len(leaves) <= 5 and not any("][" in name for name, _ in leaves)
    shape = ", ".join(map(str, extents)) if is_shape else "8, 256"
    raise InvalidArgumentError(
        f"{name} is {named(first)}, and no example input is a tensor: pass a batch of tensors, for example torch.zeros({shape})"
    )


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values in lists, tuples and dictionaries, with their paths."""
    if isinstance(value, (list, tuple)):
        for i, one in enumerate(value):
            yield from _leaves(f"{name}[{i}]", one)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(f"{name}[{key!r}]", one)
    else:
        yield name, value


def _is_tensor(value: Any) -> bool:
    return any(kind.__name__ == "Tensor" and kind.__module__.startswith("torch") for kind in type(value).__mro__)


def _remedy(value: Any) -> str | None:
    """The way to a tensor from a value of another kind; None for a tensor, and for kinds that a module may take."""
    if _is_tensor(value):
        return "pass a tensor with padding, as value.to_padded_tensor(0)" if value.is_nested else None
    libraries = {kind.__module__.partition(".")[0] for kind in type(value).__mro__}
    names = {kind.__name__ for kind in type(value).__mro__}
    if libraries & {"numpy", "cupy", "jax", "jaxlib", "tensorflow"} and hasattr(value, "shape"):
        return "pass tensors, for example torch.from_numpy(array)"
    if libraries & {"pandas", "polars", "pyarrow"}:
        return "pass tensors, for example torch.from_numpy(frame.to_numpy())"
    if "PIL" in libraries:
        return "pass tensors, for example torchvision.transforms.functional.to_tensor(image)[None]"
    if isinstance(value, (str, bytes, os.PathLike)):
        return "pass tensors, for example those of a tokenizer with return_tensors=\"pt\""
    if isinstance(value, (Set, range)):
        return "pass a tensor, a tuple or a dictionary of tensors"
    if names & {"DataLoader", "Dataset", "IterableDataset"} or (hasattr(value, "__next__") and hasattr(value, "__iter__")):
        return "pass a batch of it, for example next(iter(loader))"
    return "pass an instance or a tensor" if isinstance(value, type) else None
