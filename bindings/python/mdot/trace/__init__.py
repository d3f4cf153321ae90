"""Traces a PyTorch module into an ONNX graph without weights, which libmdotjob reads.

  tracer.py     runs the module on fake tensors; `trace` calls one function for each stage
  recorder.py   receives every ATen operator in the module, with the calling module
  operators/    translates ATen operators into ONNX operators; one file for each family
  modules.py    the module behind wrappers such as DistributedDataParallel; losses.py the loss; batch.py the batch
  budget.py     limits the computation in a run with real values
  known.py      computes small values beside a run on fake tensors
  functions.py  autograd functions; gradients.py the work of their backward passes
  gradient_mode.py, module_state.py
                where the module runs without gradients; stand-ins for tensors, and restoration
  program.py    types, weights and memory of the module as a program. It runs training steps:
    training_run.py  runs one step on fake tensors, like a GPU (autocast.py, gpu_kernels.py)
    timeline.py      records when the step allocates and frees memory
    moments.py       reduces the record to the moments with a possible peak
  replacements.py, failures.py
                parts of PyTorch replaced during a run; the module's exceptions
  graph.py      the resulting graph; onnx_file.py writes it as ONNX
  models.py     networks from torchvision, timm, transformers and diffusers by name
  diffusion.py  inputs of networks of diffusers, and published configurations

PyTorch's exporters were rejected because they fold normalisations, merge equal parameters, write weights, take
minutes and gigabytes for a language model, and fail if a module makes decisions from data. A training job does
not need the hard part of exporting, a graph for other inputs. It needs only this run's operators and shapes.
Therefore the module runs as it is, in training mode, on fake tensors, which have shapes only
(torch._subclasses.FakeTensorMode). The run that records the operators is in inference mode, because PyTorch then
reports `linear`, `layer_norm` and `scaled_dot_product_attention` as called, before it decomposes them.
"""

from mdot.library.errors import IncompatibleError, NotFoundError

OLDEST = (2, 4)
"""The oldest working version of PyTorch."""
_NEEDS = "reading a PyTorch module requires PyTorch 2.4 or newer"

try:
    import torch
except ImportError as fault:
    raise NotFoundError(f"{_NEEDS}, which this Python lacks: pip install torch") from fault
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
    raise IncompatibleError(f"{_NEEDS}; this is {torch.__version__}: pip install --upgrade torch")
