"""Programs of many kinds: a job does the work that its program dispatches, keeps the memory that it recorded, and agrees
with a trace at another batch. Where torch.utils.flop_counter knows all operators, it is a second reference.
"""

from __future__ import annotations

import collections
import functools
import itertools
import unittest
from typing import Any, Callable, Iterator

import support
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode
from traced import read

import mdot

Body = Callable[..., Any]
OTHER = 31


class Network(nn.Module):
    def __init__(self, body: Body, layer: Callable[[], nn.Module] | None = None) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(32, 48), nn.Linear(48, 32), nn.Linear(32, 32)
        self.w, self.v, self.body = nn.Parameter(torch.randn(32, 32)), nn.Parameter(torch.randn(32, 48)), body
        self.layer = layer() if layer is not None else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self, self.c(x))  # type: ignore[no-any-return]


def square(x: torch.Tensor) -> torch.Tensor:
    return x.mT @ x + 10 * torch.eye(32)


def unit(x: torch.Tensor) -> torch.Tensor:
    return F.normalize(x, dim=-1)


class Symmetric(nn.Module):
    def forward(self, w: torch.Tensor) -> torch.Tensor:
        return w @ w.T


def symmetric() -> nn.Module:
    layer = nn.Linear(32, 32)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


def cached(m: Any, x: torch.Tensor) -> torch.Tensor:
    with parametrize.cached():
        return m.layer(m.layer(x))  # type: ignore[no-any-return]


def scan(m: Any, x: torch.Tensor) -> torch.Tensor:
    state, states = torch.zeros(len(x), 32), []
    for step in x.unbind(1):
        state = state * 0.9 + step @ m.w
        states.append(state)
    return m.c(torch.stack(states, 1))  # type: ignore[no-any-return]


