"""The training options and GPU columns. scripts/write-tables.sh writes this file from configuration.def and
gpus.def in runtime/job: edit the tables instead."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Union

if TYPE_CHECKING:
    from mdot.gpus import GPU


class Row(NamedTuple):
    """A keyword, its member of mdot_configuration, the range of values, the command's spelling, the value
    where only the name is given, and whether it is for several GPUs."""

    keyword: str
    field: str
    kind: str
    least: float
    most: float
    command: str
    bare: Union[str, None]
    several: bool


CONFIGURATION_FIELDS: list[tuple[str, Any]] = [
    ("batch", ctypes.c_int64),
    ("gpu", ctypes.c_char_p),
    ("gpu_spec", ctypes.c_void_p),
    ("gpu_count", ctypes.c_int),
    ("precision", ctypes.c_int),
    ("layout", ctypes.c_int),
    ("optimizer", ctypes.c_int),
    ("attention", ctypes.c_int),
    ("recompute", ctypes.c_int),
    ("compiled", ctypes.c_uint32),
    ("accumulate", ctypes.c_uint32),
    ("link", ctypes.c_int),
    ("node_count", ctypes.c_uint32),
    ("link_gbps", ctypes.c_double),
    ("network_gbps", ctypes.c_double),
    ("data_parallel", ctypes.c_uint32),
    ("tensor_parallel", ctypes.c_uint32),
    ("pipeline_parallel", ctypes.c_uint32),
    ("expert_parallel", ctypes.c_uint32),
    ("micro_batches", ctypes.c_uint32),
    ("zero_stage", ctypes.c_uint32),
    ("torch", ctypes.c_uint32),
    ("mode", ctypes.c_int),
    ("optimizer_kernels", ctypes.c_int),
    ("step_in_backward", ctypes.c_uint32),
    ("gradient_type", ctypes.c_int),
    ("reduce_type", ctypes.c_int),
    ("offload", ctypes.c_int),
    ("frozen_weights", ctypes.c_int),
    ("ema", ctypes.c_uint32),
    ("keep_gathered", ctypes.c_uint32),
    ("context_parallel", ctypes.c_uint32),
    ("sequence_parallel", ctypes.c_uint32),
    ("virtual_stages", ctypes.c_uint32),
    ("schedule", ctypes.c_int),
    ("offload_activations", ctypes.c_uint32),
    ("loss", ctypes.c_int),
    ("power_limit", ctypes.c_double),
    ("host_launch_us", ctypes.c_double),
    ("whole_gradients", ctypes.c_uint32),
    ("first_stage_blocks", ctypes.c_uint32),
    ("last_stage_blocks", ctypes.c_uint32),
    ("framework", ctypes.c_int),
    ("loader_rate", ctypes.c_double),
    ("cpu_rate", ctypes.c_double),
    ("cpus", ctypes.c_double),
    ("servers", ctypes.c_uint32),
    ("sync", ctypes.c_int),
    ("grad_scaler", ctypes.c_uint32),
    ("pipeline_blocks", ctypes.c_uint32),
]
"""The members of mdot_configuration behind struct_size. gpu_spec is a pointer to an mdot_gpu."""

CHOICES: dict[str, tuple[str, ...]] = {
    "precision": ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "pytorch", "mixed-bf16", "mixed-fp16", "fp8", "fp8-rowwise", "mxfp8", "fp8-blockwise"),
    "layout": ("nchw", "nhwc"),
    "optimizer": ("sgd", "adam", "adamw", "sgd-plain", "adam8bit", "adamw8bit", "adafactor", "lion", "muon", "adam-fused", "adamw-fused"),
    "attention": ("program", "eager", "flash"),
    "checkpoint": ("nothing", "blocks", "selective"),
    "optimizer_kernels": ("default", "foreach", "fused", "for-loop"),
    "gradient_type": ("default", "fp32", "half"),
    "reduce_type": ("default", "fp32", "half"),
    "offload": ("nothing", "optimizer", "parameters", "pages"),
    "loss": ("whole", "chunked", "fused"),
    "frozen_weights": ("unchanged", "int8", "nf4", "nf4-single"),
    "mode": ("train", "inference"),
    "framework": ("program", "pytorch", "hf-trainer", "liger", "transformer-engine", "megatron"),
    "sync": ("bsp", "asp"),
    "schedule": ("1f1b", "zero-bubble"),
    "link": ("default", "pcie", "nvlink"),
}
"""Names in the order of the enums in C."""

COMMANDS: dict[str, str] = {
    "gpu": "gpu",
    "gpu-spec": "gpu",
    "batch": "batch",
    "precision": "precision",
    "layout": "layout",
    "optimizer": "optimizer",
    "attention": "attention",
    "compile": "compiled",
    "checkpoint": "checkpoint",
    "accumulate": "accumulate",
    "torch": "torch",
    "optimizer-kernels": "optimizer_kernels",
    "step-in-backward": "step_in_backward",
    "gradient-type": "gradient_type",
    "reduce-type": "reduce_type",
    "offload": "offload",
    "offload-activations": "offload_activations",
    "loss": "loss",
    "frozen-weights": "frozen_weights",
    "ema": "ema",
    "grad-scaler": "grad_scaler",
    "power-limit": "power_limit",
    "mode": "mode",
    "host-launch-us": "host_launch_us",
    "framework": "framework",
    "loader-rate": "loader_rate",
    "cpu-rate": "cpu_rate",
    "cpus": "cpus",
    "gpus": "gpus",
    "parallel dp": "data_parallel",
    "parallel tp": "tensor_parallel",
    "parallel pp": "pipeline_parallel",
    "parallel ep": "expert_parallel",
    "parallel cp": "context_parallel",
    "parallel sp": "sequence_parallel",
    "parallel micro": "micro_batches",
    "parallel vpp": "virtual_stages",
    "parallel first": "first_stage_blocks",
    "parallel last": "last_stage_blocks",
    "parallel blocks": "pipeline_blocks",
    "parallel zero": "zero",
    "parallel ps": "servers",
    "sync": "sync",
    "schedule": "schedule",
    "keep-gathered": "keep_gathered",
    "whole-gradients": "whole_gradients",
    "nodes": "nodes",
    "link": "link",
    "network": "network",
}
"""Keywords by the options' names on the command line, which messages of the libraries have."""

