"""Small networks of many kinds for the test of the law of work (test_work.py): a name and a function for each."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as F
from networks import Called, hf, image, meta, tm, tokens, tv
from torch import nn

Make = Callable[[], Called]
BATCH = 4


class Function(nn.Module):
    """A function between two linears, so that data and parameters have gradients."""

    def __init__(self, function: Callable[..., Any], width: int = 24, channels: int = 24, **members: Any) -> None:
        super().__init__()
        self.first, self.last, self.function = nn.Linear(width, channels), nn.Linear(channels, 8), function
        for name, member in members.items():
            setattr(self, name, member)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.function(self, self.first(x))
        return y.real if y.is_complex() else y


class Around(nn.Module):
    """A layer behind a pointwise linear in the channels, so that its input has a gradient."""

    def __init__(self, layer: nn.Module, axis: int, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.axis, self.layer = axis, layer

    def forward(self, x: torch.Tensor, *rest: Any) -> Any:
        scale = self.scale.reshape([-1 if i == self.axis else 1 for i in range(x.ndim)])
        return self.layer(x * scale, *rest)


class Quiet(nn.Module):
    """Inference: the network runs without gradients, and one linear after it is trained."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network, self.scale = network, nn.Parameter(torch.ones(1))

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        with torch.no_grad():
            out = self.network(*args, **kwargs)
        leaves = torch.utils._pytree.tree_leaves(list(out.values()) if hasattr(out, "values") and not isinstance(out, torch.Tensor) else out)
        return self.scale * next(t for t in leaves if isinstance(t, torch.Tensor) and t.is_floating_point()).mean()


def layer(build: Callable[[], nn.Module], *shape: int, axis: int = 1) -> Make:
    return lambda: (Around(build(), axis, shape[axis]), (torch.zeros(*shape),), {})


def function(body: Callable[..., Any], *shape: int, **members: Callable[[], Any]) -> Make:
    shape = shape or (BATCH, 16, 24)
    return lambda: (Function(body, shape[-1], 24, **{name: make() for name, make in members.items()}), (torch.zeros(*shape),), {})


# ---- torch.nn --------------------------------------------------------------------------------------------------------


