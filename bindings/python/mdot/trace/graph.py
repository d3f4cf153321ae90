"""The recorded graph: values with shapes, and nodes in the order of execution."""

from __future__ import annotations

import dataclasses
import math
import struct
from typing import Any, Callable, Iterable, Sequence, Union

Attribute = Union[int, float, str, Sequence[int], Sequence[float]]
Shape = tuple[int, ...]

FLOAT, INT32, INT64, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 6, 7, 9, 10, 11, 16
"""Values of ONNX's TensorProto.DataType."""
_PACKING = {FLOAT: "f", INT32: "i", INT64: "q", BOOL: "?", FLOAT16: "e", DOUBLE: "d", BFLOAT16: "H"}
PACKED = frozenset(_PACKING)
"""Types whose numbers can be written."""
FLOATS = frozenset({FLOAT, FLOAT16, DOUBLE, BFLOAT16})


_PRODUCTS = {"Gemm", "MatMul", "Einsum", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "grouped_mm"}


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor. `kind` is "data" (computed in every step), "parameter" (trained) or "constant"."""

    name: str
    shape: Shape
    dtype: int
    kind: str = "data"
    data: bytes | None = None
    """The content of a constant whose values a reader needs: shapes, scalars."""
    noise: bool = False
    """True for random numbers in dropout and stochastic depth."""
    has_gradient: bool = True
    """False for results of `torch.no_grad()` regions."""

    @property
    def count(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclasses.dataclass(eq=False)
class Node:
    name: str
    op: str
    domain: str
    inputs: list[Value | None]
    outputs: list[Value | None]
    attributes: dict[str, Attribute]


@dataclasses.dataclass(eq=False)
class Product:
    """A call with FLOPs, and the nodes that are its products."""

    path: str
    flops: float
    nodes: list[Node]


def pack(values: Iterable[Any], dtype: int) -> bytes:
    items = [_bfloat16_bits(value) for value in values] if dtype == BFLOAT16 else list(values)
    return struct.pack(f"<{len(items)}{_PACKING[dtype]}", *items)


def _bfloat16_bits(number: float) -> int:
    """The nearest bfloat16's bits, the upper half of a float32; ties go to the even one."""
    bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    return bits >> 16 if number != number else min(bits + 0x7FFF + (bits >> 16 & 1), 0xFFFFFFFF) >> 16


