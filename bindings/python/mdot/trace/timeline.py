"""A training step's memory timeline: when each tensor's memory is allocated and freed.

The Timeline is a TorchDispatchMode. PyTorch calls it for each operator below autograd, in the forward and in the
backward pass. Its clock counts these operators. A tensor in unseen memory is an allocation, and the end of the
storage object is the release. The bytes follow from shapes alone, so that the run may use fake tensors.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import enum
import functools
import weakref
from typing import Any, Iterable, Iterator
from unittest import mock

import torch
from torch.utils import checkpoint
from torch.nested._internal import nested_tensor as nested
from torch.utils._python_dispatch import TorchDispatchMode

from mdot.trace import recurrences
from mdot.trace.gpu_kernels import CHANGED, LIKE_OPERAND, as_on_cuda, like_operand, with_elements
from mdot.trace.known_calls import KnownContents
from mdot.trace.meta_kernels import MetaKernels
from mdot.trace.work import Work

NEVER = 1 << 62
"""End of an allocation beyond the step."""


MOST_OPERATORS = 100_000
"""Operators of a step. Longer steps are loops over the sequence in Python; they would take minutes."""


LIKE_LOGITS = 0.02
"""Relative difference in size up to which a tensor counts as logits."""


class TooLong(Exception):
    """The step has more than MOST_OPERATORS operators."""


class Kind(enum.IntEnum):
    """Memory kinds, which configurations scale in different ways."""

    SAMPLES = 0
    """Proportional to the batch."""
    STEP = 1
    """Independent of the batch."""
    WEIGHT_COPY = 2
    """A copy of a parameter in another type, as autocast makes it."""
    GRADIENT = 3
    """The gradient of a parameter."""
    LOGITS = 4
    """Proportional to the batch, and as large as a cross-entropy's logits. A chunked loss keeps a part of them."""
    SQUARES = 5
    """Proportional to the square of the batch, for example a matrix that compares all samples."""


@dataclasses.dataclass
class Allocation:
    bytes: int
    start: int
    """Time of the allocating operator."""
    kind: Kind
    elements: int = 0
    is_matmul: bool = False
    """Result of a matmul, a convolution, attention or random numbers: expensive or impossible to recompute."""
    end: int = NEVER
    """Time of the last operator before the release."""
    last_forward_use: int = -1
    first_backward_use: int = NEVER
    readers: int = 0
    """Operators in the forward pass that allocate and read it."""
    scaled: Allocation | None = None
    """The original allocation behind a multiple, or behind a copy in another type."""
    path: str = ""
    """The module of the allocating operator, or of its forward operator."""


@dataclasses.dataclass
class Call:
    """An operator that allocates or writes memory."""

    func: Any
    time: int
    region: int
    """The compiled module that called it, or its forward operator, by number; 0: none."""
    read: list[Allocation]
    made: list[Allocation]
    """New memory, or operands that it writes."""
    checkpoint: int = 0
    """The checkpointed region in which it ran, first or again; 0: none."""


_MATMULS = (
    "mm", "addmm", "bmm", "baddbmm", "convolution", "_grouped_mm", "native_dropout", "bernoulli", "bernoulli_", "rand_like",
    "embedding", "_scaled_mm",
)  # fmt: skip


_DEVICE = torch.ops.prim.device.default


_MULTIPLES = ("mul", "div", "neg", "_to_copy")


_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_cudnn_rnn")


def _is_matmul(name: str) -> bool:
    return name in _MATMULS or "attention" in name or "rnn" in name or "lstm" in name


