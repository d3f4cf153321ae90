"""litgpt_finetuning.csv: bf16 parameters, fused attention, AdamW, and max_memory_allocated in GB.

The settings are those of litgpt's config_hub. Alpaca2k's rows are taken at the maximum length, 512. Alpaca's rows
are taken at the longest sample, 1304 tokens by Llama's tokenizer and 1034 by phi's, and adapt queries and values
with rank 8. peft drops out the input of each adapted product, and litgpt that of the joint product of queries, keys
and values once. litgpt unties the head from the embedding. The bitsandbytes (0.41 to 0.43) keeps the operands of
quantised products.
"""

from __future__ import annotations

from typing import Any

from mdot_lab.checks.memory.published.point import GB, Model, Point, model


def _llama(hidden: int, inner: int, layers: int, heads: int, words: int = 32000, groups: int | None = None,
           **more: Any) -> dict[str, Any]:
    return {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": groups or heads, "vocab_size": words, **more}


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama-2-7b": ("Llama", _llama(4096, 11008, 32, 32)),
    "Llama 2 7 B": ("Llama", _llama(4096, 11008, 32, 32)),
    "Llama 2 13 B": ("Llama", _llama(5120, 13824, 40, 40)),
    "llama-3-8b": ("Llama", _llama(4096, 14336, 32, 32, 128256, 8)),
    "llama-3.1-8b": ("Llama", _llama(4096, 14336, 32, 32, 128256, 8)),
    "llama-3.2-1b": ("Llama", _llama(2048, 8192, 16, 32, 128256, 8)),
    "llama-3.2-3b": ("Llama", _llama(3072, 8192, 28, 24, 128256, 8)),
    "tiny-llama": ("Llama", _llama(2048, 5632, 22, 32, 32000, 4)),
    "gemma-2b": ("Gemma", _llama(2048, 16384, 18, 8, 256000, 1, head_dim=256)),
    "gemma-7b": ("Gemma", _llama(3072, 24576, 28, 16, 256000, 16, head_dim=256)),
    "gemma-2-2b": ("Gemma2", _llama(2304, 9216, 26, 8, 256000, 4, head_dim=256)),
    "gemma-2-9b": ("Gemma2", _llama(3584, 14336, 42, 16, 256000, 8, head_dim=256)),
    "phi-2": ("Phi", _llama(2560, 10240, 32, 32, 51200, partial_rotary_factor=0.4, hidden_act="gelu_pytorch_tanh")),
    "phi-1.5 1.3 B": ("Phi", _llama(2048, 8192, 24, 32, 51200, partial_rotary_factor=0.5, hidden_act="gelu_pytorch_tanh")),
    "Phi-3-mini-4k-instruct": ("Phi3", _llama(3072, 8192, 32, 32, 32064, pad_token_id=0)),
    "falcon-7b": ("Falcon", {"hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024}),
}
QUERIES_AND_VALUES = {"Phi3": ("qkv_proj",), "Falcon": ("query_key_value",)}
ALL_PRODUCTS = {"Phi3": ("qkv_proj", "o_proj", "gate_up_proj", "down_proj", "lm_head"),
                "Phi": ("q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2", "lm_head")}
LLAMA_PRODUCTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head")
ALL_ADAPTED = {"phi-2": (8, 0.05), "Phi-3-mini-4k-instruct": (8, 0.05), "gemma-2b": (8, 0.1), "gemma-2-2b": (8, 0.1),
               "gemma-7b": (16, 0.1), "gemma-2-9b": (16, 0.1), "tiny-llama": (32, 0.05)}
"""Rank and dropout where the configuration adapts every product. The others adapt queries and values with rank 32."""
FULL_DEVICES = {"gemma-2b": 4, "phi-2": 2}
"""GPUs in full fine-tuning; 1 otherwise. The table counts the machine's GPUs."""
ACCUMULATED = {"gemma-2b": 4, "tiny-llama": 8}
"""Micro-batches of full fine-tuning where the global batch has several: global_batch_size / micro_batch_size / devices of
full.yaml. FSDP exchanges gradients in the last one, and until then keeps them whole (`no_backward_sync`)."""
IMPOSSIBLE = {"llama-3.2-1b", "llama-3.2-3b", "Phi-3-mini-4k-instruct"}
"""Rows of full fine-tuning whose peak is below weights, gradients and AdamW's state on the one stated GPU."""
SECOND_GEMMA = {("gemma-2b", "14.31"), ("gemma-2b", "13.52")}
"""Rows for Gemma 2's 2B, also called gemma-2b in the table."""


def _model(name: str, sequence: int, is_full: bool, is_alpaca2k: bool, is_quantised: bool) -> Model:
    kind, values = MODELS[name]
    values = {**values, "tie_word_embeddings": False, "keeps_operands": is_quantised}
    if is_full:
        return model(kind, sequence, **values)
    if is_alpaca2k and name in ALL_ADAPTED:
        rank, dropout = ALL_ADAPTED[name]
        return model(kind, sequence, rank, ALL_PRODUCTS.get(kind, LLAMA_PRODUCTS), lora_dropout=dropout, **values)
    modules = QUERIES_AND_VALUES.get(kind, ("q_proj", "v_proj"))
    return model(kind, sequence, 32 if is_alpaca2k else 8, modules, lora_dropout=0.05, **values)


def read(row: dict[str, str]) -> Point | None:
    method, name = row["method"], row["model"]
    if (name, row["peak_memory_gb"]) in SECOND_GEMMA:
        name = "gemma-2-2b"
    try:
        measured = float(row["peak_memory_gb"]) * GB
    except ValueError:      # out of memory, or no run
        return None
    if "Inference" in method:
        return None
    is_alpaca2k = row["data"] == "alpaca2k"
    title = f"{name} {method}, {row['gpus']} x {row['gpu']}, batch {row['micro_batch']}, {row['data']}"
    gpu = "A10G" if is_alpaca2k else "A100-SXM-40GB"
    missing = ""
    if "Adapter" in method:
        missing = "adapters are not rebuilt"
    elif "Multiple GPUs" in method:
        missing = "the source does not state the number of GPUs"
    elif method == "full" and name in IMPOSSIBLE:
        missing = "the peak is below weights, gradients and AdamW's state on the one GPU that the source states"
    elif name not in MODELS:
        missing = "the widths of the network are not listed"
    if missing:
        return Point("litgpt", title, measured, "allocated", gpu, missing=missing)
    is_full = method == "full"
    sequence = 512 if is_alpaca2k else 1034 if name.startswith("phi") else 1304
    options: dict[str, Any] = {"batch": int(row["micro_batch"]), "precision": "bf16", "optimizer": "adamw"}
    if "qlora" in method or "nf4" in method:    # litgpt's config_hub/finetune/*/qlora.yaml has quantize: bnb.nf4
        options["frozen_weights"] = "nf4" if "nf4-dq" in method else "nf4-single"
    if is_full:
        options["accumulate"] = ACCUMULATED.get(name, 1)
    if is_full and name in FULL_DEVICES:
        options.update(gpus=FULL_DEVICES[name], zero=3, checkpoint="blocks", whole_gradients=options["accumulate"] > 1)  # FSDP
    network = _model(name, sequence, is_full, is_alpaca2k, "frozen_weights" in options)
    return Point("litgpt", title, measured, "allocated", gpu, network, options)