GPU_KEYS: dict[str, str] = {
    "cc": "compute_capability",
    "sms": "sm_count",
    "mhz": "boost_mhz",
    "memory": "memory_gib",
    "bandwidth": "memory_gbps",
    "l2": "l2_mib",
    "fp32": "fp32_tflops",
    "tf32": "tf32_tflops",
    "tflops": "fp16_tflops",
    "nvlink": "nvlink_gbps",
    "pcie": "pcie_gbps",
    "power": "watts",
    "fp8": "fp8_tflops",
}
"""Columns of a GPU by the keys of --gpu-spec."""

ROWS: tuple[Row, ...] = (
    Row("batch", "batch", "whole", 1, 16777216, "batch", None, False),
    Row("precision", "precision", "choice", 0, 11, "precision", None, False),
    Row("layout", "layout", "choice", 0, 1, "layout", None, False),
    Row("optimizer", "optimizer", "choice", 0, 10, "optimizer", None, False),
    Row("attention", "attention", "choice", 0, 2, "attention", None, False),
    Row("compiled", "compiled", "flag", 0, 1, "compile", None, False),
    Row("checkpoint", "recompute", "choice", 0, 2, "checkpoint", "blocks", False),
    Row("accumulate", "accumulate", "whole", 1, 65536, "accumulate", None, False),
    Row("torch", "torch", "version", 0, 9999, "torch", None, False),
    Row("optimizer_kernels", "optimizer_kernels", "choice", 0, 3, "optimizer-kernels", None, False),
    Row("step_in_backward", "step_in_backward", "flag", 0, 1, "step-in-backward", None, False),
    Row("gradient_type", "gradient_type", "choice", 0, 2, "gradient-type", None, False),
    Row("reduce_type", "reduce_type", "choice", 0, 2, "reduce-type", None, False),
    Row("offload", "offload", "choice", 0, 3, "offload", "optimizer", False),
    Row("offload_activations", "offload_activations", "flag", 0, 1, "offload-activations", None, False),
    Row("loss", "loss", "choice", 0, 2, "loss", None, False),
    Row("frozen_weights", "frozen_weights", "choice", 0, 3, "frozen-weights", None, False),
    Row("ema", "ema", "flag", 0, 1, "ema", None, False),
    Row("grad_scaler", "grad_scaler", "flag", 0, 1, "grad-scaler", None, False),
    Row("power_limit", "power_limit", "rate", 0, 1000000000, "power-limit", None, False),
    Row("mode", "mode", "choice", 0, 1, "mode", None, False),
    Row("host_launch_us", "host_launch_us", "rate", 0, 1000000000, "host-launch-us", None, False),
    Row("framework", "framework", "choice", 0, 5, "framework", None, False),
    Row("loader_rate", "loader_rate", "rate", 0, 1000000000, "loader-rate", None, False),
    Row("cpu_rate", "cpu_rate", "rate", 0, 1000000000, "cpu-rate", None, False),
    Row("cpus", "cpus", "rate", 0, 1000000000, "cpus", None, False),
    Row("gpus", "gpu_count", "whole", 0, 65536, "gpus", None, True),
    Row("data_parallel", "data_parallel", "whole", 0, 65536, "dp", None, True),
    Row("tensor_parallel", "tensor_parallel", "whole", 0, 65536, "tp", None, True),
    Row("pipeline_parallel", "pipeline_parallel", "whole", 0, 65536, "pp", None, True),
    Row("expert_parallel", "expert_parallel", "whole", 0, 65536, "ep", None, True),
    Row("context_parallel", "context_parallel", "whole", 0, 65536, "cp", None, True),
    Row("sequence_parallel", "sequence_parallel", "whole", 0, 1, "sp", None, True),
    Row("micro_batches", "micro_batches", "whole", 0, 65536, "micro", None, True),
    Row("virtual_stages", "virtual_stages", "whole", 0, 65536, "vpp", None, True),
    Row("first_stage_blocks", "first_stage_blocks", "whole", 0, 65536, "first", None, True),
    Row("last_stage_blocks", "last_stage_blocks", "whole", 0, 65536, "last", None, True),
    Row("pipeline_blocks", "pipeline_blocks", "whole", 0, 16777216, "blocks", None, True),
    Row("zero", "zero_stage", "whole", 0, 3, "zero", None, True),
    Row("servers", "servers", "whole", 0, 65536, "ps", None, True),
    Row("sync", "sync", "choice", 0, 1, "sync", None, True),
    Row("schedule", "schedule", "choice", 0, 1, "schedule", None, True),
    Row("keep_gathered", "keep_gathered", "flag", 0, 1, "keep-gathered", None, True),
    Row("whole_gradients", "whole_gradients", "flag", 0, 1, "whole-gradients", None, True),
    Row("nodes", "node_count", "whole", 1, 65536, "nodes", None, True),
    Row("network", "network_gbps", "rate", 0, 1000000000, "network", None, True),
)
"""The options, except the GPU and the link, which take several forms."""