def _layers() -> Iterator[tuple[str, Make]]:
    for n, shape in ((1, (32,)), (2, (16, 16)), (3, (8, 8, 8))):
        conv, transposed = getattr(nn, f"Conv{n}d"), getattr(nn, f"ConvTranspose{n}d")
        for name, options in {
            "": {}, "_groups": {"groups": 4}, "_depthwise": {"groups": 8}, "_strided": {"stride": 2, "padding": 1},
            "_dilated": {"dilation": 2}, "_same": {"padding": "same"}, "_circular": {"padding": 1, "padding_mode": "circular"},
        }.items():  # fmt: skip
            yield f"Conv{n}d{name}", layer(lambda conv=conv, o=options: conv(8, 16, 3, **o), BATCH, 8, *shape)
        for name, options in {"": {}, "_groups": {"groups": 4}, "_strided": {"stride": 2, "padding": 1, "output_padding": 1}}.items():
            yield f"ConvTranspose{n}d{name}", layer(lambda t=transposed, o=options: t(8, 16, 3, **o), BATCH, 8, *shape)
        for kind in ("MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "LPPool", "BatchNorm", "InstanceNorm"):
            argument = {"BatchNorm": (8,), "InstanceNorm": (8,), "LPPool": (2, 2)}.get(kind, (2,))
            yield f"{kind}{n}d", layer(
                lambda k=getattr(nn, f"{kind}{n}d"), a=argument, n=n: nn.Sequential(k(*a), getattr(nn, f"Conv{n}d")(8, 8, 1)), BATCH, 8, *shape
            )
    yield "Unfold", layer(lambda: nn.Sequential(nn.Unfold(3), nn.Conv1d(72, 16, 1)), BATCH, 8, 16, 16)
    yield "Fold", layer(lambda: nn.Sequential(nn.Fold((16, 16), 3), nn.Conv2d(8, 16, 1)), BATCH, 72, 196)
    yield "Linear", layer(lambda: nn.Linear(24, 48), BATCH, 16, 24, axis=2)
    yield "Linear_without_bias", layer(lambda: nn.Linear(24, 48, bias=False), BATCH, 24)
    yield "Bilinear", lambda: (nn.Bilinear(16, 24, 32), (torch.zeros(BATCH, 16), torch.zeros(BATCH, 24)), {})
    for kind in ("RNN", "GRU", "LSTM"):
        build = getattr(nn, kind)
        for name, options in {
            "": {}, "_two_layers": {"num_layers": 2, "dropout": 0.1}, "_both_directions": {"bidirectional": True}, "_without_bias": {"bias": False},
        }.items():  # fmt: skip
            yield f"{kind}{name}", layer(lambda b=build, o=options: b(48, 64, batch_first=True, **o), BATCH, 32, 48, axis=2)
        yield f"{kind}_length_first", layer(lambda b=build: b(48, 64), 32, BATCH, 48, axis=2)
        yield f"{kind}_packed", lambda b=build: (Packed(b(48, 64, batch_first=True)), (torch.zeros(BATCH, 12, 48), torch.full((BATCH,), 12)), {})
        yield f"{kind}_packed_lengths", lambda b=build: (
            Packed(b(48, 64, batch_first=True, bidirectional=True)), (torch.zeros(BATCH, 12, 48), torch.tensor([12, 9, 5, 3])), {})
        yield f"{kind}Cell", lambda b=getattr(nn, f"{kind}Cell"): (Cell(b(24, 32)), (torch.zeros(BATCH, 6, 24),), {})
    yield "LSTM_projection", layer(lambda: nn.LSTM(48, 64, proj_size=32, batch_first=True), BATCH, 12, 48, axis=2)
    yield "LSTM_weight_norm", layer(lambda: nn.utils.parametrizations.weight_norm(nn.LSTM(48, 64, batch_first=True), "weight_hh_l0"), BATCH, 12, 48, axis=2)
    yield "MultiheadAttention", lambda: (Self(nn.MultiheadAttention(32, 4, batch_first=True)), (torch.zeros(BATCH, 16, 32),), {})
    yield "MultiheadAttention_weights", lambda: (Self(nn.MultiheadAttention(32, 4, batch_first=True), need_weights=True), (torch.zeros(BATCH, 16, 32),), {})
    yield "MultiheadAttention_other_keys", lambda: (
        nn.MultiheadAttention(32, 4, batch_first=True, kdim=24, vdim=16, add_bias_kv=True, add_zero_attn=True),
        (torch.zeros(BATCH, 16, 32), torch.zeros(BATCH, 9, 24), torch.zeros(BATCH, 9, 16)), {})
    yield "Transformer", lambda: (nn.Transformer(32, 4, 2, 2, 64, batch_first=True), (torch.zeros(BATCH, 16, 32), torch.zeros(BATCH, 9, 32)), {})
    yield "TransformerEncoder", layer(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2), BATCH, 16, 32, axis=2)
    yield "TransformerDecoderLayer", lambda: (nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), (torch.zeros(BATCH, 16, 32), torch.zeros(BATCH, 9, 32)), {})
    yield "EmbeddingBag", lambda: (nn.Sequential(nn.EmbeddingBag(100, 24), nn.Linear(24, 8)), (tokens(BATCH, 5),), {})
    yield "Embedding_sparse", lambda: (nn.Sequential(nn.Embedding(100, 24, sparse=True), nn.Linear(24, 8)), (tokens(BATCH, 5),), {})
    for norm in ("LayerNorm", "RMSNorm"):
        yield norm, layer(lambda k=getattr(nn, norm): nn.Sequential(k(24), nn.Linear(24, 24)), BATCH, 16, 24, axis=2)
    yield "GroupNorm", layer(lambda: nn.Sequential(nn.GroupNorm(4, 8), nn.Conv2d(8, 8, 3)), BATCH, 8, 16, 16)
    yield "LocalResponseNorm", layer(lambda: nn.Sequential(nn.LocalResponseNorm(2), nn.Conv2d(8, 8, 3)), BATCH, 8, 16, 16)
    for mode in ("nearest", "bilinear", "bicubic"):
        yield f"Upsample_{mode}", layer(lambda m=mode: nn.Sequential(nn.Upsample(scale_factor=2, mode=m), nn.Conv2d(8, 8, 3)), BATCH, 8, 8, 8)
    yield "Upsample_trilinear", layer(lambda: nn.Sequential(nn.Upsample(scale_factor=2, mode="trilinear"), nn.Conv3d(8, 8, 3)), BATCH, 8, 4, 4, 4)
    yield "PixelShuffle", layer(lambda: nn.Sequential(nn.Conv2d(8, 16, 3), nn.PixelShuffle(2), nn.Conv2d(4, 4, 1), nn.PixelUnshuffle(2)), BATCH, 8, 8, 8)
    activations = (
        "ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid PReLU ReLU ReLU6 RReLU SELU CELU GELU Sigmoid SiLU Mish Softplus "
        "Softshrink Softsign Tanh Tanhshrink Softmin Softmax LogSoftmax Dropout AlphaDropout FeatureAlphaDropout"
    )
    yield "activations", layer(
        lambda: nn.Sequential(*[m for name in activations.split() for m in (_activation(name), nn.Linear(24, 24))]), BATCH, 6, 24, axis=2)
    yield "GLU", layer(lambda: nn.Sequential(nn.GLU(), nn.Linear(12, 24)), BATCH, 16, 24, axis=2)
    yield "losses", lambda: (Losses(), (torch.zeros(BATCH, 24),), {})
    yield "CTCLoss", function(lambda m, x: F.ctc_loss(x.log_softmax(-1), torch.ones(16, 5, dtype=torch.int64), (BATCH,) * 16, (2,) * 16))
    yield "CosineSimilarity", function(lambda m, x: m.last(x) * F.cosine_similarity(x, x.flip(1), dim=-1)[..., None])


def _activation(name: str) -> nn.Module:
    kind = getattr(nn, name)
    return kind(-1) if name in ("Softmin", "Softmax", "LogSoftmax") else kind()  # type: ignore[no-any-return]


class Packed(nn.Module):
    def __init__(self, recurrence: nn.Module) -> None:
        super().__init__()
        self.scale, self.recurrence = nn.Parameter(torch.ones(48)), recurrence

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x * self.scale, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.recurrence(packed)[0], batch_first=True)[0]


