"""frontend/config: the job of a configuration equals a fresh trace of the same network, in work and memory, at two batches
and two lengths, one of them in fp32 and one in bf16. Each family has a small network, whose sizes differ from those of the
description's traces."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any

import support
import torch
import transformers

import mdot
from mdot.trace.models import of_transformers

TOLERANCE = 0.01
WIDER = {"albert": 0.045, "bloom": 0.025, "deepseek_v2": 0.02, "deepseek_v3": 0.02, "gptj": 0.02, "gpt_neo": 0.015, "llama4_text": 0.16, "mixtral": 0.08, "mpnet": 0.05, "t5": 0.06, "whisper": 0.035}
"""Families whose memory differs by more at some batch and length: a record keeps at most 16 moments."""
OTHER_TYPE = 0.04
"""Compiled code with recomputed blocks of a bf16 network, asked in fp32: a trace scales its one record, a description has both."""
LENGTHS, BATCHES = (192, 320), (2, 16)
SHARED = {"num_hidden_layers": 6, "num_attention_heads": 8, "hidden_size": 320, "intermediate_size": 1100, "vocab_size": 3000, "max_position_embeddings": 512}
GROUPED = {**SHARED, "num_key_value_heads": 4, "head_dim": 40, "pad_token_id": 0}
EQUAL = {**SHARED, "num_key_value_heads": 8, "pad_token_id": 0}
TYPES = {**SHARED, "type_vocab_size": 2}
TWO_STACKS = {"d_model": 320, "encoder_layers": 5, "decoder_layers": 7, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 1100, "decoder_ffn_dim": 900, "vocab_size": 3000}
PATCHES = {"num_channels": 3, "num_hidden_layers": 6, "num_attention_heads": 8, "hidden_size": 320, "intermediate_size": 1100, "image_size": 96, "patch_size": 12, "num_labels": 500}
GROUPED_WIDTH = {key: value for key, value in GROUPED.items() if key != "head_dim"}
EXPERTS = {**GROUPED, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 296, "intermediate_size": 1104}
LATENT = {**SHARED, "num_key_value_heads": 8, "first_k_dense_replace": 2, "moe_intermediate_size": 296, "n_shared_experts": 2, "num_experts_per_tok": 3, "kv_lora_rank": 88, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 56, "num_hidden_layers": 7}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "albert": {**TYPES, "embedding_size": 128},
    "arcee": GROUPED,
    "bart": {**TWO_STACKS, "max_position_embeddings": 512},
    "bert": TYPES,
    "bloom": {"n_layer": 6, "n_head": 8, "hidden_size": 320, "vocab_size": 3000},
    "cohere": {**GROUPED_WIDTH, "num_key_value_heads": 8},
    "deepseek_v2": {**LATENT, "q_lora_rank": None, "n_routed_experts": 12, "n_group": 1, "topk_group": 1},
    "deepseek_v3": {**LATENT, "q_lora_rank": 144, "n_routed_experts": 48},
    "deit": PATCHES,
    "dinov2": {**PATCHES, "mlp_ratio": 3},
    "distilbert": {"n_layers": 5, "n_heads": 8, "dim": 320, "hidden_dim": 1100, "vocab_size": 3000, "max_position_embeddings": 512},
    "electra": {**TYPES, "embedding_size": 128},
    "ernie4_5": {**GROUPED, "tie_word_embeddings": True},
    "falcon": {"num_hidden_layers": 6, "num_attention_heads": 8, "hidden_size": 320, "vocab_size": 3000},
    "gemma": GROUPED,
    "gemma2": GROUPED,
    "gemma3_text": GROUPED,
    "glm": GROUPED,
    "glm4": {**GROUPED, "attention_bias": False},
    "glm4_moe": {**GROUPED, "attention_bias": True, "first_k_dense_replace": 2, "moe_intermediate_size": 296, "n_shared_experts": 2, "num_experts_per_tok": 4, "n_routed_experts": 12, "num_hidden_layers": 7},
    "gpt2": {"n_layer": 7, "n_head": 8, "n_embd": 320, "vocab_size": 3000, "n_positions": 512},
    "gpt_neo": {"num_layers": 6, "num_heads": 8, "hidden_size": 320, "vocab_size": 3000, "max_position_embeddings": 512, "attention_types": [[["global", "local"], 3]]},
    "gpt_neox": {**SHARED, "hidden_size": 384},
    "gpt_oss": {**EXPERTS, "num_local_experts": 6},
    "gptj": {"n_layer": 6, "n_head": 8, "n_embd": 320, "vocab_size": 3000, "n_positions": 512, "rotary_dim": 24},
    "granite": {**GROUPED_WIDTH, "tie_word_embeddings": True},
    "granitemoe": {**GROUPED_WIDTH, "intermediate_size": 296, "num_local_experts": 6, "num_experts_per_tok": 2, "tie_word_embeddings": True},
    "llama": {**GROUPED, "tie_word_embeddings": True, "dtype": "bfloat16"},
    "llama4_text": {**GROUPED, "intermediate_size": 296, "intermediate_size_mlp": 1104, "num_local_experts": 4, "num_experts_per_tok": 1},
    "ministral3": GROUPED,
    "mistral": GROUPED,
    "mixtral": {**GROUPED, "intermediate_size": 1104, "num_local_experts": 6, "num_experts_per_tok": 2},
    "mpnet": {**SHARED, "relative_attention_num_buckets": 40},
    "nemotron": GROUPED,
    "olmo": EQUAL,
    "olmo2": EQUAL,
    "olmo3": EQUAL,
    "olmoe": {**EQUAL, "intermediate_size": 296, "num_experts": 6, "num_experts_per_tok": 2},
    "opt": {**SHARED, "ffn_dim": 1100, "word_embed_proj_dim": 320},
    "phi": SHARED,
    "phi3": GROUPED_WIDTH,
    "qwen2": GROUPED,
    "qwen2_moe": {**EXPERTS, "num_key_value_heads": 8, "shared_expert_intermediate_size": 440},
    "qwen3": {**GROUPED, "tie_word_embeddings": False},
    "qwen3_moe": EXPERTS,
    "roberta": TYPES,
    "seed_oss": GROUPED,
    "smollm3": {**GROUPED_WIDTH, "num_hidden_layers": 8},
    "stablelm": EQUAL,
    "starcoder2": GROUPED,
    "t5": {"num_layers": 5, "num_decoder_layers": 7, "num_heads": 8, "d_model": 320, "d_kv": 32, "d_ff": 1100, "vocab_size": 3000, "relative_attention_num_buckets": 40},
    "vit": PATCHES,
    "whisper": {**TWO_STACKS, "max_source_positions": 160, "max_target_positions": 128, "num_mel_bins": 60, "decoder_start_token_id": 0, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0},
    "xlm-roberta": TYPES,
}
"""By family. The class of the network is in the family's description."""
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "arcee": [{"num_key_value_heads": 8}],
    "glm4": [{"attention_bias": True}],
    "granite": [{"tie_word_embeddings": False}],
    "nemotron": [{"num_key_value_heads": 8}],
    "olmo2": [{"num_key_value_heads": 4}],
    "phi3": [{"tie_word_embeddings": True}, {"num_key_value_heads": 8, "tie_word_embeddings": True}],
    "qwen2": [{"num_key_value_heads": 8}, {"num_key_value_heads": 8, "tie_word_embeddings": True}],
    "qwen3": [{"num_key_value_heads": 8}, {"num_key_value_heads": 8, "tie_word_embeddings": True}],
    "t5": [{"feed_forward_proj": "gated-gelu"}, {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}],
}
"""Settings that change the operators."""
NAMED = [name for name in sys.argv[1:] if name in CONFIGURATIONS]
"""Families of the command line."""


