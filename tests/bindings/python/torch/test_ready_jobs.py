"""frontend/config: the job of a configuration equals a fresh trace of the same network, in work and memory. Small networks,
whose sizes differ from those of the descriptions' traces."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
import warnings
from typing import Any

import support
import transformers

import mdot

TOLERANCE, OF_BLOCKS = 0.01, 0.15
"""Relative differences. With recomputed blocks, the description approximates the temporary memory of a block's second
forward pass, which is a maximum of several sums."""
SHARED = {"num_hidden_layers": 6, "num_attention_heads": 8, "hidden_size": 320, "intermediate_size": 1100, "vocab_size": 3000, "max_position_embeddings": 512}
GROUPED = {**SHARED, "num_key_value_heads": 4, "head_dim": 40, "pad_token_id": 0}
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {"n_layer": 7, "n_head": 8, "n_embd": 320, "vocab_size": 3000, "n_positions": 512}),
    "llama": ("LlamaForCausalLM", {**GROUPED, "tie_word_embeddings": True, "dtype": "bfloat16"}),
    "mistral": ("MistralForCausalLM", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", {**GROUPED, "tie_word_embeddings": False}),
    "bert": ("BertForMaskedLM", {**SHARED, "type_vocab_size": 2}),
    "gpt_neox": ("GPTNeoXForCausalLM", {**SHARED, "hidden_size": 384}),
}


def numbers(job: mdot.Job) -> dict[str, float]:
    work = {"parameters": float(job.parameters)}
    for phase in ("forward", "data_gradient", "weight_gradient"):
        work[phase] = sum(2 * op.per_sample[phase].flops + op.per_step[phase].flops for op in job)
    predictor = mdot.Predictor()
    for precision in ("fp32", "amp", "bf16"):
        for recomputed in ("nothing", "blocks", "selective"):
            made = predictor.predict(job, gpu="H100", batch=8, precision=precision, checkpoint=recomputed, optimizer="adamw")
            work[f"{precision} {recomputed}"] = made.peak_memory_bytes
    return work


class ReadyJobs(support.TestCase):
    def test_jobs_of_configurations_equal_fresh_traces(self) -> None:
        warnings.simplefilter("ignore")
        for family, (network, settings) in CONFIGURATIONS.items():
            if len(sys.argv) > 1 and family not in sys.argv[1:]:
                continue
            with self.subTest(family), tempfile.TemporaryDirectory() as folder:
                config = {"model_type": family, "architectures": [network], **settings}
                with open(os.path.join(folder, "config.json"), "w") as file:
                    json.dump(config, file)
                made = numbers(mdot.Job.read(folder, dims={"length": 192}))
                model = transformers.AutoConfig.from_pretrained(folder)
                traced = numbers(mdot.Job.from_transformers(network, model, length=192))
                limits = {name: OF_BLOCKS if name.endswith("blocks") else TOLERANCE for name in traced}
                far = {name: made[name] / n - 1 for name, n in traced.items() if abs(made[name] - n) > limits[name] * n}
                self.assertEqual(far, {}, f"{family}: relative differences")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
