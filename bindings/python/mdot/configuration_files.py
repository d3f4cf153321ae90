"""Reads the training options from a configuration file of another program: torchtune, axolotl, torchtitan, Megatron-LM,
DeepSpeed, Accelerate, Lightning's command line, or transformers' Trainer (TRL, LLaMA-Factory), and from the arguments in a
shell script."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any, Callable, Mapping

from mdot.library.errors import InvalidArgumentError, NotFoundError

Rule = tuple[str, Callable[[Any], Any]]
"""An option, and its value from that of the file; None: the file leaves the default."""


def _number(value: Any) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _if(result: Any) -> Callable[[Any], Any]:
    return lambda value: result if value is True or value in ("true", "True", "auto") else None


def _words(table: Mapping[str, Any]) -> Callable[[Any], Any]:
    return lambda value: table.get(str(value).lower())


def _of_optimizer(value: Any) -> Any:
    """The last part of a class, without the suffixes of transformers: "adamw_torch_fused" and "torch.optim.AdamW"."""
    word = str(value).rpartition(".")[2].lower().replace("-", "").replace("_", "")
    word = word.removeprefix("paged").replace("bnb", "").replace("32bit", "")
    if word.endswith("fused"):
        return {"adamwtorchfused": "adamw-fused", "adamfused": "adam-fused"}.get(word)
    known = {"sgd": "sgd", "adam": "adam", "adamw": "adamw", "adamwtorch": "adamw", "adam8bit": "adam8bit", "adamw8bit": "adamw8bit", "adafactor": "adafactor", "lion": "lion", "muon": "muon"}  # fmt: skip
    return known.get(word)


def _stage(value: Any) -> Any:
    """The ZeRO stage that the name of a DeepSpeed file states, for example ds_z3_config.json."""
    found = re.search(r"z(?:ero)?_?([0-3])", str(value).rpartition("/")[2].lower()) if isinstance(value, str) else None
    return int(found.group(1)) if found else None


def _strategy(value: Any) -> Any:
    """The ZeRO stage of one of Lightning's strategies."""
    word = str(value).lower()
    if "deepspeed" in word:
        return _stage(word.replace("stage_", "zero"))
    return 3 if word.startswith("fsdp") else 0 if word.startswith("ddp") else None


def _fsdp(value: Any) -> Any:
    """The ZeRO stage of Trainer's fsdp, for example "full_shard auto_wrap" or a list."""
    words = value if isinstance(value, list) else str(value).split()
    return next((_SHARDED[word] for word in map(str, words) if word in _SHARDED), None)


_SHARDED = {"full_shard": 3, "shard_grad_op": 2, "no_shard": 0, "1": 3, "2": 2, "3": 0}
_OFF = _words({"cpu": "optimizer", "nvme": None})
_HALF = {"bf16": "amp-bf16", "fp16": "amp-fp16", "no": "fp32"}
_RECOMPUTE = _words({"full": "blocks", "selective": "selective", "none": "nothing"})

