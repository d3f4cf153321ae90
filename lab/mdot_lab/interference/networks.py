"""Gavel's seven jobs as mdot's jobs: networks of the workloads in stanford-futuredata/gavel, written from their papers
and from the options in Gavel's job table.

| job | network | sizes |
| --- | --- | --- |
| ResNet-18 | for CIFAR-10 | 32 x 32 |
| ResNet-50 | torchvision's | 224 x 224 |
| LM | PyTorch's word_language_model | 200 units, 2 layers, 35 steps |
| Transformer | Vaswani et al. 2017, base, shared embeddings | Multi30k: 9,521 words, 27 per padded sentence |
| Recommendation | an autoencoder on MovieLens 20M | 20,108 items, 200 hidden units |
| CycleGAN | two generators with 9 residual blocks, two discriminators, batch 1 | 256 x 256 |
| A3C | an LSTM agent for Pong, four processes | 80 x 80, 20 steps an update |

The last two lack a batch; a step of theirs is one update of all their networks. The length of sentences, and CycleGAN's and
A3C's sizes, are assumptions, because Gavel's table lacks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mdot_lab.predictor.other_networks import WordLanguageModel, cifar_resnet18, word_loss

WORDS, LENGTH, WIDTH = 9521, 27, 512
ITEMS, HIDDEN = 20108, 200
PIXELS, GENERATOR_BLOCKS = 256, 9
STEPS = 20


class Translator(nn.Module):
    """The base Transformer, with one table for both languages and the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.Transformer(WIDTH, 8, 6, 6, 2048, batch_first=True)
        self.words = nn.Linear(WIDTH, WORDS, bias=False)
        self.words.weight = self.table.weight

    def forward(self, words: Tensor) -> Tensor:
        hidden = self.table(words)
        return torch.log_softmax(self.words(self.layers(hidden, hidden)), dim=-1)


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(ITEMS, HIDDEN), nn.Linear(HIDDEN, ITEMS)

    def forward(self, ratings: Tensor) -> Tensor:
        return torch.log_softmax(self.decode(torch.tanh(self.encode(ratings))), dim=-1)


class ResidualBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for _ in range(2):
            parts += [nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU()]
        self.parts = nn.Sequential(*parts[:-1])

    def forward(self, images: Tensor) -> Tensor:
        return images + self.parts(images)


def generator() -> nn.Module:
    parts: list[nn.Module] = [nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), nn.InstanceNorm2d(64), nn.ReLU()]
    for width in (64, 128):
        parts += [nn.Conv2d(width, 2 * width, 3, 2, 1), nn.InstanceNorm2d(2 * width), nn.ReLU()]
    parts += [ResidualBlock(256) for _ in range(GENERATOR_BLOCKS)]
    for width in (256, 128):
        parts += [nn.Upsample(scale_factor=2), nn.Conv2d(width, width // 2, 3, 1, 1), nn.InstanceNorm2d(width // 2), nn.ReLU()]
    return nn.Sequential(*parts, nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7), nn.Tanh())


def discriminator() -> nn.Module:
    parts: list[nn.Module] = []
    for before, after in ((3, 64), (64, 128), (128, 256), (256, 512)):
        parts += [nn.Conv2d(before, after, 4, 2, 1), nn.InstanceNorm2d(after), nn.LeakyReLU(.2)]
    return nn.Sequential(*parts, nn.Conv2d(512, 1, 4, 1, 1))


class CycleGan(nn.Module):
    """Identity, translation and cycle by both generators, and both discriminators on real and on made images."""

    def __init__(self) -> None:
        super().__init__()
        self.to_b, self.to_a = generator(), generator()
        self.of_a, self.of_b = discriminator(), discriminator()

    def forward(self, images: Tensor) -> Tensor:
        made_a, made_b = self.to_a(images), self.to_b(images)
        kept = self.to_a(images).mean() + self.to_b(images).mean() + self.to_a(made_b).mean() + self.to_b(made_a).mean()
        judged = self.of_a(made_a) + self.of_b(made_b) + self.of_a(images) + self.of_b(images)
        return judged.mean(dim=(1, 2, 3)) + self.of_a(made_a).mean() + self.of_b(made_b).mean() + kept


class Agent(nn.Module):
    """Four convolutions, an LSTM cell and two heads, once per step."""

    def __init__(self) -> None:
        super().__init__()
        widths = (1, 32, 32, 32, 32)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in zip(widths, widths[1:]))
        self.cell, self.value, self.action = nn.LSTMCell(800, 256), nn.Linear(256, 1), nn.Linear(256, 6)

    def forward(self, images: Tensor) -> Tensor:
        hidden = memory = images.new_zeros(images.shape[0], 256)
        sums = images.new_zeros(images.shape[0], 1)
        for _ in range(STEPS):
            seen = images
            for layer in self.layers:
                seen = nn.functional.elu(layer(seen))
            hidden, memory = self.cell(seen.flatten(1), (hidden, memory))
            sums = sums + self.value(hidden) + torch.log_softmax(self.action(hidden), -1).mean(-1, keepdim=True)
        return sums


def _resnet50() -> nn.Module:
    import torchvision
    return torchvision.models.resnet50(weights=None)


def _classes(count: int) -> Tensor:
    return torch.zeros(2, dtype=torch.int64) % count


def _mean(answer: Tensor, target: Tensor) -> Tensor:
    return (answer.mean() - target.mean()) ** 2


def _words_loss(logarithms: Tensor, words: Tensor) -> Tensor:
    return nn.functional.nll_loss(logarithms.flatten(0, 1), words.flatten())


def _ratings_loss(logarithms: Tensor, ratings: Tensor) -> Tensor:
    return -(logarithms * ratings).sum(-1).mean()


Definition = tuple[Callable[[], nn.Module], Callable[[], Tensor], Any, Callable[[], Tensor]]
CROSS_ENTROPY = nn.functional.cross_entropy
NETWORKS: dict[str, Definition] = {
    "ResNet-18": (cifar_resnet18, lambda: torch.zeros(2, 3, 32, 32), CROSS_ENTROPY, lambda: _classes(10)),
    "ResNet-50": (_resnet50, lambda: torch.zeros(2, 3, 224, 224), CROSS_ENTROPY, lambda: _classes(1000)),
    "LM": (WordLanguageModel, lambda: torch.zeros(2, 35, dtype=torch.int64), word_loss, lambda: torch.zeros(2, 35, dtype=torch.int64)),
    "Transformer": (Translator, lambda: torch.zeros(2, LENGTH, dtype=torch.int64), _words_loss,
                    lambda: torch.zeros(2, LENGTH, dtype=torch.int64)),
    "Recommendation": (Recommender, lambda: torch.zeros(2, ITEMS), _ratings_loss, lambda: torch.zeros(2, ITEMS)),
    "CycleGAN": (CycleGan, lambda: torch.zeros(2, 3, PIXELS, PIXELS), _mean, lambda: torch.zeros(2)),
    "A3C": (Agent, lambda: torch.zeros(2, 1, 80, 80), _mean, lambda: torch.zeros(2, 1)),
}
"""Network, example input, loss and target."""
