"""Random graphs: values with symbolic shapes, and the builder to which operators.py adds nodes.

A dimension is a pair (scale, offset) and means scale * length + offset, as in mdot's graphs. A value is `exact` if
every correct implementation computes the same bits, for example a transposed input or a comparison of inputs.
Operators with steps, for example Floor or ArgMax, take exact operands only, because a difference of one bit would
become a step.
"""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LENGTH = (1, 0)
FLOATS = ("f32", "f64", "f16")
TYPES = {"f32": (TensorProto.FLOAT, np.float32), "f64": (TensorProto.DOUBLE, np.float64),
         "f16": (TensorProto.FLOAT16, np.float16), "i64": (TensorProto.INT64, np.int64),
         "i32": (TensorProto.INT32, np.int32), "i16": (TensorProto.INT16, np.int16), "i8": (TensorProto.INT8, np.int8),
         "u8": (TensorProto.UINT8, np.uint8), "u32": (TensorProto.UINT32, np.uint32),
         "u64": (TensorProto.UINT64, np.uint64), "bool": (TensorProto.BOOL, np.bool_)}
EPSILON = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10}


def fixed(*sizes):
    return tuple(size if isinstance(size, tuple) else (0, int(size)) for size in sizes)


def sizes_of(shape, length):
    return [scale * length + offset for scale, offset in shape]


def is_fixed(dim):
    return dim[0] == 0


def is_nameable(dim):
    """Whether a model can state the dimension of an input: mdot takes an unnamed one to be 1."""
    return dim == LENGTH or is_fixed(dim)


@dataclass
class Value:
    name: str
    dtype: str
    shape: tuple
    exact: bool
    content: str = "any"  # values of a graph input: "any"; "index" and "signed" below `bound`; "unit", "ties" …
    bound: tuple = (0, 0)  # a dimension
    array: np.ndarray = None  # an initializer's

    @property
    def rank(self):
        return len(self.shape)

    @property
    def is_float(self):
        return self.dtype in FLOATS


def names_read(node):
    """The names that a node reads, also those that its bodies read from outside."""
    bodies = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return list(node.input) + [name for body in bodies for inner in body.node for name in names_read(inner)]


class Unavailable(Exception):
    """This operator is absent from this opset, or the draw gives no valid node."""