class Timeline(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the allocations by operators while it is active."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, because torch.compile is not active in a trace, and the wrapper that keeps it out takes time in each call."""
        return False

    def __init__(
        self,
        samples: int,
        known: KnownContents | None = None,
        kernels: MetaKernels | None = None,
        counts_work: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known = known
        self._kernels = kernels
        self.work = Work(samples)
        self._counts_work = counts_work
        self.samples = samples
        """The batch. Memory whose number of elements it divides is proportional to the batch."""
        self.allocations: list[Allocation] = []
        self.calls: list[Call] = []
        self._regions: list[tuple[int, int]] = [(0, 0)]
        """Where compiled modules begin and end, by autograd's numbers of nodes, with the region that follows."""
        self._reentrant: list[int] = []
        """The reentrant checkpoints that run, first or again."""
        self.peak = 0
        """The most bytes that were allocated at once."""
        self._live = 0
        self.clock = 0
        self.backward_start = NEVER
        self._logits = 0
        """Elements in the largest log-softmax in the forward pass."""
        self._matmul_bytes = {torch.float16: 0, torch.bfloat16: 0, torch.float32: 0}
        """Matmul result sizes in the forward pass, by type."""
        self._alive: dict[int, Allocation | None] = {}
        """By storage address. None: memory with another account, such as parameters."""
        self._parameters: set[int] = set()
        self._sums: list[tuple[Allocation, list[Allocation]]] = []
        """Sums in the forward pass, with both terms."""

    # ---- Tensors from outside ----------------------------------------------------------------------------------------

    def ignore(self, tensors: Iterable[torch.Tensor]) -> None:
        """Leaves out these tensors' memory, because weights and buffers are counted elsewhere. A floating-point
        parameter's copy in another type is a WEIGHT_COPY. Copies of buffers and integers are the program's own
        tensors, for example dequantised weights, and exist in every precision."""
        for tensor in tensors:
            for storage in storages(tensor):
                self._alive[storage._cdata] = None
                if isinstance(tensor, torch.nn.Parameter) and tensor.is_floating_point() and tensor.element_size() > 1:
                    self._parameters.add(storage._cdata)
                weakref.finalize(storage, self._forget, storage._cdata)

    def _forget(self, address: int) -> None:
        """A module may replace a buffer. Another tensor may then have this address."""
        self._parameters.discard(address)
        if self._alive.get(address, self) is None:
            del self._alive[address]

    def add_inputs(self, tensors: Iterable[torch.Tensor]) -> None:
        """Counts these tensors from the start to the end of the step."""
        for tensor in tensors:
            for storage in storages(tensor):
                self._allocate(storage, tensor, "input", self._kind(tensor))

    # ---- The step ----------------------------------------------------------------------------------------------------

    def begin_backward(self) -> None:
        self.backward_start = self.clock

    def finish(self, parameters: Iterable[torch.Tensor]) -> None:
        """Marks the gradients of the parameters after the backward pass."""
        for parameter in parameters:
            if parameter.grad is None:
                continue
            for storage in storages(parameter.grad):
                allocation = self._alive.get(storage._cdata)
                if allocation is not None:
                    allocation.kind = Kind.GRADIENT

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if nested.NestedTensor in types:  # its own operators follow
            return NotImplemented
        if func is _DEVICE:  # two thirds of all calls, because autograd asks for each gradient's device
            return args[0].device
        name = _name(func)
        if name == "_grouped_mm":  # it refuses the expanded gradient of a sum, which stands for the program's loss
            args = tuple(one.contiguous() if isinstance(one, torch.Tensor) and 0 in one.stride() else one for one in args)
        if name == "_cudnn_rnn_backward":  # PyTorch has no kernel of it for tensors without data
            out = recurrences.backward(args)
        elif name in LIKE_OPERAND:
            out = like_operand(func, args, kwargs)
        elif self.known is not None:
            out = self.known.run(func, args, kwargs or {})
        elif self._kernels is not None:
            out = self._kernels.run(func, args, kwargs or {})
        else:
            out = func(*args, **(kwargs or {}))
        if name in CHANGED:
            out = as_on_cuda(name, args, out)
        out = with_elements(args, out)
        operands = _tensors(args)
        if kwargs:
            operands += _tensors(tuple(kwargs.values()))
        for tensor in operands:
            for storage in storages(tensor):
                self._use(storage)
        if self._counts_work:
            self.work.add(func, args, kwargs, out, self.backward_start != NEVER)
        count = len(self.allocations)
        for tensor in _tensors((out,)):
            for storage in storages(tensor):
                if storage._cdata not in self._alive:
                    copies = name == "_to_copy" and self._is_parameter(operands[0])
                    self._allocate(storage, tensor, name, Kind.WEIGHT_COPY if copies else self._kind(tensor))
            if name == "_log_softmax" and self.backward_start == NEVER:
                self._logits = max(self._logits, tensor.numel())
            if name in _PRODUCTS and self.backward_start == NEVER and tensor.dtype in self._matmul_bytes:
                self._matmul_bytes[tensor.dtype] += tensor.numel()
        self._note_call(func, operands, self.allocations[count:])
        if len(self.allocations) > count and self.backward_start == NEVER:
            self._note_reads(name, self.allocations[count], operands)
        self.clock += 1
        if self.clock > MOST_OPERATORS:
            raise TooLong(f"the step has more than {MOST_OPERATORS:,} operators")
        return out

    def enter_region(self, region: int) -> None:
        """A compiled module begins, or ends with region 0."""
        self._regions.append((torch._C._autograd._get_sequence_nr(), region))

    def _region(self) -> int:
        node = torch._C._current_autograd_node() if self.backward_start != NEVER else None
        if node is None:
            return self._regions[-1][1]
        return self._regions[bisect.bisect_right(self._regions, (node._sequence_nr(), NEVER)) - 1][1]

    @contextlib.contextmanager
    def reentrant_checkpoints(self) -> Iterator[None]:
        """A reentrant checkpoint's second run makes nodes, whose backward operators belong to the region of the first."""

        def noted(original: Any) -> Any:
            def run(context: Any, *args: Any) -> Any:
                self._reentrant.append(id(context))
                before = self._regions[-1][1]
                self.enter_region(self._region())
                try:
                    return original(context, *args)
                finally:
                    self.enter_region(before)
                    self._reentrant.pop()

            return staticmethod(run)

        function = checkpoint.CheckpointFunction
        with mock.patch.multiple(function, forward=noted(function.forward), backward=noted(function.backward)):
            yield

    def _checkpoint(self) -> int:
        """The checkpointed region that runs, first or again; 0: none."""
        node = torch._C._current_autograd_node() if self.backward_start != NEVER else None
        if self._reentrant and (node is None or node.name() == "CheckpointFunctionBackward"):
            return self._reentrant[-1]
        return _checkpoint()

    def _note_call(self, func: Any, operands: list[torch.Tensor], made: list[Allocation]) -> None:
        read = [found for tensor in operands for storage in storages(tensor) if (found := self._alive.get(storage._cdata))]
        if func._schema.is_mutable and not made:
            made = read[:1]
        if made:
            self.calls.append(Call(func, self.clock, self._region(), read, made, self._checkpoint()))

    def _note_reads(self, name: str, result: Allocation, operands: list[torch.Tensor]) -> None:
        read = [found for tensor in operands for storage in storages(tensor) if (found := self._alive.get(storage._cdata))]
        for allocation in read:
            allocation.readers += 1
        if name in _MULTIPLES and len(operands) == 1 and len(read) == 1:
            result.scaled = read[0]
        elif name == "add" and len(read) == 2:
            self._sums.append((result, read))

    def _is_parameter(self, tensor: torch.Tensor) -> bool:
        return any(storage._cdata in self._parameters for storage in storages(tensor))

    def _kind(self, tensor: torch.Tensor) -> Kind:
        elements = sum(storage.nbytes() for storage in storages(tensor)) // max(tensor.element_size(), 1)
        return Kind.SAMPLES if elements % self.samples == 0 else Kind.STEP

    def _allocate(self, storage: Any, tensor: torch.Tensor, name: str, kind: Kind) -> None:
        elements = storage.nbytes() // max(tensor.element_size(), 1)
        path = self.work.place(self.backward_start != NEVER) if self._counts_work else ""
        allocation = Allocation(storage.nbytes(), self.clock, kind, elements, _is_matmul(name), path=path)
        allocation.last_forward_use = self.clock
        self._live += allocation.bytes
        self.peak = max(self.peak, self._live)
        address = storage._cdata
        self._alive[address] = allocation
        if allocation.bytes > 0:
            self.allocations.append(allocation)
        weakref.finalize(storage, self._release, address, allocation)

    def _release(self, address: int, allocation: Allocation) -> None:
        allocation.end = max(self.clock - 1, allocation.start)
        self._live -= allocation.bytes
        if self._alive.get(address) is allocation:
            del self._alive[address]

    def _use(self, storage: Any) -> None:
        allocation = self._alive.get(storage._cdata)
        if allocation is None:
            return
        if self.clock < self.backward_start:
            allocation.last_forward_use = self.clock
        elif allocation.first_backward_use == NEVER:
            allocation.first_backward_use = self.clock

    # ---- Results -----------------------------------------------------------------------------------------------------

    @property
    def autocast_dtype(self) -> torch.dtype | None:
        """The 16-bit type of most matmul results, if it is one."""
        most = max(self._matmul_bytes, key=lambda dtype: self._matmul_bytes[dtype])
        return most if most != torch.float32 and self._matmul_bytes[most] > 0 else None

    def sizes_at(self, batch: int) -> list[float]:
        """Bytes of all allocations at another batch."""
        ratio = batch / self.samples
        powers = {Kind.SAMPLES: ratio, Kind.LOGITS: ratio, Kind.SQUARES: ratio * ratio}
        return [a.bytes * powers.get(a.kind, 1.0) for a in self.allocations]

    def is_saved(self, allocation: Allocation) -> bool:
        """Whether the forward pass keeps it for the backward pass."""
        return allocation.start < self.backward_start <= allocation.end

    def allocation(self, storage: Any) -> Allocation | None:
        return self._alive.get(storage._cdata)

    def _is_like_logits(self, allocation: Allocation) -> bool:
        """Losses of next tokens may leave out the last position."""
        return self._logits > 0 and abs(allocation.elements / self._logits - 1) < LIKE_LOGITS

    def close(self) -> None:
        """Ends the recording, and finds tensors as large as the logits. Memory that is still allocated stays until the
        end of the step."""
        for allocation in self.allocations:
            if allocation.kind == Kind.SAMPLES and self._is_like_logits(allocation):
                allocation.kind = Kind.LOGITS
        self._join_sums()
        self._alive.clear()

    def _join_sums(self) -> None:
        """If two matmul results are read by their sum alone, for example a weight's and its adapter's, the sum counts
        as the result. It is as large as one of them, so that torch.compile's partitioner saves it instead of both."""
        for total, terms in self._sums:
            first, second = (self._product(term) for term in terms)
            if first is not None and second is not None and first is not second:
                first.is_matmul = second.is_matmul = False
                total.is_matmul = True

    def _product(self, term: Allocation) -> Allocation | None:
        """The matmul result behind a multiple, if nothing else reads it."""
        while term.readers == 1 and not self.is_saved(term):
            if term.scaled is None:
                return term if term.is_matmul else None
            term = term.scaled
        return None


def _checkpoint() -> int:
    """The checkpointed region that runs; 0: none. Its hooks for saved tensors know it."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    pack = getattr(hooks[0], "_torchdynamo_orig_callable", hooks[0]) if hooks else None
    for cell in getattr(pack, "__closure__", None) or ():
        found = cell.cell_contents() if isinstance(cell.cell_contents, weakref.ref) else cell.cell_contents
        if isinstance(found, checkpoint._CheckpointFrame):
            return id(found)
    return 0


@functools.cache
def _name(func: Any) -> str:
    name: str = func._schema.name
    return name.split("::")[-1]


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    """The tensors among the values, and in lists of values."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def storages(tensor: torch.Tensor) -> list[Any]:
    """A tensor's storages; a sparse tensor has two."""
    try:
        return [tensor.untyped_storage()]
    except (NotImplementedError, RuntimeError):  # a layout without a storage of its own
        if tensor.is_sparse:
            return [tensor._indices().untyped_storage(), tensor._values().untyped_storage()]
        return []
