"""Modules that compute gradients in their forward pass: the job has the calls that PyTorch dispatches, and their gradients.
The reference is a count of the calls in a real step, by the formulas of torch.utils.flop_counter.
"""

from __future__ import annotations

import unittest
from typing import Any, Callable

import support
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import flop_registry
from traced import read

import mdot

Body = Callable[[Any, torch.Tensor], Any]
grad = torch.autograd.grad


class Network(nn.Module):
    def __init__(self, body: Body) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 48), nn.Tanh(), nn.Linear(48, 32), nn.SiLU(), nn.Linear(32, 1))
        self.normed = nn.Sequential(nn.Linear(32, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 1))
        self.conv = nn.Sequential(nn.Conv1d(32, 16, 3), nn.BatchNorm1d(16), nn.LeakyReLU(), nn.Dropout(), nn.Conv1d(16, 8, 3))
        self.body = body

    def forward(self, x: torch.Tensor) -> Any:
        return self.body(self, x)


def penalty(net: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    y = net(x)
    return y.mean() + (grad(y.sum(), x, create_graph=True)[0].norm(dim=-1) - 1).square().mean()


def adapted(m: Any, x: torch.Tensor, **options: Any) -> torch.Tensor:
    parameters = dict(m.net.named_parameters())
    for _ in range(2):
        loss = torch.func.functional_call(m.net, parameters, (x[:, :5],)).square().mean()
        steps = grad(loss, list(parameters.values()), **options)
        parameters = {name: p - 0.1 * step for (name, p), step in zip(parameters.items(), steps)}
    return torch.func.functional_call(m.net, parameters, (x[:, 5:],)).square().mean()


def inner_gradients(m: Any, x: torch.Tensor) -> torch.Tensor:
    parameters = dict(m.net.named_parameters())
    per_sample = torch.func.vmap(torch.func.grad(lambda p, y: torch.func.functional_call(m.net, p, (y,)).square().mean()), (None, 0))
    return sum(one.square().mean() for one in per_sample(parameters, x).values())  # type: ignore[return-value]


def curvature(m: Any, x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    y = m.net(x).sum()
    first = grad(y, x, create_graph=True)[0]
    return y + grad((first * torch.ones_like(x)).sum(), x, create_graph=True)[0].square().sum()


def forces(m: Any, x: torch.Tensor) -> torch.Tensor:
    places = x[..., :3].requires_grad_()
    distances = (places[:, :, None] - places[:, None]).square().sum(-1, keepdim=True)
    energy = m.net(torch.exp(-distances * torch.arange(32.0))).sum((1, 2, 3))
    return energy.mean() + grad(energy.sum(), places, create_graph=True)[0].square().mean()


def teacher(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        target = m.normed(x)
    return penalty(m.net, x) + F.mse_loss(m.normed(x), target)


def forward_mode(m: Any, x: torch.Tensor) -> torch.Tensor:
    with forward_ad.dual_level():
        value, tangent = forward_ad.unpack_dual(m.net(forward_ad.make_dual(x, torch.ones_like(x))))
        return value.mean() + tangent.square().mean()


def chosen(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = m.net(x)
    return penalty(m.net, x) + y[y > -1e9].mean()


PROGRAMS: dict[str, Body] = {
    "penalty": lambda m, x: penalty(m.net, x),
    "penalty of norms": lambda m, x: penalty(m.normed, x),
    "penalty of convolutions": lambda m, x: penalty(m.conv, x.mT),
    "penalty of attention": lambda m, x: penalty(lambda y: m.net((y @ y.mT).softmax(-1) @ y), x),
    "penalty behind a checkpoint": lambda m, x: penalty(m.net, checkpoint(m.net[:3], x, use_reentrant=False)),
    "gradient alone": lambda m, x: penalty(m.net, m.net[:3](x)) + m.normed(x).mean(),
    "adapted": lambda m, x: adapted(m, x, create_graph=True),
    "adapted at first order": lambda m, x: adapted(m, x),
    "adapted in place": lambda m, x: penalty(lambda y: m.net(F.relu_(y * 2)), x),
    "gradients of samples": inner_gradients,
    "curvature": curvature,
    "forces": forces,
    "teacher": teacher,
    "forward mode": forward_mode,
    "jacobian": lambda m, x: torch.autograd.functional.jacobian(lambda y: m.net(y).sum((0, 1)), x, create_graph=True).square().sum(),
    "jacobians": lambda m, x: torch.func.vmap(torch.func.jacrev(m.net))(x).square().mean(),
    "forward jacobians": lambda m, x: torch.func.vmap(torch.func.jacfwd(m.net[:1]))(x[:, 0]).square().mean(),
    "product with a vector": lambda m, x: torch.func.jvp(m.net, (x,), (torch.ones_like(x),))[1].square().mean(),
    "chosen by data": chosen,
}


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func._overloadpacket in flop_registry:
            self.flops += flop_registry[func._overloadpacket](*args, **(kwargs or {}), out_val=out)
        return out


def flops(job: mdot.Job, batch: int) -> list[float]:
    phases = (("forward",), ("data_gradient", "weight_gradient"))
    terms = ((1, "per_step"), (batch, "per_sample"), (batch * batch, "per_square"))
    return [sum(power * getattr(op, term)[name].flops for op in job for power, term in terms for name in names) for names in phases]


class InnerGradients(support.TestCase):
    def test_jobs_do_the_work_of_their_programs(self) -> None:
        for name, body in PROGRAMS.items():
            with self.subTest(name):
                torch.manual_seed(0)
                model = Network(body)
                job, reported = read(model, torch.randn(6, 10, 32))
                self.assertEqual([text for text in reported if "unused" not in text and "computed values" not in text], [])
                with Counter() as forward:
                    out = model(torch.randn(6, 10, 32))
                with Counter() as backward:
                    out.sum().backward()
                assert job.program is not None
                check = job.program.check
                for own, counter in zip(check.job_flops, (forward, backward)):
                    self.assertAlmostEqual(own / counter.flops, 1, delta=0.02, msg=str(check))
                self.assertAlmostEqual(check.predicted_peak / check.recorded_peak, 1, delta=0.02, msg=str(check))
                direct, _ = read(model, torch.randn(31, 10, 32))
                for own, there in zip(flops(job, 31), flops(direct, 31)):
                    self.assertAlmostEqual(own / there, 1, delta=0.01)
                one, other = (mdot.Predictor().predict(one, "A100-40GB", 31, optimizer="sgd-plain") for one in (job, direct))
                self.assertAlmostEqual(one.peak_memory_bytes / other.peak_memory_bytes, 1, delta=0.02)

    def test_the_modules_of_the_calls_are_known(self) -> None:
        job, _ = read(Network(PROGRAMS["teacher"]), torch.randn(6, 10, 32))
        places = {op.module for op in job if op.type == "Linear" or op.type == "MatMul"}
        self.assertTrue({"net.0", "net.2", "net.4", "normed.0", "normed.3"} <= places, places)

    def test_a_step_that_calls_backward_is_refused(self) -> None:
        for called in (lambda m, x: m.net(x).sum().backward(), lambda m, x: (penalty(m.net, x), m.net(x).sum().backward())[0]):
            pattern = r"^Network runs a backward pass of its own \(backward\).*returns the loss without a call of backward"
            self.assertRaisesRegex(mdot.UnsupportedError, pattern, mdot.Job.from_torch, Network(called), torch.zeros(2, 8, 32))

    def test_the_module_is_left_alone(self) -> None:
        model = Network(PROGRAMS["adapted"])
        before = {name: one.clone() for name, one in model.state_dict().items()}
        read(model, torch.randn(6, 10, 32))
        for name, one in model.state_dict().items():
            self.assertIs(type(one), torch.Tensor)
            self.assertTrue(torch.equal(one, before[name]), name)
        self.assertTrue(all(p.grad is None for p in model.parameters()))


if __name__ == "__main__":
    unittest.main()
