"""The configuration that one record measures: an architecture at a size, a batch, a precision, a layout and an optimizer."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
"""fp32 and tf32 are the precision of float32 matmuls. bf16 and fp16 are autocast over float32 weights, without a gradient
scaler."""

OPTIMIZERS = (
    ("sgd_momentum", "foreach"),
    ("adamw", "fused"),
    ("adam", "foreach"),
    ("sgd_momentum", "fused"),
    ("adamw", "foreach"),
    ("sgd", "foreach"),
    ("adam", "fused"),
    ("sgd_momentum", "forloop"),
    ("adamw", "forloop"),
)
"""(optimizer, implementation). "foreach" is PyTorch's default on a GPU."""


@dataclass(frozen=True)
class Configuration:
    architecture: str
    size: int
    batch: int
    precision: str
    channels_last: bool
    optimizer: str
    implementation: str

    @property
    def key(self) -> str:
        """Identifies the configuration in files and on command lines. It is unique, readable and stable."""
        layout = "nhwc" if self.channels_last else "nchw"
        return (f"{self.architecture}|s{self.size}|b{self.batch}|{self.precision}|{layout}"
                f"|{self.optimizer}|{self.implementation}")

    @staticmethod
    def from_key(key: str) -> Configuration:
        """The inverse of `key`. Raises ValueError for an invalid key."""
        try:
            architecture, size, batch, precision, layout, optimizer, implementation = key.split("|")
            parsed = Configuration(architecture, int(size[1:]), int(batch[1:]), precision, layout == "nhwc", optimizer,
                                   implementation)
        except ValueError:
            parsed = None
        if parsed is None or parsed.key != key:
            raise ValueError(f"not a configuration's key: '{key}'")
        return parsed
