"""Traces a PyTorch module into an ONNX graph without weights, which libmdotjob reads.

    tracer.py     runs the module on tensors without data; `trace` calls one function for each stage
    recorder.py   receives every ATen operator that the module calls, and the module that called it
    operators/    translates ATen operators into ONNX operators; one file for each family
    graph.py      the resulting graph; onnx_file.py writes it as ONNX
    models.py     networks of torchvision, timm, transformers and diffusers by their names

PyTorch's exporters were rejected because they fold normalisations, merge equal parameters, write weights, take minutes and
gigabytes for a language model, and fail if a module makes decisions from its data. A training job does not need the hard part
of exporting, a graph that runs on other inputs. It needs only the operators of this run and their shapes. Therefore the
module runs as it is, in training mode, on tensors that have shapes only (torch._subclasses.FakeTensorMode). It runs in
inference mode, because PyTorch then reports `linear`, `layer_norm` and `scaled_dot_product_attention` as they were called,
before it decomposes them.
"""
