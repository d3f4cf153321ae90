"""Run an artefact through libmdot's C interface, for callers that have fixed names and shapes: calls are unchecked.

The package mdot (bindings/python) provides the structs and predicts for jobs, while this module runs any entry point.
"""

import ctypes
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))

from mdot.library import structs as c  # noqa: E402  pylint: disable=wrong-import-position


class Failure(RuntimeError):
    """libmdot's message about a failed call."""


class Predictor:
    """One context on an opened artefact. `device`, `kernel_precision` and `level` are as in mdot_open_options."""

    def __init__(self, library, artefact, device="cpu", kernel_precision=None, level=None):
        self.lib = ctypes.CDLL(library)
        self.error, self.predictor, self.context = c.mdot_error(), ctypes.c_void_p(), ctypes.c_void_p()
        texts = {"device": device, "kernel_precision": kernel_precision, "cpu_isa": level}
        options = c.new(c.mdot_open_options, **{name: text.encode() for name, text in texts.items() if text})
        self.check(self.lib.mdot_predictor_open(artefact.encode(), ctypes.byref(options), ctypes.byref(self.predictor),
                                                ctypes.byref(self.error)))
        self.check(self.lib.mdot_context_create(self.predictor, ctypes.byref(self.context), ctypes.byref(self.error)))
        self.lib.mdot_run_ordered.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p,
                                              ctypes.c_void_p, ctypes.c_void_p]
        self.lib.mdot_context_get_device_status.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def check(self, status):
        if status != 0:
            raise Failure(self.error.message.decode(errors="replace"))

    def info(self):
        info = c.new(c.mdot_predictor_info)
        self.check(self.lib.mdot_predictor_get_info(self.predictor, ctypes.byref(info)))
        return info

    def bind(self, inputs, outputs, length):
        """Bind these arrays, in the entry's order, to a call of the first entry; the call returns the outputs."""
        pointers_in = (ctypes.c_void_p * len(inputs))(*[a.ctypes.data for a in inputs])
        pointers_out = (ctypes.c_void_p * len(outputs))(*[a.ctypes.data for a in outputs])
        run, context, error = self.lib.mdot_run_ordered, self.context, ctypes.byref(self.error)

        def call():
            status = run(context, 0, length, pointers_in, pointers_out, error)
            if status != 0:
                self.check(status)
            return outputs

        call.keeps = inputs, outputs  # keep the arrays alive, because the call holds only their addresses
        return call

    def still_on_device(self):
        message = ctypes.c_char_p()
        if self.lib.mdot_context_get_device_status(self.context, ctypes.byref(message)) != 0:
            raise Failure("the GPU failed: " + message.value.decode(errors="replace"))