def description_of(family: str) -> dict[str, Any]:
    return json.loads(gzip.decompress((Path(os.environ["MDOT_JOBS"]) / f"{family}.json.gz").read_bytes()))


def others(key: str, value: Any) -> list[Any]:
    """Other values of a setting."""
    if key in ("return_dict", "is_decoder", "is_encoder_decoder", "use_cache", "add_cross_attention", "output_attentions", "output_hidden_states", "is_gated_act"):
        return []
    if key.startswith("_") or key.endswith("_token_id"):
        return []
    if key == "num_key_value_heads":
        return [1, 2, 4, 8]
    if isinstance(value, bool):
        return [not value]
    if key == "head_dim":
        return [48, None]
    return [2 * value] if isinstance(value, int) and value > 1 and not key.startswith(("vocab", "max_", "hidden_s")) else []


def numbers(job: mdot.Job, is_compiled: bool = True) -> dict[str, float]:
    work = {"parameters": float(job.parameters)}
    for phase in ("forward", "data_gradient", "weight_gradient"):
        work[phase] = sum(2 * op.per_sample[phase].flops + op.per_step[phase].flops for op in job)
    predictor = mdot.Predictor()
    for batch in BATCHES:
        for precision in ("fp32", "amp", "bf16"):
            for way in ("nothing", "blocks", "selective", "compiled", "compiled blocks")[: 5 if is_compiled else 3]:
                frozen = "nf4" if job.frozen_parameters and batch > 2 else "unchanged"
                options = {"compiled": way.startswith("compiled"), "checkpoint": way.removeprefix("compiled").strip() or "nothing"}
                made = predictor.predict(job, gpu="H100", batch=batch, precision=precision, optimizer="adamw", frozen_weights=frozen, **options)
                work[f"{batch} {precision} {way}"] = made.peak_memory_bytes
    return work


def differences(family: str, made: dict[str, float], traced: dict[str, float]) -> dict[str, float]:
    """The relative differences above their limits."""
    limits = {name: WIDER.get(family, TOLERANCE) if " " in name else TOLERANCE for name in traced}
    limits.update((name, max(n, OTHER_TYPE)) for name, n in limits.items() if name.endswith("compiled blocks"))
    return {name: made[name] / n - 1 for name, n in traced.items() if abs(made[name] - n) > limits[name] * n}


