"""Training jobs: a network's operators and the work of each in a training step."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import sys
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

from mdot.choices import choose
from mdot.example_inputs import check_inputs, check_text, named
from mdot.library import structs as c
from mdot.library.errors import InvalidArgumentError, JobWarning, NotFoundError, OutOfRangeError, TracedModuleError
from mdot.library.libraries import call, check, encode_path, encode_text, read_text, reader, runtime, saved_bytes
from mdot.options import CHOICES
from mdot.operators import Load, Operator, fill, operator_of, setting_names
from mdot.program import Program, from_struct, to_struct
from mdot.quantities import check_number

if TYPE_CHECKING:
    import torch

    from mdot.trace.models import Network
    from mdot.trace.graph import Graph
    from mdot.trace.tracer import Traced


OPTIMIZERS = CHOICES["optimizer"]
NOTES = ("folded", "maybe-folded", "compiled")


def _dims(dims: Mapping[str, int | str]) -> Any:
    bindings = (c.mdot_dim_binding * max(len(dims), 1))()
    for binding, (name, value) in zip(bindings, dims.items()):
        binding.name = encode_text(name)
        if isinstance(value, str):
            binding.same_as = encode_text(value)
        else:
            binding.value = value
    return bindings


def _freezing(frozen: Sequence[str], trained: Sequence[str]) -> c.mdot_job_freezing:
    for option, patterns in (("frozen", frozen), ("trained", trained)):
        if isinstance(patterns, str):
            raise InvalidArgumentError(f"{option} is {patterns!r}: pass a list of patterns, as [{patterns!r}]")
    frozen_array, trained_array = (
        (ctypes.c_char_p * max(len(patterns), 1))(*[encode_text(text) for text in patterns])
        for patterns in (frozen, trained)
    )
    return c.new(
        c.mdot_job_freezing,
        frozen=frozen_array,
        frozen_count=len(frozen),
        trained=trained_array,
        trained_count=len(trained),
    )


def _warn(message: str, kind: type[Warning] = JobWarning) -> None:
    """Attributes the warning to the caller's line, the nearest one outside this package."""
    depth, package = 2, str(Path(__file__).parent)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, kind, stacklevel=depth)


