"""The work of small programs whose gradients do not follow from their operators: results that nothing reads, inputs that
require a gradient, and autograd functions. The reference is torch.utils.flop_counter over the forward and backward pass.
"""

from __future__ import annotations

import unittest
from typing import Any, Callable

import support
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from traced import read

import mdot

Body = Callable[[Any, torch.Tensor], torch.Tensor]


class Network(nn.Module):
    def __init__(self, body: Body) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(32, 48), nn.Linear(48, 32), nn.Linear(32, 32)
        self.frozen, self.conv = nn.Linear(32, 32).requires_grad_(False), nn.Conv1d(32, 32, 3, padding=1)
        self.w, self.v = nn.Parameter(torch.zeros(32, 32)), nn.Parameter(torch.zeros(32, 48))
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self, x)


# ---- Functions -------------------------------------------------------------------------------------------------------


def function(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., torch.Tensor]:
    """A function of tensors whose backward pass gets the gradient and the tensors."""

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: torch.Tensor) -> Any:  # type: ignore[override]
            ctx.save_for_backward(*tensors)
            return forward(*tensors)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
            return backward(gradient, *ctx.saved_tensors)

    return Made.apply  # type: ignore[no-any-return]


def product(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return x.flatten(0, -2).T @ gradient.flatten(0, -2)


def again(gradient: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
    gradient = gradient * (1 - (x @ w).tanh().square())
    return gradient @ w.T, product(gradient, x)


def by_autograd(gradient: torch.Tensor, *tensors: torch.Tensor) -> Any:
    tensors = tuple(tensor.detach().requires_grad_() for tensor in tensors)
    with torch.enable_grad():
        return torch.autograd.grad(both(*tensors), tensors, gradient)


def both(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).tanh() @ w.T


def quiet(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x.detach() @ w


repeats, differentiates = function(lambda x, w: (x @ w).tanh(), again), function(both, by_autograd)
multiplies_behind = function(lambda x, w: x.view_as(x), lambda g, x, w: (g @ w, None))
spike = function(lambda x: (x > 0).to(x.dtype), lambda g, x: g / (1 + x.abs()).square())
stochastic = function(lambda x: torch.bernoulli(x.sigmoid()), lambda g, x: g)
detaches = function(quiet, lambda g, x, w: (g @ w.T, product(g, x)))
lacks_weight = function(torch.matmul, lambda g, x, w: (g @ w.T, None))
lacks_data = function(torch.matmul, lambda g, x, w: (None, product(g, x)))


# ---- Programs --------------------------------------------------------------------------------------------------------


def last(*results: Any) -> Any:
    return results[-1]


def without_gradient(call: Callable[[], Any]) -> None:
    with torch.no_grad():
        call()


UNREAD: dict[str, Body] = {
    "linear": lambda m, x: last(m.a(x), m.c(x)),
    "chain": lambda m, x: last(m.b(m.a(x).relu()), m.c(x)),
    "view": lambda m, x: last(m.a(x).unflatten(-1, (4, 12)).transpose(1, 2), m.c(x)),
    "without gradient": lambda m, x: last(without_gradient(lambda: m.a(x)), m.c(x)),
    "two": lambda m, x: last(m.a(x), m.conv(x.mT), m.c(x)),
    "metric": lambda m, x: last((m.c(x) @ m.w).argmax(-1), m.c(x)),
    "parameters": lambda m, x: last(m.w @ m.w.T, m.c(x)),
    "attention": lambda m, x: last(F.scaled_dot_product_attention(x, x, x), m.c(x)),
    "function": lambda m, x: last(repeats(m.c(x), m.v), m.c(x)),
    "half": lambda m, x: last(m.b(m.a(x)) @ x.mT, m.a(x).chunk(2, -1)[0]),
}
INPUTS: dict[str, Body] = {
    "trained": lambda m, x: m.c(x),
    "frozen": lambda m, x: m.c(m.frozen(x)),
    "frozen alone": lambda m, x: m.frozen(x),
    "batched": lambda m, x: m.c(x @ x.mT @ x),
    "convolution": lambda m, x: m.conv(x.mT),
    "detached": lambda m, x: m.c(x.detach()),
    "view": lambda m, x: m.c(x.flatten(0, 1)),
}
INSIDE: dict[str, Body] = {
    "method": lambda m, x: m.c(m.frozen(x).requires_grad_()),
    "attribute": lambda m, x: last(setattr(y := x * 1, "requires_grad", True), m.c(y)),
    "detached": lambda m, x: m.c(m.a(x).detach()[..., :32].clone().requires_grad_()),
}
FUNCTIONS: dict[str, Body] = {
    "repeats": lambda m, x: repeats(x, m.v),
    "repeats behind a layer": lambda m, x: m.b(repeats(m.c(x), m.v)),
    "frozen": lambda m, x: repeats(m.c(x), m.v.detach()),
    "twice": lambda m, x: m.b(repeats(m.b(repeats(m.c(x), m.v)), m.v)),
    "differentiates": lambda m, x: m.c(differentiates(m.c(x), m.v)),
    "differentiates inputs": lambda m, x: m.c(differentiates(x, m.v)),
    "multiplies behind": lambda m, x: m.c(multiplies_behind(m.c(x), m.w)),
    "spike": lambda m, x: m.b(spike(m.a(x))),
    "stochastic": lambda m, x: m.b(stochastic(m.a(x))),
    "detaches": lambda m, x: m.c(detaches(m.c(x), m.w)),
    "lacks the weight's gradient": lambda m, x: lacks_weight(m.c(x), m.w),
    "lacks the data's gradient": lambda m, x: lacks_data(m.c(x), m.w),
}


def flops(job: mdot.Job, batch: int) -> list[float]:
    phases = (("forward",), ("data_gradient", "weight_gradient"))
    terms = ((1, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    return [sum(power * getattr(op, term)[name].flops for op in job for power, term in terms for name in names) for names in phases]


class Gradients(support.TestCase):
    def check(self, bodies: dict[str, Body], needs_gradient: bool = False) -> None:
        for name, body in bodies.items():
            with self.subTest(name):
                model = Network(body)
                job, reported = read(model, torch.ones(6, 10, 32, requires_grad=needs_gradient))
                with FlopCounterMode(display=False) as forward:
                    out = model(torch.ones(6, 10, 32, requires_grad=needs_gradient))
                with FlopCounterMode(display=False) as backward:
                    out.sum().backward()
                assert job.program is not None
                check = job.program.check
                for own, counter in zip(check.job_flops, (forward, backward)):
                    self.assertAlmostEqual(own / counter.get_total_flops(), 1, delta=0.02, msg=f"{check} {reported}")
                self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.001)
                self.assertEqual([text for text in reported if "unused" not in text], [])
                for own, direct in zip(flops(job, 31), flops(read(model, torch.ones(31, 10, 32, requires_grad=needs_gradient))[0], 31)):
                    self.assertAlmostEqual(own / direct, 1, delta=0.001)

    def test_results_that_nothing_reads_cost_their_forward_pass(self) -> None:
        self.check(UNREAD)

    def test_inputs_that_require_a_gradient_get_one(self) -> None:
        self.check(INPUTS, needs_gradient=True)
        self.check(INSIDE)

    def test_functions_cost_what_their_backward_passes_dispatch(self) -> None:
        self.check(FUNCTIONS)


if __name__ == "__main__":
    unittest.main()
