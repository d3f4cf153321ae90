"""Tests how published steps become arguments for `mdot.predict`."""

import pytest

from mdot_lab.checks.points import Point, decoders, distinct, nvidia, profet, submissions
from mdot_lab.predictor import language
from mdot_lab.predictor.labels import Network

EXAMPLES = {"source": "NVIDIA/DeepLearningExamples@7:README.md", "gpu": "", "seq_or_resolution": "", "notes": "",
            "batch_per_gpu": ""}


def _example(**values: str) -> Point | None:
    return nvidia.read({**EXAMPLES, "gpu": values["gpu_canonical"], **values})


def test_image_networks_default_to_the_batch_of_the_example():
    half = _example(model="resnet50v1.5", framework="PyTorch", gpu_canonical="V100", gpus="1", precision="amp-fp16",
                    throughput="1280", notes="Training performance: NVIDIA DGX-1 16GB (8x V100 16GB)")
    assert (half.network, half.gpu_model, half.step_ms) == (Network("resnet50", 224), "V100-SXM-16GB", 200)
    assert (half.options["batch"], half.options["layout"], half.options["precision"]) == (256, "nhwc", "amp")
    fp32 = _example(model="ConvNets se-resnext101-32x4d", framework="PyTorch", gpu_canonical="V100", gpus="8", precision="fp32",
                    throughput="1024", notes="NVIDIA DGX-1 32G (8x V100 32GB)")
    assert (fp32.network.name, fp32.gpu_model, fp32.step_ms) == ("seresnext101_32x4d", "V100-SXM-32GB", 500)
    assert (fp32.options["batch"], fp32.options["layout"], fp32.gpus) == (64, "nchw", 8)


@pytest.mark.parametrize("precision, batch, passes", [("amp-fp16", 312, 256), ("tf32", 176, 512)])
def test_the_larger_accumulation_belongs_to_the_smaller_batch(precision, batch, passes):
    point = _example(model="BERT", framework="TensorFlow2", gpu_canonical="A100-80", gpus="1", precision=precision,
                     throughput="100", batch_per_gpu=str(batch), seq_or_resolution="128",
                     notes="grad_accum=256 , 512; Pre-training performance: Single-node")
    assert point.options["accumulate"] == passes
    assert point.step_ms == pytest.approx(1e3 * batch * passes / 100)


def test_underspecified_points_are_skipped():
    base = dict(framework="TensorFlow2", gpu_canonical="V100", precision="fp32", throughput="1", batch_per_gpu="8",
                seq_or_resolution="128")
    # the number of nodes is unknown
    assert _example(model="BERT", gpus="16", notes="Pre-training: Multi-node", **base) is None
    assert _example(model="BERT", gpus="", notes="Pre-training: Multi-node", **base) is None
    # the batch of all micro-steps
    assert _example(model="BERT", gpus="1", **{**base, "framework": "PaddlePaddle", "batch_per_gpu": "4096"}) is None
    assert _example(model="ELECTRA", gpus="1", notes="Pre-training", **base) is None
    assert _example(model="WideAndDeep", gpus="1", **base) is None


def test_batches_of_tokens_are_sentences():
    point = _example(model="Transformer", framework="PyTorch", gpu_canonical="A100-40", gpus="8", precision="tf32",
                     throughput="8192", batch_per_gpu="10240")
    assert (point.options["batch"], point.network.image_size, point.step_ms) == (320, 32, 10000)


def test_submissions_of_one_node_are_read():
    row = {"model": "resnet", "gpu_canonical": "H100-SXM", "gpus": "8", "batch_per_gpu": "400.0", "throughput": "3200",
           "notes": "nodes=1"}
    point = submissions.resnet(row)
    assert (point.gpu_model, point.step_ms, point.gpus) == ("H100-SXM-80GB", 1000, 8)
    assert submissions.resnet({**row, "notes": "nodes=2"}) is None


def test_profets_networks_have_keras_input_sizes():
    row = {"model": "VGG16", "gpu_canonical": "K80", "gpus": "1", "batch_per_gpu": "32", "seq_or_resolution": "224",
           "throughput": "64"}
    assert profet.read(row).step_ms == 500
    assert profet.read({**row, "seq_or_resolution": "32"}) is None
    assert profet.read({**row, "model": "LeNet5"}) is None


def test_parallelism_of_vtrains_points_becomes_options():
    row = {"source": "VIA-Research/vTrain@1:data", "model": "GPT-h1024-L24-a16", "gpu": "A100", "gpus": "16",
           "batch_per_gpu": "2",
           "seq_or_resolution": "1024", "throughput": "1", "notes": "iteration_ms=400; global_batch=64; tp=2; dp=4; pp=2; on"}
    point = decoders.vtrain(row)
    assert (point.gpus, point.options["nodes"], point.options["micro_batches"], point.options["batch"]) == (16, 2, 8, 16)
    assert not point.is_trained


def test_every_requested_language_model_has_a_definition():
    for name in nvidia.LANGUAGE_MODELS.values():
        assert language.definition(name, 128)


def test_each_reader_has_its_own_source():
    readers = [set(module.READERS) for module in (decoders, nvidia, submissions, profet)]
    assert sum(map(len, readers)) == len(set.union(*readers))


def test_a_step_that_a_publisher_repeats_counts_once():
    once, again, slower = (_example(model=model, framework="PyTorch", gpu_canonical="V100", gpus="8", precision="fp32",
                                    throughput=throughput) for model, throughput in
                           (("resnet50v1.5", "2855"), ("ConvNets resnet50", "2855"), ("ConvNets resnet50", "2766")))
    assert distinct([once, again, slower]) == [once, slower]
