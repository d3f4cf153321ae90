"""The sides measured on the CPU, each on one thread and on inputs at fixed addresses.

A side is a class with a `name`, a `precision`, a software `version`, and `prepare(inputs, length)`. This method
returns a call for these inputs, which returns the outputs as arrays. Peers know the length in advance if they can
use it. A side that cannot run here raises Absent with the reason.
"""

import re

import numpy as np

from libmdot import Failure, Predictor
from reference_module import make_module


class Absent(Exception):
    """This machine or this model is unsuitable for a side."""


def imported(name):
    try:
        return __import__(name)
    except ImportError as reason:
        raise Absent(str(reason)) from reason


class Mdot:
    def __init__(self, context, precision):
        try:
            self.predictor = Predictor(context.library, context.artefact, kernel_precision=precision)
        except Failure as reason:
            raise Absent(str(reason)) from reason
        info = self.predictor.info()
        if info.kernel_precision.decode() != precision:
            raise Absent(f"the artefact's code for this CPU computes in {info.kernel_precision.decode()}")
        self.name, self.precision, self.outputs = "mdot", precision, context.outputs
        self.level, self.version = info.cpu_isa.decode(), info.compiler.decode()

    def prepare(self, inputs, length):
        outputs = [np.zeros_like(a) for a in self.outputs(length)]
        return self.predictor.bind(list(inputs.values()), outputs, length)


class OnnxRuntime:
    name = "ONNX Runtime"

    def __init__(self, context, precision):
        if precision != "fp32":
            raise Absent("runs a model in the types that it is written in")
        self.ort = imported("onnxruntime")
        self.precision, self.version = precision, self.ort.__version__
        self.model, self.outputs, self.symbol = context.model, context.outputs, context.symbol

    def prepare(self, inputs, length):
        options = self.ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        if self.symbol:
            options.add_free_dimension_override_by_name(self.symbol, length)
        session = self.ort.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        outputs = [np.zeros_like(a) for a in self.outputs(length)]
        binding = session.io_binding()
        for name, a in inputs.items():
            binding.bind_input(name, "cpu", 0, a.dtype, a.shape, a.ctypes.data)
        for info, a in zip(session.get_outputs(), outputs):
            binding.bind_output(info.name, "cpu", 0, a.dtype, a.shape, a.ctypes.data)

        def call():
            session.run_with_iobinding(binding)
            return outputs

        call.keeps = inputs
        return call


class OpenVino:
    name = "OpenVINO"
    hints = {"fp32": "f32", "bf16": "bf16"}

    def __init__(self, context, precision):
        self.ov = imported("openvino")
        self.precision, self.model = precision, context.model
        self.version = re.match(r"[\d.]*\d", self.ov.get_version()).group()

    def prepare(self, inputs, length):
        del length  # the shapes of the inputs contain the length
        core = self.ov.Core()
        model = core.read_model(self.model)
        model.reshape({name: list(a.shape) for name, a in inputs.items()})
        hint = self.hints[self.precision]
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": 1,
                                                     "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False})
        # A CPU without the instructions computes in another precision, which this property reports.
        taken = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        if taken != hint:
            raise Absent(f"computes in {taken} on this CPU")
        request = compiled.create_infer_request()
        for name, a in inputs.items():
            request.set_tensor(name, self.ov.Tensor(a, shared_memory=True))
        results = [request.get_output_tensor(i) for i in range(len(compiled.outputs))]

        def call():
            request.infer()
            return [r.data for r in results]

        call.keeps = inputs
        return call


class Torch:
    """The reference predictor as a module of PyTorch's fused functions; other models lack a module."""

    name = "PyTorch, eager"

    def __init__(self, context, precision):
        self.torch = imported("torch")
        self.torch.set_num_threads(1)
        self.precision, self.version = precision, self.torch.__version__
        if not context.is_reference:
            raise Absent("only the reference predictor is available as a module")
        self.module = make_module(self.torch, context.model)
        if precision == "bf16":
            self.module = self.module.to(self.torch.bfloat16)

    def compile(self):
        return self.module

    def prepare(self, inputs, length):
        del length
        run, tensors = self.compile(), [self.torch.from_numpy(a) for a in inputs.values()]

        def call():
            with self.torch.inference_mode():
                return [run(*tensors).numpy()]

        return call


class TorchCompiled(Torch):
    name = "PyTorch, compiled"

    def compile(self):
        self.torch._dynamo.config.recompile_limit = 64  # pylint: disable=protected-access # one for each length
        return self.torch.compile(self.module, dynamic=False)


SIDES = {"mdot": [Mdot], "onnxruntime": [OnnxRuntime], "openvino": [OpenVino], "torch": [Torch, TorchCompiled]}
PRECISIONS = ["fp32", "bf16"]