class Cell(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = None
        for step in x.unbind(1):
            state = self.cell(step, state)
        return state[0] if isinstance(state, tuple) else state  # type: ignore[return-value]


class Self(nn.Module):
    def __init__(self, attention: nn.Module, need_weights: bool = False) -> None:
        super().__init__()
        self.attention, self.need_weights = attention, need_weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=self.need_weights)[0]  # type: ignore[no-any-return]


class Losses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(24, 24) for _ in range(12)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        target, classes, signs = torch.zeros_like(x), torch.zeros(len(x), dtype=torch.int64), torch.ones(len(x))
        a, b, c, d, e, f, g, h, i, j, k, l = (m(x) for m in self.layers)
        losses = (
            F.mse_loss(a, target), F.l1_loss(b, target), F.smooth_l1_loss(c, target), F.huber_loss(d, target), F.cross_entropy(e, classes),
            F.nll_loss(f.log_softmax(-1), classes), F.binary_cross_entropy_with_logits(g, target), F.kl_div(h.log_softmax(-1), target),
            F.poisson_nll_loss(i, target), F.multi_margin_loss(j, classes), F.cosine_embedding_loss(k, x, signs),
            F.triplet_margin_loss(l, x, x + 1), F.gaussian_nll_loss(a, target, b.exp()), F.soft_margin_loss(c, target), F.margin_ranking_loss(d[:, 0], e[:, 0], signs),
            F.multilabel_soft_margin_loss(f, target), F.hinge_embedding_loss(g, target + 1),
        )  # fmt: skip
        return torch.stack(losses).sum()


# ---- Functions -------------------------------------------------------------------------------------------------------


def _deformed(m: Any, x: torch.Tensor) -> torch.Tensor:
    from torchvision import ops

    image = x.mT.unflatten(2, (4, 4))
    return m.last(ops.deform_conv2d(image, m.places(image), m.w, padding=1).flatten(2).mT)  # type: ignore[no-any-return]


def _diagonal_states(m: Any, x: torch.Tensor) -> torch.Tensor:
    """S4D (Gu et al. 2022): a convolution by FFT with a kernel of complex exponentials."""
    length = x.shape[1]
    powers = torch.exp((-0.5 + 1j * m.a[..., None]) * torch.arange(length))
    kernel = 2 * torch.einsum("hn,hnl->hl", torch.view_as_complex(m.c), powers).real
    product = torch.fft.rfft(kernel, n=2 * length) * torch.fft.rfft(x.mT, n=2 * length)
    return m.last(torch.fft.irfft(product, n=2 * length)[..., :length].mT)  # type: ignore[no-any-return]


