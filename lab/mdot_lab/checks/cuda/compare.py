"""The steps of modules.py on fake CUDA tensors, as a plain dispatch mode sees them, and in mdot's record.

Equal are: the operators without views, in both passes; the sizes of the tensors that the forward pass keeps; and the peak.
The plain mode frees a tensor when Python and autograd do. MemTracker keeps the dead part of a graph behind `.detach()`.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gc
import warnings
import weakref
from typing import Any, Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from mdot.trace import training_run
from mdot.trace.timeline import NEVER, Timeline
from mdot_lab.checks.cuda import modules
from mdot_lab.checks.memory import building, fake_cuda
from mdot_lab.checks.memory.attention_kernels import AttentionKernels

VIEWS = frozenset(
    "detach t view expand transpose alias _unsafe_view unsqueeze squeeze select slice permute split unbind unsafe_split as_strided "
    "_reshape_alias reshape".split()
)
EXPLAINED = {"_fused_rms_norm": "empty_like new_empty", "_fused_rms_norm_backward": "empty_like"}
"""Kernels that the CPU lacks, and the operators that stand for their results in the record."""
PEAK_TOLERANCE = 0.05
"""Autocast converts the operands of a cell in another order."""


@dataclasses.dataclass
class Found:
    forward: collections.Counter
    backward: collections.Counter
    saved: collections.Counter
    """Numbers of tensors by size."""
    peak: int


class _Plain(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.live = self.peak = 0
        self.sizes: collections.Counter = collections.Counter()
        self.seen: set[int] = set()

    def _free(self, address: int, size: int) -> None:
        self.live -= size
        self.sizes[size] -= 1
        self.seen.discard(address)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.namespace != "prim":
            self.calls.append(func._schema.name.split("::")[-1])
        for tensor in pytree.tree_leaves(out):
            storage = tensor.untyped_storage() if isinstance(tensor, torch.Tensor) else None
            if storage is not None and storage._cdata not in self.seen:
                self.seen.add(storage._cdata)
                self.live += storage.nbytes()
                self.peak = max(self.peak, self.live)
                self.sizes[storage.nbytes()] += 1
                weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        return out


def on_cuda(make: modules.Make, precision: str) -> Found:
    mode, plain = FakeTensorMode(allow_non_fake_inputs=True), _Plain()
    step = building.on_fake_cuda(make, precision, mode)
    with mode:
        step.module.train()
        outside = [*step.module.parameters(), *step.module.buffers(), *step.arguments]
        plain.seen.update(tensor.untyped_storage()._cdata for tensor in outside)
        autocast = torch.autocast("cuda", torch.bfloat16) if precision == "amp" else contextlib.nullcontext()
        with plain, AttentionKernels():
            with autocast:
                loss = training_run.loss_of(step.module(*step.arguments))
            count, saved = len(plain.calls), +plain.sizes
            with fake_cuda.backward():
                loss.backward()
    gc.collect()
    return Found(_named(plain.calls[:count]), _named(plain.calls[count:]), saved, plain.peak)


def recorded(make: modules.Make, precision: str) -> Found:
    step = building.on_meta(make, precision)
    batch = step.arguments[0].shape[0]
    with _calls() as calls:
        found = training_run.run(
            step.module, step.arguments, {}, batch, samples=batch, autocast=precision == "amp"
        ).timeline
    inputs = collections.Counter(one.numel() * one.element_size() for one in step.arguments)
    saved = collections.Counter(one.bytes for one in found.allocations if found.is_saved(one)) - inputs
    peak = found.peak - sum(size * n for size, n in inputs.items())
    return Found(*(_named(name for late, name in calls if late == is_backward) for is_backward in (False, True)), saved, peak)


@contextlib.contextmanager
def _calls() -> Iterator[list[tuple[bool, str]]]:
    """The operators that a Timeline sees, and whether each is in the backward pass."""
    own, calls = Timeline.__torch_dispatch__, []

    def call(self: Timeline, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace != "prim":
            calls.append((self.backward_start != NEVER, func._schema.name.split("::")[-1]))
        return own(self, func, types, args, kwargs)

    Timeline.__torch_dispatch__ = call
    try:
        yield calls
    finally:
        Timeline.__torch_dispatch__ = own


def _named(calls: Any) -> collections.Counter:
    return collections.Counter(call for call in calls if call not in VIEWS)


def differences(make: modules.Make, precision: str) -> list[str]:
    """One text for each difference of a module's steps."""
    there, own = on_cuda(make, precision), recorded(make, precision)
    found = []
    for name in ("forward", "backward", "saved"):
        one, two = getattr(there, name), getattr(own, name)
        missing, more = one - two, two - one
        kernels = set(missing) & set(EXPLAINED)
        if kernels and set(missing) == kernels and set(more) <= {word for key in kernels for word in EXPLAINED[key].split()}:
            continue
        missing, more = ({key: n for key, n in rest.items() if key != 0} for rest in (missing, more))
        if missing or more:
            found.append(f"{name}: only on CUDA {missing}, only in the record {more}")
    tolerance = PEAK_TOLERANCE if precision == "amp" else 0
    if abs(there.peak - own.peak) > tolerance * there.peak:
        found.append(f"peak: {there.peak} on CUDA, {own.peak} in the record")
    return found


def compare(names: list[str] = []) -> tuple[int, dict[str, list[str]]]:
    """The number of steps, and the differences by module and precision."""
    makers = modules.makers()
    found, count = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names or makers:
            for precision in ("fp32", "bf16", "amp"):
                try:
                    texts = differences(makers[name], precision)
                except Exception as fault:  # noqa: BLE001 (PyTorch raises many kinds)
                    texts = [f"{type(fault).__name__}: {str(fault).splitlines()[0]}"]
                count += 1
                if texts:
                    found[f"{name}, {precision}"] = texts
    return count, found


def main(names: list[str]) -> None:
    count, found = compare(names)
    for name, texts in found.items():
        print(f"{name}: {'; '.join(texts)}")
    print(f"{count} steps, {len(found)} differ")
