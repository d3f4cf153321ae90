"""CUDA's automatic mixed precision for tensors on the CPU.

A trace runs on the CPU, whose autocast has other operator lists than CUDA's. While `like_cuda` is active, autocast
on the CPU runs CUDA's list in fp32 (PyTorch's documentation, "CUDA Ops that can autocast to float32") and no other
operator, and autocast for CUDA applies as well: by a context, a decorator or a context made earlier, or set by
torch.set_autocast_enabled. All changes to PyTorch's state end with the context.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator
from unittest import mock

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
_HALF = ("addmv", "addr", "chain_matmul", "einsum", "linalg_multi_dot", "mv", "prelu")
"""Operands are converted to half precision. The CPU's list has the other ones, and converts the products below these."""
_FP32_RESULT = (
    "cumprod", "cumsum", "linalg_matrix_norm", "linalg_vector_norm", "log_softmax", "prod", "softmax", "sum",
)  # fmt: skip
"""Read half precision and write fp32, because they have an argument for the type of the result."""
_PROMOTED = ("addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put", "scatter_add", "tensordot")
"""Operands are converted to the widest type among them ("CUDA Ops that promote to the widest input type")."""


@contextlib.contextmanager
def like_cuda() -> Iterator[None]:
    with _overridden(), _on_the_cpu():
        yield


@contextlib.contextmanager
def _overridden() -> Iterator[None]:
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    try:
        for names, make in ((_FP32, _converting), (_HALF, _narrowing), (_FP32_RESULT, _with_fp32_result), (_PROMOTED, _promoting)):
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
            if op._schema.is_mutable or not any(str(one.type) in ("Tensor", "List[Tensor]") for one in arguments[:2]):
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


def _narrowing(op: Any) -> Callable[..., Any]:
    def narrow(leaf: Any) -> Any:
        is_full = isinstance(leaf, torch.Tensor) and leaf.dtype in (torch.float32, *HALVES)
        return leaf.to(torch.get_autocast_dtype("cpu")) if is_full else leaf

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            args, kwargs = pytree.tree_map(narrow, (args, kwargs))
            return op(*args, **kwargs)

    return kernel


def _promoting(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            if any(one.dtype in HALVES for one in tensors) and any(one.dtype == torch.float32 for one in tensors):
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
    original, original_enter = cls.__init__, cls.__enter__
    stored: list[tuple[Any, bool]] = []

    def made(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type = "cpu"
            if not args and kwargs.get("dtype") is None:
                kwargs["dtype"] = torch.float16  # CUDA's default
        original(self, device_type, *args, **kwargs)

    def enter(self: Any) -> Any:
        if self.device == "cuda":  # made before the trace
            stored.append((self, self._enabled))
            self.device = "cpu"
            # Without a GPU, PyTorch disables a new context. A type other than CUDA's default was asked for.
            self._enabled = self._enabled or (not torch.cuda.is_available() and self.fast_dtype == torch.bfloat16)
        return original_enter(self)  # type: ignore[no-untyped-call]

    before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    if torch.is_autocast_enabled("cuda"):
        torch.set_autocast_enabled("cpu", True)
        torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(cls, "__init__", made))
        stack.enter_context(mock.patch.object(cls, "__enter__", enter))
        for name in ("set_autocast_enabled", "set_autocast_dtype", "is_autocast_enabled", "get_autocast_dtype"):
            stack.enter_context(mock.patch.object(torch, name, _for_cpu(getattr(torch, name))))
        try:
            yield
        finally:
            for context, is_enabled in stored:
                context.device, context._enabled = "cuda", is_enabled
    torch.set_autocast_enabled("cpu", before[0])
    torch.set_autocast_dtype("cpu", before[1])


def _for_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch's state of autocast. Its first argument is the device; CUDA is the default."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if "device_type" in kwargs:
            args = (kwargs.pop("device_type"), *args)
        if not args or not isinstance(args[0], str):
            args = ("cuda", *args)
        return function("cpu" if args[0] == "cuda" else args[0], *args[1:], **kwargs)

    return call
