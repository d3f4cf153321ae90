"""A PyTorch module → an ONNX graph without weights, which libmdotjob reads.

    run.py        runs the module on tensors without data, a stage a call
    recorder.py   hears every ATen operator that it calls, and in which module
    operators/    ATen's operators → ONNX's, a file a family
    graph.py      the graph that comes out; onnx_file.py writes it as ONNX
    models.py     networks of torchvision, timm, transformers and diffusers by their names

Why not one of PyTorch's exporters: they fold normalisations, merge equal parameters, write weights, take minutes and
gigabytes for a language model, and fail on what a module decides from its data. A training job needs none of what makes
exporting hard: no graph that runs on other inputs, only the operators of this run and their shapes. So a module runs as it is,
in training mode, on tensors of shapes alone (torch._subclasses.FakeTensorMode), in inference mode, where PyTorch shows
`linear`, `layer_norm` and `scaled_dot_product_attention` as they were called, before taking them apart.
"""
