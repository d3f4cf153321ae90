"""Peak memory of a training step as PyTorch allocates it on a GPU: torch.distributed._tools.MemTracker over two whole
steps on fake CUDA tensors. The peak is that of the second step, because the first step has no optimizer state until
the end.

Counted: parameters, buffers, gradients, optimizer state, inputs, and each tensor that the step makes, in units of
512 bytes. Not counted: the workspaces of cuDNN and cuBLAS, fragmentation, and the context.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import sys
from typing import Callable

from mdot_lab.checks.memory import fake_cuda
from mdot_lab.checks.memory.step import Step

PRECISIONS = ("fp32", "bf16", "amp")
OPTIMIZERS = ("adamw", "adamw-fused", "sgd", "sgd-fused")


@dataclasses.dataclass(frozen=True)
class Reference:
    peak_bytes: int
    parts: dict[str, int]
    """By MemTracker's kinds: Parameter, Buffer, Gradient, Activation, Temp, Optstate, Other."""
    attention: str
    """Kernels of scaled_dot_product_attention, for example "12 flash". Empty: no call."""


@contextlib.contextmanager
def _unpacked_sequences():
    """transformers reads the positions to find out whether sequences are packed. It cannot read fake positions, and would then
    build a mask that no GPU program builds, because the positions of these networks ascend."""
    masks = sys.modules.get("transformers.masking_utils")
    if masks is None:
        yield
        return
    original = masks.find_packed_sequence_indices
    masks.find_packed_sequence_indices = lambda *_, **__: None
    try:
        yield
    finally:
        masks.find_packed_sequence_indices = original


def make_optimizer(name: str, parameters):
    import torch

    way = {"fused": True} if name.endswith("fused") else {"foreach": True}
    if name.startswith("adamw"):
        return torch.optim.AdamW(parameters, lr=1e-4, **way)
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, **way)


class _NoHook:
    def remove(self) -> None:
        """There is nothing to remove."""


def _make_tracker():
    """A MemTracker that accepts frozen parameters. PyTorch's fails on them, because it hooks the gradients of all. It also saves
    two thirds of the time: it answers questions for the device of a fake tensor at once, and finds no peaks of modules."""
    import torch
    from torch.distributed._tools.mem_tracker import _TOTAL_KEY, MemTracker

    question = torch.ops.prim.device.default

    class Tracker(MemTracker):
        def _track_module_params_and_buffers(self, module, install_grad_hooks: bool = True) -> tuple[int, int]:
            for parameter in module.parameters():
                if not parameter.requires_grad:
                    self._param_to_grad_hook_handles[parameter] = (_NoHook(), _NoHook())
            return super()._track_module_params_and_buffers(module, install_grad_hooks)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return args[0].device if func is question else super().__torch_dispatch__(func, types, args, kwargs)

        def _update_peak_stats(self, peak_state) -> None:
            for device, sizes in self._curr_mem_snap.items():
                if self._peak_mem.get(device, 0) < sizes[_TOTAL_KEY]:
                    self._peak_mem[device], self._peak_mem_snap[device] = sizes[_TOTAL_KEY], dict(sizes)

    return Tracker()


def peak(make: Callable[[], Step], precision: str, optimizer: str) -> Reference:
    """Peak during the second step of the module from `make`."""
    fake_cuda.install()
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils import _pytree

    from mdot_lab.checks.memory import building
    from mdot_lab.checks.memory.attention_kernels import AttentionKernels

    kernels = AttentionKernels()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    step = building.on_fake_cuda(make, precision, mode)
    with mode:
        trained = [parameter for parameter in step.module.parameters() if parameter.requires_grad]
        update = make_optimizer(optimizer, trained)
        inputs = [leaf for leaf in _pytree.tree_leaves((step.arguments, step.keywords)) if isinstance(leaf, torch.Tensor)]
        tracker = _make_tracker()
        tracker.track_external(step.module, update, *inputs)
        autocast = torch.autocast("cuda", torch.bfloat16) if precision == "amp" else contextlib.nullcontext()
        with tracker:
            for iteration in range(2):
                with kernels, autocast, _unpacked_sequences():
                    loss = step.module(*step.arguments, **step.keywords)
                # Checkpointed regions run again in the backward pass, and then call attention again.
                calls = dict(kernels.calls)
                with kernels, fake_cuda.backward(), _unpacked_sequences():
                    loss.backward()
                del loss
                update.step()
                update.zero_grad()
                if iteration == 0:
                    tracker.reset_mod_stats()
                    kernels.calls.clear()
        snapshots = tracker.get_tracker_snapshot("peak")
        parts = {getattr(kind, "value", kind): size for device, sizes in snapshots.items() if device.type == "cuda"
                 for kind, size in sizes.items()}
    del step, update, inputs, trained, tracker
    gc.collect()
    return Reference(parts.pop("Total"), parts, ", ".join(f"{count} {name}" for name, count in sorted(calls.items())))
