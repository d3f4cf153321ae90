"""A published peak: how the network was trained, and how its source counts memory."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

from mdot_lab.checks.memory.published.megatron_networks import Network

GIB, GB = 2**30, 10**9


@dataclasses.dataclass(frozen=True)
class Model:
    """A causal language model of transformers in bfloat16 or float32. Equal models share a job."""

    kind: str
    """Prefix of transformers' classes, for example Llama."""
    values: tuple[tuple[str, Any], ...]
    """Values in the configuration, by name."""
    sequence: int
    type: str = "bfloat16"
    lora_rank: int = 0
    """0: all parameters learn."""
    lora_modules: tuple[str, ...] = ()
    lora_dropout: float = 0.0
    keeps_operands: bool = False
    """Products with frozen weights keep their operand (bitsandbytes up to 0.44: MatMul4Bit)."""
    is_prepared: bool = False
    """Tensors besides the products' weights are fp32 (peft's prepare_model_for_kbit_training), and Trainer runs autocast."""
    has_autocast: bool = False
    """Trainer runs the forward pass in bf16 autocast, although FSDP converts the parameters."""
    loss: str = ""
    """A loss other than the library's own, by its name in programs.LOSSES."""
    saves_every_second_product: bool = False
    """Blocks are checkpointed, and save attention and every second product (torchtitan's selective checkpointing)."""
    has_full_adapters: bool = dataclasses.field(default=False, repr=False)
    """Adapters are fp32, and peft casts their operands (autocast_adapter_dtype). bitsandbytes' layers skip this under autocast, and
    peaks under FSDP show half-precision adapters."""


@dataclasses.dataclass(frozen=True)
class Point:
    source: str
    name: str
    measured_bytes: float
    counted: str
    """allocated (max_memory_allocated), last stage (the same in a pipeline's last stage), reserved (max_memory_reserved), or
    nvidia-smi."""
    gpu: str
    model: Model | Network | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Keywords of mdot.predict. A point whose keywords this mdot lacks has no prediction."""
    optional: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Keywords that are passed if this mdot has them."""
    for_memory: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Keywords that replace others in predictions of memory, for example fewer GPUs that shard the optimizer's state."""
    beside: float = 0
    """Bytes of workspaces that the program sets and the source counts."""
    is_out_of_memory: bool = False
    """The run failed for lack of memory, and has no peak."""
    step_ms: float = 0
    """A step's time; 0: the row states none, or an implausible one."""
    missing: str = ""
    """The reason, if the point cannot be rebuilt from its source."""


Reader = Callable[[dict[str, str]], "Point | None"]
"""A row's point. None: the row has no peak of a training step."""


def model(kind: str, sequence: int, lora_rank: int = 0, lora_modules: tuple[str, ...] = (), type: str = "bfloat16",
          lora_dropout: float = 0.0, keeps_operands: bool = False, is_prepared: bool = False, has_autocast: bool = False, loss: str = "",
          saves_every_second_product: bool = False, has_full_adapters: bool = False, **values: Any) -> Model:
    return Model(kind, tuple(sorted(values.items())), sequence, type, lora_rank, lora_modules, lora_dropout, keeps_operands,
                 is_prepared, has_autocast, loss, saves_every_second_product, has_full_adapters)


LLAMA_3 = {
    "8B": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32},
    "70B": {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64},
    "405B": {"hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128},
}


def llama_3(size: str, sequence: int, type: str = "bfloat16", lora_rank: int = 0, lora_modules: tuple[str, ...] = (),
            **changed: Any) -> Model:
    values = {**LLAMA_3[size], "num_key_value_heads": 8, "vocab_size": 128256, **changed}
    return model("Llama", sequence, lora_rank, lora_modules, type, **values)