class Graph:
    """The graph with the nodes from one run of a module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.parameters: list[Value] = []
        self.scope = ""
        """The path of the running module, for example "encoder.layer.3"."""
        self.frozen: list[str] = []
        """Parameters that do not require a gradient."""
        self.recomputed: list[str] = []
        """Modules whose forward pass runs again in the backward pass."""
        self.repeated: list[str] = []
        """Nodes in checkpoints. Their function may be a part of a module."""
        self.kept: list[str] = []
        """Nodes in these modules whose results a checkpoint policy keeps."""
        self.more: dict[int, list[str]] = {1: [], 2: []}
        """Nodes in these modules that run more than once again, in checkpoints inside of checkpoints: by a power of two."""
        self.offloaded: list[str] = []
        """Nodes whose saved tensors go to the host."""
        self.ran: dict[str, list[str]] = {"full": [], "half": []}
        """Nodes that ran in another type than the program's: in fp32, or in 16 bits."""
        self.needs_autocast = False
        """Whether a recurrence had operands in fp32 and in 16 bits."""
        self.has_loss = False
        self.is_compiled = False
        """Whether torch.compile compiles most of the module."""
        self.fused_attentions = 0
        """Calls of fused attention."""
        self.unread: list[Value] = []
        """Results of calls that no node reads; a program computes them nevertheless."""
        self.products: list[Product] = []
        """The calls with FLOPs."""
        self.functions: list[tuple[str, Node | None]] = []
        """Calls of autograd functions: the class, and a view behind it, if it lacks products or loses gradients."""
        self.gradients: dict[int, float] = {}
        """By index of a node: FLOPs that autograd dispatched in its backward pass."""
        self.constant_elements = 0
        """Elements in all constants, also in those that no node reads."""
        self._names: dict[str, int] = {}
        self._stopped: dict[Value, Value] = {}
        self._started: dict[Value, Value] = {}

    def unique(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    def products_from(self, first: int) -> list[Node]:
        """The products among the nodes from `first` on."""
        return [node for node in self.nodes[first:] if node.op in _PRODUCTS or node.domain == "mdot.call"]

    def amount(self, index: int) -> float:
        """What the node's work is proportional to: its FLOPs, or the elements of two factors and the product, which are the
        square of a matmul's rows, columns and summed extent together."""
        node = self.nodes[index]
        flops = node.attributes.get("flops")
        values = [value for value in (*node.inputs[:2], *node.outputs[:1]) if value is not None]
        if isinstance(flops, float) and flops > 0:
            return flops
        if node.op == "View":
            return float(values[0].count)
        return math.prod(float(value.count) for value in values) ** 0.5

    # ---- Values ------------------------------------------------------------------------------------------------------

    def parameter(self, name: str, shape: Shape, dtype: int) -> Value:
        value = Value(self.unique(name), shape, dtype, "parameter")
        self.parameters.append(value)
        return value

    def input(self, name: str, shape: Shape, dtype: int) -> Value:
        value = Value(self.unique(name), shape, dtype)
        self.inputs.append(value)
        return value

    def constant(self, shape: Shape, dtype: int, data: bytes | None = None, name: str = "constant") -> Value:
        made = Value(self.unique(name), shape, dtype, "constant", data)
        self.constant_elements += made.count
        return made

    def scalar(self, number: complex | float | int | bool, dtype: int) -> Value:
        """A number; the content of a complex one stays unknown, as that of complex tensors."""
        if isinstance(number, complex):
            return self.constant((), dtype)
        kind = dtype if dtype in _PACKING else FLOAT
        exact = float(number) if kind in FLOATS else bool(number) if kind == BOOL else int(number)
        value = self.constant((), kind, pack([exact], kind) if _fits(exact, kind) else None)
        return value if kind == dtype else self.op("Cast", [value], (), dtype, to=dtype)

    def ints(self, numbers: Iterable[int]) -> Value:
        items = [int(number) for number in numbers]
        return self.constant((len(items),), INT64, pack(items, INT64))

    # ---- Nodes -------------------------------------------------------------------------------------------------------

    def node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[tuple[Shape, int]],
        domain: str = "",
        **attributes: Attribute,
    ) -> list[Value]:
        """Adds a node and returns the results. If all inputs are constants, the results are constants and the graph gets no
        node."""
        present = [value for value in inputs if value is not None]
        if all(value.kind == "constant" for value in present):
            made = [self.constant(shape, dtype) for shape, dtype in outputs]
        else:
            path = "/" + self.scope.replace(".", "/") if self.scope else ""
            name = self.unique(f"{path}/{op}")
            made = [Value(self.unique(f"{name}_output"), shape, dtype) for shape, dtype in outputs]
            self.nodes.append(Node(name, op, domain, list(inputs), list(made), attributes))
        noise = bool(present) and all(value.noise or value.count == 1 for value in present)
        if noise and any(value.noise for value in present):
            for value in made:
                value.noise = True
        return made

    def op(
        self, op: str, inputs: Sequence[Value | None], shape: Shape, dtype: int, domain: str = "", **attributes: Attribute
    ) -> Value:
        """Adds a node with one result."""
        return self.node(op, inputs, [(shape, dtype)], domain, **attributes)[0]

    def stop_gradient(self, value: Value) -> Value:
        """The same value, through which no gradient flows. Later calls return the same node's result."""
        if value.kind != "data":
            return value
        if value not in self._stopped:
            self._stopped[value] = self.op("StopGradient", [value], value.shape, value.dtype, domain="mdot")
        return self._stopped[value]

    def start_gradient(self, value: Value) -> Value:
        """The same value, which requires a gradient, for example an input with `requires_grad`."""
        if value not in self._started:
            inputs = [self.stop_gradient(value) if not value.has_gradient else value]
            self._started[value] = self.op("View", inputs, value.shape, value.dtype, domain="mdot", starts_gradient=1)
        return self._started[value]

    def mixes_types(self) -> bool:
        """Whether a product has operands in fp32 and in 16 bits."""
        if self.needs_autocast:
            return True
        for node in self.nodes:
            types = {value.dtype for value in node.inputs[:2] if value is not None} if node.op in _PRODUCTS else set()
            if FLOAT in types and types & {FLOAT16, BFLOAT16}:
                return True
        return False

    def note_types(self, precision: str) -> None:
        """Finds the nodes whose type differs from the program's precision."""
        wanted = {FLOAT} if precision != "pytorch" else {FLOAT16, BFLOAT16}
        found = self.ran["full" if precision != "pytorch" else "half"]
        for node in self.nodes:
            values = [v for v in (*node.inputs, *node.outputs) if v is not None and v.dtype in FLOATS and v.count > 1]
            if node.op != "Cast" and values and {value.dtype for value in values} <= wanted:
                found.append(node.name)

    def note_repeats(self, repeats: Callable[[str, float], int]) -> None:
        """Finds the products in recomputed modules and checkpoints that a checkpoint policy keeps, and all nodes there that run
        more than once again. `repeats` reads a module's path, and for a product the share of the module's FLOPs in checkpoints."""
        products = _PRODUCTS | ({"Softmax"} if self.fused_attentions > 0 else set())
        marked, sums = set(self.repeated), dict[str, list[float]]()
        for product in self.products:
            both = sums.setdefault(product.path, [0.0, 0.0])
            both[0] += product.flops if marked.intersection(node.name for node in product.nodes) else 0.0
            both[1] += product.flops
        self.repeated = []
        for node in self.nodes if self.recomputed or marked else ():
            path = node.name.rpartition("/")[0].strip("/").replace("/", ".")
            inside = any(path == module or path.startswith(module + ".") for module in self.recomputed)
            some, total = sums.get(path, (0.0, 0.0))
            share = (some / total if some > 0 else 1.0) if node.op in products and total > 0 else 0.0
            count = repeats(path, share) if inside or node.name in marked else 1
            if inside and (count == 0 or (0 < some and node.name not in marked)):
                self.kept.append(node.name)
            elif not inside and node.name in marked and count > 0:
                self.repeated.append(node.name)
            for bit, names in self.more.items():
                if min(count - 1, 3) & bit and count > 1:
                    names.append(node.name)

    # ---- Common building blocks --------------------------------------------------------------------------------------

    def cast(self, value: Value, dtype: int) -> Value:
        return value if value.dtype == dtype else self.op("Cast", [value], value.shape, dtype, to=dtype)

    def reshape(self, value: Value, shape: Shape) -> Value:
        if value.shape == shape:
            return value
        return self.op("Reshape", [value, self.ints(shape)], shape, value.dtype)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        if list(order) == list(range(len(value.shape))):
            return value
        return self.op("Transpose", [value], tuple(value.shape[i] for i in order), value.dtype, perm=list(order))

    def expand(self, value: Value, shape: Shape) -> Value:
        if value.shape == shape:
            return value
        return self.op("Expand", [value, self.ints(shape)], shape, value.dtype)

    def view(self, value: Value, shape: Shape, dtype: int) -> Value:
        """A view with any number of elements: nothing is moved."""
        return self.op("View", [value], shape, dtype, domain="mdot")

    def reduce(self, op: str, value: Value, axes: Sequence[int], keep: bool) -> Value:
        axes = [axis % len(value.shape) for axis in axes] if value.shape else []
        shape = tuple(1 if i in axes else n for i, n in enumerate(value.shape) if keep or i not in axes)
        return self.op(op, [value, self.ints(axes)], shape, value.dtype, keepdims=int(keep))


def _fits(number: float | int | bool, dtype: int) -> bool:
    """Whether the type can represent the number; for example, float32 has no -1e300."""
    try:
        pack([number], dtype)
    except (struct.error, OverflowError):
        return False
    return True
