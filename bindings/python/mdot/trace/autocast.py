"""CUDA's automatic mixed precision for tensors on the CPU.

A trace runs on the CPU, whose autocast has other operator lists than CUDA's. While `like_cuda` is active, autocast
on the CPU runs CUDA's list in fp32 (PyTorch's documentation, "CUDA Ops that can autocast to float32") and no other
operator, and a module's own `torch.autocast("cuda")` applies as well. Both changes to PyTorch's state end with the
context.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator

import torch
from torch.utils import _pytree as pytree

HALVES = (torch.float16, torch.bfloat16)
_KEY = "AutocastCPU"
_FP32 = (
    "acos", "asin", "binary_cross_entropy_with_logits", "cosh", "cosine_embedding_loss", "cdist", "cosine_similarity", "dist",
    "erfinv", "exp", "expm1", "group_norm", "hinge_embedding_loss", "kl_div", "l1_loss", "layer_norm", "native_layer_norm",
    "log", "log10", "log1p", "log2", "margin_ranking_loss", "mse_loss", "multilabel_margin_loss", "multi_margin_loss",
    "nll_loss", "nll_loss2d", "norm", "pdist", "poisson_nll_loss", "pow", "reciprocal", "rsqrt", "sinh", "smooth_l1_loss",
    "soft_margin_loss", "softplus", "renorm", "tan", "triplet_margin_loss", "rms_norm", "logsumexp",
    "huber_loss", "frobenius_norm", "nuclear_norm", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
    "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "_upsample_bilinear2d_aa",
    "_upsample_bicubic2d_aa",
)  # fmt: skip
"""Operands are converted to fp32."""
_FP32_RESULT = (
    "cumprod", "cumsum", "linalg_matrix_norm", "linalg_vector_norm", "log_softmax", "prod", "softmax", "sum",
)  # fmt: skip
"""Read half precision and write fp32, because they have an argument for the type of the result."""


@contextlib.contextmanager
def like_cuda() -> Iterator[None]:
    with _overridden(), _on_the_cpu():
        yield


@contextlib.contextmanager
def _overridden() -> Iterator[None]:
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    try:
        for names, make in ((_FP32, _converting), (_FP32_RESULT, _with_fp32_result)):
            for op in _overloads(names):
                library.impl(op.name().removeprefix("aten::"), make(op), _KEY, allow_override=True)
        for name in _only_on_the_cpu():
            library.impl(name, torch.library.fallthrough_kernel, _KEY, allow_override=True)
        yield
    finally:
        library._destroy()


@functools.cache
def _only_on_the_cpu() -> tuple[str, ...]:
    """Operators that autocast changes on the CPU and leaves alone on CUDA, for example cross_entropy_loss."""
    has: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    names: list[str] = torch._C._dispatch_get_all_op_names()
    return tuple(
        name.removeprefix("aten::")
        for name in names
        if name.startswith("aten::") and has(name, _KEY) and not has(name, "AutocastCUDA")
    )


def _overloads(names: tuple[str, ...]) -> Iterator[Any]:
    """The overloads with new tensors as results."""
    for name in names:
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            op = getattr(packet, overload)
            arguments = op._schema.arguments
            if op._schema.is_mutable or not arguments or str(arguments[0].type) != "Tensor":
                continue
            if name in _FP32_RESULT and "Dimname" in str(op._schema):
                continue
            yield op


def _guard() -> Any:
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY)))


def _converting(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            args, kwargs = pytree.tree_map(_full, (args, kwargs))
            return op(*args, **kwargs)

    return kernel


def _full(leaf: Any) -> Any:
    return leaf.float() if isinstance(leaf, torch.Tensor) and leaf.dtype in HALVES else leaf


def _with_fp32_result(op: Any) -> Callable[..., Any]:
    position = [argument.name for argument in op._schema.arguments].index("dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            given = args[position] if len(args) > position else kwargs.get("dtype")
            if given is None and args[0].dtype in HALVES:
                args, kwargs = args[:position], {**kwargs, "dtype": torch.float32}
            return op(*args, **kwargs)

    return kernel


@contextlib.contextmanager
def _on_the_cpu() -> Iterator[None]:
    """Turns `torch.autocast("cuda")` into autocast on the CPU, which is where a trace's tensors are."""
    cls = torch.amp.autocast_mode.autocast
    original = cls.__init__

    def made(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type = "cpu"
            if not args and kwargs.get("dtype") is None:
                kwargs["dtype"] = torch.float16  # CUDA's default
        original(self, device_type, *args, **kwargs)

    cls.__init__ = made  # type: ignore[method-assign]
    try:
        yield
    finally:
        cls.__init__ = original  # type: ignore[method-assign]