_RULES: dict[str, dict[str, Rule]] = {
    "deepspeed": {
        "train_micro_batch_size_per_gpu": ("batch", _number),
        "gradient_accumulation_steps": ("accumulate", _number),
        "bf16.enabled": ("precision", _if("mixed-bf16")),
        "fp16.enabled": ("precision", _if("mixed-fp16")),
        "zero_optimization.stage": ("zero", lambda stage: stage),
        "zero_optimization.offload_optimizer.device": ("offload", _OFF),
        "zero_optimization.offload_param.device": ("offload", _words({"cpu": "parameters"})),
        "optimizer.type": ("optimizer", _of_optimizer),
    },
    "accelerate": {
        "mixed_precision": ("precision", _words({**_HALF, "fp8": "fp8"})),
        "num_processes": ("gpus", _number),
        "num_machines": ("nodes", _number),
        "fsdp_config.fsdp_sharding_strategy": ("zero", _words(_SHARDED)),
        "fsdp_config.fsdp_reshard_after_forward": ("zero", _words({**_SHARDED, "true": 3, "false": 2})),
        "fsdp_config.fsdp_offload_params": ("offload", _if("parameters")),
        "fsdp_config.fsdp_activation_checkpointing": ("checkpoint", _if("blocks")),
        "deepspeed_config.zero_stage": ("zero", lambda stage: stage),
        "deepspeed_config.gradient_accumulation_steps": ("accumulate", _number),
        "deepspeed_config.offload_optimizer_device": ("offload", _OFF),
    },
    "torchtitan": {
        "training.local_batch_size": ("batch", _number),
        "training.mixed_precision_param": ("precision", _words({"bfloat16": "mixed-bf16", "float32": "fp32"})),
        "model.converters": ("precision", lambda names: "fp8" if isinstance(names, list) and "float8" in map(str, names) else None),
        "training.compile": ("compiled", _if(True)),
        "compile.enable": ("compiled", _if(True)),
        "optimizer.name": ("optimizer", _of_optimizer),
        "optimizer.implementation": ("optimizer_kernels", _words({"fused": "fused", "foreach": "foreach", "for-loop": "for-loop"})),
        "activation_checkpoint.mode": ("checkpoint", _RECOMPUTE),
        "parallelism.tensor_parallel_degree": ("tensor_parallel", _number),
        "parallelism.pipeline_parallel_degree": ("pipeline_parallel", _number),
        "parallelism.context_parallel_degree": ("context_parallel", _number),
        "parallelism.data_parallel_shard_degree": ("zero", lambda degree: 0 if degree == 1 else 3),
    },
    "megatron": {
        "micro_batch_size": ("batch", _number),
        "bf16": ("precision", _if("mixed-bf16")),
        "fp16": ("precision", _if("mixed-fp16")),
        "fp8_format": ("precision", _words({"hybrid": "fp8", "e4m3": "fp8"})),
        "optimizer": ("optimizer", _words({"adam": "adamw", "sgd": "sgd"})),
        "tensor_model_parallel_size": ("tensor_parallel", _number),
        "pipeline_model_parallel_size": ("pipeline_parallel", _number),
        "context_parallel_size": ("context_parallel", _number),
        "expert_model_parallel_size": ("expert_parallel", _number),
        "sequence_parallel": ("sequence_parallel", _if(True)),
        "use_distributed_optimizer": ("zero", _if(1)),
        "recompute_granularity": ("checkpoint", _RECOMPUTE),
        "optimizer_cpu_offload": ("offload", _if("optimizer")),
    },
    "torchtune": {
        "batch_size": ("batch", _number),
        "gradient_accumulation_steps": ("accumulate", _number),
        "dtype": ("precision", _words({"bf16": "bf16", "fp32": "fp32"})),
        "compile": ("compiled", _if(True)),
        "optimizer._component_": ("optimizer", _of_optimizer),
        "optimizer.fused": ("optimizer_kernels", _if("fused")),
        "optimizer_in_bwd": ("step_in_backward", _if(True)),
        "enable_activation_checkpointing": ("checkpoint", _if("blocks")),
        "enable_activation_offloading": ("offload_activations", _if(True)),
        "fsdp_cpu_offload": ("offload", _if("parameters")),
        "tensor_parallel_dim": ("tensor_parallel", _number),
    },
    "axolotl": {
        "micro_batch_size": ("batch", _number),
        "gradient_accumulation_steps": ("accumulate", _number),
        "optimizer": ("optimizer", _of_optimizer),
        "bf16": ("precision", _if("amp-bf16")),
        "fp16": ("precision", _if("amp-fp16")),
        "gradient_checkpointing": ("checkpoint", _if("blocks")),
        "flash_attention": ("attention", _if("flash")),
        "sdp_attention": ("attention", _if("flash")),
        "load_in_4bit": ("frozen_weights", _if("nf4")),
        "load_in_8bit": ("frozen_weights", _if("int8")),
        "torch_compile": ("compiled", _if(True)),
        "tensor_parallel_size": ("tensor_parallel", _number),
        "context_parallel_size": ("context_parallel", _number),
        "liger_fused_linear_cross_entropy": ("loss", _if("fused")),
        "deepspeed": ("zero", _stage),
        "fsdp_config.reshard_after_forward": ("zero", _words({"true": 3, "false": 2})),
        "fsdp": ("zero", _fsdp),
    },
    "lightning": {
        "trainer.num_nodes": ("nodes", _number),
        "trainer.devices": ("gpus", _number),
        "trainer.strategy": ("zero", _strategy),
        "trainer.strategy.class_path": ("zero", lambda value: _strategy(str(value).rpartition(".")[2])),
        "trainer.precision": ("precision", _words({"bf16-mixed": "amp-bf16", "16-mixed": "amp-fp16", "bf16-true": "bf16", "32-true": "fp32", "32": "fp32", "transformer-engine": "fp8"})),
        "trainer.accumulate_grad_batches": ("accumulate", _number),
        "data.init_args.batch_size": ("batch", _number),
        "data.batch_size": ("batch", _number),
        "optimizer.class_path": ("optimizer", _of_optimizer),
    },
    "transformers": {
        "per_device_train_batch_size": ("batch", _number),
        "gradient_accumulation_steps": ("accumulate", _number),
        "bf16": ("precision", _if("amp-bf16")),
        "fp16": ("precision", _if("amp-fp16")),
        "optim": ("optimizer", _of_optimizer),
        "gradient_checkpointing": ("checkpoint", _if("blocks")),
        "torch_compile": ("compiled", _if(True)),
        "fsdp": ("zero", _fsdp),
        "deepspeed": ("zero", _stage),
        "attn_implementation": ("attention", _words({"flash_attention_2": "flash", "flash_attention_3": "flash", "sdpa": "flash", "eager": "eager"})),
        "flash_attn": ("attention", _words({"fa2": "flash", "sdpa": "flash", "disabled": "eager"})),
        "load_in_4bit": ("frozen_weights", _if("nf4")),
        "load_in_8bit": ("frozen_weights", _if("int8")),
        "quantization_bit": ("frozen_weights", _words({"4": "nf4", "8": "int8"})),
        "use_liger_kernel": ("loss", _if("fused")),
        "enable_liger_kernel": ("loss", _if("fused")),
    },
}  # fmt: skip
"""By program, the keys that are options of mdot."""

