"""FLOPs of dispatched calls. The check of work (check.py) compares them with the job's FLOPs, so the two share no formula.

The formulas are those of torch.utils.flop_counter, and those below for operators that it lacks. They count products:
matmuls, convolutions, attention, recurrences, transforms and linear algebra. All other operators move or change each
element a few times, so that bytes, rather than FLOPs, determine their time.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import math
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

Formula = Callable[[Any, Any], float]
"""Arguments by position, and the result."""


def _size(tensor: Any) -> int:
    return int(tensor.numel()) if isinstance(tensor, torch.Tensor) else 0


def _product(args: Any, out: Any) -> float:
    """Each element of the left factor meets one row of the right one; `args` are the two factors."""
    left, right = args[0], args[1]
    if left.is_sparse or right.is_sparse:
        sparse, dense = (left, right) if left.is_sparse else (right, left)
        return 2.0 * sparse._nnz() * dense.shape[-1]
    if right.ndim == 1:
        return 2.0 * _size(left)
    batches = max(left.shape[:-2].numel(), right.shape[:-2].numel()) if left.ndim > 2 or right.ndim > 2 else 1
    rows = left.shape[-2] if left.ndim > 1 else 1
    shared = out.shape[:-2].numel() if isinstance(out, torch.Tensor) and out.ndim > 2 and left.ndim > 1 else batches
    return 2.0 * max(batches, shared) * rows * left.shape[-1] * right.shape[-1]


def _third(args: Any, out: Any) -> float:
    return _product(args[1:3], out)


def _grouped(args: Any, out: Any) -> float:
    """Rows, or columns, or the summed dimension are cut into groups, so that the product is as large as one matmul."""
    left, right = args[0], args[1]
    groups = left.shape[0] if left.ndim == right.ndim == 3 else 1
    return 2.0 * groups * left.shape[-2] * left.shape[-1] * right.shape[-1]


def _linear(args: Any, out: Any) -> float:
    return 2.0 * _size(args[0]) * (args[1].shape[0] if args[1].ndim > 1 else 1)


def _packed_linear(args: Any, out: Any) -> float:
    return 2.0 * _size(args[0]) * out.shape[-1]


def _convolution(args: Any, out: Any) -> float:
    """Each element of the result, or of the operand if the convolution is transposed, meets a filter."""
    x, weight = args[0], args[1]
    if len(args) > 6 and args[6] is True:
        return _transposed(args, out)
    return 2.0 * _size(out[0] if isinstance(out, (tuple, list)) else out) * _size(weight) / max(weight.shape[0], 1)


def _transposed(args: Any, out: Any) -> float:
    return 2.0 * _size(args[0]) * _size(args[1]) / max(args[1].shape[0], 1)


def _convolution_backward(args: Any, out: Any) -> float:
    """The gradients of the operand and of the weight, as far as they are results."""
    gradient, x, weight = args[0], args[1], args[2]
    count = sum(args[-1][:2])
    transposed = isinstance(args[7], bool) and args[7] if len(args) > 7 else False
    return 2.0 * count * _size(x if transposed else gradient) * _size(weight) / max(weight.shape[0], 1)


def _deformable(args: Any, out: Any) -> float:
    return 2.0 * _size(out) * _size(args[1]) / args[1].shape[0]


def _attention(args: Any, out: Any) -> float:
    """Scores and their product with the values."""
    query, key, value = args[:3]
    return 2.0 * query.shape[:-1].numel() * key.shape[-2] * (query.shape[-1] + value.shape[-1])


def _attention_backward(args: Any, out: Any) -> float:
    """Four products; the kernel's own recomputation of the scores is not the program's work."""
    return 2 * _attention(args[1:], out)


def _rows(args: Any, out: Any) -> float:
    """[rows, heads, channels] and cumulative lengths, or [batch, length, heads, channels]."""
    query, key, value = args[:3]
    longest = key.shape[-3]
    if any(isinstance(one, torch.Tensor) and one.ndim == 1 for one in args[3:6]):
        longest = [longest, longest, *(one for one in args[3:] if type(one) is int)][:4][-1]  # after that of the queries
    return 2.0 * query.shape[:-1].numel() * longest * (query.shape[-1] + value.shape[-1])


def _recurrent(args: Any, out: Any) -> float:
    """Each row of the input meets each weight matrix of each layer and direction."""
    rows = args[0].shape[:-1].numel()
    weights = [w for argument in args[1:] for w in (argument if isinstance(argument, (list, tuple)) else [argument])]
    return 2.0 * rows * sum(_size(w) for w in weights if isinstance(w, torch.Tensor) and w.ndim == 2)


def _cudnn_recurrent(args: Any, out: Any) -> float:
    return 2.0 * args[0].shape[:-1].numel() * sum(_size(w) for w in args[1] if w.ndim == 2)


def _one_layer(args: Any, out: Any) -> float:
    return 2.0 * args[0].shape[:-1].numel() * (_size(args[1]) + _size(args[2]))


def _fourier(args: Any, out: Any) -> float:
    """5 n log2 n for n complex elements (FFTW), and half as much for real ones."""
    x, dims = args[0], args[1]
    full = max(_size(x), _size(out))
    extent = math.prod(max(x.shape[d], out.shape[d]) for d in dims)
    return full * round((5.0 if x.is_complex() and out.is_complex() else 2.5) * math.log2(max(extent, 2)))


def einsum(args: Any, out: Any) -> float:
    """Contracts the operands from left to right. An ellipsis counts as one letter."""
    given, _, wanted = args[0].replace(" ", "").replace("...", "_").partition("->")
    terms = given.split(",")
    sizes: dict[str, int] = {}
    for term, x in zip(terms, args[1]):
        before, middle, after = term.partition("_")
        shape, end = tuple(x.shape), len(x.shape) - len(after)
        extents = [*zip(before, shape), *zip(after, shape[end:]), *([(middle, math.prod(shape[len(before) : end]))] if middle else [])]
        sizes.update({letter: max(n, sizes.get(letter, 1)) for letter, n in extents})
    kept = wanted if "->" in args[0] else "_" + "".join(letter for letter in sizes if given.count(letter) == 1)
    total, left = 0.0, set(terms[0])
    for i, term in enumerate(terms[1:], 1):
        both = left | set(term)
        left = both & set("".join([kept, *terms[i + 1 :]]))
        if both != left:  # a product without a sum is pointwise
            total += 2.0 * math.prod(sizes[letter] for letter in both)
    return total


def _distances(args: Any, out: Any) -> float:
    return 3.0 * _size(out) * args[0].shape[-1]


def _distances_backward(args: Any, out: Any) -> float:
    return 3.0 * _size(args[0]) * args[1].shape[-1]


def _bilinear(args: Any, out: Any) -> float:
    """Products of three operands in a common shape, and their sum."""
    shapes = []
    for x, dims in zip(args[:3], args[3:6]):
        shape = list(x.shape)
        for dim in sorted(dims):
            shape.insert(dim, 1)
        shapes.append(shape)
    return 2.0 * math.prod(max(extents) for extents in zip(*shapes))


def _cubic(factor: float) -> Formula:
    """Operations on square matrices: factor * n^3 each (Golub and Van Loan, Matrix Computations)."""

    def formula(args: Any, out: Any) -> float:
        x = next(a for a in args if isinstance(a, torch.Tensor))
        return _size(x) * max(1.0, round(factor * min(x.shape[-2:]))) if x.ndim > 1 else 0.0

    return formula


def _solved(args: Any, out: Any) -> float:
    """Two triangular systems for each column of the result."""
    matrices = [a for a in args if isinstance(a, torch.Tensor) and a.ndim > 1]
    square = next((a for a in matrices if a.shape[-1] == a.shape[-2]), matrices[0])
    return 2.0 * _size(out[0] if isinstance(out, (list, tuple)) else out) * square.shape[-1]


def _alignment(args: Any, out: Any) -> float:
    """Forward and backward variables of CTC: one each for a frame and a label, or the gap before it. Labels without a
    dimension of samples are those of all samples."""
    frames, samples = args[0].shape[0], args[0].shape[1] if args[0].ndim > 2 else 1
    labels = args[1].shape[-1] * samples if args[1].ndim > 1 else args[1].shape[0]
    return 12.0 * frames * (2 * labels + samples)


def _samples(args: Any, out: Any) -> float:
    """Bilinear samples: four points, each with a weight."""
    return 8.0 * 4 * _size(out)


def _pairs(args: Any, out: Any) -> float:
    return 12.0 * args[0].shape[0] ** 2


_FORMULAS: dict[str, Formula] = {
    **{name: _product for name in ("mm", "bmm", "matmul", "mv", "dot", "vdot", "_int_mm", "_scaled_mm", "inner", "_sparse_mm", "chain_matmul",
                                   "_sparse_semi_structured_mm", "_cslt_sparse_mm", "linalg_vecdot", "_sparse_sparse_matmul", "hspmm", "_scaled_mm_v2")},
    **{name: _third for name in ("addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation", "_sparse_addmm", "sparse_sampled_addmm",
                                 "_sparse_semi_structured_addmm", "sspaddmm", "_scaled_addmm", "_scaled_addmm_")},
    **{name: _grouped for name in ("_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2")},
    **{name: _linear for name in ("linear", "mkldnn_linear", "_sparse_semi_structured_linear")},
    **{name: _packed_linear for name in ("_weight_int8pack_mm", "_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu", "_dyn_quant_matmul_4bit",
                                         "_weight_int4pack_mm_with_scales_and_zeros", "_mixed_dtypes_linear", "_wrapped_quantized_linear_prepacked",
                                         "_wrapped_linear_prepack", "fbgemm_linear_int8_weight", "fbgemm_linear_fp16_weight")},
    **{name: _convolution for name in (
        "conv1d", "conv2d", "conv3d", "convolution", "_convolution", "convolution_overrideable", "mkldnn_convolution", "miopen_convolution", "_slow_conv2d_forward",
        "slow_conv3d_forward", "thnn_conv2d", "slow_conv3d", "_conv_depthwise2d", "conv_depthwise3d", "miopen_depthwise_convolution", "slow_conv_dilated2d",
        "slow_conv_dilated3d", "_nnpack_spatial_convolution", "cudnn_convolution", "cudnn_convolution_relu", "cudnn_convolution_add_relu",
        "miopen_convolution_relu", "miopen_convolution_add_relu", "_mps_convolution", "cudnn_convolution_transpose_output")},
    **{name: _transposed for name in (
        "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "slow_conv_transpose2d", "slow_conv_transpose3d",
        "cudnn_convolution_transpose", "miopen_convolution_transpose", "_mps_convolution_transpose")},
    **{name: _convolution_backward for name in ("convolution_backward", "convolution_backward_overrideable", "_slow_conv2d_backward")},
    "affine_grid_generator": lambda args, out: 2.0 * _size(out) * args[0].shape[-1],
    "conv_tbc": lambda args, out: 2.0 * _size(out) * _size(args[1]) / max(args[1].shape[-1], 1),
    "deform_conv2d": _deformable,
    "_deform_conv2d_backward": lambda args, out: 2 * _deformable(args[1:], args[0]),
    **{name: _attention for name in (
        "scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_attention_math_for_mps",
        "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_flash_attention_quantized", "_triton_scaled_dot_attention")},
    **{name + "_backward": _attention_backward for name in (
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable")},
    **{name: _rows for name in ("_flash_attention_forward", "_efficient_attention_forward", "_cudnn_attention_forward",
                                "_flash_attention_forward_quantized", "_flash_attention_forward_no_dropout_inplace")},
    **{name: lambda args, out: 2 * _rows(args[1:], out) for name in (
        "_flash_attention_backward", "_efficient_attention_backward", "_cudnn_attention_backward")},
    **{name: _recurrent for name in ("lstm", "gru", "rnn_tanh", "rnn_relu", "quantized_lstm", "quantized_gru")},
    **{name: _cudnn_recurrent for name in ("_cudnn_rnn", "miopen_rnn", "_lstm_mps")},
    **{name: lambda args, out: _cudnn_recurrent(args, out) * (1 + args[-1][-1]) for name in ("_cudnn_rnn_backward", "miopen_rnn_backward")},
    "mkldnn_rnn_layer": _one_layer,
    "mkldnn_rnn_layer_backward": lambda args, out: 2 * _one_layer(args, out),
    **{name: _fourier for name in ("_fft_r2c", "_fft_c2r", "_fft_c2c")},
    **{name: _distances for name in ("_cdist_forward", "_pdist_forward")},
    "_euclidean_dist": lambda args, out: 2.0 * _size(out) * (args[0].shape[-1] + 2),
    **{name: _distances_backward for name in ("_cdist_backward", "_pdist_backward")},
    "_trilinear": _bilinear,
    "einsum": einsum,
    **{name: _cubic(1 / 3) for name in ("cholesky", "linalg_cholesky_ex", "linalg_ldl_factor_ex")},
    **{name: _cubic(2 / 3) for name in ("linalg_lu_factor_ex", "linalg_lu", "_lu_with_info", "_linalg_det", "_linalg_slogdet")},
    **{name: _cubic(8 / 3) for name in ("_linalg_solve_ex", "linalg_lstsq")},
    **{name: _cubic(1) for name in ("cholesky_inverse", "lu_unpack")},
    **{name: _cubic(2) for name in ("linalg_inv_ex", "geqrf", "linalg_householder_product", "ormqr", "_linalg_check_errors")},
    **{name: _cubic(4) for name in ("linalg_qr",)},
    **{name: _cubic(9) for name in ("_linalg_eigh", "linalg_eigh")},
    **{name: _cubic(25) for name in ("linalg_eig", "linalg_eigvals", "linalg_pinv", "_linalg_eigvals", "_linalg_svd", "linalg_svd")},
    **{name: _cubic(30) for name in ("linalg_matrix_exp",)},
    **{name: _solved for name in ("linalg_solve_triangular", "triangular_solve", "cholesky_solve", "_cholesky_solve_helper", "linalg_lu_solve",
                                  "linalg_ldl_solve", "_spsolve")},
    **{name: _alignment for name in ("_ctc_loss", "_use_cudnn_ctc_loss", "_cudnn_ctc_loss", "ctc_loss")},
    "_ctc_loss_backward": lambda args, out: 4.0 * _size(out),
    **{name: _samples for name in ("roi_align", "ps_roi_align")},
    **{name: lambda args, out: _samples(args, args[0]) for name in ("_roi_align_backward", "_ps_roi_align_backward")},
    "nms": _pairs,
}  # fmt: skip


@functools.cache
def formula_of(func: Any) -> Formula | None:
    """The formula of an operator; None: it is no product."""
    name = func._schema.name.split("::")[-1] if hasattr(func, "_schema") else ""
    found = _FORMULAS.get(name)
    if found is None and (packet := getattr(func, "_overloadpacket", None)) in flop_registry:
        registered = flop_registry[packet]

        return lambda args, out: float(registered(*args, out_val=out))
    return found


def flops_of(func: Any, args: Any, kwargs: Any, out: Any) -> float:
    """FLOPs of a call; 0 for operators other than products."""
    formula = formula_of(func)
    if formula is None:
        return 0.0
    if kwargs:
        names = [argument.name for argument in func._schema.arguments]
        args = (*args, *[kwargs.get(name) for name in names[len(args) :]])
    operands = [x for a in args for x in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(x, torch.Tensor)]
    is_complex = any(x.is_complex() for x in operands) and formula is not _fourier
    factor = 3 if formula in (_convolution, _transposed) else 4  # PyTorch's complex convolutions are three real ones
    return (factor if is_complex else 1) * formula(args, out)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


Parts = List[float]
"""Constant, linear and square FLOPs."""
Totals = Tuple[Dict[str, float], Dict[str, float], Dict[str, float]]


@dataclasses.dataclass
class ForwardCall:
    """A product in the forward pass. `node` is the number of its autograd node; None: it has none."""

    path: str
    name: str
    flops: Parts
    node: int | None


class Work:
    """FLOPs by phase, module and degree in the batch, while a module runs."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        """A prime: FLOPs that it divides grow with the batch."""
        self.forward: dict[str, Parts] = {}
        """By the running module's path."""
        self.backward: dict[str, Parts] = {}
        self.again: dict[str, Parts] = {}
        """Likewise, of checkpointed regions that run again in the backward pass."""
        self.path = ""
        self.calls: list[ForwardCall] = []
        self.functions: list[tuple[str, int]] = []
        """Calls of autograd functions in the forward pass: the class, and the number of the node."""
        self._nodes: dict[int, Parts] = {}
        """FLOPs in the backward pass of a node, by its number."""
        self._numbers: list[int] = []
        self._paths: list[str] = []
        self._inside = 0
        """Autograd functions whose forward passes run."""
        self._running: list[int] = []
        """Nodes of autograd functions whose backward passes run."""
        self._repeating: set[int] = set()
        """Those that call modules again, as checkpoints do."""

    def enter(self, path: str) -> None:
        """The module at this path runs from now on. Autograd numbers its nodes, so that their backward calls find it."""
        self.path = path
        self._repeating.update(self._running)
        self._numbers.append(torch._C._autograd._get_sequence_nr())
        self._paths.append(path)

    @contextlib.contextmanager
    def running(self, node: int) -> Iterator[None]:
        """Calls inside belong to the backward pass of an autograd function, also those that it computes again."""
        self._running.append(node)
        try:
            yield
        finally:
            self._running.pop()

    def add(self, func: Any, args: Any, kwargs: Any, out: Any, is_backward: bool) -> float:
        """Counts a call, and returns its FLOPs."""
        if formula_of(func) is None:
            return 0.0
        flops = flops_of(func, args, kwargs, out)
        if not flops:
            return 0.0
        parts = self._parts(flops)
        if not is_backward:
            _sum(self.forward, self.path, parts)
            number = torch._C._autograd._get_sequence_nr() - 1 if self._has_node(args) else None
            self.calls.append(ForwardCall(self.path, func._schema.name.split("::")[-1], parts, number))
        elif (own := self._function()) is not None:
            _sum(self._nodes, own, parts)
            _sum(self.backward, self._place(own), parts)
        elif torch.is_grad_enabled() or self.path:  # a checkpointed region runs again
            _sum(self.again, self.path, parts)
        else:
            node = torch._C._current_autograd_node()
            if node is not None:
                _sum(self._nodes, node._sequence_nr(), parts)
            _sum(self.backward, self.place(True), parts)
        return flops

    def _has_node(self, args: Any) -> bool:
        """Whether the running call has an autograd node: its own, or that of a function whose forward pass runs."""
        if not torch.is_grad_enabled():
            return bool(self._inside)
        return any(leaf.requires_grad for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor))

    @contextlib.contextmanager
    def inside(self, kind: str) -> Iterator[None]:
        """The forward pass of an autograd function runs. The latest node is the function's."""
        self.functions.append((kind, torch._C._autograd._get_sequence_nr() - 1))
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def _function(self) -> int | None:
        """The autograd function to which a call in the backward pass belongs."""
        return next((node for node in reversed(self._running) if node not in self._repeating), None)

    def place(self, is_backward: bool) -> str:
        """The path of the running module, or in the backward pass of the module that called the forward operator."""
        own = self._function() if is_backward else None
        if own is not None:
            return self._place(own)
        if not is_backward or torch.is_grad_enabled() or self.path:
            return self.path
        node = torch._C._current_autograd_node()
        return self._place(node._sequence_nr() if node is not None else 0)

    def _place(self, number: int) -> str:
        found = bisect.bisect_right(self._numbers, number) - 1
        return self._paths[found] if found >= 0 else ""

    def _parts(self, flops: float) -> Parts:
        degree = 0
        while degree < 2 and self._samples > 1 and flops % self._samples ** (degree + 1) == 0:
            degree += 1
        return [flops if degree == n else 0.0 for n in range(3)]

    def repeats(self, path: str, share: float) -> int | None:
        """How often this share of the module's products runs again; 0 if a checkpoint policy keeps them. None: it has no products."""
        forward = share * sum(self.forward.get(path, ()))
        return int(sum(self.again.get(path, ())) / forward + 0.5) if forward > 0 else None

    def at_batch(self, index: int, batch: float) -> float:
        """FLOPs of a forward call at another batch."""
        return self._at(self.calls[index].flops, batch)

    def backward_of(self, batch: float) -> list[float]:
        """FLOPs in the backward pass of each forward call, at another batch. A function's calls share those of its node."""
        shared: dict[int | None, float] = {}
        for call in self.calls:
            shared[call.node] = shared.get(call.node, 0.0) + sum(call.flops)
        return [
            self._at(self._nodes[call.node], batch) * sum(call.flops) / shared[call.node] if call.node in self._nodes else 0.0
            for call in self.calls
        ]

    def backward_of_functions(self, batch: float) -> list[float]:
        """Likewise, of each autograd function without products in its forward pass."""
        others = {call.node for call in self.calls}
        return [
            self._at(self._nodes[node], batch) if node in self._nodes and node not in others else 0.0
            for _, node in self.functions
        ]

    def _at(self, parts: Parts, batch: float) -> float:
        return sum(flops * (batch / self._samples) ** degree for degree, flops in enumerate(parts))

    def at(self, batch: float) -> Totals:
        """FLOPs by module at another batch: forward, backward, again."""
        forward, backward, again = (
            {path: self._at(parts, batch) for path, parts in totals.items()}
            for totals in (self.forward, self.backward, self.again)
        )
        return forward, backward, again


def _sum(totals: dict[Any, Parts], key: Any, parts: Parts) -> None:
    totals[key] = [a + b for a, b in zip(totals.get(key, [0.0, 0.0, 0.0]), parts)]
