"""Describes an artefact's contents, and runs its entry points on named tensors (mdot_run.h). Works for any model."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import sys
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from mdot.configuration import Configuration, as_array
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError
from mdot.library.libraries import call, check, encode_text, read_text, runtime

if TYPE_CHECKING:
    from mdot.job import Job
    from mdot.predictor import Predictor

# mdot's types as format characters in Python's buffer protocol, also in numpy. The protocol lacks bf16, which is passed
# as 16-bit integers.
_FORMATS = {
    "f32": "f", "f64": "d", "f16": "e", "bf16": "H", "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i",
    "u32": "I", "i64": "q", "u64": "Q",
}  # fmt: skip
_SAME_FORMATS = {"l": "q", "L": "Q", "n": "q", "N": "Q"}  # equal on the machines that mdot runs on


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of an entry point; dense, row-major."""

    name: str
    dtype: str
    """For example "f32" or "i64"."""
    dims: tuple[tuple[int, int], ...]
    """(scale, offset) for each dimension: scale * length + offset elements, if the floor is None."""
    columns: tuple[str, ...]
    """Names of the columns, if the artefact holds them."""
    floors: tuple[tuple[int, int, int, int] | None, ...]
    """(times, step, start, divisor) for each rounded output dimension, for example behind a strided convolution. It has
    times * ((step * length + start) // divisor) elements more. None: not rounded."""
    _number: int
    _size: int

    def shape(self, length: int) -> tuple[int, ...]:
        """The extents of the tensor at this run-time length."""
        return tuple(_extent(*dim, floor, length) for dim, floor in zip(self.dims, self.floors))

    def __str__(self) -> str:
        texts = [_dim(*dim, floor) for dim, floor in zip(self.dims, self.floors)]
        return f"{self.name} {self.dtype} [{', '.join(texts)}]"


_Floor = tuple[int, int, int, int]