@dataclass
class Graph:
    """Nodes, inputs and initializers. `rounding` sums the node tolerances in units of the type's spacing."""

    opset: int
    rng: np.random.Generator
    nodes: list = field(default_factory=list)
    inputs: list = field(default_factory=list)
    initializers: list = field(default_factory=list)
    values: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    domains: set = field(default_factory=lambda: {""})
    rounding: float = 0
    sums: bool = False
    functions: bool = False  # some node has an absolute error, because ONNX Runtime approximates it so
    min_length: int = 1
    names: int = 0

    # ---- Draws ---------------------------------------------------------------------------------------------------

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def whole(self, least, most):
        return int(self.rng.integers(least, most + 1))

    def since(self, op, version, domain=""):
        """Whether the graph's opset has at least this version of the operator."""
        try:
            return onnx.defs.get_schema(op, self.opset, domain).since_version >= version
        except onnx.defs.SchemaError:
            raise Unavailable(op) from None

    def require(self, condition, reason="no such node"):
        if not condition:
            raise Unavailable(reason)

    # ---- Values --------------------------------------------------------------------------------------------------

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def new_shape(self, rank=None):
        """A small shape, most often with the length as one dimension."""
        rank = self.whole(1, 4) if rank is None else rank
        shape = [(0, self.pick([1, 2, 3, 4, 5, 7, 8, 16, 17])) for _ in range(rank)]
        if rank > 0 and self.chance(0.85):
            shape[self.whole(0, rank - 1)] = LENGTH
        if rank > 3:
            shape = [d if d == LENGTH else (0, min(d[1], 5)) for d in shape]
        return tuple(shape)

    def input(self, dtype, shape, content="any", bound=(0, 0)):
        self.require(all(map(is_nameable, shape)), "no input with a dimension such as N+1")
        value = Value(self.name("x"), dtype, tuple(shape), True, content, bound)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array, dtype=None):
        array = np.asarray(array)
        dtype = dtype or next(name for name, (_, kind) in TYPES.items() if kind == array.dtype)
        array = array.astype(TYPES[dtype][1])
        value = Value(self.name("c"), dtype, fixed(*array.shape), True, array=array)
        self.initializers.append(value)
        return value

    def weights(self, *shape, scale=1.0, dtype="f32"):
        return self.constant(self.rng.normal(size=shape) * scale, dtype)

    def integers(self, items):
        return self.constant(np.array(items, np.int64))

    def operand(self, dtypes=("f32",), rank=None, least_rank=0, exact=False, where=None):
        """An earlier value that fits, or a new input."""
        dtypes = [dtypes] if isinstance(dtypes, str) else list(dtypes)
        fits = [v for v in self.values if v.dtype in dtypes and v.content == "any" and v.rank >= least_rank
                and (rank is None or v.rank == rank) and (v.exact or not exact) and (where is None or where(v))]
        if fits and self.chance(0.8):
            return fits[-1] if self.chance(0.5) else self.pick(fits)
        dtype = self.pick(dtypes) if self.chance(0.3) else dtypes[0]
        for _ in range(40):
            shape = self.new_shape(self.whole(max(least_rank, 1), 4) if rank is None else rank)
            if where is None or where(Value("", dtype, shape, True)):
                return self.input(dtype, shape)
        raise Unavailable("no operand")

    def like(self, value, shape=None, exact=False):
        """A value with this type and shape: an earlier one, a new input, or a constant if it is fixed."""
        shape = value.shape if shape is None else tuple(shape)
        fits = [v for v in self.values if v.dtype == value.dtype and v.shape == shape and v.content == "any"
                and (v.exact or not exact)]
        if fits and (self.chance(0.5) or not all(map(is_nameable, shape))):
            return self.pick(fits)
        if all(is_fixed(d) for d in shape) and self.chance(0.6):
            return self.constant(self.numbers(value.dtype, [d[1] for d in shape]))
        return self.input(value.dtype, shape)

    def numbers(self, dtype, shape):
        kind = TYPES[dtype][1]
        if dtype == "bool":
            return self.rng.random(shape) < 0.5
        if dtype in FLOATS:
            return self.rng.normal(size=shape).astype(kind)
        low = 0 if dtype[0] == "u" else -20
        return self.rng.integers(low, 21, size=shape).astype(kind)

    def broadcastable(self, value, exact=False):
        """A second operand: the same shape, a suffix of it, or one with ones."""
        shape = list(value.shape)
        if self.chance(0.6):
            shape = shape[self.whole(0, len(shape)):] if self.chance(0.5) else shape
            shape = [(0, 1) if self.chance(0.3) else d for d in shape]
        return self.like(value, shape, exact)

    # ---- Nodes ---------------------------------------------------------------------------------------------------

    def node(self, op, inputs, outputs, exact, domain="", rounding=4.0, sums=False, keep=True, **attributes):
        """Adds a node and returns the values; `outputs` are pairs of type and shape, and None omits one."""
        if domain == "":
            self.since(op, 1)
        self.domains.add(domain)
        made = [Value(self.name("v"), dtype, tuple(shape), exact) if dtype else None
                for dtype, shape in outputs]
        names = [v.name if v is not None else "" for v in inputs]
        while names and names[-1] == "":
            names.pop()
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op, names, [v.name if v else "" for v in made], domain=domain, **attributes))
        if keep:
            self.values += [v for v in made if v]
        self.rounding += 0 if exact else rounding
        self.sums = self.sums or sums
        self.functions = self.functions or rounding >= 16
        return made[0] if len(made) == 1 else made

    def same(self, op, value, exact, **options):
        return self.node(op, [value], [(value.dtype, value.shape)], exact, **options)

    @property
    def varies(self):
        """Whether an input depends on the length."""
        return any(not is_fixed(d) for v in self.inputs for d in v.shape)

    # ---- The model -----------------------------------------------------------------------------------------------

    def finish(self):
        """Every value that no node reads becomes an output, and sometimes another one does."""
        read = {name for node in self.nodes for name in names_read(node)}
        made = {name for node in self.nodes for name in node.output}
        self.outputs = [v for v in self.values if v.name in made and (v.name not in read or self.chance(0.15))]
        known = {v.name for v in self.inputs if v.name in read}
        self.inputs = [v for v in self.inputs if v.name in known]

    def model(self, outputs=None):
        outputs = self.outputs if outputs is None else outputs
        graph = helper.make_graph(self.nodes, "oracle", [self._info(v) for v in self.inputs],
                                  [self._info(v) for v in outputs],
                                  [numpy_helper.from_array(v.array, v.name) for v in self.initializers])
        newest_trees = any(n.op_type == "TreeEnsemble" for n in self.nodes)
        versions = {"": self.opset, "ai.onnx.ml": 5 if newest_trees else 3, "com.microsoft": 1}
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, versions[d]) for d in sorted(self.domains)])
        model.ir_version = 8 if self.opset < 21 else 10
        return model

    @staticmethod
    def _info(value):
        shape = ["N" if d == LENGTH else (d[1] if is_fixed(d) else None) for d in value.shape]
        return helper.make_tensor_value_info(value.name, TYPES[value.dtype][0], shape)

    def feeds(self, length, extremes):
        return {v.name: self._fill(v, sizes_of(v.shape, length), length, extremes) for v in self.inputs}

    def _fill(self, value, shape, length, extremes):
        if value.content == "index":
            bound = max(1, value.bound[0] * length + value.bound[1])
            return self.rng.integers(0, bound, size=shape).astype(TYPES[value.dtype][1])
        if value.content == "signed":
            bound = max(1, value.bound[0] * length + value.bound[1])
            return self.rng.integers(-bound, bound, size=shape).astype(TYPES[value.dtype][1])
        if value.content == "ties":
            return self.rng.integers(0 if value.dtype[0] == "u" else -3, 4, size=shape).astype(TYPES[value.dtype][1])
        if value.content == "divisor":
            sign = 1 if value.dtype[0] == "u" else self.rng.choice([-1, 1], size=shape)
            return (sign * self.rng.integers(2, 9, size=shape)).astype(TYPES[value.dtype][1])
        if value.content == "unit":
            return self.rng.random(shape).astype(TYPES[value.dtype][1])
        array = np.asarray(self.numbers(value.dtype, shape))
        if value.content == "positive":
            return np.abs(array) + np.asarray(0.1, array.dtype)
        if not extremes or array.size == 0 or value.dtype == "bool" or value.content == "plain":
            return array
        special = self._specials(value.dtype)
        chosen = self.rng.random(shape) < self.pick([0.02, 0.3])
        return np.where(chosen, self.rng.choice(special, size=shape), array).astype(array.dtype)

    def _specials(self, dtype):
        kind = TYPES[dtype][1]
        if dtype not in FLOATS:
            info = np.iinfo(kind)
            return np.array([info.min, info.max, 0, 1], kind)
        info = np.finfo(kind)
        mild = [0.0, -0.0, float(info.smallest_subnormal), float(info.tiny), 1e-5, -30.0, 30.0]
        if self.sums:
            return np.array(mild + ([np.nan, np.inf, -np.inf] if self.chance(0.3) else []), kind)
        wide = [np.nan, np.inf, -np.inf, float(info.max), float(info.min), float(info.max) / 3, 100.0, -100.0, 88.8, 0.5, -1.5,
                2.5, 1e4, -1e4]
        wide += [1e38, -1e38, 1e-38, 1e9, 1e18, -1e20] if dtype != "f16" else []
        return np.array(mild + wide, kind)
