"""Records by mdot_lab.collect become the predictor's labels."""

import json

import pytest

from mdot_lab.predictor import collected, conditions, families
from mdot_lab.predictor.labels import BACKWARD, INFER, Network

RECORD = {"key": "timm/seresnet50|s224|b48|bf16|nhwc|adamw|fused", "status": "ok", "repeat": 0, "size": 224, "batch": 48,
          "architecture": "timm/seresnet50", "precision": "bf16", "channels_last": True, "parameters": 28_088_024,
          "environment": {"gpu": "NVIDIA H200", "torch": "2.11.0+cu130"},
          "forward_ms": {"median": 20.0}, "backward_ms": {"median": 41.5}, "optimizer_ms": {"median": 9.0},
          "inference_ms": {"median": 12.25}}


def read(tmp_path, *records):
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return list(collected.read(path))


def test_a_record_gives_a_label_of_training_without_the_optimizer_and_one_of_inference(tmp_path):
    training, inference = read(tmp_path, RECORD)
    assert training.network == inference.network == Network("collected.timm.seresnet50", 224)
    assert (training.kind, training.step_ms, training.optimizer) == (BACKWARD, 61.5, "")
    assert (inference.kind, inference.step_ms) == (INFER, 12.25)
    for label in (training, inference):
        assert (label.gpu, label.precision, label.layout, label.software) == ("H200-SXM-141GB", "amp_bf16", "nhwc", "pt2110")
        assert (label.batch, label.parameters_m, label.run) == (48, pytest.approx(28.088), collected.RUN)


def test_failures_and_repeats_give_no_label_and_inference_may_be_missing(tmp_path):
    trained_only = {name: value for name, value in RECORD.items() if name != "inference_ms"}
    labels = read(tmp_path, {**RECORD, "status": "oom"}, {**RECORD, "repeat": 1}, trained_only)
    assert [label.kind for label in labels] == [BACKWARD]


@pytest.mark.parametrize("torch_version, number", [("2.11.0+cu130", 211), ("2.4.1", 204), ("2.9.0+cu128", 209)])
def test_versions_are_written_as_timm_writes_them(tmp_path, torch_version, number):
    record = {**RECORD, "environment": {"gpu": "NVIDIA H200", "torch": torch_version}}
    assert conditions.version(read(tmp_path, record)[0].software) == number


def test_networks_keep_their_families():
    assert families.family("collected.timm.seresnet50") == families.family("seresnet50")
    assert families.family("collected.torchvision.resnet18") == families.family("torchvision.resnet18") == "resnet"