def _extent(scale: int, offset: int, floor: _Floor | None, length: int) -> int:
    extent = scale * length + offset
    if floor is not None:
        times, step, start, divisor = floor
        extent += times * ((step * length + start) // divisor)
    return extent


def _affine(scale: int, offset: int) -> str:
    if scale == 0:
        return str(offset)
    times = "L" if scale == 1 else f"{scale} * L"
    return times if offset == 0 else f"{times} {'+' if offset > 0 else '-'} {abs(offset)}"


def _dim(scale: int, offset: int, floor: _Floor | None) -> str:
    if floor is None:
        return _affine(scale, offset)
    times, step, start, divisor = floor
    quotient = f"({_affine(step, start)}) // {divisor}"
    text = quotient if times == 1 else f"{times} * ({quotient})"
    return text if scale == 0 and offset == 0 else f"{text} + {_affine(scale, offset)}"


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    kind: str
    """One of "linear", "attention", "norm", "nest", "sequential"."""
    flops: float
    """FLOPs at full length."""
    step: int = 0
    """Step in the bucket. Kernels that run concurrently have the same number."""


@dataclasses.dataclass(frozen=True)
class Bucket:
    """Code of an entry point for lengths up to max_length."""

    max_length: int
    scratch_bytes: int
    flops: float
    """FLOPs of one call at full length."""
    kernels: tuple[Kernel, ...]


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    buckets: tuple[Bucket, ...]
    has_length: bool
    """False: every dimension is a constant."""
    min_length: int
    schema_hash: int
    """Equal for equal names, types and shapes of inputs and outputs."""
    items_together: int = 1
    """Most items that `Predictor.run_many` processes at once."""


@dataclasses.dataclass(frozen=True)
class ImageKernel:
    """The kernel of one bucket on an image's processor (mdot_run.h, mdot_image_kernel_info)."""

    entry: str
    max_length: int
    name: str
    threads: int
    grid_barriers: int
    registers: int
    tensor_instructions: int
    barriers: int
    shared_bytes: int
    local_bytes: int
    spill_bytes: int
    inline_input_bytes: int
    scratch_bytes: int
    code_bytes: int


@dataclasses.dataclass(frozen=True)
class Image:
    """Code and weights for one kind of processor."""

    kind: str
    """"cpu" or "cuda"."""
    target: str
    """For example "x86-64-v4" or "sm_90a"."""
    kernel_precision: str
    """The matrix kernels' precision: "fp32", "bf16" or "fp16"."""
    image_bytes: int
    weights_bytes: int
    kernels: tuple[ImageKernel, ...]


def _get(function: Any, kind: type[c.SizedType], *at: Any) -> c.SizedType:
    out = c.new(kind)
    check(function(*at, ctypes.byref(out)))
    return out


def _plain(info: c.Sized, kind: Any, **others: Any) -> Any:
    """Makes a dataclass from a struct's fields by name."""
    fields = {field.name for field in dataclasses.fields(kind)} - set(others)
    values = {name: getattr(info, name) for name in fields}
    return kind(**{name: read_text(v) if isinstance(v, bytes) else v for name, v in values.items()}, **others)


def _floor(floor: c.mdot_dim_floor) -> _Floor | None:
    return (floor.times, floor.step, floor.start, floor.divisor) if floor.times != 0 else None


def _tensor(info: c.mdot_tensor_info) -> Tensor:
    return Tensor(
        name=read_text(info.name),
        dtype=read_text(runtime().mdot_dtype_name(info.dtype)),
        dims=tuple((info.dim[i].scale, info.dim[i].offset) for i in range(info.rank)),
        floors=tuple(_floor(info.floor[i]) for i in range(info.rank)),
        columns=tuple(name for name in read_text(info.columns).split(",") if name),
        _number=info.dtype,
        _size=runtime().mdot_dtype_size_bytes(info.dtype),
    )


def _bucket(handle: ctypes.c_void_p, entry: int, bucket: int) -> Bucket:
    lib = runtime()
    info = _get(lib.mdot_predictor_get_bucket, c.mdot_bucket_info, handle, entry, bucket)
    kernels = [
        _plain(_get(lib.mdot_predictor_get_kernel, c.mdot_kernel_info, handle, entry, bucket, i), Kernel)
        for i in range(info.kernel_count)
    ]
    made: Bucket = _plain(info, Bucket, kernels=tuple(kernels))
    return made


def read_entries(handle: ctypes.c_void_p, count: int) -> tuple[Entry, ...]:
    """The `count` entry points in an opened artefact."""
    lib, found = runtime(), []
    for i in range(count):
        info = _get(lib.mdot_predictor_get_entry, c.mdot_entry_info, handle, i)
        inputs = [_get(lib.mdot_predictor_get_input, c.mdot_tensor_info, handle, i, k) for k in range(info.input_count)]
        outputs = [
            _get(lib.mdot_predictor_get_output, c.mdot_tensor_info, handle, i, k) for k in range(info.output_count)
        ]
        found.append(
            _plain(
                info,
                Entry,
                inputs=tuple(_tensor(one) for one in inputs),
                outputs=tuple(_tensor(one) for one in outputs),
                buckets=tuple(_bucket(handle, i, k) for k in range(info.bucket_count)),
            )
        )
    return tuple(found)


def read_images(handle: ctypes.c_void_p, count: int, of: tuple[Entry, ...]) -> tuple[Image, ...]:
    lib, found = runtime(), []
    for i in range(count):
        info = _get(lib.mdot_predictor_get_image, c.mdot_image_info, handle, i)
        kernels = [
            _plain(
                _get(lib.mdot_predictor_get_image_kernel, c.mdot_image_kernel_info, handle, i, e, b),
                ImageKernel,
                entry=entry.name,
                max_length=bucket.max_length,
            )
            for e, entry in enumerate(of)
            for b, bucket in enumerate(entry.buckets)
        ]
        found.append(_plain(info, Image, kernels=tuple(kernels)))
    return tuple(found)


# ---- Running ---------------------------------------------------------------------------------------------------------


class _Buffer(NamedTuple):
    """An input's elements, row-major."""

    data: Any
    shape: tuple[int, ...]
    format: str


def _buffer(name: str, value: Any) -> _Buffer:
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        remedy = "; of a tensor, pass its numpy()" if hasattr(value, "numpy") else ""
        raise InvalidArgumentError(
            f"input {name!r} is a {type(value).__name__}; pass a buffer, for example a numpy array or an array.array{remedy}"
        ) from None
    data = view.tobytes()  # in the order of the elements, also of a view with strides
    return _Buffer((ctypes.c_char * len(data)).from_buffer_copy(data), tuple(view.shape or ()), view.format)


def _dtype(name: str, given: str, declared: Tensor | None) -> int:
    """mdot_dtype of a buffer's format. If it stands for several types, the declared type is preferred."""
    form = given.lstrip("@=<")
    form = _SAME_FORMATS.get(form, form)
    if declared is not None and _FORMATS.get(declared.dtype) == form:
        return declared._number
    for number in range(1, 32):
        if _FORMATS.get(read_text(runtime().mdot_dtype_name(number))) == form:
            return number
    needed = f"; it must be {declared.dtype}" if declared is not None else ""
    raise InvalidArgumentError(f"input {name!r} has elements of the unsupported format {given!r}{needed}")


def _result(buffer: Any, dtype: str, shape: Sequence[int]) -> memoryview:
    """A memoryview on the elements. Before Python 3.12, memoryview itself lacks half precision, and it cannot be cast to a
    shape without elements: numpy makes these, or ctypes."""
    form = _FORMATS[dtype]
    if 0 not in shape and (form != "e" or sys.version_info >= (3, 12)):
        made: memoryview = memoryview(buffer).cast("B").cast(form, list(shape))  # type: ignore[call-overload]
        return made
    try:
        import numpy
    except ImportError:
        whole: Any = functools.reduce(lambda element, extent: element * extent, reversed(shape), _CTYPES[form])
        return memoryview(whole.from_buffer_copy(buffer))
    array: Any = numpy.frombuffer(bytes(buffer), form).reshape(shape)
    return memoryview(array)


_CTYPES: dict[str, Any] = {
    "f": ctypes.c_float, "d": ctypes.c_double, "e": ctypes.c_uint16, "?": ctypes.c_bool, "b": ctypes.c_int8, "B": ctypes.c_uint8,
    "h": ctypes.c_int16, "H": ctypes.c_uint16, "i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64,
    "Q": ctypes.c_uint64,
}  # fmt: skip


def _length(entry: Entry, buffers: Mapping[str, _Buffer]) -> int:
    for tensor in entry.inputs:
        given = buffers.get(tensor.name)
        for axis, (scale, offset) in enumerate(tensor.dims):
            if scale != 0 and given is not None and axis < len(given.shape):
                return (given.shape[axis] - offset) // scale
    return 0


def _find(predictor: Predictor, name: str) -> int:
    number = ctypes.c_size_t()
    status = runtime().mdot_predictor_find_entry(predictor._handle, encode_text(name), ctypes.byref(number))
    if status != 0:
        names = ", ".join(one.name for one in predictor.entries)
        raise InvalidArgumentError(f"{predictor.path} has no entry point {name!r}; its entry points are {names}")
    return number.value


def compute_inputs(predictor: Predictor, name: str, job: Job, configuration: Configuration) -> dict[str, memoryview]:
    """Implements `Predictor.inputs_of`."""
    number = _find(predictor, name)
    keep: list[Any] = []
    handle = ctypes.c_void_p()
    call(
        runtime().mdot_job_inputs_create,
        predictor._context(),
        number,
        job._handle,
        as_array([configuration], keep),
        ctypes.byref(handle),
    )
    try:
        made = {}
        for i, tensor in enumerate(predictor.entries[number].inputs):
            one = c.mdot_input()
            check(runtime().mdot_job_inputs_get(handle, i, ctypes.byref(one)))
            shape = [one.dims[axis] for axis in range(one.rank)]
            data = ctypes.string_at(one.data, functools.reduce(lambda a, b: a * b, shape, tensor._size))
            made[tensor.name] = _result(data, tensor.dtype, shape)
        return made
    finally:
        runtime().mdot_job_inputs_destroy(handle)


def run_entry(predictor: Predictor, inputs: Mapping[str, Any], name: str) -> dict[str, memoryview]:
    """Implements `Predictor.run`."""
    number = _find(predictor, name)
    entry = predictor.entries[number]
    declared = {tensor.name: tensor for tensor in entry.inputs}
    views = {key: _buffer(key, value) for key, value in inputs.items()}
    array = (c.mdot_input * max(len(views), 1))()
    keep: list[Any] = []
    for one, (key, view) in zip(array, views.items()):
        dims = (ctypes.c_int64 * max(len(view.shape), 1))(*view.shape)
        keep.append(dims)
        one.name, one.dtype, one.rank = encode_text(key), _dtype(key, view.format, declared.get(key)), len(view.shape)
        one.dims, one.data = dims, ctypes.cast(view.data, ctypes.c_void_p)
    length = max(_length(entry, views), 0)
    shapes = [tensor.shape(length) for tensor in entry.outputs]
    sizes = [functools.reduce(lambda a, b: a * b, shape, t._size) for t, shape in zip(entry.outputs, shapes)]
    buffers = [(ctypes.c_char * max(size, 0))() for size in sizes]
    out = (c.mdot_output * max(len(buffers), 1))()
    for at, tensor, buffer in zip(out, entry.outputs, buffers):
        at.name, at.data, at.size_bytes = encode_text(tensor.name), ctypes.addressof(buffer), len(buffer)
    call(runtime().mdot_run, predictor._context(), number, array, len(views), out, len(buffers))
    return {t.name: _result(buffer, t.dtype, shape) for t, buffer, shape in zip(entry.outputs, buffers, shapes)}


def _arrays(entry: Entry, inputs: Mapping[str, Any], item: int, keep: list[Any]) -> tuple[int, list[int]]:
    """An item's length, and the input addresses in the entry point's order. Checks the inputs, because mdot_run_many
    omits the checks in mdot_run."""
    views = {key: _buffer(key, value) for key, value in inputs.items()}
    unknown = set(views) - {tensor.name for tensor in entry.inputs}
    if unknown:
        raise InvalidArgumentError(f"item {item}: {entry.name!r} has no input {min(unknown)!r}")
    length, found = max(_length(entry, views), 0), []
    for tensor in entry.inputs:
        if tensor.name not in views:
            raise InvalidArgumentError(f"item {item} lacks the input {tensor.name!r}")
        view = views[tensor.name]
        if _dtype(tensor.name, view.format, tensor) != tensor._number or view.shape != tensor.shape(length):
            raise InvalidArgumentError(f"item {item}: input {tensor.name!r} must be {tensor} with L = {length}")
        keep.append(view.data)
        found.append(ctypes.addressof(view.data))
    return length, found


def run_entry_many(predictor: Predictor, items: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, memoryview]]:
    """Implements `Predictor.run_many`."""
    number = _find(predictor, name)
    entry = predictor.entries[number]
    array = (c.mdot_item * max(len(items), 1))()
    keep: list[Any] = []
    made: list[tuple[list[tuple[int, ...]], list[Any]]] = []
    for i, (one, inputs) in enumerate(zip(array, items)):
        one.length, found = _arrays(entry, inputs, i, keep)
        shapes = [tensor.shape(one.length) for tensor in entry.outputs]
        sizes = [functools.reduce(lambda a, b: a * b, shape, t._size) for t, shape in zip(entry.outputs, shapes)]
        buffers = [(ctypes.c_char * max(size, 0))() for size in sizes]
        one.inputs = (ctypes.c_void_p * max(len(found), 1))(*found)
        one.outputs = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
        made.append((shapes, buffers))
    call(runtime().mdot_run_many, predictor._context(), number, array, len(items))
    return [
        {t.name: _result(buffer, t.dtype, shape) for t, buffer, shape in zip(entry.outputs, buffers, shapes)}
        for shapes, buffers in made
    ]
