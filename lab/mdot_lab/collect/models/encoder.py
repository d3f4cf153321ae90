"""PyTorch's own Transformer layers, as an encoder over tokens and as an encoder with a decoder."""

import torch
from torch import nn


class TokenEncoder(nn.Module):
    def __init__(self, width, depth, heads, hidden, vocab_size, length, norm_first):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, heads, hidden, activation="gelu", batch_first=True,
                                           norm_first=norm_first)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, ids):
        return self.head(self.layers(self.tokens(ids) + self.positions.weight[: ids.shape[1]]))


class TokenTranslator(nn.Module):
    def __init__(self, width, depth, heads, hidden, vocab_size, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, width), nn.Embedding(length, width)
        self.layers = nn.Transformer(width, heads, depth, depth, hidden, batch_first=True)
        self.head = nn.Linear(width, vocab_size)
        self.register_buffer("causal", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, ids, decoder_ids):
        source = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        length = decoder_ids.shape[1]
        target = self.tokens(decoder_ids) + self.positions.weight[:length]
        # With tgt_is_causal, PyTorch skips comparing the mask with a causal one and does not wait for the GPU.
        causal = self.causal[:length, :length]
        return self.head(self.layers(source, target, tgt_mask=causal, tgt_is_causal=True))


def encoder(width, depth, heads, hidden, vocab_size, length, norm_first=False):
    return TokenEncoder(width, depth, heads, hidden, vocab_size, length, norm_first)


def translator(width, depth, heads, hidden, vocab_size, length):
    return TokenTranslator(width, depth, heads, hidden, vocab_size, length)
