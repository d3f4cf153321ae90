"""Steps of torch.nn's modules and of functions with kernels of their own, for the comparison with fake CUDA tensors."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from mdot_lab.checks.memory.step import Step

Make = Callable[[], Step]


class _Called(nn.Module):
    """A linear layer, and a function of its result and of the input."""

    def __init__(self, function: Callable[..., Any], own: nn.Module | None = None) -> None:
        super().__init__()
        self.linear, self.function, self.own = nn.Linear(16, 16), function, own

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        return self.function(y, x) if self.own is None else self.function(self.own, y)


def _behind(first: nn.Module, kind: str, arguments: tuple[Any, ...], options: dict[str, Any], *shape: int) -> Make:
    return lambda: Step(nn.Sequential(first, getattr(nn, kind)(*arguments, **options)), (torch.zeros(shape),), {})


def _function(function: Callable[..., Any], *shape: int) -> Make:
    return lambda: Step(_Called(function), (torch.zeros(shape or (8, 16)),), {})


def _around(make: Callable[[], nn.Module], function: Callable[..., Any], *shape: int) -> Make:
    return lambda: Step(_Called(function, make()), (torch.zeros(shape),), {})


_ACTIVATIONS = (
    "ReLU GELU SiLU Tanh Sigmoid ELU CELU SELU Mish Softplus Softsign Hardtanh Hardswish Hardsigmoid LeakyReLU LogSigmoid PReLU RReLU "
    "ReLU6 Softshrink Hardshrink Tanhshrink Softmax LogSoftmax Softmin Dropout AlphaDropout FeatureAlphaDropout GLU Identity"
)
_LAYERS = {
    1: "BatchNorm InstanceNorm MaxPool AvgPool AdaptiveAvgPool AdaptiveMaxPool LPPool Conv ConvTranspose ReflectionPad ReplicationPad Dropout Upsample",
    2: "BatchNorm InstanceNorm MaxPool AvgPool AdaptiveAvgPool AdaptiveMaxPool LPPool Conv ConvTranspose ReflectionPad ReplicationPad Dropout Upsample "
       "GroupNorm ZeroPad CircularPad PixelShuffle PixelUnshuffle UpsamplingBilinear Unfold LocalResponseNorm ChannelShuffle FractionalMaxPool Softmax",
    3: "BatchNorm InstanceNorm MaxPool AvgPool AdaptiveAvgPool AdaptiveMaxPool Conv ConvTranspose ReflectionPad ReplicationPad Dropout Upsample",
}  # fmt: skip
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "BatchNorm": (16,), "InstanceNorm": (16,), "GroupNorm": (4, 16), "MaxPool": (2,), "AvgPool": (2,), "AdaptiveAvgPool": (3,),
    "AdaptiveMaxPool": (3,), "LPPool": (2, 2), "Conv": (16, 16, 3), "ConvTranspose": (16, 16, 3), "Dropout": (0.1,), "Upsample": (None, 2),
    "UpsamplingBilinear": (None, 2), "PixelShuffle": (2,), "PixelUnshuffle": (2,), "Unfold": (3,), "LocalResponseNorm": (3,),
    "ChannelShuffle": (4,), "FractionalMaxPool": (2, None, 0.5), "Softmax": (),
}  # fmt: skip
_UNNUMBERED = ("GroupNorm", "PixelShuffle", "PixelUnshuffle", "Unfold", "LocalResponseNorm", "ChannelShuffle", "Upsample")

_LOSSES: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {
    **{name: lambda x: (x,) for name in ("MSELoss L1Loss SmoothL1Loss HuberLoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss SoftMarginLoss "
                                         "MultiLabelSoftMarginLoss HingeEmbeddingLoss").split()},
    "CrossEntropyLoss": lambda x: (torch.zeros(8, dtype=torch.long, device=x.device),),
    "NLLLoss": lambda x: (torch.zeros(8, dtype=torch.long, device=x.device),),
    "CosineEmbeddingLoss": lambda x: (x, torch.ones(8, device=x.device)),
    "MarginRankingLoss": lambda x: (x, torch.ones(8, 16, device=x.device)),
    "TripletMarginLoss": lambda x: (x, x + 1),
}  # fmt: skip

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdist": lambda y, x: torch.cdist(y, y), "pdist": lambda y, x: F.pdist(y), "normalize": lambda y, x: F.normalize(y),
    "cumsum": lambda y, x: y.cumsum(-1), "sort": lambda y, x: y.sort(-1)[0], "topk": lambda y, x: y.topk(3)[0],
    "cosine": lambda y, x: F.cosine_similarity(y, y.flip(0)), "gumbel": lambda y, x: F.gumbel_softmax(y), "std": lambda y, x: y.std(-1),
    "logsumexp": lambda y, x: y.logsumexp(-1), "norm": lambda y, x: y.norm(), "prod": lambda y, x: y.prod(-1),
    "max": lambda y, x: y.max(-1)[0], "amax": lambda y, x: y.amax(-1), "median": lambda y, x: y.median(-1)[0],
    "einsum": lambda y, x: torch.einsum("bi,bj->ij", y, y), "outer": lambda y, x: y[:, None] * y[:, :, None],
    "where": lambda y, x: torch.where(y > 0, y, -y), "clamp": lambda y, x: y.clamp(-1, 1), "masked": lambda y, x: y.masked_fill(y > 0, -1),
    "index": lambda y, x: y[torch.zeros(9, dtype=torch.long, device=y.device)],
    "gather": lambda y, x: y.gather(0, torch.zeros(8, 16, dtype=torch.long, device=y.device)),
    "grid": lambda y, x: F.grid_sample(y.view(8, 1, 4, 4), torch.zeros(8, 4, 4, 2, device=y.device, dtype=y.dtype)),
    "detach": lambda y, x: (y.exp().detach() * y).exp(), "detached product": lambda y, x: (y.exp() * y.sin().detach()).cos(),
    "detached branch": lambda y, x: (y + y.tanh().exp().detach()).exp() + y.detach().exp(),
    "bicubic": lambda y, x: F.interpolate(y.view(2, 4, 4, 4), scale_factor=2, mode="bicubic"),
    "smoothed": lambda y, x: F.cross_entropy(y, torch.zeros(8, dtype=torch.long, device=y.device), label_smoothing=0.1),
    **{f"attention {name}": (lambda y, x, options=options: F.scaled_dot_product_attention(*[y.view(2, 1, 4, 16)] * 3, **options))
       for name, options in {"plain": {}, "causal": {"is_causal": True}, "dropout": {"dropout_p": 0.1}}.items()},
}  # fmt: skip


def makers() -> dict[str, Make]:
    """Functions that make a step, by name."""
    found: dict[str, Make] = {}
    for kind in _ACTIVATIONS.split():
        options = {"dim": -1} if kind in ("Softmax", "LogSoftmax", "Softmin") else {}
        found[kind] = lambda kind=kind, options=options: Step(
            nn.Sequential(nn.Linear(16, 16), getattr(nn, kind)(**options), nn.Linear(8 if kind == "GLU" else 16, 16)), (torch.zeros(8, 16),), {}
        )
    for rank, kinds in _LAYERS.items():
        for kind in kinds.split():
            name = kind if kind in _UNNUMBERED else f"{kind}{rank}d"
            arguments = _ARGUMENTS.get(kind, (1,))
            found[f"{name} of rank {rank}"] = lambda name=name, arguments=arguments, rank=rank: Step(
                nn.Sequential(getattr(nn, f"Conv{rank}d")(16, 16, 1), getattr(nn, name)(*arguments)),
                (torch.zeros(8, 16, *[12, 12, 6][:1] * rank if rank < 3 else [6] * 3),), {},
            )  # fmt: skip
    for name, targets in _LOSSES.items():
        found[name] = _around(getattr(nn, name), lambda loss, y, targets=targets: loss(y, *targets(y.detach())), 8, 16)
    for name, function in _FUNCTIONS.items():
        found[name] = _function(function)
    for name in ("LayerNorm", "RMSNorm"):
        for is_affine in (True, False):
            found[f"{name}, affine {is_affine}"] = _around(
                lambda name=name, is_affine=is_affine: getattr(nn, name)(16, elementwise_affine=is_affine), lambda m, y: m(y).exp(), 8, 5, 16
            )
    for name in ("LSTMCell", "GRUCell", "RNNCell"):
        found[name] = _around(lambda name=name: getattr(nn, name)(16, 16), lambda m, y: m(y), 8, 16)
    for mode in ("sum", "mean", "max"):
        found[f"EmbeddingBag {mode}"] = lambda mode=mode: Step(nn.EmbeddingBag(32, 16, mode=mode), (torch.zeros(8, 5, dtype=torch.long),), {})
    found["Embedding"] = lambda: Step(nn.Embedding(32, 16), (torch.zeros(8, 5, dtype=torch.long),), {})
    found["Bilinear"] = _around(lambda: nn.Bilinear(16, 16, 16), lambda m, y: m(y, y), 8, 16)
    found["depthwise"] = lambda: Step(nn.Conv2d(16, 16, 3, groups=16), (torch.zeros(8, 16, 12, 12),), {})
    for weights in (False, True):
        found[f"MultiheadAttention, weights {weights}"] = _around(
            lambda: nn.MultiheadAttention(16, 2, batch_first=True), lambda m, y, weights=weights: m(y, y, y, need_weights=weights)[0], 8, 5, 16
        )
    found["TransformerEncoderLayer"] = _around(lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), lambda m, y: m(y), 8, 5, 16)
    found["TransformerDecoderLayer"] = _around(lambda: nn.TransformerDecoderLayer(16, 2, 32, batch_first=True), lambda m, y: m(y, y), 8, 5, 16)
    return found