def _functions() -> Iterator[tuple[str, Make]]:
    matrix = lambda x: x[:, :8, :8] + 9 * torch.eye(8)  # noqa: E731
    spd = lambda x: x @ x.mT + 9 * torch.eye(16)  # noqa: E731
    yield "rfft", function(lambda m, x: m.last(torch.fft.irfft(torch.fft.rfft(x, dim=1) * 2, n=16, dim=1)))
    yield "fft2", function(lambda m, x: m.last(torch.fft.ifft2(torch.fft.fft2(x)).real))
    yield "spectral_convolution", function(
        lambda m, x: m.last(torch.fft.irfft(torch.einsum("bld,dl->bld", torch.fft.rfft(x, dim=1), torch.view_as_complex(m.w)), n=16, dim=1)),
        w=lambda: nn.Parameter(torch.zeros(24, 9, 2)))
    yield "complex_linear", function(
        lambda m, x: m.last((torch.complex(x, x) @ torch.view_as_complex(m.w)).abs()), w=lambda: nn.Parameter(torch.zeros(24, 24, 2)))
    for name, body in {
        "times": lambda x: 1j * x, "plus": lambda x: x + 1j, "minus": lambda x: 1j - x, "over": lambda x: x / 2j, "under": lambda x: 1j / (x + 2),
        "power": lambda x: (x + 0j) ** 2, "turn": lambda x: torch.exp(-2j * math.pi * x), "call": lambda x: torch.mul(x, 2j),
        "filled": lambda x: torch.full((16, 24), 1j) * x, "scaled": lambda x: torch.add(x + 0j, x, alpha=2j), "chosen": lambda x: torch.where(x > 0, x, 1j),
    }.items():  # fmt: skip
        yield f"complex_number_{name}", function(lambda m, x, f=body: m.last(f(x).abs()))
    yield "fourier_operator", function(
        lambda m, x: m.last(torch.fft.irfft(torch.einsum("bmi,mio->bmo", torch.fft.rfft(x, dim=1)[:, :4], torch.view_as_complex(m.w)), n=16, dim=1)),
        w=lambda: nn.Parameter(torch.zeros(4, 24, 24, 2)))
    for equation in ("...d,de->...e", "...d,de"):
        yield f"complex_einsum_{equation}", function(
            lambda m, x, e=equation: torch.einsum(e, torch.complex(x, x), torch.complex(m.w, m.w)).abs().sum(), w=lambda: nn.Parameter(torch.zeros(24, 24)))
    yield "pseudo_inverse", function(lambda m, x: torch.linalg.pinv(matrix(x)))
    yield "deformable_convolution", function(_deformed, w=lambda: nn.Parameter(torch.zeros(24, 24, 3, 3)), places=lambda: nn.Conv2d(24, 18, 3, padding=1))
    yield "diagonal_state_space", function(_diagonal_states, a=lambda: nn.Parameter(torch.zeros(24, 8)), c=lambda: nn.Parameter(torch.zeros(24, 8, 2)))
    yield "stft", function(lambda m, x: torch.stft(x.flatten(1), 32, 16, window=torch.ones(32), return_complex=True).abs())
    for equation in ("bld,de->ble", "bld,bmd->blm", "bld,bld->bl", "bld,bme->bdme"):
        yield f"einsum_{equation}", function(
            lambda m, x, e=equation: torch.einsum(e, x, m.w if ",de" in e else x.flip(1)), w=lambda: nn.Parameter(torch.zeros(24, 24)))
    yield "einsum_three", function(lambda m, x: torch.einsum("bld,de,bme->blm", x, m.w, x.flip(1)), w=lambda: nn.Parameter(torch.zeros(24, 24)))
    yield "cdist", function(lambda m, x: torch.cdist(x, m.c), c=lambda: nn.Parameter(torch.ones(40, 24)))
    yield "cdist_manhattan", function(lambda m, x: torch.cdist(x, m.c, p=1), c=lambda: nn.Parameter(torch.ones(40, 24)))
    yield "pdist", function(lambda m, x: F.pdist(x.mean(1)))
    yield "baddbmm", function(lambda m, x: torch.baddbmm(m.last(x)[..., :1], x, x.mT, beta=0.5, alpha=2))
    yield "addbmm", function(lambda m, x: torch.addbmm(torch.zeros(16, 16), x, x.mT))
    yield "tensordot", function(lambda m, x: torch.tensordot(x, m.w, dims=([2], [1])), w=lambda: nn.Parameter(torch.zeros(40, 24)))
    yield "kron", function(lambda m, x: m.last(x) @ torch.kron(m.a, m.b), a=lambda: nn.Parameter(torch.zeros(2, 4)), b=lambda: nn.Parameter(torch.zeros(4, 2)))
    yield "bilinear_of_itself", function(lambda m, x: F.bilinear(x, x, m.w), w=lambda: nn.Parameter(torch.zeros(32, 24, 24)))
    yield "mv", function(lambda m, x: torch.mv(x.flatten(0, 1), m.w), w=lambda: nn.Parameter(torch.zeros(24)))
    yield "inverse", function(lambda m, x: torch.linalg.inv(matrix(x)))
    yield "cholesky", function(lambda m, x: torch.linalg.cholesky(spd(x)))
    yield "solve", function(lambda m, x: torch.linalg.solve(matrix(x), x[:, :8]))
    yield "triangular_solve", function(lambda m, x: torch.linalg.solve_triangular(matrix(x), x[:, :8], upper=True))
    yield "slogdet", function(lambda m, x: torch.linalg.slogdet(matrix(x))[1])
    yield "eigh", function(lambda m, x: torch.linalg.eigh(spd(x))[0])
    yield "svd", function(lambda m, x: torch.linalg.svdvals(x))
    yield "qr", function(lambda m, x: torch.linalg.qr(matrix(x))[0])
    yield "matrix_exp", function(lambda m, x: torch.linalg.matrix_exp(matrix(x)))
    yield "matrix_power", function(lambda m, x: torch.linalg.matrix_power(matrix(x), 3))
    yield "multi_dot", function(lambda m, x: torch.linalg.multi_dot([x[0], m.w, x[1].T]), w=lambda: nn.Parameter(torch.zeros(24, 24)))
    yield "attention", function(lambda m, x: F.scaled_dot_product_attention(*(x.view(BATCH, 16, 3, 8).transpose(1, 2),) * 3, is_causal=True))
    yield "attention_of_groups", function(
        lambda m, x: F.scaled_dot_product_attention(x.view(BATCH, 16, 6, 4).transpose(1, 2), *(x[..., :8].view(BATCH, 16, 2, 4).transpose(1, 2),) * 2, enable_gqa=True))
    yield "attention_with_mask", function(
        lambda m, x: F.scaled_dot_product_attention(*(x.view(BATCH, 16, 3, 8).transpose(1, 2),) * 3, attn_mask=torch.ones(16, 16, dtype=torch.bool).tril()))
    yield "attention_without_heads", function(lambda m, x: F.scaled_dot_product_attention(x, x, x))
    yield "attention_by_hand", function(lambda m, x: (x @ x.mT / 5).softmax(-1) @ x)
    yield "linear_attention", function(lambda m, x: x.softmax(-1) @ (x.softmax(1).mT @ x))
    yield "scan", function(lambda m, x: m.last(torch.cumsum(x, 1) * torch.cumprod(x.sigmoid(), 1) + x.logcumsumexp(1) + x.cummax(1)[0]))
    yield "not_bool", function(lambda m, x: m.last(x.masked_fill(~(x > 0), 0.0)))
    yield "windows", function(lambda m, x: x.unfold(1, 4, 2) @ m.w, w=lambda: nn.Parameter(torch.zeros(4, 8)))
    yield "as_strided", function(lambda m, x: torch.as_strided(x, (BATCH, 8, 24), (384, 48, 1)) @ m.w, w=lambda: nn.Parameter(torch.zeros(24, 8)))
    yield "grid_sample", layer(lambda: Warp(), BATCH, 8, 16, 16)
    yield "sort_and_topk", function(lambda m, x: m.last(x.sort(1)[0] + x.topk(16, 1)[0] + x.median(1, keepdim=True)[0]))
    yield "special", function(lambda m, x: m.last(torch.lgamma(x) + torch.digamma(x) + torch.special.i0e(x) + torch.erfinv(x) + torch.sinc(x) + torch.logit(x) + x.hypot(x)))
    yield "grouped_mm", function(
        lambda m, x: torch._grouped_mm(x.flatten(0, 1), m.w, offs=torch.tensor([9, 20, 64], dtype=torch.int32)) if hasattr(torch, "_grouped_mm") else m.last(x),
        w=lambda: nn.Parameter(torch.zeros(3, 24, 40)))
    yield "weight_norm", function(lambda m, x: m.f(x), f=lambda: nn.utils.parametrizations.weight_norm(nn.Linear(24, 48)))
    yield "spectral_norm", function(lambda m, x: m.f(x), f=lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(24, 48)))
    yield "orthogonal", function(lambda m, x: m.f(x), f=lambda: nn.utils.parametrizations.orthogonal(nn.Linear(24, 24), orthogonal_map="cayley", use_trivialization=False))
    yield "merged_adapter", function(lambda m, x: F.linear(x, m.w + m.b @ m.a), w=lambda: nn.Parameter(torch.zeros(48, 24), requires_grad=False),
                                     a=lambda: nn.Parameter(torch.zeros(6, 24)), b=lambda: nn.Parameter(torch.zeros(48, 6)))
    yield "generated_weight", function(lambda m, x: F.linear(x, m.g(m.c).view(48, 24)), c=lambda: nn.Parameter(torch.zeros(16, 12)), g=lambda: nn.Linear(12, 72))
    yield "table_of_positions", function(lambda m, x: x @ m.k(m.t).T, t=lambda: nn.Parameter(torch.zeros(64, 24)), k=lambda: nn.Linear(24, 24))
    yield "float8_weight", function(lambda m, x: F.linear(x, m.w.to(x.dtype)), w=lambda: nn.Parameter(torch.zeros(48, 24, dtype=torch.float8_e4m3fn), requires_grad=False))
    yield "twice", function(lambda m, x: (m.f(x) - m.f(x)).square().mean(), f=lambda: nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 24)))
    yield "teacher", function(lambda m, x: (m.f(x) - m.f(x.detach()).detach()).square().mean(), f=lambda: nn.Linear(24, 48))
    yield "checkpointed", function(lambda m, x: torch.utils.checkpoint.checkpoint(m.f, x, use_reentrant=False), f=lambda: nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24)))
    yield "autocast", function(lambda m, x: _in_autocast(m, x), f=lambda: nn.Linear(24, 48))
    yield "contrastive", function(lambda m, x: F.cross_entropy(F.normalize(x.mean(1)) @ F.normalize(m.last(x).mean(1).repeat(1, 3)).T, torch.arange(len(x))))
    yield "frozen_weight", function(lambda m, x: m.f(x), f=lambda: nn.Linear(24, 48).requires_grad_(False))
    yield "bias_alone", function(lambda m, x: m.f(x), f=lambda: _bias_alone(nn.Linear(24, 48)))
    yield "product_of_one_value", function(lambda m, x: x[:, :, :16] @ x[:, :, :16])
    yield "vmapped", function(lambda m, x: torch.vmap(lambda row: m.f(row))(x), f=lambda: nn.Linear(24, 48))


