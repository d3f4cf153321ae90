"""Tests ONNX graphs, rebuilt without GPU and weights."""

import pytest

onnx = pytest.importorskip("onnx")

from mdot_lab.collect.__main__ import main
from mdot_lab.collect.catalogue import BY_NAME
from mdot_lab.collect.export_graphs import NO_FILE


def exported(tmp_path, name, *more):
    row = BY_NAME[name]
    key = f"{name}|s{row.sizes[0]}|b64|bf16|nchw|adamw|fused"
    assert main(["export", "--key", key, "--out", str(tmp_path), *more]) == 0
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size < 8_000_000     # the graph keeps the constants that tracing makes from zeros
    return onnx.load(path, load_external_data=False)


@pytest.mark.parametrize("name, operators", [
    ("torch/mlp_mnist", {"Gemm", "Relu"}),
    ("torch/unet_16", {"Conv", "ConvTranspose", "BatchNormalization", "MaxPool", "Concat"}),
    ("torch/lstm_forecast", {"LSTM"}),
    ("torch/gpt_nano", {"MatMul", "Softmax", "LayerNormalization"}),
    ("torch/switch_8", {"TopK", "MatMul"}),
    ("torch/dlrm_small", {"Gather", "Gemm"}),
])
def test_graph_keeps_operators_and_shapes_without_weights(tmp_path, name, operators):
    model = exported(tmp_path, name)
    assert operators <= {node.op_type for node in model.graph.node}
    assert [i.name for i in model.graph.input] == [f"input_{i}" for i in range(len(model.graph.input))]
    assert model.graph.initializer
    for tensor in model.graph.initializer:
        assert tensor.data_location == onnx.TensorProto.EXTERNAL and tensor.external_data[0].value == NO_FILE
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["architecture"] == name


def test_initializers_hold_every_parameter(tmp_path):
    import math

    model = exported(tmp_path, "torch/mlp_mnist")
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert sum(math.prod(t.dims) for t in model.graph.initializer) == int(notes["parameters"])


def test_dynamic_batch_leaves_the_dimension_symbolic(tmp_path):
    model = exported(tmp_path, "torch/mlp_mnist", "--dynamic-batch")
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_an_unknown_architecture_is_reported_by_name(tmp_path, capsys):
    assert main(["export", "--key", "torch/none|s1|b1|fp32|nchw|sgd|foreach", "--out", str(tmp_path)]) == 1
    assert "torch/none" in capsys.readouterr().err


def test_rms_norm_is_decomposed(tmp_path):
    model = exported(tmp_path, "torch/llama_20m")
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("ReduceMean") == operators.count("Pow") == 17     # two per block, eight blocks, one at the end
