"""Megatron's GPT, BERT and mixtures of experts as plain PyTorch modules that return the loss.

Kernels that PyTorch composes and Megatron fuses (bias and activation) are functions with Megatron's saved tensors.
"""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Network:
    kind: str
    """gpt or bert."""
    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    """Rows of the table, with padding."""
    groups: int = 0
    """Heads of keys and values; 0: as many as of queries."""
    head_size: int = 0
    """0: hidden / heads."""
    ffn: int = 0
    """Width of dense layers; 0: 4 * hidden."""
    activation: str = "gelu"
    """gelu, unfused-gelu, swiglu or squared-relu."""
    norm: str = "layer"
    """layer or rms."""
    has_bias: bool = True
    is_tied: bool = True
    has_positions: bool = True
    """A learned table of positions; otherwise rotary embeddings."""
    flash: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.1
    normalises_heads: bool = False
    experts: int = 0
    top: int = 1
    expert_ffn: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    """Layers without experts at the start."""
    latent: tuple[int, int, int, int, int] | None = None
    """Multi-head latent attention: ranks of queries and of keys and values; sizes of a query's head, its rotary part, and a value's."""


class _Gated(torch.autograd.Function):
    """Keeps the operand alone, as Megatron's fused bias and SwiGLU."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        gate, up = x.chunk(2, -1)
        share = torch.sigmoid(gate)
        return torch.cat((gradient * up * share * (1 + gate * (1 - share)), gradient * gate * share), -1)


def _norm(network: Network, size: int) -> nn.Module:
    return nn.RMSNorm(size) if network.norm == "rms" else nn.LayerNorm(size)


class _Activation(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x):
        if self.name == "swiglu":
            return _Gated.apply(x)
        return F.relu(x) ** 2 if self.name == "squared-relu" else F.gelu(x, approximate="tanh")


class _Dense(nn.Module):
    def __init__(self, network: Network, width: int) -> None:
        super().__init__()
        doubled = 2 if network.activation == "swiglu" else 1
        self.up = nn.Linear(network.hidden, doubled * width, bias=network.has_bias)
        self.activation = _Activation(network.activation)
        self.down = nn.Linear(width, network.hidden, bias=network.has_bias)

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


class _Experts(nn.Module):
    """Every expert gets the same number of tokens."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        width = network.expert_ffn or network.ffn or 4 * network.hidden
        doubled = 2 if network.activation == "swiglu" else 1
        self.count, self.top = network.experts, network.top
        self.router = nn.Linear(network.hidden, network.experts, bias=False)
        self.up = nn.Parameter(torch.empty(network.experts, network.hidden, doubled * width))
        self.down = nn.Parameter(torch.empty(network.experts, width, network.hidden))
        self.activation = _Activation(network.activation)
        self.shared = _Dense(network, network.shared_ffn) if network.shared_ffn else None

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        scores, chosen = torch.topk(self.router(tokens).float().softmax(-1), self.top, dim=-1)
        order = chosen.flatten().argsort()
        rows = order // self.top
        permuted = tokens.index_select(0, rows).view(self.count, -1, tokens.shape[-1])
        made = torch.bmm(self.activation(torch.bmm(permuted, self.up)), self.down).view(-1, tokens.shape[-1])
        weighted = made * scores.flatten().index_select(0, order).unsqueeze(-1).to(made.dtype)
        out = torch.zeros_like(tokens).index_add(0, rows, weighted).view_as(x)
        return out if self.shared is None else out + self.shared(x)