def _in_autocast(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = m.f(x)
    return m.f(y.float()[..., :24])  # type: ignore[no-any-return]


def _bias_alone(linear: nn.Linear) -> nn.Linear:
    linear.weight.requires_grad_(False)
    return linear


class Warp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.angles, self.out = nn.Linear(8, 6), nn.Conv2d(8, 16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grid = F.affine_grid(self.angles(x.mean((2, 3))).view(-1, 2, 3), list(x.shape), align_corners=False)
        return self.out(F.grid_sample(x, grid, align_corners=False))  # type: ignore[no-any-return]


# ---- Graph networks: nodes, edges as two lists, sums by scatter ------------------------------------------------------


class Messages(nn.Module):
    def __init__(self, kind: str, width: int = 24) -> None:
        super().__init__()
        self.kind = kind
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(6)])
        self.score = nn.Linear(2 * width, 1)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        f = self.layers
        gather = lambda values: torch.zeros_like(x).index_add(0, target, values)  # noqa: E731
        if self.kind == "gcn":
            return f[1](gather(f[0](x)[source]).relu())  # type: ignore[no-any-return]
        if self.kind == "sage":
            mean = torch.zeros_like(x).scatter_reduce(0, target[:, None].expand(-1, x.shape[1]), x[source], "mean")
            return (f[0](x) + f[1](mean)).relu()  # type: ignore[no-any-return]
        if self.kind == "gat":
            h = f[0](x)
            score = F.leaky_relu(self.score(torch.cat([h[source], h[target]], -1))).exp()
            total = torch.zeros(len(x), 1).scatter_add(0, target[:, None], score)
            return gather(h[source] * score / total[target])
        if self.kind == "gin":
            return f[1](f[0](x + gather(x[source])).relu())  # type: ignore[no-any-return]
        if self.kind == "edges":
            return gather(f[1](f[0](x[target] - x[source]).relu()))
        if self.kind == "gated":
            return f[2](x) + gather(f[0](x)[source] * f[1](x)[target].sigmoid())  # type: ignore[no-any-return]
        if self.kind == "maximum":
            return f[1](torch.zeros_like(x).index_reduce(0, target, f[0](x)[source], "amax"))  # type: ignore[no-any-return]
        dense = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (len(x), len(x))).to_dense()
        return f[1](dense @ f[0](x))  # type: ignore[no-any-return]