class Job:
    """A training job's operator sequence. It is immutable: any number of threads may use one.

    `read`, `from_onnx`, `from_torch`, `from_trace`, `from_transformers`, `load` and `from_bytes` make jobs. A job holds no weights, and
    module names only if they were kept.
    """

    def __init__(self, handle: int) -> None:
        """Takes ownership of an mdot_job. Use the functions that make jobs instead."""
        self._handle = ctypes.c_void_p(handle)
        self._finalizer = weakref.finalize(self, runtime().mdot_job_destroy, self._handle)
        self._info = c.new(c.mdot_job_info)
        check(runtime().mdot_job_get_info(self._handle, ctypes.byref(self._info)))

    # ---- Making them -------------------------------------------------------------------------------------------------

    @classmethod
    def from_onnx(
        cls,
        model: str | os.PathLike[str] | bytes,
        *,
        dims: Mapping[str, int | str] | None = None,
        keep_names: bool = True,
        name: str = "model",
        frozen: Sequence[str] = (),
        trained: Sequence[str] = (),
        other_batch: tuple[bytes, int] | None = None,
        lora: tuple[int, Sequence[str]] | None = None,
        length: str | None = None,
    ) -> Job:
        """Reads an ONNX file or bytes, and skips the weights.

        `dims` binds symbolic dimensions other than the batch: for example {"sequence": 128}, or {"mask": "sequence"}
        if the two are equal. `name` is the file name in messages about bytes. Each repair and each unknown construct
        is a JobWarning. `frozen` and `trained` freeze parameters, as `freeze` does, even if the job keeps no names.
        `other_batch` is the same program at another batch, and that batch, for a file without a symbolic batch: it
        shows which work grows with the square of the batch. `length` names the symbolic length, or is "length": the job
        serves all lengths (`with_length`), and begins at 128.
        """
        if length is not None:
            if length in (dims or {}):
                raise InvalidArgumentError(f"dims binds {length!r}, which length= leaves open; keep one of them")
            jobs: dict[int, Job] = {}
            for at in (128, 64, 96):
                with warnings.catch_warnings():
                    if jobs:
                        warnings.simplefilter("ignore", JobWarning)
                    jobs[at] = cls.from_onnx(
                        model, dims={**(dims or {}), length: at}, keep_names=keep_names, name=name, frozen=frozen,
                        trained=trained, other_batch=other_batch, lora=lora,
                    )  # fmt: skip
            return cls.of_lengths(jobs, length)
        messages: list[str] = []
        add_message = c.MESSAGE_FUNCTION(lambda _, text: messages.append(read_text(text)))
        bound = dims or {}
        freezing = ctypes.pointer(_freezing(frozen, trained)) if frozen or trained else None
        options = c.new(
            c.mdot_job_options,
            dims=_dims(bound),
            dim_count=len(bound),
            warning=add_message,
            keep_names=int(keep_names),
            freezing=freezing,
        )
        if other_batch is not None:
            options.other_batch_bytes, options.other_batch = other_batch
            options.other_batch_size = len(other_batch[0])
        if lora is not None:
            names = (ctypes.c_char_p * max(len(lora[1]), 1))(*map(encode_text, lora[1]))
            adapters = c.new(c.mdot_job_adapters, rank=lora[0], targets=names, target_count=len(lora[1]))
            options.adapters = ctypes.pointer(adapters)
        handle = ctypes.c_void_p()
        out = ctypes.byref(handle)
        if isinstance(model, bytes):
            call(reader().mdot_job_read_bytes, model, len(model), encode_text(name), ctypes.byref(options), out)
        else:
            call(reader().mdot_job_read, encode_path(model), ctypes.byref(options), out)
        assert handle.value is not None
        job = cls(handle.value)
        for text in messages:
            _warn(text)
        return job

    @classmethod
    def from_torch(
        cls,
        model: torch.nn.Module,
        example_inputs: Any = (),
        example_kwargs: Mapping[str, Any] | None = None,
        *,
        loss: Callable[..., torch.Tensor] | None = None,
        targets: Any = (),
        batch: int | None = None,
        length: int | None = None,
        name: str | None = None,
    ) -> Job:
        """Records a PyTorch module's operators in training mode on these inputs. Requires PyTorch 2.4 or newer.

        `example_inputs` is a tensor or a tuple of positional arguments, and `example_kwargs` holds the keyword
        arguments. The module may be on the CPU or on the meta device. Tracing works on shapes and keeps no weights:
        a language model with 7 billion parameters takes seconds. The batch is the first dimension of the first
        tensor, or the length of a list of images, unless `batch` gives the number of samples. If a recurrence or
        attention without batch_first takes the sequence first, the batch is the second dimension, and a JobWarning
        names the module. Use at least two samples, because BatchNormalization rejects one. All other shapes are
        those in the examples.

        The loss belongs to the job, because loss tensors can take more memory than the network. A module with its own
        loss needs no more, for example a transformers class with labels. Otherwise, `loss` is a function or module.
        It gets the module's output and `targets` (a tensor or a tuple of them), and returns a scalar:

            Job.from_torch(resnet50(), images, loss=nn.CrossEntropyLoss(), targets=classes)
            Job.from_torch(gpt2, (), {"input_ids": words}, loss=lambda out: my_loss(out.logits))

        `model` may be wrapped in DistributedDataParallel, DataParallel or torch.compile, be the result of
        torch.export, or be a module's method, for example LightningModule.training_step. An exception in the module
        becomes a TracedModuleError, which names the module inside.

        The job follows the program: parameter types, autocast inside it, each parameter without a gradient, regions
        under `torch.no_grad()`, checkpointed modules, and attention kernels. Its memory is a training step's on
        tensors without data. Special cases are reported as JobWarning.

        `length` is the number of tokens or frames in the example inputs. The module is then traced at two shorter
        lengths as well, and the job serves all lengths (`with_length`).

        Traces in several threads run one after another. Pause other PyTorch work in the process meanwhile, because a
        trace replaces functions of PyTorch for all threads.
        """
        args = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        expected = targets if isinstance(targets, (tuple, list)) else (targets,)
        from mdot.trace.batch import above_square, at_length, other_lengths
        from mdot.trace.traced_program import common_times, records
        from mdot.trace.tracer import trace

        if isinstance(model, (Job, str, os.PathLike)):
            raise InvalidArgumentError(
                f"model is {named(model)}: pass a module; for a name, use Job.from_name, and for a file, Job.read"
            )
        batch, length = check_number("batch", batch), check_number("length", length)
        check_text("name", name if name is not None else "")
        check_inputs(args, example_kwargs or {}, expected, batch)

        def read(inputs: tuple[Any, Any, Any], samples: int | None) -> tuple[Job, Traced]:
            made = trace(model, inputs[0], inputs[1], loss=loss, targets=inputs[2], batch=samples, name=name)
            return cls._of_trace(made), made

        inputs = (tuple(args), dict(example_kwargs or {}), tuple(expected))
        job, traced = read(inputs, batch)
        if length is None:
            return job
        jobs, traces = {length: job}, [traced]
        for other in other_lengths(length):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", JobWarning)
                jobs[other], made = read(at_length(inputs, traced.batch, length, other), traced.batch)
            traces.append(made)
        above = above_square(traces[1].graph, traced.graph, length, list(jobs)[1], "length")
        if above is not None:
            _warn(f"{traced.graph.name}: {above}")
        programs = [one.program for one in traces if one.program is not None]
        times = common_times(programs) if len(programs) == len(jobs) else {}
        for at, one in zip(list(jobs), programs if times else ()):
            found = jobs[at].program
            assert found is not None
            recorded = records(one, jobs[at]._blocks(), times)
            jobs[at] = jobs[at].with_program(dataclasses.replace(found, recorded=recorded))
        return cls.of_lengths(jobs)

    @classmethod
    def _of_trace(cls, traced: Traced) -> Job:
        from mdot.trace.check import best_terms, compare, compare_memory, differs_backward
        from mdot.trace.gradients import follow
        from mdot.trace.onnx_file import BATCH, serialise

        def read(graph: Graph, batch: int, other: tuple[bytes, int] | None = None) -> Job:
            return cls.from_onnx(serialise(graph, batch), dims={BATCH: batch}, name=graph.name, other_batch=other)

        graphs = [one for one in (traced.other, traced.far) if one is not None]
        others = [(serialise(*one), one[1]) for one in graphs]
        job = read(traced.graph, traced.batch, others[0] if others else None)
        dispatched = sum(traced.work[1].values())
        if dispatched > 0 and differs_backward(traced.work, job) and follow(traced.graph, [one[0] for one in graphs], dispatched):
            others = [(serialise(*one), one[1]) for one in graphs]
            job = read(traced.graph, traced.batch, others[0] if others else None)
        if traced.far is not None and traced.other is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                direct = [(read(*one), one[1]) for one in (traced.other, traced.far)]
                job, differs = best_terms(job, lambda: read(traced.graph, traced.batch, others[1]), direct, traced.batch)
            traced.notes += [differs] if differs is not None else []
        lost = traced.read_elements() - job.parameters - job.frozen_parameters
        if lost > 0:
            traced.notes.append(f"{lost} parameters belong to no operator of the job and are not counted")
        work, differs = compare(traced.work, job, traced.batch)
        if differs is not None:
            traced.notes.append(differs)
        if traced.program is not None:
            from mdot.trace.traced_program import describe

            made = describe(traced.program, traced.graph, job._blocks(), work)
            if made.recorded:
                work, differs = compare_memory(traced.program, made.recorded, traced.batch, work)
                traced.notes += [differs] if differs is not None else []
            job = job.with_program(dataclasses.replace(made, check=work))
        elif job.program is not None:
            job = job.with_program(dataclasses.replace(job.program, check=work))
        for text in traced.notes:
            _warn(f"{traced.graph.name}: {text}")
        if traced.unused:
            more = f" and {len(traced.unused) - 1} more" if len(traced.unused) > 1 else ""
            _warn(f"{traced.graph.name}: unused parameters are not counted: {traced.unused[0]}{more}")
        return job

    @classmethod
    def from_name(
        cls, name: str, *, batch: int = 2, length: int | None = None, size: int | None = None, **settings: Any
    ) -> Job:
        """Reads a network and its usual loss by name, without weights and without a download:

            "resnet50" (torchvision), "timm:resnet50d", "transformers:GPT2LMHeadModel", "diffusers:UNet2DConditionModel",
            "hf:answerdotai/ModernBERT-base" (the hub's config.json alone is downloaded).

        `settings` change the network's configuration or are arguments of the network's function. For example,
        `from_name("transformers:GPT2LMHeadModel", n_layer=48, n_embd=1600, n_head=25, length=1024)` is GPT-2 XL.
        `length` is the number of tokens or frames, and `size` the side of an image in pixels. Requires PyTorch and
        the network's library.
        """
        sizes = (("batch", batch), ("length", length), ("size", size))
        batch, length, size = (check_number(option, value) for option, value in sizes)
        check_text("name", name)
        from mdot.trace.models import build

        network = build(name, batch=batch, length=length, size=size, settings=settings)
        return cls.from_network(network, batch=batch)

    @classmethod
    def from_network(cls, network: Network, *, batch: int | None = None) -> Job:
        """Reads a network from `mdot.trace.models.build`, with its loss. If the network rejects the assumed labels, the
        job has no loss, and a JobWarning gives the reason."""

        def read(labels: Mapping[str, Any]) -> Job:
            kwargs = {**network.kwargs, **labels}
            loss, targets = network.loss, network.targets
            return cls.from_torch(
                network.model, network.args, kwargs, loss=loss, targets=targets, batch=batch, name=network.name
            )

        try:
            return read(network.labels)
        except TracedModuleError as fault:
            if not network.labels:
                raise
            reason = fault.message
        job = read({})
        labels = ", ".join(network.labels)
        _warn(f"{network.name}: the job has no loss, because the network rejected the assumed {labels}: {reason}")
        return job

    @classmethod
    def from_trace(cls, path: str | os.PathLike[str], *, batch: int | None = None) -> Job:
        """Reads the training step in a trace of torch.profiler (record_shapes=True, .json or .json.gz), or in a Chakra host
        trace (ExecutionTraceObserver). It needs PyTorch, but neither the module's source code nor a GPU.

        A trace of several steps gives its last one. `batch` is the number of samples of the step; by default, it is the
        first dimension of the first tensor that a call reads. Whatever the trace does not tell is a JobWarning. Raises
        NotFoundError for a missing file, and MalformedError for a trace without sizes.
        """
        from mdot.trace.replay import network_of

        batch = check_number("batch", batch)
        found = network_of(path, batch)
        for note in found.notes:
            _warn(f"{found.network.name}: {note}")
        return cls.from_network(found.network, batch=found.batch)

    @classmethod
    def from_transformers(
        cls, kind: Any, config: Any = None, *, batch: int = 2, length: int | None = None, size: int | None = None
    ) -> Job:
        """Reads a class of transformers, or a class name, without weights. `config` is a configuration, a dictionary of
        its settings, or a folder or file with a config.json; the default is the class's own configuration.

        `from_transformers("LlamaForCausalLM", LlamaConfig(), length=4096)` takes seconds. Example inputs and labels
        follow from the forward function's arguments. For other classes, pass the model to `from_torch`.
        """
        sizes = (("batch", batch), ("length", length), ("size", size))
        batch, length, size = (check_number(option, value) for option, value in sizes)
        from mdot.trace.models import class_of_transformers, configuration_of, of_transformers

        made = class_of_transformers(kind) if isinstance(kind, str) else kind
        if getattr(made, "config_class", None) is None or not isinstance(made, type):
            raise InvalidArgumentError(f"kind is {named(kind)}: pass a class of transformers, or its name; for a module, use Job.from_torch")
        network = of_transformers(made, configuration_of(made, config), batch, length, size)
        return cls.from_network(network, batch=batch)

    @classmethod
    def from_operators(
        cls,
        operators: Iterable[Operator],
        *,
        batch: int = 1,
        optimizer: str | None = None,
        frozen: Sequence[str] = (),
        trained: Sequence[str] = (),
    ) -> Job:
        """Makes a job from operators, each with its work in a step (mdot_job.h, mdot_job_operator). The operators can
        be changed ones from another job, or describe a network without a graph. An operator's name determines the
        gradients, the type under autocast and the tensors saved by autograd, unless `known` is False. `frozen` and
        `trained` freeze parameters, as `freeze` does."""
        listed = list(operators)
        array = (c.mdot_job_operator * max(len(listed), 1))()
        keep: list[Any] = []
        names = setting_names()
        for out, op in zip(array, listed):
            fill(out, op, names, keep)
        if frozen or trained:
            freezing = _freezing(frozen, trained)
            call(runtime().mdot_operators_freeze, ctypes.byref(freezing), array, len(listed))
        description = c.new(
            c.mdot_job_description,
            operators=array,
            operator_count=len(listed),
            batch=batch,
            has_optimizer=optimizer is not None,
            optimizer=choose("optimizer", optimizer, OPTIMIZERS) if optimizer is not None else 0,
        )
        handle = ctypes.c_void_p()
        call(runtime().mdot_job_create, ctypes.byref(description), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Job:
        """Reads a `.job` file that `save` or `mdot extract -o` wrote."""
        handle = ctypes.c_void_p()
        call(runtime().mdot_job_load, encode_path(path), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def from_bytes(cls, data: bytes) -> Job:
        """Reads the bytes of a `.job` file."""
        if not isinstance(data, (bytes, bytearray)):
            raise InvalidArgumentError(f"data is {named(data)}: pass the bytes of a file; for a path, use Job.load")
        data = bytes(data)
        handle = ctypes.c_void_p()
        call(runtime().mdot_job_parse, data, len(data), ctypes.byref(handle))
        assert handle.value is not None
        return cls(handle.value)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        dims: Mapping[str, int | str] | None = None,
        lora: tuple[int, Sequence[str]] | None = None,
    ) -> Job:
        """Reads a `.job` file, an ONNX file, a Hugging Face model's config.json or a folder with one, or a ready job by its
        name, for example "llama-3-8b" (`mdot jobs` lists them). `dims` binds dimensions: {"length": 4096}. `lora` freezes
        a Hugging Face model and adds adapters: their rank, and names of linear layers, as (16, ["q_proj", "v_proj"])."""
        return cls.from_onnx(path, dims=dims, lora=lora)

    # ---- Saving and freezing -----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a `.job` file. The file appears in one step, complete."""
        call(runtime().mdot_job_save, self._handle, encode_path(path))

    def to_bytes(self) -> bytes:
        """The bytes of a `.job` file, for `from_bytes`. Pickles and copies of a job consist of them."""
        return saved_bytes(self.save)

    def __reduce__(self) -> tuple[Any, ...]:
        return Job.from_bytes, (self.to_bytes(),)

    def freeze(self, frozen: Sequence[str] = (), trained: Sequence[str] = ()) -> Job:
        """A copy of the job with parameters frozen by module name patterns (mdot_job.h, mdot_job_freezing).

        For example, `job.freeze(["*"], trained=["*.lora_?"])` trains only LoRA adapters.
        """
        out = ctypes.c_void_p()
        freezing = _freezing(frozen, trained)
        call(runtime().mdot_job_freeze, self._handle, ctypes.byref(freezing), ctypes.byref(out))
        assert out.value is not None
        return Job(out.value)

    def with_program(self, program: Program) -> Job:
        """A copy of the job with facts about the program (mdot_program.h, mdot_job_with_program)."""
        keep: list[Any] = []
        out = ctypes.c_void_p()
        call(
            runtime().mdot_job_with_program, self._handle, ctypes.byref(to_struct(program, keep)), ctypes.byref(out)
        )
        assert out.value is not None
        return Job(out.value)

    @classmethod
    def of_lengths(cls, jobs: Mapping[int, Job], name: str = "length") -> Job:
        """One job for all lengths, from the jobs of one program at three lengths (mdot_job.h, mdot_job_of_lengths)."""
        if len(jobs) != 3:
            raise InvalidArgumentError(f"pass jobs at three lengths, not at {len(jobs)}")
        out = ctypes.c_void_p()
        handles = (ctypes.c_void_p * 3)(*(job._handle.value for job in jobs.values()))
        lengths = (ctypes.c_int64 * 3)(*jobs)
        call(runtime().mdot_job_of_lengths, handles, lengths, encode_text(name), ctypes.byref(out))
        assert out.value is not None
        return cls(out.value)

    def _blocks(self) -> list[str]:
        from mdot.trace.traced_program import common_modules

        return common_modules([(op.block, op.module) for op in self])

    def with_length(self, length: int) -> Job:
        """A copy of the job at another length, for example with sequences of 4096 tokens."""
        out = ctypes.c_void_p()
        call(runtime().mdot_job_with_length, self._handle, length, ctypes.byref(out))
        assert out.value is not None
        return Job(out.value)

    # ---- Properties --------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> int:
        """Elements that training learns."""
        return int(self._info.parameters)

    @property
    def frozen_parameters(self) -> int:
        """Parameters that training reads but leaves unchanged."""
        return int(self._info.frozen_parameters)

    @property
    def batch(self) -> int:
        """The batch that the graph was made for; 1 if the graph leaves the batch open."""
        return int(self._info.batch)

    @property
    def length(self) -> int | None:
        """The symbolic length's value in this job; None if the job has no symbolic length."""
        return int(self._info.length) or None

    @property
    def length_name(self) -> str | None:
        """The symbol of the length."""
        return read_text(self._info.length_name) if self._info.length_name is not None else None

    @property
    def optimizer(self) -> str | None:
        """The optimizer that the graph contains, or None."""
        return OPTIMIZERS[self._info.optimizer] if self._info.has_optimizer else None

    @property
    def program(self) -> Program | None:
        """How the PyTorch program was written; None if the job was not traced."""
        found = c.new(c.mdot_job_program)
        status = runtime().mdot_job_get_program(self._handle, ctypes.byref(found))
        return from_struct(found) if status == 0 else None

    @property
    def block_count(self) -> int:
        """The highest block number."""
        return int(self._info.block_count)

    @property
    def unknown_count(self) -> int:
        """Operators of unknown types, for which mdot knows only tensor sizes."""
        return int(self._info.unknown_count)

    @property
    def notes(self) -> tuple[str, ...]:
        """The graph's origin and uncertainties: folded, maybe-folded, traced (`MDOT_JOB_…`)."""
        return tuple(name for bit, name in enumerate(NOTES) if self._info.notes >> bit & 1)

    def __len__(self) -> int:
        return int(self._info.operator_count)

    def __getitem__(self, index: int) -> Operator:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise OutOfRangeError(f"the job has {len(self)} operators")
        op = c.new(c.mdot_job_operator)
        check(runtime().mdot_job_get_operator(self._handle, index, ctypes.byref(op)))
        return operator_of(op)

    def __iter__(self) -> Iterator[Operator]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<mdot.Job: {len(self)} operators, {self.parameters} parameters>"


def optimizer_load(optimizer: str, parameters: float) -> Load:
    """The FLOPs and bytes of one optimizer step for this many parameters in fp32."""
    load = runtime().mdot_optimizer_load(choose("optimizer", optimizer, OPTIMIZERS), parameters)
    return Load(load.flops, load.bytes_read, load.bytes_written)