@dataclasses.dataclass(frozen=True)
class GPUColumns:
    """The columns of the GPU table."""

    name: str
    compute_capability: float
    """NVIDIA's compute capability, for example 8.6."""
    sm_count: float
    """Number of streaming multiprocessors, or compute units."""
    boost_mhz: float
    """Clock of fp32 operations. Unit: MHz."""
    memory_gib: float
    """Memory as sold; the driver and error correction take a part of it. Unit: GiB."""
    memory_gbps: float
    """Memory bandwidth, in 10^9 bytes per second. Unit: GB/s."""
    l2_mib: float
    """Level-2 cache. Unit: MiB."""
    fp32_tflops: float
    """Operations outside tensor cores; a multiply-add counts as two. Unit: 10^12/s."""
    tf32_tflops: float
    """Operations in tensor cores, dense; the fp32 rate if they lack TF32. Unit: 10^12/s."""
    fp16_tflops: float
    """Operations in tensor cores with fp16 operands and fp32 sums, dense. Unit: 10^12/s."""
    nvlink_gbps: float = 0.0
    """All NVLink links together, in one direction; 0: the model comes without them. Unit: GB/s."""
    pcie_gbps: float = 0.0
    """Slot with 16 lanes, in one direction; 0: unknown, assumed to be PCIe 4. Unit: GB/s."""
    watts: float = 0.0
    """Default power limit, under which the clock may fall; 0: unlimited. Unit: W."""
    fp8_tflops: float = 0.0
    """Operations in tensor cores with FP8 operands and fp32 sums, dense; 0: they lack FP8. Unit: 10^12/s."""


