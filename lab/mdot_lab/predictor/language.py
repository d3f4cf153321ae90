"""The language models whose steps were published, by the names in the labels. Some are used by checks only.

Publications give a width, layers and heads. The model is a class of transformers with that configuration: the one
that was run, or the nearest to it. MPT is represented by GPT-2, whose layers have the same matmuls; biases cost
little in comparison. modded-nanogpt's network is represented by Nemotron, which has the same MLP of two matrices
with squared ReLU, rotary positions and no biases; two norms of queries and keys are missing.

A graph calls the attention kernels that the publisher ran: fused ones, or matmuls and a softmax (FUSED).
"""

from __future__ import annotations

import re
from typing import Any

LANGUAGE = "language."
"""Prefix for network names. The size is the sequence length."""

MPT = {"125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12), "1b": (2048, 24, 16), "3b": (2560, 32, 20),
       "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 48, 56), "70b": (8192, 80, 64)}
"""Width, layers and heads, from llm-foundry's configurations."""
MPT_VOCABULARY, MEGATRON_VOCABULARY = 50368, 51200
"""llm-foundry's vocabulary, and GPT-2's with Megatron's padding, which vTrain's points leave unstated."""
TRANSLATION_VOCABULARY = 33708
"""Joint vocabulary of WMT14's English and German."""

FUSED = ("mpt-", "llama", "internlm", "nanogpt")
"""Beginnings of model names measured with fused attention. All others called matmuls and a softmax."""
ONE_KERNEL = "gelu"
"""The activation in MPT and Megatron. transformers' GPT-2 writes GELU as seven operators with a kernel each."""
WORDS = "lstm_wikitext2"
"""Name for PyTorch's word language model (other_networks.py), which transformers lacks."""


def _gpt2(width: int, layers: int, heads: int, length: int, vocabulary: int = 50257, **others: Any) -> tuple[str, dict[str, Any]]:
    return "GPT2LMHeadModel", dict(n_embd=width, n_layer=layers, n_head=heads, n_positions=length, vocab_size=vocabulary,
                                   **others)


def _opt(width: int, layers: int, heads: int, length: int, **others: Any) -> tuple[str, dict[str, Any]]:
    return "OPTForCausalLM", dict(hidden_size=width, ffn_dim=4 * width, num_hidden_layers=layers, num_attention_heads=heads,
                                  max_position_embeddings=length, vocab_size=50272, **others)


def _llama(width: int, layers: int, heads: int, key_heads: int, inner: int, vocabulary: int, length: int,
           **others: Any) -> tuple[str, dict[str, Any]]:
    return "LlamaForCausalLM", dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                                    num_key_value_heads=key_heads, intermediate_size=inner, vocab_size=vocabulary,
                                    max_position_embeddings=length, **others)


def _bert_classifier(width: int, layers: int, heads: int) -> tuple[str, dict[str, Any]]:
    """SuperBench's model: BERT, its pooler, and a linear layer to 100 classes."""
    return "BertForSequenceClassification", dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                                                 intermediate_size=4 * width, num_labels=CLASSES)


def _nanogpt(length: int) -> tuple[str, dict[str, Any]]:
    return "NemotronForCausalLM", dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=6, num_key_value_heads=6,
                                       intermediate_size=3072, vocab_size=50304, max_position_embeddings=length,
                                       hidden_act="relu2", partial_rotary_factor=1.0)


CLASSES = 100
"""Classes of SuperBench's models."""


def _encoder_decoder(layers: int, vocabulary: int, length: int) -> tuple[str, dict[str, Any]]:
    return "BartForConditionalGeneration", dict(
        d_model=1024, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=16, decoder_attention_heads=16,
        encoder_ffn_dim=4096, decoder_ffn_dim=4096, vocab_size=vocabulary, max_position_embeddings=length)


def definition(name: str, length: int) -> tuple[str, dict[str, Any]]:
    """A transformers class and its configuration. `name`: without the prefix."""
    if name.startswith("mpt-"):
        return _gpt2(*MPT[name.removeprefix("mpt-")], length, MPT_VOCABULARY, activation_function=ONE_KERNEL)
    megatron = re.fullmatch(r"GPT-h(\d+)-L(\d+)-a(\d+)", name)
    if megatron:
        width, layers, heads = map(int, megatron.groups())
        return _gpt2(width, layers, heads, length, MEGATRON_VOCABULARY, activation_function=ONE_KERNEL)
    return {
        "bert_large": ("BertForPreTraining", dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                                                  intermediate_size=4096)),
        "bert_base": ("BertForPreTraining", dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                                                 intermediate_size=3072)),
        "electra_base": ("ElectraForQuestionAnswering", dict(hidden_size=768, embedding_size=768, num_hidden_layers=12,
                                                             num_attention_heads=12, intermediate_size=3072)),
        "bart_large": _encoder_decoder(12, 50265, length),
        "transformer_big": _encoder_decoder(6, TRANSLATION_VOCABULARY, length),
        "gpt2_large": _gpt2(1280, 36, 20, length),
        "gpt3_xl": _gpt2(3072, 24, 24, length),
        "gpt3_27": _gpt2(2560, 32, 32, length),
        "opt_13": _opt(2048, 24, 32, length),
        "opt_350m": _opt(1024, 24, 16, length, word_embed_proj_dim=512, do_layer_norm_before=False),
        "gpt_neo_27": ("GPTNeoForCausalLM", dict(hidden_size=2560, num_layers=32, num_heads=20, max_position_embeddings=length,
                                                 attention_types=[[["global", "local"], 16]])),
        "bert_base_classifier": _bert_classifier(768, 12, 12),
        "bert_large_classifier": _bert_classifier(1024, 24, 16),
        "gpt2_large_classifier": ("GPT2ForSequenceClassification", dict(n_embd=1280, n_layer=36, n_head=20, num_labels=CLASSES)),
        "llama3_8b": _llama(4096, 32, 32, 8, 14336, 128256, length),
        "llama3_70b_6_layers": _llama(8192, 6, 64, 8, 28672, 128256, length),
        "internlm_7b": _llama(4096, 32, 32, 32, 11008, 103168, length, attention_bias=True),
        "nanogpt": _nanogpt(length),
    }[name]


def attention(name: str) -> str:
    """The kernels of a model's attention, as transformers calls them."""
    return "sdpa" if name.startswith(FUSED) else "eager"


def build(name: str, length: int) -> Any:
    """The network as an mdot.Job, built from its configuration alone."""
    import mdot

    if name == WORDS:
        return _word_model(length)
    import transformers

    kind, settings = definition(name, length)
    model = getattr(transformers, kind)
    config = model.config_class(**settings, attn_implementation=attention(name))
    return mdot.Job.from_transformers(model, config, length=length)


def _word_model(length: int) -> Any:
    import mdot
    import torch

    from mdot_lab.predictor import other_networks

    words = torch.zeros(2, length, dtype=torch.int64)
    return mdot.Job.from_torch(other_networks.WordLanguageModel(), words, loss=other_networks.word_loss, targets=words)