_SIGNS = {
    "deepspeed": ("train_micro_batch_size_per_gpu", "train_batch_size", "zero_optimization"),
    "accelerate": ("compute_environment", "distributed_type"),
    "torchtitan": ("parallelism", "activation_checkpoint"),
    "megatron": ("tensor_model_parallel_size", "pipeline_model_parallel_size", "num_attention_heads"),
    "transformers": ("per_device_train_batch_size", "finetuning_type"),
    "lightning": ("trainer",),
    "axolotl": ("base_model", "datasets", "micro_batch_size"),
    "torchtune": ("checkpointer", "tokenizer", "model", "batch_size"),
}
"""Keys that tell the program, in order."""


_STRONGER = {"fp8", "parameters"}


@dataclasses.dataclass(frozen=True)
class FileJob:
    """The job of a configuration file, in words of the command line."""

    name: str
    """A ready job, as hubs spell it."""
    options: dict[str, str]
    """length, lora and frozen-weights."""
    name_keys: tuple[str, ...]
    keys: tuple[str, ...]
    """The keys of the file that state the name, and those that state the options."""


def _adapters(rank: Any, targets: Any) -> dict[str, str]:
    names = ",".join(map(str, targets)) if isinstance(targets, list) and targets else "all-linear"
    return {"lora": f"r={rank if _number(rank) else 8},targets={names}"}


def _job_of_axolotl(flat: Mapping[str, Any]) -> FileJob | None:
    options = {"length": str(flat["sequence_len"])} if _number(flat.get("sequence_len")) else {}
    keys = ["sequence_len"]
    if flat.get("adapter") in ("lora", "qlora"):
        options.update(_adapters(flat.get("lora_r"), None if flat.get("lora_target_linear") else flat.get("lora_target_modules")))
        keys += ["adapter", "lora_r", "lora_target_linear", "lora_target_modules"]
    name = flat.get("base_model")
    return FileJob(name, options, ("base_model",), tuple(keys)) if isinstance(name, str) else None


