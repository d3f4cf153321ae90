"""The memory of compiled code: the tensors that torch.compile's partitioner saves for the backward pass, and the regions that
are compiled."""

from __future__ import annotations

import functools
import unittest
from typing import Any, Callable
from unittest import mock

import support
import torch
import torch._inductor.compile_fx as inductor
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import mdot
from mdot.trace import replacements
from mdot.trace.compiled import Step, as_compiled, saved
from mdot.trace.timeline import Timeline
from mdot.trace.training_run import run

BATCH, LENGTH, WIDTH, WORDS = 8, 32, 64, 500
TOLERANCE = 0.01


class Program(nn.Module):
    """Blocks of members, each called by a function of the block and the data."""

    def __init__(self, body: Callable[[nn.ModuleDict, Any], Any], parts: Callable[[], dict[str, nn.Module]], count: int = 3) -> None:
        super().__init__()
        self.body = body
        self.blocks = nn.ModuleList(nn.ModuleDict(parts()) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = self.body(block, x)
        return x


class Block(nn.Module):
    """A body with members as one module, which a checkpoint may repeat."""

    def __init__(self, body: Callable[[nn.ModuleDict, Any], Any], parts: nn.ModuleDict, repeats: bool) -> None:
        super().__init__()
        self.parts = parts
        self.run = functools.partial(checkpoint, body, use_reentrant=False) if repeats else body

    def forward(self, x: torch.Tensor) -> Any:
        return self.run(self.parts, x)


class Scalar(nn.Module):
    """A network with its loss."""

    def __init__(self, *layers: nn.Module, loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layers, self.loss_function = nn.Sequential(*layers), loss

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.loss_function(self.layers(x))


class ComposedNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def square(x: torch.Tensor) -> torch.Tensor:
    return x.float().square().mean()


def words(x: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x.float().flatten(0, 1), torch.zeros(x.shape[0] * x.shape[1], dtype=torch.long))


def capped(x: torch.Tensor) -> torch.Tensor:
    return words(15 * torch.tanh(x / 15))


def classes(x: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long))


def attend(m: nn.ModuleDict, x: torch.Tensor, rotates: bool = False, is_fused: bool = True, p: float = 0.0) -> torch.Tensor:
    q, k, v = m["qkv"](x).view(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4)
    if rotates:
        q, k = (z * 0.5 + torch.cat([-z[..., z.shape[-1] // 2 :], z[..., : z.shape[-1] // 2]], -1) * 0.25 for z in (q, k))
    if is_fused:
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        y = F.dropout((q @ k.transpose(-1, -2) / 4).softmax(-1), p) @ v
    return m["out"](y.transpose(1, 2).flatten(2))


def attention_parts(norm: Callable[[int], nn.Module], inner: int, bias: bool = True) -> dict[str, nn.Module]:
    return {"n1": norm(WIDTH), "n2": norm(WIDTH), "qkv": nn.Linear(WIDTH, 3 * WIDTH, bias=bias), "out": nn.Linear(WIDTH, WIDTH, bias=bias),
            "up": nn.Linear(WIDTH, inner, bias=bias), "gate": nn.Linear(WIDTH, inner, bias=bias), "down": nn.Linear(inner, WIDTH, bias=bias)}  # fmt: skip


def llama(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    x = x + attend(m, m["n1"](x), rotates=True)
    y = m["n2"](x)
    return x + m["down"](F.silu(m["gate"](y)) * m["up"](y))


def gpt(m: nn.ModuleDict, x: torch.Tensor, p: float = 0.0) -> torch.Tensor:
    x = x + F.dropout(attend(m, m["n1"](x)), p)
    return x + F.dropout(m["down"](F.gelu(m["up"](m["n2"](x)))), p)


def nanochat(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    x = x + attend(m, F.rms_norm(x, (WIDTH,)), rotates=True)
    return x + m["down"](F.relu(m["up"](F.rms_norm(x, (WIDTH,)))).square())


def bert(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    x = m["n1"](x + F.dropout(attend(m, x, is_fused=False, p=0.1), 0.1))
    return m["n2"](x + F.dropout(m["down"](F.gelu(m["up"](x))), 0.1))


def gated(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    y = m["n1"](x)
    a, g = F.silu(m["up"](y)), m["gate"](y)
    return x + m["down"](a * torch.sigmoid(g) * torch.tanh(a))


def mixer(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    x = x + m["rows"](F.gelu(m["n1"](x).transpose(1, 2))).transpose(1, 2)
    return x + m["down"](F.gelu(m["up"](m["n2"](x))))


def convolutions(width: int, act: Callable[[], nn.Module], depthwise: bool = False) -> Callable[[], dict[str, nn.Module]]:
    def parts() -> dict[str, nn.Module]:
        first = nn.Conv2d(width, 4 * width if depthwise else width, 1 if depthwise else 3, padding=0 if depthwise else 1, bias=False)
        inner = first.out_channels
        second = nn.Conv2d(inner, inner, 3, padding=1, groups=inner if depthwise else 1, bias=False)
        last = [nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)] if depthwise else []
        return {"body": nn.Sequential(first, nn.BatchNorm2d(inner), act(), second, nn.BatchNorm2d(inner), *([act()] if last else []), *last),
                "act": nn.Identity() if depthwise else act(), "squeeze": nn.Conv2d(width, 8, 1), "excite": nn.Conv2d(8, width, 1)}  # fmt: skip

    return parts


def residual(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    return m["act"](x + m["body"](x))


def squeezed(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    y = m["body"](x)
    return x + y * torch.sigmoid(m["excite"](F.relu(m["squeeze"](F.adaptive_avg_pool2d(y, 1)))))


def convnext(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    return x + m["down"](F.gelu(m["up"](m["norm"](m["conv"](x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)


def unet(m: nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    y = F.interpolate(m["inner"](F.silu(m["n1"](F.avg_pool2d(x, 2)))), scale_factor=2.0)
    return m["outer"](F.silu(m["n2"](torch.cat([x, y], 1))))


def text(body: Any, norm: Callable[[int], nn.Module] = nn.LayerNorm, loss: Any = words, bias: bool = True) -> Callable[[], nn.Module]:
    parts = lambda: attention_parts(norm, 3 * WIDTH, bias)  # noqa: E731
    return lambda: Scalar(nn.Embedding(WORDS, WIDTH), Program(body, parts), nn.Linear(WIDTH, WORDS, bias=False), loss=loss)


def features(body: Any, parts: Callable[[], dict[str, nn.Module]], *stem: nn.Module, loss: Any = square) -> Callable[[], nn.Module]:
    return lambda: Scalar(*stem, Program(body, parts), loss=loss)


def convnext_parts() -> dict[str, nn.Module]:
    return {"conv": nn.Conv2d(24, 24, 7, padding=3, groups=24), "norm": nn.LayerNorm(24), "up": nn.Linear(24, 96), "down": nn.Linear(96, 24)}


def unet_parts() -> dict[str, nn.Module]:
    return {"n1": nn.GroupNorm(4, 16), "inner": nn.Conv2d(16, 16, 3, padding=1), "n2": nn.GroupNorm(4, 32), "outer": nn.Conv2d(32, 16, 3, padding=1)}


def mixer_parts() -> dict[str, nn.Module]:
    return {**attention_parts(nn.LayerNorm, 4 * WIDTH), "rows": nn.Linear(LENGTH, LENGTH)}


def tokens() -> torch.Tensor:
    return torch.zeros(BATCH, LENGTH, dtype=torch.long)


def rows() -> torch.Tensor:
    return torch.randn(BATCH, LENGTH, WIDTH)


def image() -> torch.Tensor:
    return torch.randn(BATCH, 3, 32, 32)


def pools() -> nn.Module:
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True),
              nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2048, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10)]  # fmt: skip
    return Scalar(*layers, loss=classes)


def perceptron(act: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: Scalar(*(m for _ in range(4) for m in (nn.Linear(256, 256), nn.LayerNorm(256), act())), nn.Linear(256, 10), loss=classes)


def vectors() -> torch.Tensor:
    return torch.randn(BATCH, 256)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "llama with composed norms": (text(llama, ComposedNorm, bias=False), tokens),
    "llama with nn.RMSNorm": (text(llama, nn.RMSNorm, bias=False), tokens),
    "gpt": (text(gpt), tokens),
    "gpt with dropout": (text(lambda m, x: gpt(m, x, 0.1)), tokens),
    "nanochat": (text(nanochat, nn.Identity, capped, bias=False), tokens),
    "bert with decomposed attention": (features(bert, lambda: attention_parts(nn.LayerNorm, 4 * WIDTH)), rows),
    "gates": (features(gated, lambda: attention_parts(ComposedNorm, 2 * WIDTH)), rows),
    "mixer": (features(mixer, mixer_parts), rows),
    "perceptron with ReLU": (perceptron(nn.ReLU), vectors),
    "perceptron with GELU": (perceptron(nn.GELU), vectors),
    "residual convolutions": (features(residual, convolutions(16, nn.ReLU), nn.Conv2d(3, 16, 3, padding=1)), image),
    "convolutions with SiLU": (features(residual, convolutions(16, nn.SiLU), nn.Conv2d(3, 16, 3, padding=1)), image),
    "squeezed convolutions": (features(squeezed, convolutions(16, nn.Hardswish, True), nn.Conv2d(3, 16, 3, 2, 1)), image),
    "convnext": (features(convnext, convnext_parts, nn.Conv2d(3, 24, 4, 4)), image),
    "unet": (features(unet, unet_parts, nn.Conv2d(3, 16, 3, padding=1)), image),
    "pools": (pools, image),
}


def saved_by_partitioner(model: nn.Module, x: torch.Tensor) -> int:
    """Bytes that the forward graph saves besides parameters and inputs. The graphs are made as by Inductor, but not compiled."""
    total = 0
    partition = inductor.min_cut_rematerialization_partition

    def watch(*args: Any, num_fwd_outputs: int, **options: Any) -> Any:
        nonlocal total
        graphs = partition(*args, num_fwd_outputs=num_fwd_outputs, **options)
        nodes = [n for n in graphs[0].graph.nodes if isinstance(n.meta.get("val"), torch.Tensor)]
        given = {n.meta["val"].untyped_storage()._cdata for n in nodes if n.op == "placeholder"}
        kept = list(graphs[0].graph.nodes)[-1].args[0][num_fwd_outputs:]
        storages = [n.meta["val"].untyped_storage() for n in kept if isinstance(n.meta.get("val"), torch.Tensor)]
        total += sum({s._cdata: s.nbytes() for s in storages if s._cdata not in given}.values())
        return graphs

    torch._dynamo.reset()
    with mock.patch.object(inductor, "min_cut_rematerialization_partition", watch), torch._functorch.config.patch(enable_autograd_cache=False):
        compiled = torch.compile(model, backend=lambda graph, given: inductor.compile_fx(graph, given, inner_compile=lambda made, *_, **__: made))
        compiled(x)
    return total


def timeline_of(model: nn.Module, x: torch.Tensor) -> Timeline:
    with replacements.active([], has_backward=True):
        return run(model, (x,), {}, BATCH, samples=BATCH, counts_work=False).timeline


def saved_by_mdot(timeline: Timeline) -> int:
    step = Step(timeline)
    return sum(step.tensors[i].bytes for i in saved(step)[0] if step.makers[i] is not None)


class Compiled(unittest.TestCase):
    def test_saved_bytes_are_those_of_the_partitioner(self) -> None:
        for name, (make, inputs) in NETWORKS.items():
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(network=name, dtype=dtype):
                    model, x = make().train().to(dtype), inputs()
                    x = x.to(dtype) if x.is_floating_point() else x
                    ratio = saved_by_mdot(timeline_of(model, x)) / saved_by_partitioner(model, x)
                    self.assertLess(abs(ratio - 1), TOLERANCE, f"{name} in {dtype}: {ratio:.3f} of the partitioner's bytes")

    def test_saved_bytes_of_checkpointed_blocks_are_those_of_the_partitioner(self) -> None:
        """The last block's result is not saved: its block runs again before the head's backward pass. torch.compile makes no
        difference between reentrant checkpoints and others."""
        for name, (make, inputs) in NETWORKS.items():
            model = make().train().bfloat16()
            programs = [module for module in model.modules() if isinstance(module, Program)]
            bodies = [program.body for program in programs]
            x = inputs()
            x = x.bfloat16().requires_grad_() if x.is_floating_point() else x  # a reentrant checkpoint needs a gradient
            for is_reentrant in (False, True) if programs else ():
                for program, body in zip(programs, bodies):
                    program.body = functools.partial(checkpoint, body, use_reentrant=is_reentrant)
                with self.subTest(network=name, is_reentrant=is_reentrant):
                    line = timeline_of(model, x)
                    ratio = saved_by_mdot(line) / saved_by_partitioner(model, x)
                    self.assertLess(abs(ratio - 1), TOLERANCE, f"{name}: {ratio:.3f} of the partitioner's bytes")
                    if not is_reentrant:
                        peak = _peak(line)
                    self.assertEqual(_peak(line), peak)

    def test_recomputed_blocks_of_a_compiled_job_are_those_of_a_checkpointed_program(self) -> None:
        """`checkpoint=blocks` of a job without checkpoints, against the same program with a checkpoint around each block."""
        options = {"gpu": "H100", "batch": 1024, "optimizer": "sgd-plain", "precision": "bf16", "compiled": True}
        smaller = 0
        for name, (make, inputs) in NETWORKS.items():
            jobs = []
            for repeats in (False, True):
                model = make().train().bfloat16()
                programs = [module for module in model.modules() if isinstance(module, Program)]
                for program in programs:
                    program.blocks = nn.ModuleList(Block(program.body, block, repeats) for block in program.blocks)
                    program.body = lambda block, x: block(x)
                x = inputs()
                if programs:
                    jobs.append(mdot.Job.from_torch(model, (x.bfloat16() if x.is_floating_point() else x,), batch=BATCH))
            if jobs:
                with self.subTest(network=name):
                    asked, wanted = (mdot.predict(job, checkpoint=how, **options).activation_bytes for job, how in zip(jobs, ("blocks", "nothing")))
                    eager = mdot.predict(jobs[0], checkpoint="blocks", **{**options, "compiled": False}).activation_bytes
                    smaller += asked < 0.9 * eager
                    self.assertLess(abs(asked / wanted - 1), 0.06, f"{asked / wanted:.3f} of the checkpointed program's bytes")
        self.assertGreaterEqual(smaller, 6)

    def test_compiled_jobs_of_checkpointed_blocks_have_the_recorded_peak(self) -> None:
        model, batch = text(llama, ComposedNorm, bias=False)(), 64
        program = model.layers[1]
        program.body = functools.partial(checkpoint, program.body, use_reentrant=False)
        job = mdot.Job.from_torch(model, (tokens(),), batch=BATCH)
        options = {"gpu": "H100", "batch": batch, "optimizer": "sgd", "precision": "fp32"}
        eager, compiled = (mdot.predict(job, compiled=flag, **options).peak_memory_bytes for flag in (False, True))
        with replacements.active([], has_backward=True):
            line = run(model, (tokens().repeat(batch // BATCH, 1),), {}, batch, samples=batch, counts_work=False).timeline
        self.assertLess(abs((eager - compiled) / (line.peak - _peak(line)) - 1), 0.02)

    def test_products_end_where_their_saved_sum_begins(self) -> None:
        """At the end of the forward pass, only saved tensors, inputs and results exist: a frozen product and its adapter's do not."""

        class Adapted(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.base, self.down, self.up = nn.Linear(WIDTH, 256, bias=False), nn.Linear(WIDTH, 8, bias=False), nn.Linear(8, 256, bias=False)
                self.base.weight.requires_grad_(False)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return F.silu(self.base(x) + 2 * self.up(self.down(x)))

        for name, (make, inputs) in {**NETWORKS, "adapters": (lambda: Scalar(Adapted(), nn.Linear(256, 8), loss=square), rows)}.items():
            with self.subTest(name):
                line = timeline_of(make().train(), inputs())
                alive = sum(i.bytes for i in as_compiled(line) if i.start < line.backward_start <= i.end)
                given = inputs().numel() * inputs().element_size()
                self.assertLess(alive, 1.01 * (saved_by_mdot(line) + given) + 4096, f"{name}: {alive} bytes")

    def test_a_loss_outside_of_the_compiled_module_keeps_its_tensors(self) -> None:
        """`model.compile()` leaves the loss around it as it is: log-probabilities in fp32 in place of logits in bf16."""
        model = text(gpt)().bfloat16()
        lines = [timeline_of(model, tokens())]
        model.layers.compile()
        lines.append(timeline_of(model, tokens()))
        kept = [[i.bytes for i in as_compiled(line) if i.start < line.backward_start <= i.end] for line in lines]
        logits = BATCH * LENGTH * WORDS
        self.assertEqual([(one.count(2 * logits), one.count(4 * logits)) for one in kept], [(1, 0), (0, 1)])

    def test_blocks_compiled_alone_need_less_than_eager_ones_and_more_than_the_whole(self) -> None:
        model = text(gated, ComposedNorm)().bfloat16()
        whole = timeline_of(model, tokens())
        model.layers[1].compile()
        parts = timeline_of(model, tokens())
        self.assertLess(_peak(whole), _peak(parts))
        self.assertLess(_peak(parts), parts.peak)


def _peak(timeline: Timeline) -> float:
    change = [0.0] * (timeline.clock + 1)
    for i in as_compiled(timeline):
        change[i.start] += i.bytes
        change[i.end + 1] -= i.bytes
    total = largest = 0.0
    for one in change:
        total += one
        largest = max(largest, total)
    return largest


if __name__ == "__main__":
    unittest.main()
