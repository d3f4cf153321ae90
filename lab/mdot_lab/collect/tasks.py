"""Inputs, targets and losses, one row for each kind of network. Data is random and stays on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F

CLASSES = 1000              # classes of image classifiers (ImageNet)
VOCABULARY = 32000          # vocabulary of token models; catalogue rows with another one override it
DENSE_FEATURES = 13         # of recommendation models: Criteo has 13 dense and 26 categorical features
TABLES = 26


@dataclass(frozen=True)
class Task:
    inputs: Callable[..., tuple[torch.Tensor, ...]]     # (batch, size, arguments, device)
    targets: Callable[..., torch.Tensor]                # (outputs): targets of the loss, on the same device
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _normal(*shape: int, device: str) -> torch.Tensor:
    # Random rather than zero, because a GPU multiplies zeros measurably faster.
    return torch.randn(*shape, device=device)


def _ids(high: int, *shape: int, device: str) -> torch.Tensor:
    return torch.randint(high, shape, device=device)


def _image(batch, size, arguments, device):
    return (_normal(batch, 3, size, size, device=device),)


def _latent(batch, size, arguments, device):
    channels = arguments.get("channels", 3)
    return _normal(batch, channels, size, size, device=device), _ids(CLASSES, batch, device=device)


def _tokens(batch, size, arguments, device):
    return (_ids(arguments.get("vocab_size", VOCABULARY), batch, size, device=device),)


def _token_pair(batch, size, arguments, device):
    vocabulary = arguments.get("vocab_size", VOCABULARY)
    return _ids(vocabulary, batch, size, device=device), _ids(vocabulary, batch, size, device=device)


def _series(batch, size, arguments, device):
    return (_normal(batch, size, arguments["features"], device=device),)


def _vector(batch, size, arguments, device):
    return (_normal(batch, size, device=device),)


def _recommendation(batch, size, arguments, device):
    # `size` is the number of rows per embedding table.
    return _normal(batch, DENSE_FEATURES, device=device), _ids(size, batch, TABLES, device=device)


def _class_targets(outputs):
    """Random classes along the last dimension of [..., classes]."""
    return _ids(outputs.shape[-1], *outputs.shape[:-1], device=outputs.device)


def _pixel_targets(outputs):
    """Random classes for each pixel in [batch, classes, height, width]."""
    return _ids(outputs.shape[1], outputs.shape[0], *outputs.shape[2:], device=outputs.device)


def _noise_targets(outputs):
    return torch.randn_like(outputs, dtype=torch.float32)


def _click_targets(outputs):
    return torch.rand_like(outputs, dtype=torch.float32).round()


def _cross_entropy(outputs, targets):
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())


def _click_loss(outputs, targets):
    return F.binary_cross_entropy_with_logits(outputs.float(), targets)


TASKS: dict[str, Task] = {
    "image": Task(_image, _class_targets, _cross_entropy),
    "segmentation": Task(_image, _pixel_targets, F.cross_entropy),
    "reconstruction": Task(_image, _noise_targets, F.mse_loss),
    "diffusion": Task(_latent, _noise_targets, F.mse_loss),
    "tokens": Task(_tokens, _class_targets, _cross_entropy),
    "seq2seq": Task(_token_pair, _class_targets, _cross_entropy),
    "series": Task(_series, _noise_targets, F.mse_loss),
    "vector": Task(_vector, _class_targets, _cross_entropy),
    "recommendation": Task(_recommendation, _click_targets, _click_loss),
}
