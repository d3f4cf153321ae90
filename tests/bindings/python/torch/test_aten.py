"""The price of ATen's operators: each has one, and those with a formula in PyTorch have its FLOPs."""

from __future__ import annotations

import unittest
from typing import Any

import support
import torch
import work_networks
from torch import nn
from traced import read

from mdot.trace.operators import TRANSLATIONS, prices

_NEVER_TRACED = (
    "_foreach", "_fused_", "_amp_", "_test", "_nested", "_sparse", "sparse", "mkldnn", "miopen", "cudnn", "_cudnn", "_mps", "_jagged", "_padded_dense",
    "_cslt", "_coalesced", "_mkldnn", "_to_sparse", "fbgemm", "_convert_weight", "_dyn_quant_pack", "q_per", "_functional", "_foobar", "_philox_key", "_indices_copy", "_values_copy", "_fill_mem",
)  # fmt: skip
"""Prefixes of updates of the optimizer, other devices and layouts of tensors, and PyTorch's own tests."""
_OTHERS = frozenset({
    "_native_multi_head_attention", "_transformer_encoder_layer_fwd", "_triton_multi_head_attention",  # evaluation alone
    "linalg_matrix_sqrth", "linalg_polar",  # bytes alone
    "as_strided_", "set", "set_", "shallow_copy_data_", "_new_zeros_with_same_feature_meta", "scalar_tensor", "from_file", "resize_as_sparse",
    "resize_as_sparse_", "copy_sparse_to_sparse_", "_empty_per_channel_affine_quantized", "empty_quantized", "blackman_window", "kaiser_window", "fft_rfftfreq",
})  # fmt: skip


class Aten(support.TestCase):
    def test_every_operator_has_a_price(self) -> None:
        """Each operator is translated, taken apart, a view, priced, or without tensors. The others, which are listed
        here, are recorded with their bytes."""
        found: dict[str, list[Any]] = {}
        for full in torch._C._dispatch_get_all_op_names():
            base, _, overload = full.partition(".")
            space, _, name = base.partition("::")
            if overload.endswith(("out", "out_")):
                continue
            if space == "aten" and (packet := getattr(torch.ops.aten, name, None)) is not None and hasattr(packet, overload or "default"):
                found.setdefault(name, []).append(getattr(packet, overload or "default"))
        self.assertGreater(len(found), 1000)
        unpriced = {name for name, ops in found.items() if not all(map(self._is_priced, ops)) and not name.startswith(_NEVER_TRACED)}
        self.assertEqual({name for name in unpriced if "backward" not in name} - _OTHERS, set())

    def _is_priced(self, func: Any) -> bool:
        name = func._schema.name.split("::")[-1]
        tensors = [kind for kind in (*func._schema.arguments, *func._schema.returns) if "Tensor" in str(kind.type)]
        has_both = len({id(kind) for kind in tensors}) > 0 and any("Tensor" in str(kind.type) for kind in func._schema.arguments)
        return (
            name in TRANSLATIONS
            or name.rstrip("_") in TRANSLATIONS
            or func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
            or func in torch._decomp.decomposition_table
            or prices.is_view(func)
            or prices.like(func) is not None
            or not has_both  # numbers and sizes, or a new tensor
            or not any("Tensor" in str(kind.type) for kind in func._schema.returns)
        )

    def test_an_unknown_operator_counts_as_unpriced(self) -> None:
        library = torch.library.Library("mdot_test", "DEF")
        self.addCleanup(library._destroy)
        library.define("unknown(Tensor x) -> Tensor")
        library.impl("unknown", lambda x: x.clone(), "CompositeExplicitAutograd")
        job, _ = read(work_networks.Function(lambda m, x: m.last(torch.ops.mdot_test.unknown(x))), torch.zeros(4, 24))
        assert job.program is not None
        self.assertEqual(job.program.check.unpriced_operators, 1)
        self.assertGreaterEqual(job.program.check.unpriced_bytes, 2 * 4 * 4 * 24)

    def test_formulas_agree_with_pytorchs_counter(self) -> None:
        """Where PyTorch has a formula as well. Its own one for the backward pass of a convolution ignores groups."""
        from torch.utils.flop_counter import FlopCounterMode

        for model, x in (
            (nn.Conv2d(6, 8, 3, stride=2), torch.zeros(2, 6, 9, 9)),
            (nn.ConvTranspose2d(6, 8, 3, stride=2), torch.zeros(2, 6, 9, 9)),
            (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.zeros(2, 5, 16)),
        ):
            with FlopCounterMode(display=False) as counter:
                model(x)
            job, _ = read(model, x)
            assert job.program is not None
            self.assertEqual(job.program.check.dispatched_flops[0], counter.get_total_flops())


if __name__ == "__main__":
    unittest.main()
