"""Networks in published steps that no library has: PyTorch's word language model, and ResNet-18 for 32 x 32 images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WORDS, WIDTH, LAYERS = 33278, 200, 2
"""WikiText-2's vocabulary, and the defaults in PyTorch's example word_language_model."""


class WordLanguageModel(nn.Module):
    """An LSTM between word table and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        self.words = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        return torch.log_softmax(self.words(self.layers(self.table(words))[0]), dim=-1)


def word_loss(logarithms: Tensor, words: Tensor) -> Tensor:
    return nn.functional.nll_loss(logarithms.flatten(0, 1), words.flatten())


CIFAR_CLASSES = 10


def cifar_resnet18() -> nn.Module:
    """ResNet-18 as Gavel and Pollux train it on CIFAR-10: the first convolution has window 3 and stride 1, and no
    pooling follows, so the feature maps begin at 32 x 32."""
    import torchvision

    model = torchvision.models.resnet18(weights=None, num_classes=CIFAR_CLASSES)
    model.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model