def _job_of_transformers(flat: Mapping[str, Any]) -> FileJob | None:
    """Keys of TRL and of LLaMA-Factory."""
    lengths = ("cutoff_len", "max_length", "max_seq_length", "block_size")
    options = next(({"length": str(flat[key])} for key in lengths if _number(flat.get(key))), {})
    keys = list(lengths)
    if flat.get("finetuning_type", "lora" if flat.get("use_peft") is True else "full") == "lora":
        targets = flat.get("lora_target_modules") or flat.get("lora_target")
        names = [name.strip() for name in targets.split(",")] if isinstance(targets, str) else targets
        options.update(_adapters(flat.get("lora_rank") or flat.get("lora_r"), None if names == ["all"] or names == ["all-linear"] else names))
        keys += ["finetuning_type", "use_peft", "lora_target_modules", "lora_target", "lora_rank", "lora_r"]
    name = flat.get("model_name_or_path")
    return FileJob(name, options, ("model_name_or_path",), tuple(keys)) if isinstance(name, str) else None


def _job_of_torchtune(flat: Mapping[str, Any]) -> FileJob | None:
    name = str(flat.get("model._component_", "")).rpartition(".")[2]
    if not name:
        return None
    options = {"length": str(flat["tokenizer.max_seq_len"])} if _number(flat.get("tokenizer.max_seq_len")) else {}
    keys = ["tokenizer.max_seq_len"]
    adapter = next((word for word in ("qlora_", "lora_") if name.startswith(word)), "")
    if adapter:
        parts = [str(part).replace("output_proj", "o_proj") for part in flat.get("model.lora_attn_modules") or []]
        parts += ["gate_proj", "up_proj", "down_proj"] if flat.get("model.apply_lora_to_mlp") else []
        options.update(_adapters(flat.get("model.lora_rank"), parts))
        options.update({"frozen-weights": "nf4"} if adapter == "qlora_" else {})
        keys += ["model.lora_attn_modules", "model.apply_lora_to_mlp", "model.lora_rank"]
    name = re.sub(r"(\d)_(\d+)_(?=\d)", r"\1.\2-", name.removeprefix(adapter))  # llama3_1_8b
    return FileJob(name.replace("_", "-"), options, ("model._component_",), tuple(keys))


def _job_of_torchtitan(flat: Mapping[str, Any]) -> FileJob | None:
    name, flavor = flat.get("model.name"), flat.get("model.flavor")
    options = {"length": str(flat["training.seq_len"])} if _number(flat.get("training.seq_len")) else {}
    if not isinstance(name, str) or not isinstance(flavor, str):
        return None
    return FileJob(f"{name}-{flavor}", options, ("model.name", "model.flavor"), ("training.seq_len",))


