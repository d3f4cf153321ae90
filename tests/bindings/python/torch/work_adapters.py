"""Adapters of peft on a small Llama, for the test of the law of work (test_work.py)."""

from __future__ import annotations

from typing import Any, Iterator

from networks import Called
from torch import nn
from work_networks import Make, text


def adapters() -> Iterator[tuple[str, Make]]:
    linears = ["q_proj", "v_proj", "down_proj"]
    kinds: dict[str, dict[str, Any]] = {
        "LoraConfig": {"r": 4, "target_modules": linears}, "LoraConfig_dora": {"r": 4, "target_modules": linears, "use_dora": True},
        "IA3Config": {"target_modules": linears, "feedforward_modules": ["down_proj"]}, "LoHaConfig": {"r": 4, "target_modules": linears},
        "LoKrConfig": {"r": 4, "target_modules": linears}, "AdaLoraConfig": {"target_modules": linears, "total_step": 10},
        "VeraConfig": {"r": 4, "target_modules": ["q_proj", "o_proj"]}, "OFTConfig": {"target_modules": ["q_proj"], "oft_block_size": 8, "r": 0},
        "PrefixTuningConfig": {"num_virtual_tokens": 4}, "PromptTuningConfig": {"num_virtual_tokens": 4}, "FourierFTConfig": {"n_frequency": 16, "target_modules": linears},
        "BOFTConfig": {"boft_block_size": 4, "target_modules": ["q_proj"]}, "HRAConfig": {"r": 4, "target_modules": ["q_proj"]},
        "AdaptionPromptConfig": {"adapter_len": 4, "adapter_layers": 2}, "C3AConfig": {"block_size": 8, "target_modules": ["q_proj"]},
        "MissConfig": {"r": 4, "target_modules": ["q_proj"]}, "MissConfig_bat": {"r": 4, "target_modules": ["q_proj"], "init_weights": "bat"},
        "RandLoraConfig": {"r": 4, "target_modules": linears}, "DeloraConfig": {"r": 4, "target_modules": linears},
        "WaveFTConfig": {"n_frequency": 16, "target_modules": linears}, "HiraConfig": {"r": 4, "target_modules": linears},
        "GraloraConfig": {"r": 4, "gralora_k": 2, "target_modules": ["q_proj"]}, "PsoftConfig": {"r": 4, "target_modules": ["q_proj"]},
        "PveraConfig": {"r": 4, "target_modules": ["q_proj"]}, "TrainableTokensConfig": {"token_indices": [0, 1]},
        "LoraConfig_parameters": {"r": 4, "target_modules": [], "target_parameters": ["q_proj.weight"]}, "LNTuningConfig": {},
        "ShadowConfig": {}, "LilyConfig": {"target_modules": ["q_proj"]},
        "PromptEncoderConfig": {"num_virtual_tokens": 4}, "ShiraConfig": {"r": 2, "target_modules": linears},
        "VBLoRAConfig": {"r": 4, "target_modules": linears, "num_vectors": 8, "vector_length": 8},
    }  # fmt: skip
    for name, options in kinds.items():
        yield f"peft_{name}", lambda n=name.split("_")[0], o=options: _adapted(n, o)


def _adapted(kind: str, options: dict[str, Any]) -> Called:
    import peft

    model, args, kwargs = text("LlamaForCausalLM", num_key_value_heads=4)()
    model = model.to_empty(device="cpu")
    for parameter in model.parameters():  # some adapters decompose the weights, and unset memory may be no number
        nn.init.normal_(parameter, 0.0, 0.02)
    return peft.get_peft_model(model, getattr(peft, kind)(task_type="CAUSAL_LM", **options)), args, kwargs  # type: ignore[return-value]
