"""Losses to trace together with a module, and the usual losses by network name."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional
from torch.utils import _pytree as pytree

from mdot.example_inputs import named
from mdot.library.errors import InvalidArgumentError
from mdot.trace.graph import FLOATS, Graph
from mdot.trace.modules import Shell

MOST_WITHOUT_LOSS = 1 << 21
"""Elements per sample in a result, for example logits, from which a missing loss is reported."""


class Trained(Shell):
    """A module and a loss, as one module. The module's paths stay the same; paths in a loss with modules begin with
    "loss". The last positional arguments are the loss's targets."""

    def __init__(self, model: nn.Module, loss: Callable[..., Any], target_count: int) -> None:
        super().__init__(model)
        if isinstance(loss, type):
            raise InvalidArgumentError(f"loss is {named(loss)}: pass an instance, for example loss={loss.__name__}()")
        if not callable(loss):
            raise InvalidArgumentError(
                f"loss is {named(loss)}: pass a function or module that returns a scalar, for example torch.nn.MSELoss()"
            )
        self.loss = loss
        self.target_count = target_count

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        count = len(args) - self.target_count
        value = self.loss(self.model(*args[:count], **kwargs), *args[count:])
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            kind = f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise InvalidArgumentError(f"loss returned {kind}; it must return a tensor of one element")
        return value

    def named_modules(
        self, memo: set[nn.Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Module]]:
        memo = set() if memo is None else memo
        yield from super().named_modules(memo, prefix, remove_duplicate)
        if isinstance(self.loss, nn.Module):
            yield from self.loss.named_modules(memo, f"{prefix}.loss" if prefix else "loss", remove_duplicate)


def attach(
    model: nn.Module, args: Sequence[Any], loss: Callable[..., Any] | None, targets: Sequence[Any]
) -> tuple[nn.Module, tuple[Any, ...]]:
    """The module with the loss, and the positional arguments with the targets behind them."""
    if loss is not None:
        return Trained(model, loss, len(targets)), (*args, *targets)
    if targets:
        raise InvalidArgumentError("targets are arguments of the loss; pass loss=, for example torch.nn.CrossEntropyLoss()")
    return model, tuple(args)


def check_gradient(loss: Callable[..., Any] | None, graph: Graph) -> None:
    """Refuses a loss through which no gradient flows to trained parameters, for example `output.detach().sum()`."""
    trained = [value for value in graph.parameters if value.name not in graph.frozen]
    reached = set(trained)
    for node in graph.nodes:
        if node.op != "StopGradient" and any(value in reached for value in node.inputs):
            reached |= {value for value in node.outputs if value is not None and value.dtype in FLOATS}
    if loss is not None and trained and not any(value in reached for value in graph.outputs):
        raise InvalidArgumentError(
            "loss returned a tensor without a gradient, so that nothing would be trained; leave out detach() and no_grad() in it"
        )


def own_loss(out: Any) -> torch.Tensor | None:
    """The loss among a module's results: the field "loss", or a result of one element. Other results have None."""
    if isinstance(out, torch.Tensor):
        return out if out.numel() == 1 else None
    found = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
    return found if isinstance(found, torch.Tensor) else None


def missing(graph: Graph, batch: int) -> str | None:
    """A note for the user if the graph has large results but no loss."""
    if any(value.count == 1 and value.dtype in FLOATS for value in graph.outputs):
        return None
    largest = max(graph.outputs, key=lambda value: value.count)
    if largest.count < MOST_WITHOUT_LOSS * batch:
        return None
    size = 4 * largest.count / batch / 2**20
    return (
        f"the job has no loss; a cross-entropy of the result {list(largest.shape)} would take {2 * size:.0f} to {3 * size:.0f} "
        "MiB more per sample; pass labels to the module, or loss="
    )


# ---- Losses of networks by name --------------------------------------------------------------------------------------


def classification(out: Any, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of the logits. Further logits count .4, as auxiliary heads do in Inception's training."""
    logits = [leaf for leaf in pytree.tree_leaves(_fields(out)) if isinstance(leaf, torch.Tensor) and leaf.ndim == 2]
    if not logits:
        return features(out)
    losses = [functional.cross_entropy(x, labels) for x in logits]
    return losses[0] if len(losses) == 1 else losses[0] + 0.4 * torch.stack(losses[1:]).sum()


def segmentation(out: Any, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy per pixel. The auxiliary head counts .5, as in torchvision's reference training."""
    main = functional.cross_entropy(out["out"], labels)
    return main + 0.5 * functional.cross_entropy(out["aux"], labels) if "aux" in out else main


def optical_flow(out: Any, flow: torch.Tensor) -> torch.Tensor:
    """RAFT's loss: absolute errors of all iterations, later ones with more weight."""
    losses = [0.8 ** (len(out) - 1 - i) * (x - flow).abs().mean() for i, x in enumerate(out)]
    return torch.stack(losses).sum()


def denoising(out: Any, target: torch.Tensor) -> torch.Tensor:
    """Mean squared error. A network that also predicts variances has twice the channels; the first half counts."""
    predicted = next(leaf for leaf in pytree.tree_leaves(_fields(out)) if isinstance(leaf, torch.Tensor))
    if predicted.ndim > 1 and predicted.shape[1] == 2 * target.shape[1]:
        predicted = predicted.chunk(2, 1)[0]
    return functional.mse_loss(predicted.float(), target.float())


def features(out: Any, *_: Any) -> torch.Tensor:
    """The mean square, for a network without logits."""
    tensor = next(leaf for leaf in pytree.tree_leaves(_fields(out)) if isinstance(leaf, torch.Tensor))
    return tensor.float().square().mean()


def _fields(out: Any) -> Any:
    return list(out.values()) if hasattr(out, "values") and not isinstance(out, torch.Tensor) else out
