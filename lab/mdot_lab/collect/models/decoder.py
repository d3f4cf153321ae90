"""Decoder-only Transformers like GPT and Llama, and with mixtures of experts, all with static shapes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Shape:
    width: int
    heads: int
    kv_heads: int
    hidden: int
    experts: int = 0
    chosen: int = 2             # experts per token (or the token's part of an expert's capacity)
    expert_choice: bool = False
    classic: bool = False       # True: as in GPT (LayerNorm, GELU, learned positions, biases); False: RMSNorm, SwiGLU, RoPE


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    low, high = x.chunk(2, dim=-1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape, self.head = shape, shape.width // shape.heads
        self.query = nn.Linear(shape.width, shape.width, bias=shape.classic)
        self.key_value = nn.Linear(shape.width, 2 * shape.kv_heads * self.head, bias=shape.classic)
        self.output = nn.Linear(shape.width, shape.width, bias=shape.classic)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.shape.heads, self.head).transpose(1, 2)
        key_value = self.key_value(x).view(batch, length, 2 * self.shape.kv_heads, self.head)
        key, value = key_value.transpose(1, 2).chunk(2, 1)
        if not self.shape.classic:
            query, key = _rotate(query, cos, sin), _rotate(key, cos, sin)
        groups = self.shape.heads // self.shape.kv_heads
        if groups > 1:
            key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, self.shape.width))


class GatedMlp(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x):
        gate, up = self.up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class Experts(nn.Module):
    """A mixture of experts with fixed capacity, so that shapes and graph are independent of data.

    Either tokens choose experts (Fedus et al. 2021; tokens beyond capacity are dropped), or experts choose tokens
    (Zhou et al. 2022).
    """

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.router = nn.Linear(shape.width, shape.experts, bias=False)
        scale = shape.width ** -0.5
        self.up = nn.Parameter(torch.randn(shape.experts, shape.width, 2 * shape.hidden) * scale)
        self.down = nn.Parameter(torch.randn(shape.experts, shape.hidden, shape.width) * scale)

    def _apply_experts(self, x):
        gate, up = torch.bmm(x, self.up).chunk(2, -1)
        return torch.bmm(F.silu(gate) * up, self.down)

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        count = tokens.shape[0]
        capacity = max(1, count * self.shape.chosen // self.shape.experts)
        scores = self.router(tokens).float().softmax(-1)
        mixed = self._expert_choice(tokens, scores, min(capacity, count)) if self.shape.expert_choice \
            else self._token_choice(tokens, scores, capacity)
        return mixed.view(x.shape)

    def _expert_choice(self, tokens, scores, capacity):
        weight, index = scores.t().topk(capacity, dim=-1)                               # [experts, capacity]
        outputs = self._apply_experts(tokens[index])
        outputs = outputs * weight.unsqueeze(-1).to(outputs.dtype)
        mixed = torch.zeros_like(tokens, dtype=outputs.dtype)
        return mixed.index_add(0, index.flatten(), outputs.flatten(0, 1))

    def _token_choice(self, tokens, scores, capacity):
        experts, width = self.shape.experts, tokens.shape[-1]
        weight, chosen = scores.topk(self.shape.chosen, dim=-1)                         # [tokens, chosen]
        chosen = chosen.flatten()
        place = F.one_hot(chosen, experts).cumsum(0).gather(1, chosen.unsqueeze(1)).squeeze(1) - 1
        # Slot of each choice in the experts' queues. The last slot receives the tokens beyond the capacity.
        slot = torch.where(place < capacity, chosen * capacity + place, experts * capacity)
        source = tokens.repeat_interleave(self.shape.chosen, 0)
        queues = torch.zeros(experts * capacity + 1, width, dtype=tokens.dtype, device=tokens.device)
        queues = queues.index_copy(0, slot, source)
        outputs = self._apply_experts(queues[:-1].view(experts, capacity, width)).flatten(0, 1)
        outputs = torch.cat((outputs, torch.zeros(1, width, dtype=outputs.dtype, device=outputs.device)))
        picked = outputs[slot].view(-1, self.shape.chosen, width)
        return (picked * weight.unsqueeze(-1).to(picked.dtype)).sum(1)


class Block(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        norm = nn.LayerNorm if shape.classic else nn.RMSNorm
        self.norm_1, self.attention, self.norm_2 = norm(shape.width), Attention(shape), norm(shape.width)
        if shape.experts:
            self.mlp = Experts(shape)
        elif shape.classic:
            up, down = nn.Linear(shape.width, shape.hidden), nn.Linear(shape.hidden, shape.width)
            self.mlp = nn.Sequential(up, nn.GELU(), down)
        else:
            self.mlp = GatedMlp(shape)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        return x + self.mlp(self.norm_2(x))


class Decoder(nn.Module):
    def __init__(self, shape: Shape, depth: int, vocab_size: int, length: int):
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(vocab_size, shape.width)
        self.positions = nn.Embedding(length, shape.width) if shape.classic else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(depth))
        self.norm = (nn.LayerNorm if shape.classic else nn.RMSNorm)(shape.width)
        self.head = nn.Linear(shape.width, vocab_size, bias=False)
        half = shape.width // shape.heads // 2
        angles = torch.arange(length).unsqueeze(1) * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids):
        x, length = self.tokens(ids), ids.shape[1]
        if self.positions is not None:
            x = x + self.positions.weight[:length]
        cos, sin = self.cos[:length], self.sin[:length]
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def gpt(width, depth, heads, vocab_size, length):
    return Decoder(Shape(width, heads, heads, 4 * width, classic=True), depth, vocab_size, length)


def llama(width, depth, heads, kv_heads, hidden, vocab_size, length):
    return Decoder(Shape(width, heads, kv_heads, hidden), depth, vocab_size, length)


def mixture(width, depth, heads, kv_heads, hidden, experts, chosen, expert_choice, vocab_size, length):
    shape = Shape(width, heads, kv_heads, hidden, experts, chosen, expert_choice)
    return Decoder(shape, depth, vocab_size, length)