def _graphs() -> Iterator[tuple[str, Make]]:
    for kind in ("gcn", "sage", "gat", "gin", "edges", "gated", "maximum", "dense"):
        yield f"graph_{kind}", lambda k=kind: (Messages(k), (torch.zeros(20, 24), torch.zeros(2, 64, dtype=torch.int64)), {})


# ---- Recommenders ----------------------------------------------------------------------------------------------------


class Recommender(nn.Module):
    def __init__(self, kind: str, width: int = 16, fields: int = 6) -> None:
        super().__init__()
        self.kind = kind
        self.tables = nn.ModuleList([nn.Embedding(50, width) for _ in range(fields)])
        self.dense = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, width))
        self.deep = nn.Sequential(nn.Linear(width * (fields + 1), 64), nn.ReLU(), nn.Linear(64, 16))
        self.top = nn.Linear(16 + (fields + 1) ** 2, 1)
        self.cross = nn.ModuleList([nn.Linear(width * (fields + 1), width * (fields + 1)) for _ in range(2)])
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.recurrence = nn.GRU(width, width, batch_first=True)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        rows = torch.stack([self.dense(dense), *[t(ids[:, i]) for i, t in enumerate(self.tables)]], 1)
        flat = rows.flatten(1)
        if self.kind == "dlrm":
            return self.top(torch.cat([self.deep(flat), (rows @ rows.mT).flatten(1)], 1))  # type: ignore[no-any-return]
        if self.kind == "cross":
            x = flat
            for layer in self.cross:
                x = flat * layer(x) + x
            return self.deep(x)  # type: ignore[no-any-return]
        if self.kind == "factorisation":
            return (rows.sum(1).square() - rows.square().sum(1)).sum(1) + self.deep(flat).sum(1)  # type: ignore[no-any-return]
        if self.kind == "attention":
            return self.deep(self.attention(rows, rows, rows)[0].flatten(1))  # type: ignore[no-any-return]
        if self.kind == "sequence":
            return self.recurrence(rows.repeat(1, 6, 1))[1]  # type: ignore[no-any-return]
        return F.normalize(self.deep(flat)) @ F.normalize(self.deep(flat.flip(1))).T


def _recommenders() -> Iterator[tuple[str, Make]]:
    for kind in ("dlrm", "cross", "factorisation", "attention", "sequence", "towers"):
        yield f"recommender_{kind}", lambda k=kind: (Recommender(k), (torch.zeros(8, 13), torch.zeros(8, 6, dtype=torch.int64)), {})


# ---- Libraries -------------------------------------------------------------------------------------------------------

_TORCHVISION = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 mnasnet0_5 mobilenet_v2 mobilenet_v3_small regnet_x_400mf "
    "regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 vgg11_bn vit_b_32 swin_t swin_v2_t maxvit_t wide_resnet50_2"
)
_TIMM = (
    "vit_tiny_patch16_224 bat_resnext26ts botnet26t_256 coat_lite_tiny coatnet_nano_rw_224 convit_tiny convmixer_768_32 convnext_atto crossvit_tiny_240 "
    "cspresnet50 deit_tiny_patch16_224 dla34 dm_nfnet_f0 dpn48b edgenext_xx_small efficientformer_l1 efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 "
    "fastvit_t8 focalnet_tiny_srf ghostnet_050 gmixer_12_224 hgnet_tiny hrnet_w18_small lcnet_050 levit_128s mambaout_femto mixer_s32_224 mobilevit_xxs "
    "mvitv2_tiny nest_tiny pit_ti_224 poolformer_s12 pvt_v2_b0 regnetz_b16 repvit_m0_9 res2net50_14w_8s resnest14d resnetv2_50 rexnet_100 sequencer2d_s "
    "skresnet18 starnet_s1 tiny_vit_5m_224 tnt_s_patch16_224 twins_svt_small visformer_tiny volo_d1_224 xcit_nano_12_p16_224"
)


def _images() -> Iterator[tuple[str, Make]]:
    sides = {"inception_v3": 128, "googlenet": 96, "vit_b_32": 224, "maxvit_t": 224}
    for name in _TORCHVISION.split():
        options = {"aux_logits": False, "init_weights": False} if name in ("inception_v3", "googlenet") else {}
        yield f"torchvision_{name}", tv(name, 2, 3, *(sides.get(name, 64),) * 2, **options)
    yield "torchvision_r3d_18", _video
    yield "torchvision_raft_small", lambda: (meta(_tv_model, "raft_small"), (image(128), image(128)), {"num_flow_updates": 2})
    yield "torchvision_deeplabv3", _segmentation
    for name in _TIMM.split():
        tail = name.rsplit("_", 1)[-1]
        side = int(tail) if tail in ("224", "240", "256") else 256 if name == "bat_resnext26ts" else 224
        yield f"timm_{name}", tm(name, side)


