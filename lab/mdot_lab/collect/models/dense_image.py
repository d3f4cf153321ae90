"""Networks from images to images: U-Nets, diffusion U-Nets, diffusion Transformers, an autoencoder."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


def _double_convolution(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    """Ronneberger et al. 2015, with batch normalisation and padding as is usual today."""

    def __init__(self, width: int, levels: int, classes: int):
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList(_double_convolution(i, o) for i, o in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(_double_convolution(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for index, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if index else x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat((kept.pop(), up(x)), 1))
        return self.head(x)


def _time_encoding(steps: torch.Tensor, width: int) -> torch.Tensor:
    frequencies = torch.exp(torch.arange(width // 2, device=steps.device) * (-math.log(10000.0) / (width // 2)))
    angles = steps.unsqueeze(1).float() * frequencies
    return torch.cat((angles.sin(), angles.cos()), 1)


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, time_width: int):
        super().__init__()
        self.norm_1, self.convolution_1 = nn.GroupNorm(32, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time_width, outputs)
        self.norm_2, self.convolution_2 = nn.GroupNorm(32, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        y = self.convolution_1(F.silu(self.norm_1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.convolution_2(F.silu(self.norm_2(y)))


class PixelAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(32, width)
        self.project, self.output = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        batch, width, height, columns = x.shape
        projected = self.project(self.norm(x)).reshape(batch, 3 * self.heads, width // self.heads, height * columns)
        query, key, value = projected.transpose(2, 3).chunk(3, 1)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return x + self.output(mixed.transpose(2, 3).reshape(batch, width, height, columns))


class DiffusionUNet(nn.Module):
    """The denoiser of Ho et al. 2020: two residual blocks a level, attention at the lowest levels."""

    def __init__(self, width: int, multipliers, attention_levels: int, channels: int):
        super().__init__()
        time_width, widths = 4 * width, [width * m for m in multipliers]
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time_width), nn.SiLU(), nn.Linear(time_width, time_width))
        self.stem = nn.Conv2d(channels, width, 3, padding=1)
        first_attention, kept, current = len(widths) - attention_levels, [width], width
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for level, outputs in enumerate(widths):
            for _ in range(2):
                self.down.append(self._stage(current, outputs, time_width, level >= first_attention))
                current = outputs
                kept.append(current)
            if level + 1 < len(widths):
                self.down.append(nn.Conv2d(current, current, 3, stride=2, padding=1))
                kept.append(current)
        self.middle = self._stage(current, current, time_width, True)
        for level, outputs in reversed(list(enumerate(widths))):
            for _ in range(3):
                self.up.append(self._stage(current + kept.pop(), outputs, time_width, level >= first_attention))
                current = outputs
            if level:
                self.up.append(nn.Conv2d(current, current, 3, padding=1))
        self.norm, self.head = nn.GroupNorm(32, current), nn.Conv2d(current, channels, 3, padding=1)

    @staticmethod
    def _stage(inputs, outputs, time_width, attention):
        block = ResidualBlock(inputs, outputs, time_width)
        return nn.ModuleList([block, PixelAttention(outputs, max(1, outputs // 64))] if attention else [block])

    @staticmethod
    def _run(stage, x, time):
        x = stage[0](x, time)
        return stage[1](x) if len(stage) > 1 else x

    def forward(self, x, steps):
        time = self.time(_time_encoding(steps, self.width))
        x = self.stem(x)
        kept = [x]
        for stage in self.down:
            x = stage(x) if isinstance(stage, nn.Conv2d) else self._run(stage, x, time)
            kept.append(x)
        x = self._run(self.middle, x, time)
        for stage in self.up:
            if isinstance(stage, nn.Conv2d):
                x = stage(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            else:
                x = self._run(stage, torch.cat((x, kept.pop()), 1), time)
        return self.head(F.silu(self.norm(x)))


class DiTBlock(nn.Module):
    """A Transformer block whose norms are scaled and shifted by the time (Peebles and Xie 2022)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm_2 = nn.LayerNorm(width, elementwise_affine=False)
        self.project, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Linear(width, 6 * width)

    def forward(self, x, time):
        batch, tokens, width = x.shape
        shift_1, scale_1, gate_1, shift_2, scale_2, gate_2 = self.modulation(F.silu(time)).unsqueeze(1).chunk(6, -1)
        y = self.norm_1(x) * (1 + scale_1) + shift_1
        query, key, value = self.project(y).view(batch, tokens, 3 * self.heads, -1).transpose(1, 2).chunk(3, 1)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, tokens, width)
        x = x + gate_1 * self.output(mixed)
        return x + gate_2 * self.mlp(self.norm_2(x) * (1 + scale_2) + shift_2)


class DiT(nn.Module):
    def __init__(self, width: int, depth: int, heads: int, patch: int, channels: int, size: int):
        super().__init__()
        self.width, self.patch, self.channels = width, patch, channels
        self.stem = nn.Conv2d(channels, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, patch * patch * channels)

    def forward(self, x, steps):
        size = x.shape[-1]
        time = self.time(_time_encoding(steps, 256))
        y = self.stem(x).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            y = block(y, time)
        y = self.head(self.norm(y)).transpose(1, 2).reshape(x.shape[0], -1, size // self.patch, size // self.patch)
        return F.pixel_shuffle(y, self.patch)


def unet(width, levels, classes):
    return UNet(width, levels, classes)


def diffusion_unet(width, multipliers, attention_levels, channels):
    return DiffusionUNet(width, multipliers, attention_levels, channels)


def dit(width, depth, heads, patch, channels, size):
    return DiT(width, depth, heads, patch, channels, size)


def autoencoder(width, levels):
    widths = [3, *(width << level for level in range(levels))]
    down = [layer for i, o in zip(widths, widths[1:])
            for layer in (nn.Conv2d(i, o, 4, 2, 1), nn.BatchNorm2d(o), nn.SiLU())]
    rising = widths[::-1]
    up = [layer for i, o in zip(rising, rising[1:]) for layer in (nn.ConvTranspose2d(i, o, 4, 2, 1), nn.SiLU())]
    return nn.Sequential(*down, *up[:-1])