def teacher(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        target = m.b(m.a(x))
    return F.mse_loss(m.b(m.a(x)), target)


def jagged(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor_from_jagged(x.flatten(0, 1), torch.arange(0, len(x) * 10 + 1, 10))


def nested_attention(m: Any, x: torch.Tensor) -> torch.Tensor:
    q, k, v = (x.unflatten(-1, [4, 8]).transpose(1, 2) * scale for scale in (1, 2, 3))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)


class Packed(nn.Module):
    """Weights of 4 or 8 bits, or float8, and their scales."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        given = {"nf4": torch.randint(0, 255, (1024,), dtype=torch.uint8), "int8": torch.ones(64, 32, dtype=torch.int8)}
        self.w = nn.Parameter(given.get(kind, torch.ones(64, 32).to(torch.float8_e4m3fn)), requires_grad=False)
        self.register_buffer("table", torch.randn(16))
        self.register_buffer("scale", torch.ones(32 if kind == "nf4" else 64, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.w.dtype == torch.uint8:
            places = torch.stack([self.w >> 4, self.w & 15], -1).flatten().long()
            return F.linear(x, (self.table[places].view(32, 64) * self.scale).view(64, 32))
        return F.linear(x, self.w.to(x.dtype) * self.scale)


OPERATORS: dict[str, Body] = {
    "filter": lambda m, x: torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.complex(m.w[:6], m.w[6:12]), dim=1, n=10),
    "two dimensions": lambda m, x: m.c(torch.fft.irfft2(torch.fft.rfft2(x) * 1j, s=x.shape[-2:])),
    "short time": lambda m, x: torch.stft(x.flatten(1), 64, 16, window=torch.hann_window(64), return_complex=True).abs(),
    "complex product": lambda m, x: (torch.complex(x, x) @ torch.complex(m.w, m.w)).abs(),
    "complex products": lambda m, x: (torch.complex(x, x) @ torch.complex(x, x).mH).real,
    "unfold": lambda m, x: (x.unfold(1, 4, 2) @ m.w[:4, :7]).flatten(1),
    "fold": lambda m, x: F.fold(m.c(F.unfold(x[:, None], (2, 4), stride=2).mT[..., :8].repeat(1, 1, 4))[..., :8].mT, (10, 32), (2, 4), stride=2),
    "cumprod": lambda m, x: m.c(x.sigmoid().cumprod(1)),
    "logcumsumexp": lambda m, x: m.c(x.logcumsumexp(1).cummax(2)[0]),
    "masked scatter": lambda m, x: m.c(torch.zeros_like(x).masked_scatter(x > 0, x * 2)),
    "masked fill": lambda m, x: m.c(x.masked_fill(~(x > 0), -1e9).softmax(-1)),
    "scatter": lambda m, x: m.c(torch.zeros(len(x), 5, 32).scatter_reduce(1, (torch.arange(10) % 5)[None, :, None].expand_as(x), x, "amax")),
    "index reduce": lambda m, x: m.c(torch.zeros(len(x), 5, 32).index_reduce(1, torch.arange(10) % 5, x, "mean")),
    "segments": lambda m, x: m.c(torch.segment_reduce(x.flatten(0, 1), "sum", lengths=torch.full((len(x),), 10), axis=0)),
    "grid": lambda m, x: m.c(F.grid_sample(x[:, None], x[:, :, None, :2].tanh(), align_corners=False).flatten(1).repeat(1, 4)[:, :32]),
    "affine grid": lambda m, x: F.grid_sample(x[:, None], F.affine_grid(x[:, :2, :3].contiguous(), (len(x), 1, 10, 32), False), align_corners=False),
    "triangle": lambda m, x: m.c(torch.linalg.solve_triangular((m.w @ m.w.T).tril() + 10 * torch.eye(32), x.mT, upper=False).mT),
    "triangular solve": lambda m, x: m.c(torch.triangular_solve(x.mT, m.w.tril() + 10 * torch.eye(32), upper=False)[0].mT),
    "cholesky": lambda m, x: m.c(torch.cholesky_solve(x.mT, torch.linalg.cholesky(square(x))).mT),
    "solve": lambda m, x: m.c(torch.linalg.solve(square(x), x.mT).mT),
    "inverse": lambda m, x: m.c(torch.linalg.inv(square(x))),
    "eigenvectors": lambda m, x: m.c(torch.linalg.eigh(square(x))[1]),
    "singular values": lambda m, x: m.c(torch.linalg.svd(x, full_matrices=False)[2]),
    "orthogonal factor": lambda m, x: m.c(torch.linalg.qr(x.mT)[0].mT),
    "determinant": lambda m, x: torch.linalg.slogdet(square(x))[1],
    "exponential": lambda m, x: m.c(torch.matrix_exp((x.mT @ x) * 0.01)),
    "sparse": lambda m, x: torch.sparse.mm(torch.eye(32).to_sparse(), x.flatten(0, 1).T).T @ m.v,
    "sparse rows": lambda m, x: (torch.eye(32).to_sparse_csr() @ x.flatten(0, 1).T).T @ m.v,
    "distances": lambda m, x: torch.cdist(x, m.v.T),
    "time first": lambda m, x: torch.conv_tbc(x.transpose(0, 1).contiguous(), m.w.view(4, 8, 32)[:3].repeat(1, 4, 1), m.w[0], 1),
    "bilinear": lambda m, x: F.bilinear(x, x, torch.stack([m.w, m.w.T])),
    "nested": lambda m, x: m.b(F.gelu(m.a(jagged(x)))).values(),
    "nested attention": lambda m, x: nested_attention(m, jagged(x)).values(),
    "nested attention in half precision": lambda m, x: nested_attention(m, jagged(x.bfloat16())).values().float(),
    "nested with strides": lambda m, x: torch.nested.to_padded_tensor(m.b(m.a(torch.nested.as_nested_tensor(list(x)))), 0.0),
    "condition": lambda m, x: torch.cond(torch.tensor(True), lambda y: m.b(m.a(y)), m.c, (x,)),
    "loop": lambda m, x: torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, m.b(m.a(y))), (torch.tensor(0), x))[1],
    "bins": lambda m, x: m.c(x) * torch.histc(x, 32),
    "special": lambda m, x: m.c(torch.special.i0e(x) + torch.lgamma(x.abs() + 1) + torch.special.erfcx(x)),
}
COUNTED: dict[str, Body] = {
    "power": lambda m, x: m.c(torch.matrix_power((x.mT @ x) * 0.01, 5)),
    "chain": lambda m, x: x @ torch.linalg.multi_dot([m.v, m.v.T, m.w]),
    "baddbmm": lambda m, x: torch.baddbmm(m.w, x.mT, x, beta=0.5),
    "kron": lambda m, x: m.c(torch.kron(x, m.w[:2, :2])[:, :, :32]),
    "tensordot": lambda m, x: torch.tensordot(x, m.v.view(32, 6, 8), dims=1),
    "three operands": lambda m, x: torch.einsum("bni,ij,bnj->bn", x, m.w, x),
    "covariance": lambda m, x: torch.cov(x.flatten(0, 1).T) @ m.v,
    "ensemble": lambda m, x: torch.einsum("bnd,edo->bneo", x, torch.stack([m.v, m.v])).mean(2),
    "vmap": lambda m, x: torch.func.vmap(lambda y: y @ m.w)(x),
    "functional": lambda m, x: torch.func.functional_call(m.c, {"weight": m.w, "bias": m.w[0]}, (x,)),
    "scan": scan,
    "divergence": lambda m, x: F.kl_div(m.b(F.dropout(m.a(x))).log_softmax(-1), m.b(F.dropout(m.a(x))).softmax(-1)),
    "siamese": lambda m, x: F.cosine_similarity(m.b(m.a(x)), m.b(m.a(x.flip(0))), dim=-1),
    "teacher": teacher,
    "selective": lambda m, x: checkpoint(
        lambda y: m.b(F.gelu(m.a(y))), x, use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts([torch.ops.aten.addmm.default])),
}  # fmt: skip
CONTRASTS: dict[str, Body] = {
    "CLIP": lambda m, x: F.cross_entropy(unit(m.c(x.mean(1))) @ unit(x.amax(1)).T, torch.arange(len(x))),
    "SimCLR": lambda m, x: (lambda z: F.cross_entropy((z @ z.T).fill_diagonal_(-1e9), torch.arange(len(z)).roll(len(x))))(unit(torch.cat([m.c(x.mean(1)), x.amax(1)]))),
    "SigLIP": lambda m, x: -F.logsigmoid((2 * torch.eye(len(x)) - 1) * (unit(m.c(x.mean(1))) @ unit(x.amax(1)).T)).sum(),
    "VICReg": lambda m, x: (x.mean(1).T @ m.c(x.mean(1)) / len(x)).fill_diagonal_(0).square().sum(),
    "queue": lambda m, x: F.cross_entropy(torch.cat([unit(x.mean(1)).sum(-1, keepdim=True), unit(x.mean(1)) @ m.v.detach()], 1), torch.zeros(len(x), dtype=torch.int64)),
    "all pairs": lambda m, x: torch.einsum("bnd,cmd->bcnm", x, x).amax(-1).sum(-1),
}
LAYERS: dict[str, tuple[Body, Callable[[], nn.Module]]] = {
    "complex linear": (lambda m, x: m.layer(torch.complex(x, x)).abs(), lambda: nn.Linear(32, 16, dtype=torch.complex64)),
    "complex convolution": (lambda m, x: m.layer(torch.complex(x, x)).abs(), lambda: nn.Conv1d(10, 16, 3, dtype=torch.complex64)),
    "weight norm": (lambda m, x: m.layer(x), lambda: parametrizations.weight_norm(nn.Linear(32, 64))),
    "spectral norm": (lambda m, x: m.layer(x), lambda: parametrizations.spectral_norm(nn.Linear(32, 64))),
    "orthogonal": (lambda m, x: m.layer(x), lambda: parametrizations.orthogonal(nn.Linear(32, 32))),
    "Cayley": (lambda m, x: m.layer(x), lambda: parametrizations.orthogonal(nn.Linear(32, 32), orthogonal_map="cayley")),
    "symmetric": (lambda m, x: m.layer(m.layer(x)), symmetric),
    "cached": (cached, symmetric),
    **{kind: (lambda m, x: m.layer(x), lambda kind=kind: Packed(kind)) for kind in ("nf4", "int8", "float8")},
    "mask of lengths": (
        lambda m, x: m.layer(x, src_key_padding_mask=torch.arange(10)[None] >= (10 - torch.arange(len(x)) % 5)[:, None]),
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2),
    ),
}


def flops(job: mdot.Job, batch: int) -> Iterator[float]:
    terms = ((1, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    for phases in (("forward",), ("data_gradient", "weight_gradient")):
        yield sum(power * getattr(op, term)[phase].flops for op in job for power, term in terms for phase in phases)


class Kinds(support.TestCase):
    def check(self, body: Body, layer: Callable[[], nn.Module] | None = None, is_counted: bool = False) -> None:
        torch.manual_seed(0)
        model = Network(body, layer)
        job, reported = read(model, torch.randn(6, 10, 32))
        self.assertEqual([text for text in reported if "unused" not in text], [])
        assert job.program is not None
        check = job.program.check
        self.assertEqual(check.unpriced_operators, 0)
        for own, dispatched in zip(check.job_flops, check.dispatched_flops):
            self.assertAlmostEqual(own / dispatched, 1, delta=0.02, msg=str(check))
        self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.02, msg=str(check))
        if is_counted:
            with FlopCounterMode(display=False) as forward:
                out = model(torch.randn(6, 10, 32))
            with FlopCounterMode(display=False) as backward:
                out.sum().backward()
            for own, counter in zip(check.job_flops, (forward, backward)):
                self.assertAlmostEqual(own / counter.get_total_flops(), 1, delta=0.02, msg=str(check))
        direct, _ = read(model, torch.randn(OTHER, 10, 32))
        for own, there in zip(flops(job, OTHER), flops(direct, OTHER)):
            self.assertAlmostEqual(own / there, 1, delta=0.02)
        a, b = (mdot.Predictor().predict(one, "A100-40GB", OTHER, optimizer="sgd-plain") for one in (job, direct))
        self.assertAlmostEqual(a.peak_memory_bytes / b.peak_memory_bytes, 1, delta=0.02)

    def test_operators_cost_their_formulas(self) -> None:
        for name, body in OPERATORS.items():
            with self.subTest(name):
                self.check(body)

    def test_products_cost_as_counted(self) -> None:
        for name, body in {**COUNTED, **CONTRASTS}.items():
            with self.subTest(name):
                self.check(body, is_counted=True)

    def test_layers_cost_their_formulas(self) -> None:
        for name, (body, layer) in LAYERS.items():
            with self.subTest(name):
                self.check(body, layer)

    def test_complex_products_are_four_real_ones_and_convolutions_three(self) -> None:
        for layer, factor in ((nn.Linear, 4), (lambda *size, dtype: nn.Conv1d(*size, 1, dtype=dtype), 3)):
            found = []
            for dtype in (torch.float32, torch.complex64):
                model = nn.Sequential(layer(32, 16, dtype=dtype))
                job, _ = read(model, torch.zeros(*(4, 32, 6)[: 2 if layer is nn.Linear else 3], dtype=dtype))
                found.append(job.program.check.dispatched_flops[0])
            self.assertEqual(found[1] / found[0], factor)

    def test_a_complex_parameter_has_two_numbers_for_each_element(self) -> None:
        """It costs as much as a real one with a last dimension of two, which the program views as complex."""
        forms: dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]] = {
            "product": ((320, 640), lambda x, w: ((x.repeat(1, 1, 10) + 0j) @ w).abs()),
            "filter": ((2, 6, 3200), lambda x, w: torch.fft.irfft(torch.fft.rfft(x, dim=1).repeat(1, 1, 100) * w[0], dim=1, n=10)),
            "contraction": ((32, 320, 6), lambda x, w: torch.einsum("bki,iok->bok", torch.fft.rfft(x, dim=1), w).abs()),
            "frozen": ((320, 640), lambda x, w: ((x.repeat(1, 1, 10) + 0j) @ w).abs()),
        }  # fmt: skip
        for name, (shape, form) in forms.items():
            with self.subTest(name):
                jobs = []
                for is_complex in (False, True):
                    model = Network(lambda m, x: form(x, m.p if m.p.is_complex() else torch.view_as_complex(m.p)))
                    given = torch.randn(*shape, dtype=torch.complex64) if is_complex else torch.randn(*shape, 2)
                    model.p = nn.Parameter(given, requires_grad=name != "frozen")
                    jobs.append(read(model, torch.randn(6, 10, 32))[0])
                real, made = jobs
                self.assertEqual((made.parameters, made.frozen_parameters), (real.parameters, real.frozen_parameters))
                for own, there in zip(flops(made, 6), flops(real, 6)):
                    self.assertAlmostEqual(own / there, 1, delta=0.01)
                for options in ({"optimizer": "sgd-plain"}, {}, {"fsdp": 2}, {"precision": "amp-bf16"}):
                    a, b = (mdot.predict(job, "A100-40GB", 6, **options) for job in (made, real))
                    self.assertAlmostEqual(a.peak_memory_bytes / b.peak_memory_bytes, 1, delta=0.01, msg=str(options))

    def test_sparse_tensors_have_their_elements(self) -> None:
        """Also those of buffers and inputs: FLOPs, bytes and memory follow from the elements other than 0."""
        torch.manual_seed(0)
        table = (torch.rand(307, 307) < 0.02).float().to_sparse()
        forms: dict[str, Callable[[Any, Any], Any]] = {
            "product": lambda a, h: a @ h, "function": lambda a, h: torch.sparse.mm(a, h), "transposed": lambda a, h: a.t() @ h,
            "softmax": lambda a, h: torch.sparse.mm(torch.sparse.softmax(a, 1), h),
            "log softmax": lambda a, h: torch.sparse.mm(torch.sparse.log_softmax(a * 2, 1), h), "sum": lambda a, h: torch.sparse.addmm(h, a, h),
        }  # fmt: skip
        for name, form in forms.items():
            for place in ("buffer", "input", "attribute"):
                with self.subTest(name, place=place):
                    model = Network(lambda m, x, a=None: x.flatten(0, 1) @ form(m.table if a is None else a, m.layer(m.nodes)).T)
                    model.nodes, model.layer = nn.Parameter(torch.randn(307, 32)), nn.Linear(32, 32)
                    model.register_buffer("table", table) if place == "buffer" else setattr(model, "table", table)
                    model.forward = functools.partial(model.body, model)  # type: ignore[assignment]
                    job, reported = read(model, torch.randn(6, 10, 32), *([table] if place == "input" else []))
                    self.assertEqual([text for text in reported if "unused" not in text], [])
                    assert job.program is not None
                    check = job.program.check
                    self.assertEqual(check.dispatched_flops[0], 2 * 307 * 32 * 32 + 2 * 60 * 32 * 307 + 2 * table._nnz() * 32)
                    self.assertEqual(job.program.buffer_bytes, table._nnz() * (4 + 2 * 8) if place == "buffer" else 0)
                    self.assertLess(check.recorded_peak, 1.1e6)
                    read_bytes = sum(load.bytes_read for op in job for term in (op.per_step, op.per_sample) for load in term.values())
                    self.assertLess(read_bytes, 2.6e6)

    def test_a_convolution_with_time_first_costs_as_much_as_another(self) -> None:
        model, x = Network(OPERATORS["time first"]), torch.zeros(6, 10, 32)
        job, _ = read(model, x)
        assert job.program is not None
        self.assertEqual(job.program.check.dispatched_flops[0], 2 * 6 * 10 * 32 * 32 * (1 + 3))

    def test_nested_tensors_cost_their_rows(self) -> None:
        job, _ = read(Network(OPERATORS["nested"]), torch.zeros(6, 10, 32))
        assert job.program is not None
        self.assertEqual(job.program.check.dispatched_flops[0], 2 * 6 * 10 * (32 * 32 + 2 * 32 * 48))

    def test_autocast_narrows_operands_before_einsum_arranges_them(self) -> None:
        def peak(narrows: bool) -> float:
            def body(m: Any, x: torch.Tensor) -> torch.Tensor:
                wide = x[:, :, :, None] * m.v[:, :8]
                with torch.autocast("cuda", torch.bfloat16):
                    return torch.einsum("bnde,bnf->befd", *(one.bfloat16() if narrows else one for one in (wide, x))).float()

            job, _ = read(Network(body), torch.zeros(6, 10, 32))
            assert job.program is not None
            return job.program.check.recorded_peak

        self.assertEqual(peak(False), peak(True))

    def test_cells_in_autocast_cast_their_weights_once(self) -> None:
        def body(m: Any, x: torch.Tensor) -> torch.Tensor:
            state = (torch.zeros(len(x), 256), torch.zeros(len(x), 256))
            with torch.autocast("cuda", torch.bfloat16):
                for step in x.unbind(1):
                    state = m.layer(step, state)
            return state[0].float()

        job, _ = read(Network(body, lambda: nn.LSTMCell(32, 256)), torch.zeros(2, 10, 32))
        assert job.program is not None
        weights = 4 * sum(p.numel() for p in nn.LSTMCell(32, 256).parameters())
        self.assertLess(job.program.check.recorded_peak, 3.5 * weights)

    def test_hooks_of_parameters_are_work(self) -> None:
        """Their products are in the backward pass; hooks that read values have no effect."""
        basis, norms = torch.randn(32, 8), list[float]()
        hooks: dict[str, tuple[Callable[[torch.Tensor], Any], float]] = {
            "product": (lambda g: (g @ basis) @ basis.T, 4.0 * 32 * 32 * 8), "scale": (lambda g: g * 2, 0.0),
            "values": (lambda g: norms.append(float(g.norm())), 0.0),
        }  # fmt: skip
        plain, _ = read(Network(lambda m, x: m.c(x)), torch.zeros(6, 10, 32))
        assert plain.program is not None
        for name, (hook, flops) in hooks.items():
            with self.subTest(name):
                model = Network(lambda m, x: m.c(x))
                model.c.weight.register_hook(hook)
                job, reported = read(model, torch.zeros(6, 10, 32))
                assert job.program is not None
                self.assertTrue(job.program.recorded)
                added = job.program.check.dispatched_flops[1] - plain.program.check.dispatched_flops[1]
                self.assertEqual(added, flops)
                self.assertEqual(any("work-differs" in text for text in reported), flops > 0, reported)
        self.assertEqual(norms, [])

    def test_functions_in_checkpoints_run_again_operator_by_operator(self) -> None:
        """A checkpointed function may be a part of its module, and use operators that no module calls."""
        attend = lambda x: F.scaled_dot_product_attention(x, x, x)  # noqa: E731
        forms: dict[str, tuple[Callable[[Any, torch.Tensor], torch.Tensor], int]] = {
            "attention": (lambda m, x: m.c(attend(m.c(x).tanh()[:, None])[:, 0]).cos(), 1),
            "products": (lambda m, x: F.linear((x @ m.w).cos(), m.v.T).sin(), 2),
            "layers alone": (lambda m, x: m.b(m.a(x)).cos(), 1),
            "pointwise alone": (lambda m, x: x.cos().sin(), 2),
        }  # fmt: skip
        for (name, (form, count)), is_reentrant, beside in itertools.product(forms.items(), (False, True), (False, True)):
            with self.subTest(name, is_reentrant=is_reentrant, beside=beside):

                def body(m: Any, x: torch.Tensor) -> torch.Tensor:
                    y = checkpoint(functools.partial(form, m), x.exp(), use_reentrant=is_reentrant)
                    return m.c(y[..., :32].exp() @ m.w if beside else y[..., :32].exp()).exp()

                job, reported = read(Network(body), torch.zeros(6, 10, 32))
                self.assertEqual([text for text in reported if "differs" in text], [])
                repeated = collections.Counter(op.type for op in job if op.flags & 1)
                self.assertEqual(repeated["Exp"], 0, repeated)
                self.assertEqual(repeated["Cos"] + repeated["Sin"], count, repeated)

    def test_a_target_network_has_biases_before_normalisations(self) -> None:
        """BYOL: its weights are trained as far as a job knows, but nothing in the region has a gradient."""
        layer = lambda: nn.Sequential(nn.Conv1d(10, 16, 3), nn.BatchNorm1d(16), nn.ReLU())  # noqa: E731

        def body(m: Any, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                target = m.layer(x)
            return x.mean() + target.mean()

        job, reported = read(Network(body, layer), torch.zeros(6, 10, 32))
        self.assertEqual(reported and [text for text in reported if "differs" in text], [])
        convolution = next(op for op in job if op.type == "Conv")
        self.assertEqual(convolution.per_step["weight_gradient"].bytes_written, 0)


if __name__ == "__main__":
    unittest.main()
