"""What one record measures: an architecture at a size, a batch, a precision, a layout and an optimizer."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
"""fp32 and tf32 say what float32 products run in; bf16 and fp16 are autocast over float32 weights, without a scaler."""

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
"""(optimizer, implementation). "foreach" is what PyTorch takes on a card when nothing is said."""


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
        """Names the configuration in files and on command lines; unique, readable, stable."""
        layout = "nhwc" if self.channels_last else "nchw"
        return (f"{self.architecture}|s{self.size}|b{self.batch}|{self.precision}|{layout}"
                f"|{self.optimizer}|{self.implementation}")

    @staticmethod
    def from_key(key: str) -> Configuration:
        """The inverse of `key`. Raises ValueError where it is none."""
        try:
            architecture, size, batch, precision, layout, optimizer, implementation = key.split("|")
            parsed = Configuration(architecture, int(size[1:]), int(batch[1:]), precision, layout == "nhwc", optimizer,
                                   implementation)
        except ValueError:
            parsed = None
        if parsed is None or parsed.key != key:
            raise ValueError(f"not a configuration's key: '{key}'")
        return parsed
