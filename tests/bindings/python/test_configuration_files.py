"""mdot.options_from: options from configuration files of other programs. Every key is an option or is listed as ignored."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

import support

import mdot

EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "torchtune": (
        {"tokenizer": {"max_seq_len": 2048}, "model": {"_component_": "torchtune.models.llama3_1.llama3_1_8b"}, "batch_size": 2,
         "epochs": 1, "gradient_accumulation_steps": 8, "compile": False, "dtype": "bf16", "optimizer_in_bwd": False,
         "optimizer": {"_component_": "bitsandbytes.optim.PagedAdamW8bit", "lr": 2e-5}, "enable_activation_checkpointing": True},
        {"batch": 2, "accumulate": 8, "precision": "bf16", "optimizer": "adamw8bit", "checkpoint": "blocks", "offload": "pages"},
        {"epochs", "compile", "optimizer_in_bwd", "optimizer.lr", "tokenizer.max_seq_len", "model._component_"},
    ),
    "axolotl": (
        {"base_model": "meta-llama/Llama-3.1-8B", "load_in_4bit": True, "micro_batch_size": 4, "gradient_accumulation_steps": 2,
         "optimizer": "adamw_torch_fused", "bf16": "auto", "gradient_checkpointing": True, "flash_attention": True, "lora_r": 32},
        {"frozen_weights": "nf4", "batch": 4, "accumulate": 2, "optimizer": "adamw-fused", "precision": "amp-bf16",
         "checkpoint": "blocks", "attention": "flash"},
        {"base_model", "lora_r"},
    ),
    "torchtitan": (
        {"training": {"local_batch_size": 2, "seq_len": 8192, "mixed_precision_param": "bfloat16"}, "compile": {"enable": True},
         "optimizer": {"name": "AdamW", "lr": 3e-4, "implementation": "fused"}, "activation_checkpoint": {"mode": "selective"},
         "parallelism": {"data_parallel_shard_degree": -1, "tensor_parallel_degree": 2, "pipeline_parallel_degree": 1}},
        {"batch": 2, "precision": "mixed-bf16", "compiled": True, "optimizer": "adamw", "optimizer_kernels": "fused",
         "checkpoint": "selective", "zero": 3, "tensor_parallel": 2, "pipeline_parallel": 1},
        {"training.seq_len", "optimizer.lr"},
    ),
    "megatron": (
        {"--tensor-model-parallel-size": 4, "--pipeline-model-parallel-size": 2, "--sequence-parallel": True, "--bf16": True,
         "--micro-batch-size": 1, "--global-batch-size": 512, "--recompute-granularity": "full", "--use-distributed-optimizer": True,
         "--fp8-format": "hybrid"},
        {"framework": "megatron", "tensor_parallel": 4, "pipeline_parallel": 2, "sequence_parallel": True, "precision": "fp8",
         "batch": 1, "checkpoint": "blocks", "zero": 1},
        {"global_batch_size"},
    ),
    "deepspeed": (
        {"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 4, "bf16": {"enabled": True}, "fp16": {"enabled": False},
         "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "overlap_comm": True}, "optimizer": {"type": "AdamW"}},
        {"batch": 8, "accumulate": 4, "precision": "mixed-bf16", "zero": 2, "offload": "optimizer", "optimizer": "adamw"},
        {"fp16.enabled", "zero_optimization.overlap_comm"},
    ),
    "accelerate": (
        {"compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP", "mixed_precision": "bf16", "num_machines": 2,
         "num_processes": 16, "fsdp_config": {"fsdp_sharding_strategy": "FULL_SHARD", "fsdp_offload_params": False}},
        {"precision": "amp-bf16", "nodes": 2, "gpus": 16, "zero": 3},
        {"compute_environment", "distributed_type", "fsdp_config.fsdp_offload_params"},
    ),
    "transformers": (
        {"model_name_or_path": "Qwen/Qwen2.5-7B-Instruct", "stage": "sft", "finetuning_type": "lora", "lora_target": "all", "cutoff_len": 2048,
         "deepspeed": "examples/deepspeed/ds_z3_config.json", "per_device_train_batch_size": 1, "gradient_accumulation_steps": 8,
         "bf16": True, "quantization_bit": 4, "flash_attn": "fa2", "num_train_epochs": 3.0},
        {"zero": 3, "batch": 1, "accumulate": 8, "precision": "amp-bf16", "frozen_weights": "nf4", "attention": "flash",
         "optimizer": "adamw", "checkpoint": "blocks"},
        {"model_name_or_path", "stage", "finetuning_type", "lora_target", "cutoff_len", "num_train_epochs"},
    ),
    "lightning": (
        {"trainer": {"accelerator": "gpu", "devices": 8, "num_nodes": 2, "strategy": "deepspeed_stage_2", "precision": "bf16-mixed"},
         "model": {"class_path": "my.Network"}, "data": {"init_args": {"batch_size": 8}}, "optimizer": {"class_path": "torch.optim.AdamW"}},
        {"gpus": 16, "nodes": 2, "zero": 2, "precision": "amp-bf16", "batch": 8, "optimizer": "adamw"},
        {"trainer.accelerator", "model.class_path"},
    ),
}  # fmt: skip


class ConfigurationFiles(support.TestCase):
    def read(self, content: str, suffix: str = ".json") -> mdot.FileOptions:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file{suffix}"
            path.write_text(content)
            return mdot.options_from(path)

    def test_each_key_is_an_option_or_ignored(self) -> None:
        for program, (content, options, ignored) in EXAMPLES.items():
            with self.subTest(program):
                found = self.read(json.dumps(content))
                self.assertEqual((found.program, found.options, set(found.ignored)), (program, options, ignored))
                mdot.Configuration("H100", **{"batch": 1, **found.options})
                turned = self.read(json.dumps(dict(reversed(content.items()))))
                self.assertEqual(turned.options, options)

    def test_each_spelling_of_sharding_is_read(self) -> None:
        accelerate = '{"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2, "fsdp_reshard_after_forward": %s}}'
        trainer = '{"per_device_train_batch_size": 1, "%s": "%s"}'
        lightning = '{"trainer": {"strategy": "%s"}}'
        for text, stage in (
            (accelerate % "true", 3), (accelerate % "false", 2), (accelerate % '"FULL_SHARD"', 3),
            (trainer % ("fsdp", "full_shard auto_wrap"), 3), (trainer % ("fsdp", "shard_grad_op"), 2),
            (trainer % ("deepspeed", "ds/zero2.json"), 2), (trainer % ("deepspeed", "z1.json"), 1), (trainer % ("deepspeed", "my.json"), None),
            (lightning % "fsdp", 3), (lightning % "deepspeed_stage_3_offload", 3), (lightning % "ddp_spawn", 0), (lightning % "auto", None),
        ):  # fmt: skip
            self.assertEqual(self.read(text).options.get("zero"), stage, text)

    def test_float8_of_torchtitan_holds_beside_bfloat16(self) -> None:
        found = self.read('{"model": {"converters": ["float8"]}, "training": {"mixed_precision_param": "bfloat16"}, "parallelism": {}}')
        self.assertEqual(found.options["precision"], "fp8")

    def test_arguments_of_a_script_equal_keys(self) -> None:
        script = """#!/bin/bash
            NODES=2  # machines
            torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --num-layers-per-virtual-pipeline-stage 4 \\
              --tensor-model-parallel-size 4 --pipeline-model-parallel-size=2 --bf16 --sequence-parallel --lr $LR \\
              --micro-batch-size 1"""
        keys = {"num_layers": 32, "num_layers_per_virtual_pipeline_stage": 4, "tensor_model_parallel_size": 4, "bf16": True,
                "pipeline_model_parallel_size": 2, "sequence_parallel": True, "micro_batch_size": 1}  # fmt: skip
        found = self.read(script, ".sh")
        self.assertEqual(found.options, self.read(json.dumps(keys)).options)
        self.assertEqual((found.options["virtual_stages"], found.ignored), (4, ["nproc_per_node", "lr"]))

    def test_accelerates_fp16_scales_losses(self) -> None:
        found = self.read('{"distributed_type": "MULTI_GPU", "mixed_precision": "fp16"}')
        self.assertEqual(found.options, {"precision": "amp-fp16", "grad_scaler": True})

    def test_yaml_is_read_as_json(self) -> None:
        if importlib.util.find_spec("yaml") is None:
            self.skipTest("PyYAML is missing")
        content, options, _ = EXAMPLES["deepspeed"]
        self.assertEqual(self.read(json.dumps(content), ".yaml").options, options)

    def test_toml_is_read(self) -> None:
        if importlib.util.find_spec("tomllib") is None:
            self.skipTest("tomllib is missing")
        found = self.read('[training]\nlocal_batch_size = 4\n[parallelism]\ncontext_parallel_degree = 2\n', ".toml")
        self.assertEqual((found.program, found.options), ("torchtitan", {"batch": 4, "context_parallel": 2}))

    def test_wrong_files_are_refused_by_name(self) -> None:
        cases = [
            ("{", ".json", "file.json: invalid json"), ("[1]", ".json", "at the top"), ('{"a": 1}', ".json", "none of deepspeed"),
            ("a=1", ".cfg", "accepted: .json"),
            ('{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "fp16": {"enabled": true}}', ".json", "bf16.enabled and fp16.enabled"),
        ]  # fmt: skip
        for content, suffix, words in cases:
            with self.subTest(words), self.assertRaises(mdot.InvalidArgumentError) as caught:
                self.read(content, suffix)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(mdot.NotFoundError):
            mdot.options_from("missing.json")


if __name__ == "__main__":
    unittest.main()
