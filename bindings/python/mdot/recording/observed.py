"""A training's configuration, as far as PyTorch's objects show it: precision, layout, optimizer, compilation,
parallelism, GPU and software. It reads only modules in the process: a training with JAX lacks these objects."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any, Iterator

SOFTWARE = ("torch", "lightning", "pytorch-lightning", "transformers", "accelerate", "deepspeed", "torchtitan", "flash-attn",
            "triton", "jax")  # fmt: skip
"""Packages whose versions are recorded if the process has loaded them."""


def torch_if_loaded() -> Any:
    """The module torch; None before the process loads it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "__version__") else None  # a folder of this name is a module, too


def _class_names(value: Any) -> set[str]:
    return {kind.__name__ for kind in type(value).__mro__}


# ---- Processes and devices -------------------------------------------------------------------------------------------


def _distributed() -> Any:
    torch = torch_if_loaded()
    distributed = getattr(torch, "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def rank() -> int:
    """This process's number among the training processes: from torch.distributed, or else torchrun's RANK."""
    distributed = _distributed()
    return int(distributed.get_rank()) if distributed is not None else _whole_of_environment("RANK", 0)


def world() -> dict[str, int]:
    """The options gpus and nodes, if several processes train."""
    distributed = _distributed()
    size = int(distributed.get_world_size()) if distributed is not None else _whole_of_environment("WORLD_SIZE", 1)
    if size <= 1:
        return {}
    of_node = _whole_of_environment("LOCAL_WORLD_SIZE", size)
    return {"gpus": size, **({"nodes": size // of_node} if 0 < of_node < size and size % of_node == 0 else {})}


def _whole_of_environment(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else default


def device_of(model: Any) -> Any:
    """The training's CUDA device: where the model's parameters are, or the current one if the process uses CUDA. None
    for a CPU, other devices and other frameworks."""
    torch = torch_if_loaded()
    if torch is None:
        return None
    parameter = next(iter(model.parameters()), None) if hasattr(model, "parameters") else None
    if parameter is not None:
        return parameter.device if parameter.device.type == "cuda" else None
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_initialized() else None


def peak_memory(device: Any) -> tuple[int, int] | None:
    """Peaks of allocated and reserved bytes since the process began, or since the program reset them."""
    torch = torch_if_loaded()
    if device is None or torch is None:
        return None
    statistics = torch.cuda.memory_stats(device)
    return int(statistics["allocated_bytes.all.peak"]), int(statistics["reserved_bytes.all.peak"])


def software() -> dict[str, str]:
    """Versions, and the model of the host's CPU."""
    found = {"python": platform.python_version()}
    for package in SOFTWARE:
        if package.replace("-", "_") in sys.modules:
            try:
                found[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                continue
    torch = torch_if_loaded()
    if torch is not None:
        found["torch"] = str(torch.__version__)
        if torch.version.cuda is not None and torch.cuda.is_initialized():
            found.update(cuda=str(torch.version.cuda), cudnn=str(torch.backends.cudnn.version()))
    found["host"] = _cpu_model()
    return found


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.machine()


# ---- The model -------------------------------------------------------------------------------------------------------


def _wrappers(model: Any) -> Iterator[Any]:
    """The model and the modules that it wraps: DistributedDataParallel, FSDP, DeepSpeed's engine, torch.compile."""
    while model is not None:
        yield model
        names = _class_names(model)
        if "OptimizedModule" in names:
            model = model._orig_mod
        elif names & {"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine"}:
            model = model.module
        else:
            return


def of_model(model: Any) -> dict[str, Any]:
    """Options visible in a module: compiled, layout, checkpoint, zero, weight precision."""
    found: dict[str, Any] = {}
    for module in _wrappers(model):
        names = _class_names(module)
        if "OptimizedModule" in names or getattr(module, "_compiled_call_impl", None) is not None:
            found["compiled"] = True
        if names & {"FullyShardedDataParallel", "FSDPModule"}:
            found["zero"] = 3
        if "DeepSpeedEngine" in names:
            found["zero"] = int(module.zero_optimization_stage())
        if getattr(module, "is_gradient_checkpointing", False) is True:
            found["checkpoint"] = "blocks"
        precision = getattr(getattr(module, "mixed_precision", None), "param_dtype", None)
        if str(precision) in ("torch.bfloat16", "torch.float16"):
            found["precision"] = "mixed-bf16" if str(precision) == "torch.bfloat16" else "mixed-fp16"
    if hasattr(model, "parameters"):
        if _is_channels_last(model):
            found["layout"] = "nhwc"
        found.setdefault("precision", _precision_of_weights(model))
    return {name: value for name, value in found.items() if value is not None}


def _is_channels_last(model: Any) -> bool:
    torch = torch_if_loaded()
    return any(
        parameter.dim() == 4
        and parameter.is_contiguous(memory_format=torch.channels_last)
        and not parameter.is_contiguous()
        for parameter in model.parameters()
    )


def _precision_of_weights(model: Any) -> str | None:
    """The precision outside of autocast. None for weights in other types."""
    types = {str(p.dtype) for p in model.parameters() if p.requires_grad and p.is_floating_point()}
    if types == {"torch.bfloat16"}:
        return "bf16"
    return precision_of_fp32() if types == {"torch.float32"} else None


def precision_of_fp32() -> str:
    """The precision of a training in fp32 by PyTorch's settings for TF32: fp32, tf32, or pytorch (TF32 in convolutions)."""
    torch = torch_if_loaded()
    if torch is None:
        return "pytorch"
    if _allows_tf32(torch.backends.cuda.matmul):
        return "tf32"
    return "pytorch" if _allows_tf32(torch.backends.cudnn) else "fp32"


def _allows_tf32(backend: Any) -> bool:
    try:
        return bool(backend.allow_tf32)
    except RuntimeError:  # the program uses PyTorch's newer setting, after which reading the older one fails
        return bool(getattr(backend, "conv", backend).fp32_precision == "tf32")


class AutocastProbe:
    """Sees the autocast in a module's first forward pass, in a hook that removes itself."""

    def __init__(self, model: Any) -> None:
        """A module compiled in place gets no hook, because torch.compile would trace it. A traced hook stays, because
        its removal would compile the module again."""
        self.precision: str | None = None
        is_hooked = hasattr(model, "register_forward_pre_hook") and getattr(model, "_compiled_call_impl", None) is None
        self._handle = model.register_forward_pre_hook(self._look) if is_hooked else None

    def _look(self, module: Any, _inputs: Any) -> None:
        torch = torch_if_loaded()
        if torch.compiler.is_compiling():  # the module was compiled in place since
            return
        for kind in ("cuda", "cpu"):
            if torch.is_autocast_enabled(kind):
                is_half = torch.get_autocast_dtype(kind) == torch.float16
                self.precision = "amp-fp16" if is_half else "amp-bf16"
                break
        if self._handle is not None:
            self._handle.remove()
            self._handle = None


# ---- The optimizer ---------------------------------------------------------------------------------------------------

_OPTIMIZERS = {
    "SGD": "sgd",
    "Adam": "adam",
    "AdamW": "adamw",
    "Adam8bit": "adam8bit",
    "AdamW8bit": "adamw8bit",
    "PagedAdam8bit": "adam8bit",
    "PagedAdamW8bit": "adamw8bit",
    "AdamW8bitAo": "adamw8bit",
    "FusedAdam": "adamw-fused",
    "Adafactor": "adafactor",
    "Lion": "lion",
    "Muon": "muon",
}
"""Classes of torch.optim, bitsandbytes, torchao, apex and transformers, and mdot's words for them."""


def unwrapped(optimizer: Any) -> Any:
    """The optimizer behind Accelerate's, Lightning's and ZeRO's wrappers."""
    for _ in range(8):
        inner = getattr(optimizer, "optimizer", None) or getattr(optimizer, "optim", None)
        if inner is None or not hasattr(inner, "param_groups"):
            break
        optimizer = inner
    return optimizer


def of_optimizer(optimizer: Any) -> dict[str, Any]:
    """Options that are visible in an optimizer: optimizer, optimizer_kernels, zero."""
    found: dict[str, Any] = {"zero": 1} if "ZeroRedundancyOptimizer" in _class_names(optimizer) else {}
    inner = unwrapped(optimizer)
    word = next((_OPTIMIZERS[kind.__name__] for kind in type(inner).__mro__ if kind.__name__ in _OPTIMIZERS), None)
    if word is None:
        return found
    settings = inner.param_groups[0] if getattr(inner, "param_groups", None) else {}
    if word == "sgd" and not settings.get("momentum"):
        word = "sgd-plain"
    if settings.get("fused"):
        if word in ("adam", "adamw"):
            word += "-fused"
        else:
            found["optimizer_kernels"] = "fused"
    elif settings.get("foreach") is False:
        found["optimizer_kernels"] = "for-loop"
    return {**found, "optimizer": word}