class ReadyJobs(support.TestCase):
    def test_each_family_has_a_configuration(self) -> None:
        families = {file.name.partition(".")[0] for file in Path(os.environ["MDOT_JOBS"]).glob("*.json.gz")}
        self.assertEqual(families, set(CONFIGURATIONS))

    def test_jobs_of_configurations_equal_fresh_traces(self) -> None:
        warnings.simplefilter("ignore")
        for family in NAMED or CONFIGURATIONS:
            description = description_of(family)
            for length, dtype in zip(LENGTHS, ("float32", "bfloat16")):
                length = length if description["length"] else None
                with self.subTest(family, length=length, dtype=dtype), tempfile.TemporaryDirectory() as folder:
                    network = description["network"]
                    values = {"model_type": family, "architectures": [network], **CONFIGURATIONS[family], "dtype": dtype}
                    with open(os.path.join(folder, "config.json"), "w") as file:
                        json.dump(values, file)
                    made = numbers(mdot.Job.read(folder, dims={"length": length} if length else {}))
                    model = transformers.AutoConfig.from_pretrained(folder)
                    traced = numbers(mdot.Job.from_transformers(network, model, length=length))
                    far = differences(family, made, traced)
                    self.assertEqual(far, {}, f"{family}: relative differences")

    def test_jobs_of_variants_equal_fresh_traces(self) -> None:
        warnings.simplefilter("ignore")
        for family in NAMED or VARIANTS:
            network = description_of(family)["network"]
            for more in VARIANTS.get(family, ()):
                with self.subTest(family, **more), tempfile.TemporaryDirectory() as folder:
                    with open(os.path.join(folder, "config.json"), "w") as file:
                        json.dump({"model_type": family, **CONFIGURATIONS[family], **more, "dtype": "bfloat16"}, file)
                    job = mdot.Job.read(folder, dims={"length": 192})
                    config = transformers.AutoConfig.from_pretrained(folder)
                    traced = numbers(mdot.Job.from_transformers(network, config, length=192))
                    made = numbers(job)
                    far = differences(family, made, traced)
                    self.assertEqual(far, {}, f"{family}: relative differences")

    def test_adapters_equal_traces_of_peft(self) -> None:
        import peft

        warnings.simplefilter("ignore")
        for family in NAMED or CONFIGURATIONS:
            description = description_of(family)
            sets = [one["targets"] for one in description["variants"][0].get("adapters", ())]
            length = 192 if description["length"] else None
            for (rank, dtype), targets in zip(((4, "bfloat16"), (16, "float32"), (32, "bfloat16")), sets):
                with self.subTest(family, targets=targets), tempfile.TemporaryDirectory() as folder:
                    with open(os.path.join(folder, "config.json"), "w") as file:
                        json.dump({"model_type": family, **CONFIGURATIONS[family], "dtype": dtype}, file)
                    job = mdot.Job.read(folder, dims={"length": length} if length else {}, lora=(rank, targets))
                    is_compiled = any(record.compiled for record in job.program.recorded)  # most sets lack this record
                    made = numbers(job, is_compiled)
                    config = transformers.AutoConfig.from_pretrained(folder)
                    network = of_transformers(getattr(transformers, description["network"]), config, 2, length, None)
                    settings = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets)
                    network.model = peft.get_peft_model(network.model, settings)
                    self.assertEqual(next(network.model.base_model.parameters()).dtype, getattr(torch, dtype))
                    traced = numbers(mdot.Job.from_network(network, batch=2), is_compiled)
                    far = differences(family, made, traced)
                    self.assertEqual(far, {}, f"{family}: relative differences")

    def test_each_setting_is_read_or_refused(self) -> None:
        """A configuration with one other setting has the network's parameters, or a refusal."""
        for family in NAMED or CONFIGURATIONS:
            description = description_of(family)
            network = getattr(transformers, description["network"])
            for key, value in sorted({"head_dim": None, **vars(network.config_class())}.items()):
                for other in others(key, CONFIGURATIONS[family].get(key, value)):
                    with self.subTest(family, **{key: other}), tempfile.TemporaryDirectory() as folder, torch.device("meta"):
                        try:
                            config = network.config_class(**{**CONFIGURATIONS[family], key: other})
                            parameters = sum(one.numel() for one in network(config).parameters() if one.requires_grad)
                        except Exception:  # noqa: BLE001 (transformers has no such network)
                            continue
                        config.save_pretrained(folder)
                        try:
                            job = mdot.Job.read(folder)
                        except mdot.Error:
                            continue
                        self.assertLess(abs(job.parameters / parameters - 1), 2e-3, f"{job.parameters} of {parameters}")

    def test_saved_configurations_are_read_or_refused_by_their_own_keys(self) -> None:
        """transformers may save a size under another name than it reads, for example num_local_experts of qwen3_moe."""
        for family in CONFIGURATIONS:
            with tempfile.TemporaryDirectory() as folder:
                transformers.AutoConfig.for_model(family, **CONFIGURATIONS[family]).save_pretrained(folder)
                mdot.Job.read(folder)
                transformers.AutoConfig.for_model(family).save_pretrained(folder)
                try:
                    mdot.Job.read(folder)
                except mdot.Error as reason:
                    self.assertNotRegex(str(reason), "is missing|of this value", family)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
