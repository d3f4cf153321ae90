"""Known contents of fake tensors.

Values independent of the module's parameters (masks, positions, targets) are also computed for real, if they are
small, so that a module may base decisions on them.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.weak import WeakIdKeyDictionary

DataDependent = (DataDependentOutputException, DynamicOutputShapeException)

MOST_KNOWN = 1 << 22
"""Most elements in a tensor computed for real beside the run."""


class KnownContents:
    def __init__(self) -> None:
        self._contents: Any = WeakIdKeyDictionary()

    def add(self, tensor: torch.Tensor, content: torch.Tensor) -> None:
        if content.numel() <= MOST_KNOWN:
            self._contents[tensor] = content

    def get(self, tensor: torch.Tensor) -> torch.Tensor | None:
        found: torch.Tensor | None = self._contents.get(tensor)
        return found

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operator, and also on its operands' contents if all are known."""
        if func is torch.ops.aten._ctc_loss.Tensor and (made := self._align(*args[:4])) is not None:
            return made
        depends, out = _depends_on_data(func), None
        if not depends:
            out = func(*args, **kwargs)
            if any(tensor.numel() > MOST_KNOWN for tensor in tensors_of(out)):
                return out
        known = self._compute(func, args, kwargs)
        if func._schema.name == "aten::rand" and known is not None and known.numel() == 1:
            with outside():
                known = torch.ones_like(known)  # so that stochastic depth keeps every layer
        if depends and known is not None:
            return self._pretend(known)
        if depends:
            out = func(*self._with_places(func, args), **kwargs)
        if known is not None:
            fakes, contents = pytree.tree_leaves(out), pytree.tree_leaves(known)
            for fake, content in zip(fakes, contents):
                if isinstance(fake, torch.Tensor) and isinstance(content, torch.Tensor):
                    self.add(fake, content)
        elif func._schema.is_mutable:
            for tensor in tensors_of(out):
                self._contents.pop(tensor, None)
        return out

    def _align(self, scores: Any, targets: Any, _: Any, lengths: Any) -> Any:
        """The results of CTC: a loss for each sample, and its variables for each frame, label and gap."""
        content = self.get(lengths)
        if content is None and targets.ndim < 2:
            return None
        with outside():
            longest = int(content.max()) if content is not None else targets.shape[1]
        samples = scores.shape[1]
        return scores.new_empty(samples), scores.new_empty(samples, scores.shape[0], 2 * longest + 1)

    def _with_places(self, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an index with places instead of known masks, for example those of
        `scores[~torch.eye(32, dtype=torch.bool)]`: the result's shape follows from the mask alone."""
        if func._schema.name != "aten::index":
            return args
        indices: list[Any] = []
        for index in args[1]:
            content = self.get(index) if isinstance(index, torch.Tensor) and index.dtype == torch.bool else None
            if content is None:
                indices.append(index)
                continue
            with outside():
                places = content.nonzero().unbind(1)
            indices += self._pretend(list(places))
        return (args[0], indices)

    def _compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result on known contents; None if the content of an operand is unknown."""
        for tensor in tensors_of((args, kwargs)):
            if tensor not in self._contents and (isinstance(tensor, FakeTensor) or tensor.numel() > MOST_KNOWN):
                return None

        def content(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                known = self._contents.get(leaf, leaf)
                return known.clone() if func._schema.is_mutable else known
            return torch.device("cpu") if isinstance(leaf, torch.device) else leaf

        if not _is_small(func, args):
            return None
        with outside():
            try:
                return func(*pytree.tree_map(content, args), **pytree.tree_map(content, kwargs))
            except Exception:  # if the computation fails, the result is unknown
                return None

    def _pretend(self, known: Any) -> Any:
        """Wraps a result with a data-dependent shape in fake tensors."""

        def make(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            fake = torch.empty(leaf.shape, dtype=leaf.dtype)  # created in the fake mode below this one
            self.add(fake, leaf)
            return fake

        return pytree.tree_map(make, known)


_DATA_DEPENDENT = {
    "_local_scalar_dense", "item", "nonzero", "nonzero_numpy", "masked_select", "unique", "_unique2", "unique_dim",
    "unique_consecutive", "is_nonzero", "equal", "bincount", "repeat_interleave", "argwhere", "index", "where",
    "combinations", "nms", "allclose",
}  # fmt: skip


def _depends_on_data(func: Any) -> bool:
    """Whether the results' shapes, or Python numbers, depend on tensor contents."""
    name = func._schema.name.split("::")[-1]
    tags = getattr(func, "tags", ())
    return (
        torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags or name in _DATA_DEPENDENT
    )


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _is_small(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether a factory's result is small. Its size is the first argument."""
    if not args or not isinstance(args[0], (list, tuple)):
        return True
    return math.prod(n for n in args[0] if isinstance(n, int)) <= MOST_KNOWN


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Disables all dispatch modes, so that operators compute real values."""
    with _disable_current_modes():
        yield