def _tv_model(name: str, **options: Any) -> nn.Module:
    from torchvision import models

    return models.get_model(name, weights=None, **options)  # type: ignore[no-any-return]


def _video() -> Called:
    return meta(_tv_model, "r3d_18"), (torch.zeros(2, 3, 8, 32, 32),), {}


def _segmentation() -> Called:
    return meta(_tv_model, "deeplabv3_mobilenet_v3_large", weights_backbone=None), (image(96),), {}


_SIZES: dict[str, Any] = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2,
    "encoder_layers": 2, "decoder_layers": 2, "num_decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "d_ff": 64, "ffn_dim": 64,
    "hidden_dim": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "n_inner": 64, "vocab_size": 128, "max_position_embeddings": 128, "n_positions": 128,
    "d_kv": 8, "head_dim": 8, "pad_token_id": 0, "embedding_size": 32, "d_inner": 64, "moe_intermediate_size": 48, "num_experts": 6, "num_local_experts": 6,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "n_group": 4, "topk_group": 2, "shared_expert_intermediate_size": 48, "first_k_dense_replace": 0, "rope_dim": 8,
    "image_size": 64, "patch_size": 16, "sliding_window": 16, "attention_window": [8, 8], "state_size": 8, "num_codebooks": 2, "intermediate_size_mlp": 64,
    "decoder_start_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_TEXT = (
    "GPT2LMHeadModel GPTNeoForCausalLM GPTNeoXForCausalLM GPTJForCausalLM OPTForCausalLM BloomForCausalLM LlamaForCausalLM MistralForCausalLM "
    "GemmaForCausalLM Gemma2ForCausalLM PhiForCausalLM Phi3ForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM FalconForCausalLM CohereForCausalLM "
    "OlmoForCausalLM Olmo2ForCausalLM StableLmForCausalLM Starcoder2ForCausalLM GraniteForCausalLM NemotronForCausalLM MptForCausalLM "
    "MixtralForCausalLM Qwen2MoeForCausalLM Qwen3MoeForCausalLM OlmoeForCausalLM DeepseekV2ForCausalLM DeepseekV3ForCausalLM GptOssForCausalLM "
    "GraniteMoeForCausalLM Llama4ForCausalLM MambaForCausalLM Mamba2ForCausalLM RwkvForCausalLM "
    "BertForMaskedLM RobertaForMaskedLM DistilBertForMaskedLM AlbertForMaskedLM ElectraForPreTraining MobileBertForMaskedLM ModernBertForMaskedLM "
    "DebertaV2ForMaskedLM XLMRobertaForMaskedLM XLNetLMHeadModel BigBirdForMaskedLM FNetForMaskedLM MPNetForMaskedLM SqueezeBertForMaskedLM ConvBertForMaskedLM "
    "RoFormerForMaskedLM LayoutLMForMaskedLM"
)
_PAIRS = "T5ForConditionalGeneration MT5ForConditionalGeneration BartForConditionalGeneration PegasusForConditionalGeneration MarianMTModel MBartForConditionalGeneration"
_VISION = (
    "ViTForImageClassification DeiTForImageClassification BeitForImageClassification ConvNextForImageClassification ResNetForImageClassification "
    "SegformerForSemanticSegmentation Dinov2ForImageClassification PoolFormerForImageClassification ViTMAEForPreTraining"
)


def text(kind: str, **more: Any) -> Make:
    def make() -> Called:
        import transformers

        config_class = getattr(transformers, kind).config_class
        known = {*vars(config_class()), *getattr(config_class, "attribute_map", {})}
        options = {name: value for name, value in {**_SIZES, **more}.items() if name in known}
        inputs = {"input_ids": tokens(2, 16)}
        if kind in _PAIRS.split():
            inputs["decoder_input_ids"] = tokens(2, 12)
        return hf(kind, inputs, **options)()

    return make


def _transformers() -> Iterator[tuple[str, Make]]:
    more: dict[str, dict[str, Any]] = {
        "GPTNeoForCausalLM": {"attention_types": [[["global", "local"], 1]]},
        "GptOssForCausalLM": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        "FalconForCausalLM": {"num_kv_heads": 2},
        "GPTJForCausalLM": {"rotary_dim": 4},
        "MobileBertForMaskedLM": {"num_hidden_layers": 2, "intra_bottleneck_size": 32, "embedding_size": 32},
        "MPNetForMaskedLM": {},
        "MambaForCausalLM": {"time_step_rank": 4},
        "Mamba2ForCausalLM": {"num_heads": 8, "n_groups": 2, "chunk_size": 8},
        "RwkvForCausalLM": {"attention_hidden_size": 32},
        "DeepseekV2ForCausalLM": {"num_key_value_heads": 4},
        "DeepseekV3ForCausalLM": {"num_key_value_heads": 4, "n_routed_experts": 8, "num_local_experts": 8, "num_experts": 8},
    }
    for kind in _TEXT.split() + _PAIRS.split():
        yield f"transformers_{kind}", text(kind, **more.get(kind, {}))
    for kind in _VISION.split():
        yield f"transformers_{kind}", lambda k=kind: _picture(k)
    yield "transformers_CLIPModel", _clip
    yield "transformers_Wav2Vec2ForCTC", _speech
    yield "transformers_WhisperForConditionalGeneration", _whisper