@dataclasses.dataclass(frozen=True)
class ConfigurationOptions:
    """The keywords of a Configuration, with their defaults."""

    gpu: Union[str, GPU]
    """Name of a known GPU model, or the spec values of any GPU."""
    batch: int = 1
    """Samples of one forward and backward pass of a data-parallel worker."""
    precision: str = "pytorch"
    """Number formats; bf16 includes the weights, mixed-bf16 and mixed-fp16 compute with half-precision weights and update fp32 ones, fp8, fp8-rowwise, fp8-blockwise and mxfp8 are mixed-bf16 with FP8 operands of linear layers, and pytorch is the program's, or fp32 with tf32 in convolutions.
    Values: fp32, tf32, amp-fp16, amp-bf16, bf16, pytorch, mixed-bf16, mixed-fp16, fp8, fp8-rowwise, mxfp8, fp8-blockwise."""
    layout: str = "nchw"
    """Memory layout of images; from PyTorch 2.1 on, torch.compile chooses that of most networks itself.
    Values: nchw, nhwc."""
    optimizer: str = "sgd"
    """Optimizer that updates the parameters.
    Values: sgd, adam, adamw, sgd-plain, adam8bit, adamw8bit, adafactor, lion, muon, adam-fused, adamw-fused."""
    attention: str = "program"
    """Kernels of attention: those that the program called (program), matmuls and a softmax (eager), or one fused kernel (flash).
    Values: program, eager, flash."""
    compiled: bool = False
    """Compiled by torch.compile, which fuses operators other than matmuls; it needs PyTorch 2.0."""
    checkpoint: Union[str, None] = None
    """Parts of the forward pass that are recomputed in the backward pass.
    Values: nothing, blocks, selective.
    None selects the default: nothing."""
    accumulate: int = 1
    """Passes whose gradients are added up before the optimizer's step."""
    torch: Union[str, None] = None
    """PyTorch's version, for example 2.4.
    None selects the default: the newest that the predictor knows."""
    optimizer_kernels: str = "default"
    """Kernels of the update by sgd, adam and adamw: over lists of tensors (foreach), one fused kernel, or one tensor after the other (for-loop).
    Values: default, foreach, fused, for-loop."""
    step_in_backward: bool = False
    """Update of each parameter in the backward pass, as soon as its gradient exists; it needs a single pass per step."""
    gradient_type: str = "default"
    """Type of the gradients that a GPU keeps; fp32 in mixed precision is Megatron's main gradients, which are never freed.
    Values: default, fp32, half."""
    reduce_type: str = "default"
    """Type in which gradients are summed over GPUs; half beside fp32 gradients is DeepSpeed's BF16_Optimizer, which keeps both.
    Values: default, fp32, half."""
    offload: Union[str, None] = None
    """Parts that are kept in host memory and updated there: the optimizer's state, or also weights and gradients, which needs ZeRO stage 3; or pages, the part of the optimizer's state that exceeds the GPU's memory and that the GPU still updates.
    Values: nothing, optimizer, parameters, pages.
    None selects the default: nothing."""
    offload_activations: bool = False
    """Saved tensors of each block move to host memory, and back for its backward pass."""
    loss: str = "whole"
    """Kernels of the cross-entropy: on all logits (whole), in eight parts (chunked), or fused with the matmul before it, as Liger's.
    Values: whole, chunked, fused."""
    frozen_weights: str = "unchanged"
    """Type of the frozen weights of matmuls, which are dequantised before each use.
    Values: unchanged, int8, nf4, nf4-single."""
    ema: bool = False
    """Moving average of the weights, an fp32 copy that each step updates."""
    grad_scaler: bool = False
    """Scaling of losses in fp16, as by torch.amp.GradScaler: each step unscales the gradients and looks for infinite ones."""
    power_limit: float = 0.0
    """Power limit of each GPU in watts, which may lower its clock.
    0 selects the default: the GPU's."""
    mode: str = "train"
    """What a step is: a training step, or a forward pass in evaluation (inference), which has neither gradients nor an optimizer and runs on one GPU.
    Values: train, inference."""
    host_launch_us: float = 0.0
    """Time in which the host launches one phase of an operator, in microseconds, which bounds small batches.
    0 selects the default: that of the framework, on hosts of the GPU's years."""
    framework: str = "program"
    """Framework that launches the kernels: it decides which operators are fused and how long the host takes for a launch.
    Values: program, pytorch, hf-trainer, liger, transformer-engine, megatron."""
    loader_rate: float = 0.0
    """Samples per second from all data loaders together, which bound the step.
    0 selects the default: unlimited."""
    cpu_rate: float = 0.0
    """Samples per second from one CPU, whose time adds to the loaders'.
    0 selects the default: unlimited."""
    cpus: float = 0.0
    """CPUs for all data loaders.
    0 selects the default: none."""
    gpus: int = 0
    """Number of GPUs that work on a step.
    0 selects the default: the product of the degrees of parallelism, or 1."""
    data_parallel: int = 0
    """Degree of data parallelism: groups of GPUs with a batch each.
    0 selects the default: the number of GPUs divided by the other degrees."""
    tensor_parallel: int = 0
    """Degree of tensor parallelism: GPUs among which each matmul is sharded.
    0 selects the default: 1."""
    pipeline_parallel: int = 0
    """Degree of pipeline parallelism: stages among which the blocks are divided.
    0 selects the default: 1."""
    expert_parallel: int = 0
    """Degree of expert parallelism: GPUs among which the experts of each layer are sharded.
    0 selects the default: 1."""
    context_parallel: int = 0
    """Degree of context parallelism: GPUs among which each sequence is divided.
    0 selects the default: 1."""
    sequence_parallel: int = 0
    """Sequence parallelism beside tensor parallelism: tensors that it replicates are divided by sequence."""
    micro_batches: int = 0
    """Number of micro-batches of a pipeline.
    0 selects the default: the number of stages."""
    virtual_stages: int = 0
    """Number of parts of an interleaved pipeline that each GPU has.
    0 selects the default: 1."""
    first_stage_blocks: int = 0
    """Number of blocks in the first stage of a pipeline.
    0 selects the default: an equal share."""
    last_stage_blocks: int = 0
    """Number of blocks in the last stage of a pipeline.
    0 selects the default: an equal share."""
    pipeline_blocks: int = 0
    """Number of blocks in all stages of a pipeline, which must be the job's.
    0 selects the default: the job's."""
    zero: int = 0
    """ZeRO stage: shards the optimizer state (1), also the gradients (2), also the weights (3)."""
    servers: int = 0
    """Parameter servers: machines that update the parameters, beside data-parallel workers."""
    sync: str = "bsp"
    """Whether the parameter servers' update waits for all workers (bsp) or for none (asp).
    Values: bsp, asp."""
    schedule: str = "1f1b"
    """Schedule of a pipeline: one forward and one backward pass in turn (1f1b), or with gradients of weights in the gaps (zero-bubble, ZB-H1).
    Values: 1f1b, zero-bubble."""
    keep_gathered: bool = False
    """Weights that ZeRO stage 3 gathered in the forward pass stay until the backward pass, as by FSDP2's reshard_after_forward=False."""
    whole_gradients: bool = False
    """Gradients of several passes stay whole on each GPU until the last pass sums them over GPUs, as by FSDP's no_sync."""
    nodes: int = 1
    """Number of nodes, each with the same number of GPUs."""
    link: Union[str, float, None] = None
    """Link between the GPUs of a node, or its rate in GB/s.
    Values: pcie, nvlink.
    None selects the default: nvlink if the GPU model has it, else pcie."""
    network: float = 0.0
    """Rate that collectives reach between nodes, per GPU, in GB/s.
    0 selects the default: 20, and 40 from Hopper on."""


class Options(TypedDict, total=False):
    """The keyword options of a Configuration: all of its fields except GPU and batch."""

    precision: str
    layout: str
    optimizer: str
    attention: str
    compiled: bool
    checkpoint: Union[str, None]
    accumulate: int
    torch: Union[str, None]
    optimizer_kernels: str
    step_in_backward: bool
    gradient_type: str
    reduce_type: str
    offload: Union[str, None]
    offload_activations: bool
    loss: str
    frozen_weights: str
    ema: bool
    grad_scaler: bool
    power_limit: float
    mode: str
    host_launch_us: float
    framework: str
    loader_rate: float
    cpu_rate: float
    cpus: float
    gpus: int
    data_parallel: int
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    context_parallel: int
    sequence_parallel: int
    micro_batches: int
    virtual_stages: int
    first_stage_blocks: int
    last_stage_blocks: int
    pipeline_blocks: int
    zero: int
    servers: int
    sync: str
    schedule: str
    keep_gathered: bool
    whole_gradients: bool
    nodes: int
    link: Union[str, float, None]
    network: float