class _Attention(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        n = self.network = network
        self.heads, self.groups = n.heads, n.groups or n.heads
        self.size = n.head_size or n.hidden // n.heads
        if n.latent:
            queries, keys, size, rotary, value = n.latent
            self.down_queries = nn.Linear(n.hidden, queries, bias=False)
            self.norm_queries = _norm(n, queries)
            self.up_queries = nn.Linear(queries, n.heads * (size + rotary), bias=False)
            self.down_keys = nn.Linear(n.hidden, keys + rotary, bias=False)
            self.norm_keys = _norm(n, keys)
            self.up_keys = nn.Linear(keys, n.heads * (size + value), bias=False)
            self.out = nn.Linear(n.heads * value, n.hidden, bias=n.has_bias)
        else:
            self.joined = nn.Linear(n.hidden, (self.heads + 2 * self.groups) * self.size, bias=n.has_bias)
            self.out = nn.Linear(self.heads * self.size, n.hidden, bias=n.has_bias)
        if n.normalises_heads and not n.latent:
            self.norm_q, self.norm_k = _norm(n, self.size), _norm(n, self.size)

    def _rotated(self, x, table):
        first, second = x.chunk(2, -1)
        return x * table + torch.cat((-second, first), -1) * table

    def _latent(self, x, table):
        _, keys, size, rotary, value = self.network.latent
        batch, length = x.shape[:2]
        q = self.up_queries(self.norm_queries(self.down_queries(x))).view(batch, length, self.heads, size + rotary)
        q_plain, q_rotary = q.split((size, rotary), -1)
        compressed, k_rotary = self.down_keys(x).split((keys, rotary), -1)
        kv = self.up_keys(self.norm_keys(compressed)).view(batch, length, self.heads, size + value)
        k_plain, v = kv.split((size, value), -1)
        k_rotary = self._rotated(k_rotary.unsqueeze(2), table[:, :, :, :rotary]).expand(-1, -1, self.heads, -1)
        q = torch.cat((q_plain, self._rotated(q_rotary, table[:, :, :, :rotary])), -1)
        return q, torch.cat((k_plain, k_rotary), -1), v

    def forward(self, x, table):
        n = self.network
        batch, length = x.shape[:2]
        if n.latent:
            q, k, v = self._latent(x, table)
        else:
            q, k, v = self.joined(x).view(batch, length, -1, self.size).split((self.heads, self.groups, self.groups), 2)
            if n.normalises_heads:
                q, k = self.norm_q(q), self.norm_k(k)
            if table is not None:
                q, k = self._rotated(q, table), self._rotated(k, table)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        dropout = n.attention_dropout
        if n.flash and q.shape[-1] == v.shape[-1]:
            made = F.scaled_dot_product_attention(q, k, v, is_causal=n.kind == "gpt", enable_gqa=self.groups < self.heads)
        else:
            if self.groups < self.heads:
                k, v = (part.repeat_interleave(self.heads // self.groups, 1) for part in (k, v))
            scores = torch.matmul(q, k.transpose(2, 3)).softmax(-1)
            made = torch.matmul(F.dropout(scores, dropout) if dropout else scores, v)
        return self.out(made.transpose(1, 2).reshape(batch, length, -1))


class _Block(nn.Module):
    def __init__(self, network: Network, has_experts: bool) -> None:
        super().__init__()
        self.dropout = network.dropout
        self.norm1, self.attention = _norm(network, network.hidden), _Attention(network)
        self.norm2 = _norm(network, network.hidden)
        self.mlp = _Experts(network) if has_experts else _Dense(network, network.ffn or 4 * network.hidden)

    def forward(self, x, table):
        x = x + self._dropped(self.attention(self.norm1(x), table))
        return x + self._dropped(self.mlp(self.norm2(x)))

    def _dropped(self, x):
        return F.dropout(x, self.dropout) if self.dropout else x


class Language(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        n = self.network = network
        self.words = nn.Embedding(n.vocabulary, n.hidden)
        self.positions = nn.Embedding(n.sequence, n.hidden) if n.has_positions else None
        self.types = nn.Embedding(2, n.hidden) if n.kind == "bert" else None
        self.rotates = n.latent is not None or not n.has_positions
        if self.rotates:
            self.register_buffer("table", torch.zeros(1, n.sequence, 1, n.latent[3] if n.latent else n.head_size or n.hidden // n.heads))
        self.blocks = nn.ModuleList(_Block(n, n.experts > 0 and i >= n.dense_layers) for i in range(n.layers))
        self.norm = _norm(n, n.hidden)
        if n.kind == "bert":
            self.dense, self.dense_norm = nn.Linear(n.hidden, n.hidden), _norm(n, n.hidden)
            self.pool, self.order = nn.Linear(n.hidden, n.hidden), nn.Linear(n.hidden, 2)
        self.head = nn.Linear(n.hidden, n.vocabulary, bias=n.kind == "bert")
        if n.is_tied:
            self.head.weight = self.words.weight

    def forward(self, tokens, labels):
        n = self.network
        x = self.words(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(n.sequence, device=tokens.device))
        if self.types is not None:
            x = x + self.types(torch.zeros_like(tokens))
        x = F.dropout(x, n.dropout) if n.dropout else x
        table = self.table if self.rotates else None
        for block in self.blocks:
            x = block(x, table)
        x = self.norm(x)
        other = 0.0
        if n.kind == "bert":
            other = F.cross_entropy(self.order(torch.tanh(self.pool(x[:, 0]))).float(), labels[:, 0] % 2)
            x = self.dense_norm(F.gelu(self.dense(x)))
        logits = self.head(x).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten()) + other
