"""transformers: language models with labels, reduced in depth and width, and the ways of training them."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from mdot_lab.checks.memory.networks.case import Case, LabelLoss, integers
from mdot_lab.checks.memory.step import Step

LENGTH = 512
LLAMA = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4, "num_attention_heads": 16,
         "num_key_value_heads": 4, "vocab_size": 32000}
ENCODER = {"num_hidden_layers": 4}
"""BERT's widths."""

DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_layer": 4}),
    "gpt_neo": ("GPTNeoForCausalLM", "GPTNeoConfig", {"hidden_size": 768, "num_heads": 12, "num_layers": 4,
                                                     "attention_types": [[["global", "local"], 2]]}),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,
                                                        "num_attention_heads": 16}),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", {"n_embd": 1024, "n_layer": 4, "n_head": 16, "rotary_dim": 64}),
    "opt": ("OPTForCausalLM", "OPTConfig", {"num_hidden_layers": 4}),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"hidden_size": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 64000}),
    "falcon": ("FalconForCausalLM", "FalconConfig", {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16}),
    "mpt": ("MptForCausalLM", "MptConfig", {"d_model": 1024, "n_layers": 4, "n_heads": 16}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA),
    "mistral": ("MistralForCausalLM", "MistralConfig", LLAMA),
    "qwen2 tied": ("Qwen2ForCausalLM", "Qwen2Config", {**LLAMA, "vocab_size": 64000, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**LLAMA, "head_dim": 64}),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**LLAMA, "head_dim": 64, "vocab_size": 64000}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**LLAMA, "head_dim": 64, "vocab_size": 64000}),
    "phi": ("PhiForCausalLM", "PhiConfig", {**LLAMA, "num_key_value_heads": 16, "intermediate_size": 4096}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", {**LLAMA, "pad_token_id": 0}),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", LLAMA),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**LLAMA, "hidden_size": 512, "intermediate_size": 1024,
                                                      "num_attention_heads": 8, "num_local_experts": 4}),
    "mamba": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 512, "num_hidden_layers": 4, "vocab_size": 32000}),
}
MASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertForMaskedLM", "BertConfig", ENCODER),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", {**ENCODER, "max_position_embeddings": 514}),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", {"num_hidden_layers": 6}),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
                                                    "num_hidden_layers": 6}),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", {"n_layers": 3}),
    "deberta_v2": ("DebertaV2ForMaskedLM", "DebertaV2Config", {"num_hidden_layers": 3, "hidden_size": 768, "vocab_size": 64000,
                                                             "num_attention_heads": 12, "intermediate_size": 3072,
                                                             "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "modernbert": ("ModernBertForMaskedLM", "ModernBertConfig", {"num_hidden_layers": 4}),
    "xlnet": ("XLNetLMHeadModel", "XLNetConfig", {"d_model": 768, "n_layer": 3, "n_head": 12, "d_inner": 3072}),
}
TRANSLATORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "t5": ("T5ForConditionalGeneration", "T5Config", {"num_layers": 3, "decoder_start_token_id": 0, "pad_token_id": 0}),
    "bart": ("BartForConditionalGeneration", "BartConfig", {"d_model": 768, "encoder_layers": 3, "decoder_layers": 3,
                                                          "encoder_attention_heads": 12, "decoder_attention_heads": 12,
                                                          "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}),
}


def build(model: str, config: str, values: dict[str, Any], attention: str | None):
    """The transformers model with these names, for example GPT2LMHeadModel and GPT2Config. `attention` None: the
    default."""
    import transformers

    made = getattr(transformers, config)(**values)
    made.use_cache = False
    if attention is not None:
        made._attn_implementation = attention
    return getattr(transformers, model)(made)


def _step(network, length: int, batch: int) -> Step:
    tokens = integers(batch, length)
    return Step(LabelLoss(network), (), {"input_ids": tokens, "labels": tokens})


def _plain(spec, attention: str | None, length: int) -> Callable[[int], Step]:
    return lambda batch: _step(build(*spec, attention), length, batch)


def _checkpointing(spec) -> Callable[[int], Step]:
    def make(batch: int) -> Step:
        network = build(*spec, None)
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return _step(network, LENGTH, batch)

    return make


def _lora(spec, targets: list[str]) -> Callable[[int], Step]:
    def make(batch: int) -> Step:
        import peft

        settings = peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=targets)
        return _step(peft.get_peft_model(build(*spec, None), settings), LENGTH, batch)

    return make


def _frozen(spec, trained: str) -> Callable[[int], Step]:
    def make(batch: int) -> Step:
        network = build(*spec, None)
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(trained in name)
        return _step(network, LENGTH, batch)

    return make


def _sentence_classifier(batch: int) -> Step:
    network = build("BertForSequenceClassification", "BertConfig", ENCODER, None)
    return Step(LabelLoss(network), (), {"input_ids": integers(batch, 128), "labels": integers(batch)})


def cases() -> Iterator[Case]:
    fused = ("gpt2", "llama", "bert")
    for name, spec in {**DECODERS, **MASKED, **TRANSLATORS}.items():
        length = 128 if name == "mamba" else LENGTH
        yield Case(f"transformers/{name}", _plain(spec, None, length), 4, 2, "adamw-fused" if name in fused else "adamw")
    for name in ("gpt2", "llama", "bert", "opt", "qwen3"):
        spec = {**DECODERS, **MASKED}[name]
        yield Case(f"transformers/{name} eager", _plain(spec, "eager", LENGTH), 4, 2)
    yield Case("transformers/gpt2 checkpointing", _checkpointing(DECODERS["gpt2"]), 8, 2)
    yield Case("transformers/llama checkpointing", _checkpointing(DECODERS["llama"]), 8, 2)
    yield Case("transformers/bert checkpointing", _checkpointing(MASKED["bert"]), 8, 2)
    yield Case("transformers/llama LoRA", _lora(DECODERS["llama"], ["q_proj", "v_proj"]), 4, 2)
    yield Case("transformers/opt LoRA", _lora(DECODERS["opt"], ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]), 4, 2)
    yield Case("transformers/bert BitFit", _frozen(MASKED["bert"], "bias"), 8, 2)
    yield Case("transformers/gpt2 last layer", _frozen(DECODERS["gpt2"], "h.3."), 8, 2)
    yield Case("transformers/bert sentences", _sentence_classifier, 32, 8)