_JOBS: dict[str, Callable[[Mapping[str, Any]], FileJob | None]] = {
    "axolotl": _job_of_axolotl, "torchtune": _job_of_torchtune, "torchtitan": _job_of_torchtitan,
    "transformers": _job_of_transformers,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """The options of a configuration file, for `mdot.predict(job, gpu, **found.options)`."""

    program: str
    options: dict[str, Any]
    """By keyword of `mdot.Configuration`."""
    ignored: list[str]
    """The keys, with dots, that are no option, or whose value is unknown or the default."""
    job: FileJob | None = None
    """The network that the file trains."""


def _arguments(text: str) -> dict[str, Any]:
    """The options of the commands in a shell script: "--bf16" is true, and "--seq-length 4096" a number. Variables keep
    their names, so that the key is ignored."""
    made: dict[str, Any] = {}
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    for word, following in zip(words, [*words[1:], "--"]):
        if re.fullmatch(r"--[A-Za-z][\w.-]*(=.*)?", word):
            key, equals, value = word[2:].partition("=")
            value = value if equals else "true" if following.startswith("--") else following
            made[key] = {"true": True, "false": False}.get(value.lower(), int(value) if value.isdigit() else value)
    return made


def _parse(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    suffix = path.suffix.lower()
    try:
        if suffix == ".sh":
            return _arguments(text)
        if suffix == ".json":
            return json.loads(text)
        if suffix == ".toml":
            return importlib.import_module("tomllib").loads(text)
        if suffix in (".yaml", ".yml"):
            return importlib.import_module("yaml").safe_load(text)
    except ImportError as fault:
        raise NotFoundError(f"{path}: reading {suffix} requires {fault.name}: pip install pyyaml, or Python 3.11 for .toml") from fault
    except Exception as fault:  # noqa: BLE001 (each parser has its own)
        raise InvalidArgumentError(f"{path}: invalid {suffix[1:]}: {next(iter(str(fault).splitlines()), '')}") from fault
    raise InvalidArgumentError(f"{path}: the suffix is {suffix!r}; accepted: .json, .toml, .yaml, .yml, .sh")


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in value.items():
        name = prefix + str(key).replace("-", "_").removeprefix("__")
        made.update(_flat(item, name + ".") if isinstance(item, dict) and item else {name: item})
    return made


def options_from(path: str | os.PathLike[str]) -> FileOptions:
    """Reads a configuration file of torchtune, axolotl, torchtitan, Megatron-LM (its arguments as keys), DeepSpeed,
    Accelerate, Lightning, or transformers' Trainer (TRL, LLaMA-Factory), in JSON, TOML or YAML, or the arguments in a shell
    script. Every other key is listed in `ignored`. Raises NotFoundError for a missing file, and
    InvalidArgumentError for a file of another program or with contradictory keys."""
    file = Path(path)
    if not file.is_file():
        raise NotFoundError(f"{file}: no such file")
    parsed = _parse(file)
    if not isinstance(parsed, dict):
        raise InvalidArgumentError(f"{file}: expected keys and values at the top, not {type(parsed).__name__}")
    flat = _flat(parsed)
    tops = {key.partition(".")[0] for key in flat}
    program = next((name for name, signs in _SIGNS.items() if tops & set(signs)), None)
    if program is None:
        raise InvalidArgumentError(f"{file}: the keys are of none of {', '.join(_RULES)}")
    options: dict[str, Any] = {"framework": "megatron"} if program == "megatron" else {}
    ignored, sources = [], dict[str, str]()
    for key, value in flat.items():
        option, convert = _RULES[program].get(key, ("", lambda _: None))
        read = convert(value) if option else None
        if read is None:
            ignored.append(key)
            continue
        if option in sources and {options[option], read} & _STRONGER:  # a stronger value holds beside a weaker one
            options[option] = next(value for value in (read, options[option]) if value in _STRONGER)
            continue
        if option in sources and options[option] != read:
            raise InvalidArgumentError(f"{file}: {sources[option]} and {key} give {option} as {options[option]!r} and {read!r}; keep one")
        options[option], sources[option] = read, key
    if program == "lightning" and "gpus" in options:
        options["gpus"] *= options.get("nodes", 1)
    if program == "megatron" and _number(flat.get("num_layers_per_virtual_pipeline_stage")) and _number(flat.get("num_layers")):
        stages = flat["num_layers"] // flat["num_layers_per_virtual_pipeline_stage"] // options.get("pipeline_parallel", 1)
        options["virtual_stages"] = stages
        ignored = [key for key in ignored if key not in ("num_layers", "num_layers_per_virtual_pipeline_stage")]
    if "finetuning_type" in flat and not flat.get("disable_gradient_checkpointing"):  # LLaMA-Factory's default
        options["checkpoint"] = "blocks"
    if program == "transformers":
        options.setdefault("optimizer", "adamw")
    if options.get("precision") == "amp-fp16":  # Accelerate has a scaler for it
        options["grad_scaler"] = True
    if any("paged" in str(flat.get(key)).lower() for key in ("optimizer", "optimizer._component_")):
        options.setdefault("offload", "pages")
    return FileOptions(program, options, ignored, _JOBS[program](flat) if program in _JOBS else None)
