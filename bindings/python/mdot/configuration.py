"""How a job trains: the options of mdot_configuration as words and numbers."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import re
from typing import Any, Iterable, TypedDict, Union

from mdot.gpus import GPU
from mdot.job import OPTIMIZERS, choose
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError

# In the order of the enums of mdot.h. The words are those of `mdot predict`.
PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16", "pytorch")
LAYOUTS = ("nchw", "nhwc")
ATTENTIONS = ("flash", "eager")
RECOMPUTES = ("nothing", "blocks", "selective")
LINKS = ("default", "pcie", "nvlink")

# Names of the same precisions in PyTorch and in the libraries built on it.
_PRECISION_WORDS = {
    "amp": "amp-fp16",
    "amp_fp16": "amp-fp16",
    "16-mixed": "amp-fp16",
    "amp_bf16": "amp-bf16",
    "amp_bfloat16": "amp-bf16",
    "bf16-mixed": "amp-bf16",
    "float32": "fp32",
    "single": "fp32",
    "bfloat16": "bf16",
}
_LAYOUT_WORDS = {"channels_first": "nchw", "channels_last": "nhwc"}
_OPTIMIZER_WORDS = {"adamw_torch": "adamw"}
_ATTENTION_WORDS = {"sdpa": "flash", "flash_attention_2": "flash", "math": "eager"}
_RECOMPUTE_WORDS = {"none": "nothing", "full": "blocks"}


def _whole(option: str, value: Any, least: int, most: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = least - 1
    if isinstance(value, bool) or number != value or not least <= number <= most:
        raise InvalidArgumentError(f"{option} is a whole number from {least} to {most}, not {value!r}")
    return number


def _rate(option: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise InvalidArgumentError(f"{option} is a rate in GB/s, not {value!r}")


def _version(option: str, value: Any) -> int:
    """100 * major + minor. The value must be a string, because the numbers 1.1 and 1.10 are equal."""
    found = re.match(r"([1-9]\d?)\.(\d\d?)(?![^.+])", value) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgumentError(f"{option} is a version as \"1.12\" or \"2.4\", not {value!r}")
    return 100 * int(found[1]) + int(found[2])


@dataclasses.dataclass(frozen=True)
class Configuration:
    """How a job trains. Options that are left out have the defaults that `mdot predict --help` lists."""

    gpu: Union[str, GPU]
    batch: int = 1
    """Samples of one forward and backward pass of one data-parallel worker."""
    precision: str = "pytorch"
    """fp32, tf32, amp-fp16 (or amp), amp-bf16, bf16 (weights, too) or pytorch (fp32, with tf32 in convolutions)."""
    layout: str = "nchw"
    """Memory layout of images: nchw or nhwc."""
    optimizer: str = "sgd"
    """sgd, adam or adamw."""
    attention: str = "flash"
    """flash: a fused kernel that keeps the scores in on-chip memory; eager: decomposed into its operators."""
    checkpoint: Union[str, None] = None
    """Recomputation in the backward pass: blocks recomputes each block; selective recomputes all operators but matmuls."""
    compiled: bool = False
    """Whether torch.compile compiles the model, which fuses all operators but matmuls."""
    accumulate: int = 1
    """Forward and backward passes whose gradients are accumulated before the optimizer's step."""
    gpus: int = 0
    """GPUs that share a step; 0: the product of the degrees of parallelism, which is 1 if all are unset."""
    nodes: int = 1
    link: Union[str, float, None] = None
    """Link between the GPUs of a node: pcie, nvlink, or the bandwidth that a collective reaches, in GB/s."""
    network: float = 0.0
    """Bandwidth that a collective reaches between nodes, in GB/s for each GPU; 0: 20."""
    data_parallel: int = 0
    tensor_parallel: int = 0
    pipeline_parallel: int = 0
    expert_parallel: int = 0
    micro_batches: int = 0
    """Micro-batches that a pipeline splits the batch into; 0: the number of its stages."""
    zero: int = 0
    """Stage of ZeRO, 0 to 3."""
    torch: Union[str, None] = None
    """PyTorch's version, for example "1.12", or the form of torch.__version__; None: the newest that the predictor knows."""

    def replace(self, **options: Any) -> Configuration:
        """A copy with the given options changed."""
        return dataclasses.replace(self, **options)

    @property
    def workers(self) -> int:
        """Data- and expert-parallel workers, each of which has its own batch."""
        shared = max(self.tensor_parallel, 1) * max(self.pipeline_parallel, 1)
        alone = max(self.data_parallel, 1) * max(self.expert_parallel, 1)
        return self.gpus // shared if self.gpus > 0 else alone

    @property
    def samples(self) -> int:
        """Samples of one step over all workers."""
        return self.batch * self.accumulate * self.workers


OPTIONS = tuple(field.name for field in dataclasses.fields(Configuration))


class Options(TypedDict, total=False):
    """The keyword options of a Configuration: all of its fields except GPU and batch."""

    precision: str
    layout: str
    optimizer: str
    attention: str
    checkpoint: Union[str, None]
    compiled: bool
    accumulate: int
    gpus: int
    nodes: int
    link: Union[str, float, None]
    network: float
    data_parallel: int
    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    micro_batches: int
    zero: int
    torch: Union[str, None]


def fill(out: c.mdot_configuration, given: Configuration, keep: list[Any]) -> None:
    """Writes the C struct; `keep` holds the objects that it points to. Raises InvalidArgumentError for an invalid number or
    word."""
    out.struct_size = ctypes.sizeof(out)
    if isinstance(given.gpu, GPU):
        specs = given.gpu._as_struct()
        keep.append(specs)
        out.gpu_spec = ctypes.pointer(specs)
    else:
        out.gpu = str(given.gpu).encode()
    out.batch = _whole("batch", given.batch, 1, 1 << 24)
    out.precision = choose("precision", given.precision, PRECISIONS, _PRECISION_WORDS)
    out.layout = choose("layout", given.layout, LAYOUTS, _LAYOUT_WORDS)
    out.optimizer = choose("optimizer", given.optimizer, OPTIMIZERS, _OPTIMIZER_WORDS)
    out.attention = choose("attention", given.attention, ATTENTIONS, _ATTENTION_WORDS)
    out.recompute = choose("checkpoint", given.checkpoint or "nothing", RECOMPUTES, _RECOMPUTE_WORDS)
    out.compiled = int(bool(given.compiled))
    out.accumulate = _whole("accumulate", given.accumulate, 1, 1 << 16)
    out.gpu_count = _whole("gpus", given.gpus, 0, 1 << 16)
    out.node_count = _whole("nodes", given.nodes, 1, 1 << 16)
    if isinstance(given.link, str) or given.link is None:
        out.link = choose("link", given.link or "default", LINKS)
    else:
        out.link_gbps = _rate("link", given.link)
    out.network_gbps = _rate("network", given.network)
    for name in ("data_parallel", "tensor_parallel", "pipeline_parallel", "expert_parallel", "micro_batches"):
        setattr(out, name, _whole(name, getattr(given, name), 0, 1 << 16))
    out.zero_stage = _whole("zero", given.zero, 0, 3)
    out.torch = _version("torch", given.torch) if given.torch is not None else 0


def as_array(given: Iterable[Configuration], keep: list[Any]) -> Any:
    items = list(given)
    out = (c.mdot_configuration * max(len(items), 1))()
    for i, configuration in enumerate(items):
        fill(out[i], configuration, keep)
    return out
