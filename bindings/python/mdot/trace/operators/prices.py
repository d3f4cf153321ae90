"""Prices of ATen operators without a translation: by a formula (work.py), or like an operator of ONNX that reads and
writes as much. Everything else is recorded with its bytes, which count as unpriced."""

from __future__ import annotations

import functools
from typing import Any

import torch

from mdot.trace.graph import Value
from mdot.trace.operators.call import DTYPES, Call, shape_of
from mdot.trace.work import flops_of, formula_of

_LIKE = {
    "CumSum": "logcumsumexp _logcumsumexp cummax cummin _cummax_helper _cummin_helper cumprod",
    "TopK": (
        "kthvalue median nanmedian mode searchsorted bincount histc histogram _histogramdd_from_bin_cts _histogramdd_from_bin_tensors "
        "_histogramdd_bin_edges unique_consecutive unique_dim unique_dim_consecutive _unique _unique2 qnms box_iou_rotated"
    ),
    "ScatterElements": "masked_scatter put index_put index_fill index_add index_copy index_reduce segment_reduce embedding_renorm _spdiags _coalesce",
    "GatherElements": "masked_select nonzero_static _sparse_mask_projection sparse_mask",
    "ReduceSum": "_aminmax _is_all_true _is_any_true native_norm multinomial hash_tensor _sparse_csr_sum _sparse_csr_prod _sparse_sum",
    "Erf": (
        "_standard_gamma _standard_gamma_grad _sample_dirichlet _dirichlet_grad poisson binomial rrelu_with_noise rrelu_with_noise_functional "
        "_masked_scale dequantize quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic int_repr _philox_normal _philox_uniform "
        "_philox_randint random fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask "
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fake_quantize_learnable_per_tensor_affine "
        "_fake_quantize_learnable_per_channel_affine _fused_moving_avg_obs_fq_helper _fused_moving_avg_obs_fq_helper_functional "
        "_make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor _thnn_fused_lstm_cell _thnn_fused_gru_cell"
    ),
    "Mul": "_add_relu addr glu_jvp _transform_bias_rescale_qkv _compute_linear_combination",
    "Softmax": "_sparse_softmax _sparse_log_softmax _masked_softmax _nested_tensor_softmax_with_shape",
    "AveragePool": "_adaptive_avg_pool3d mkldnn_adaptive_avg_pool2d",
    "MaxPool": (
        "fractional_max_pool2d fractional_max_pool3d roi_pool ps_roi_pool qroi_align mkldnn_max_pool2d mkldnn_max_pool3d quantized_max_pool1d "
        "quantized_max_pool2d quantized_max_pool3d"
    ),
    "LayerNormalization": "batch_norm_elemt batch_norm_stats batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_update_stats quantized_batch_norm",
    "GridSample": "_grid_sampler_2d_cpu_fallback cudnn_grid_sampler cudnn_affine_grid_generator",
    "Gather": "_embedding_bag_forward_only",
    "Concat": "complex polar _stack",
    "Slice": (
        "_pack_padded_sequence _copy_from _copy_from_and_resize _to_dense to_padded_tensor _lazy_clone _pin_memory resize resize_as _resize_output to_mkldnn "
        "_sparse_coo_tensor_with_dims_and_tensors _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo copy_sparse_to_sparse _jagged_to_padded_dense_forward "
        "_padded_dense_to_jagged_forward _nested_from_padded _nested_from_padded_tensor _reshape_alias_copy mkldnn_reorder_conv2d_weight "
        "mkldnn_reorder_conv3d_weight _to_sparse _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc"
    ),
}
"""Operators of ONNX, and ATen's that read and write as much. Operators with _copy copy."""
_LIKE_OF = {name: op for op, names in _LIKE.items() for name in names.split()}
_TWICE_AS_MUCH = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Calls whose backward pass has twice the FLOPs of the forward pass."""
_PRODUCTS_LIKE = ("mm", "matmul", "linear", "addmv", "conv", "einsum", "_trilinear")


@functools.cache
def like(func: Any) -> str | None:
    """The operator of ONNX that the call is like, "" if a formula alone prices it, or None."""
    name: str = func._schema.name.split("::")[-1]
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if formula_of(func) is not None:
        return "MatMul" if any(word in plain for word in _PRODUCTS_LIKE) else ""
    if plain in _LIKE_OF:
        return _LIKE_OF[plain]
    if plain.endswith("_copy"):
        return "Slice"
    tensors = sum("Tensor" in str(argument.type) for argument in func._schema.arguments)
    if torch.Tag.pointwise in func.tags or plain.startswith("_foreach_") or func.namespace == "prims":
        return "Mul" if tensors > 1 else "Erf"
    return "ReduceSum" if getattr(torch.Tag, "reduction", None) in func.tags else None


@functools.cache
def has_price(func: Any) -> bool:
    """Whether the call is one kernel with a price, although PyTorch has a decomposition as well."""
    return formula_of(func) is not None or func._schema.name.split("::")[-1].rstrip("_") in _LIKE_OF


@functools.cache
def is_view(func: Any) -> bool:
    """Whether the results share their operand's memory."""
    returned = [result.alias_info for result in func._schema.returns]
    return bool(returned) and all(alias is not None and not alias.is_write for alias in returned)


def price(call: Call, func: Any, args: Any, kwargs: Any, out: Any) -> list[Value] | None:
    """The results of a priced call; None if nothing is known but the bytes."""
    name: str = func._schema.name.split("::")[-1]
    if is_view(func):
        return [call.graph.view(call.x, shape_of(t), DTYPES[t.dtype]) for t in call.outputs]
    kind, flops = like(func), flops_of(func, args, kwargs, out)
    if kind is None:
        return None
    if kind == "MatMul" and (name == "_trilinear" or any(t.is_sparse for t in call.tensors)):
        kind = ""  # its backward pass is counted; one tensor may be two operands, with a gradient for each
    outputs = [(shape_of(tensor), DTYPES[tensor.dtype]) for tensor in call.outputs]
    operands = [*call.operands[1:3], call.operands[0], *call.operands[3:]] if name.startswith("add") else call.operands
    more = {"backward_flops": 2 * float(flops)} if name in _TWICE_AS_MUCH else {}
    flops = float(flops or call.outputs[0].numel())
    return call.graph.node(name, operands, outputs, domain="mdot.call", flops=flops, type=kind, **more)