def _picture(kind: str) -> Called:
    import transformers

    config_class = getattr(transformers, kind).config_class
    sizes = {} if kind.startswith(("ConvNext", "ResNet", "Segformer", "PoolFormer")) else _SIZES
    known = vars(config_class())
    return hf(kind, {"pixel_values": image(64)}, **{name: value for name, value in sizes.items() if name in known})()


def _clip() -> Called:
    import transformers

    sizes = {name: _SIZES[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": 128, "max_position_embeddings": 16}, vision_config={**sizes, "image_size": 64, "patch_size": 16}, projection_dim=24)
    return meta(transformers.CLIPModel, config), (), {"input_ids": tokens(3, 16), "pixel_values": image(64, 3), "return_loss": True}


def _speech() -> Called:
    import transformers

    config = transformers.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=32, conv_dim=(32,) * 7, num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4, apply_spec_augment=False)
    return transformers.Wav2Vec2ForCTC(config), (torch.zeros(2, 4000),), {}


def _whisper() -> Called:
    import transformers

    config = transformers.WhisperConfig(
        d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
        vocab_size=128, num_mel_bins=16, max_source_positions=50, max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)
    config.use_cache = False
    return meta(transformers.WhisperForConditionalGeneration, config), (), {"input_features": torch.zeros(2, 16, 100), "decoder_input_ids": tokens(2, 8)}


def _diffusers() -> Iterator[tuple[str, Make]]:
    blocks = {"block_out_channels": (32, 64), "layers_per_block": 1, "norm_num_groups": 8}
    yield "diffusers_UNet2DModel", lambda: (_diffuser("UNet2DModel", **blocks, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                            up_block_types=("AttnUpBlock2D", "UpBlock2D")), (image(32), 5), {})
    yield "diffusers_UNet2DConditionModel", lambda: (
        _diffuser("UNet2DConditionModel", **blocks, cross_attention_dim=32, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                  up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")), (torch.zeros(2, 4, 16, 16), torch.zeros(2), torch.zeros(2, 8, 32)), {})
    yield "diffusers_AutoencoderKL", lambda: (_diffuser("AutoencoderKL", **blocks, down_block_types=("DownEncoderBlock2D",) * 2,
                                              up_block_types=("UpDecoderBlock2D",) * 2), (image(32),), {})
    yield "diffusers_VQModel", lambda: (_diffuser("VQModel", block_out_channels=(32,), norm_num_groups=8), (image(32),), {})
    yield "diffusers_DiTTransformer2DModel", lambda: (
        _diffuser("DiTTransformer2DModel", num_attention_heads=2, attention_head_dim=16, num_layers=2, sample_size=16, norm_num_groups=8),
        (torch.zeros(2, 4, 16, 16), torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)), {})
    yield "diffusers_SD3Transformer2DModel", lambda: (
        _diffuser("SD3Transformer2DModel", sample_size=16, num_layers=2, attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32,
                  caption_projection_dim=32, pooled_projection_dim=24, in_channels=4, out_channels=4),
        (torch.zeros(2, 4, 16, 16), torch.zeros(2, 8, 32), torch.zeros(2, 24), torch.zeros(2)), {})
    yield "diffusers_FluxTransformer2DModel", lambda: (
        _diffuser("FluxTransformer2DModel", in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
                  joint_attention_dim=32, pooled_projection_dim=24, axes_dims_rope=(4, 4, 8)),
        (), {"hidden_states": torch.zeros(2, 64, 16), "encoder_hidden_states": torch.zeros(2, 8, 32), "pooled_projections": torch.zeros(2, 24),
             "timestep": torch.zeros(2), "img_ids": torch.zeros(64, 3), "txt_ids": torch.zeros(8, 3)})


def _diffuser(kind: str, **options: Any) -> nn.Module:
    import diffusers

    return meta(getattr(diffusers, kind), **options)


# ---- All -------------------------------------------------------------------------------------------------------------


def _inference(make: Make) -> Make:
    def build() -> Called:
        model, args, kwargs = make()
        return Quiet(model), args, kwargs

    return build


def networks() -> dict[str, Make]:
    """All of them by name. Names with the suffix _inference run without gradients."""
    from work_adapters import adapters

    found: dict[str, Make] = {}
    for family in (_layers, _functions, _graphs, _recommenders, _images, _transformers, _diffusers, adapters):
        found.update(family())
    quiet = ("LSTM", "GRU_packed", "Transformer", "Conv2d", "rfft", "graph_gat", "recommender_dlrm", "torchvision_resnet18", "torchvision_swin_t",
             "timm_convnext_atto", "transformers_GPT2LMHeadModel", "transformers_LlamaForCausalLM", "transformers_MixtralForCausalLM",
             "transformers_T5ForConditionalGeneration", "transformers_ViTForImageClassification", "diffusers_UNet2DConditionModel", "peft_LoraConfig_dora")
    found.update({f"{name}_inference": _inference(found[name]) for name in quiet})
    return found
