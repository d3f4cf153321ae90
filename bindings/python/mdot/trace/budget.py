"""Limits the computation in a run with real values.

A module with decisions from computed values runs on the CPU. Detection networks would take minutes, most of it in
convolutions, although only small operators behind these decide: the selection of proposals, and losses. Therefore
convolutions and matrix products are computed only up to a number of FLOPs. Later ones return random numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

MOST_FLOPS = 2e10
"""About one second on a CPU core."""
_POOL = 1 << 20
_FLOPS_PER_RESULT = {"batch_norm": 5.0}
_BY_WEIGHT = {"conv1d", "conv2d", "conv3d", "convolution", "linear"}
_BY_OPERAND = {"matmul", "mm", "bmm", "addmm", "baddbmm", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
"""Operator names by multiply-adds per element of the result: elements in a row of the weight, or the first factor's
last extent (for transposed convolutions, elements in a row of the weight)."""


class Budget:
    def __init__(self) -> None:
        self.spent = 0.0
        self.replaced = 0
        """The number of random results."""
        self._numbers: torch.Tensor | None = None

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = func._schema.name.split("::")[-1]
        if name not in _BY_WEIGHT and name not in _BY_OPERAND and name not in _FLOPS_PER_RESULT:
            return func(*args, **kwargs)
        with FakeTensorMode() as mode:
            shown = pytree.tree_map(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, (args, kwargs))
            result = func(*shown[0], **shown[1])
        flops = result.numel() * self._flops_per_result(name, args)
        if self.spent + flops > MOST_FLOPS and result.is_floating_point():
            self.replaced += 1
            return self._random(result)
        self.spent += flops
        return func(*args, **kwargs)

    def _flops_per_result(self, name: str, args: tuple[Any, ...]) -> float:
        if name in _FLOPS_PER_RESULT:
            return _FLOPS_PER_RESULT[name]
        factors = [x for x in args if isinstance(x, torch.Tensor)]
        if name in _BY_WEIGHT or name.startswith("conv_transpose"):
            weight = factors[1]
            return 2.0 * weight.numel() / max(1, weight.shape[0])
        return 2.0 * factors[1 if name.startswith(("add", "badd")) else 0].shape[-1]

    def _random(self, like: torch.Tensor) -> torch.Tensor:
        """Copies of the same numbers, because generating numbers takes longer than copying them."""
        if self._numbers is None:
            self._numbers = torch.randn(_POOL, generator=torch.Generator().manual_seed(0)) * 0.02
        count = like.numel()
        repeated = self._numbers.repeat(-(-count // _POOL))[:count] if count > _POOL else self._numbers[:count].clone()
        return repeated.to(like.dtype).view(like.shape)
