"""Tests that published language-model steps become labels for one pass on one GPU."""

import json

import pytest

from mdot_lab.predictor import batches, dataset, language, published
from mdot_lab.predictor.labels import BACKWARD, INFER, Network

HEAD = "source,model,gpu,gpus,batch_per_gpu,seq_or_resolution,throughput,notes\n"


def _points(folder, *rows):
    path = folder / "points.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return list(published.read(path))


def test_neusight_labels_have_network_length_batch_and_kind(tmp_path):
    folder = tmp_path / "NVIDIA_L4"
    folder.mkdir()
    for name in ("gpt2_large-inf-1024-4", "bert_large-train-512-2", "gpt2_large-inf-1024-4-fusion", "switchxl4-train-512-1"):
        (folder / f"{name}.json").write_text(json.dumps({"e2e_latency": 12.5}), encoding="utf-8")
    bert, gpt = published.read(tmp_path)
    assert (bert.network, bert.batch, bert.kind) == (Network("language.bert_large", 512), 2, BACKWARD)
    assert (gpt.network, gpt.batch, gpt.kind) == (Network("language.gpt2_large", 1024), 4, INFER)
    assert (gpt.gpu, gpt.precision, gpt.is_fused, gpt.step_ms) == ("L4", "fp32", False, 12.5)


def test_a_step_with_accumulation_is_reduced_to_one_pass(tmp_path):
    note = "grad_accum=4; global_batch=64; amp_bf16; DEFAULT; FULL_SHARD; True; False; 1345310720; MFU=56.6"
    label, = _points(tmp_path, f"mosaicml/llm-foundry@8c:README.md,mpt-1b,a100_80gb,8,2,16384,65536,{note}",
                     f"mosaicml/llm-foundry@8c:README.md,mpt-1b,a100_80gb,64,2,16384,65536,{note}")
    assert label.step_ms == pytest.approx(64 * 16384 / 65536 / 4 * 1e3)
    assert (label.batch, label.recomputes, label.is_fused, label.precision) == (2, True, True, "amp_bf16")


def test_data_parallel_vtrain_points_exclude_the_all_reduce(tmp_path):
    row = ("VIA-Research/vTrain@1:data,GPT-h1024-L24-a16,A100,2,1,1024,1,"
           "iteration_ms=400; global_batch=16; tp={}; dp=2; pp=1; on")
    label, = _points(tmp_path, row.format(1), row.format(2))
    reduced_ms = 2 * (12 * 24 * 1024**2 + 51200 * 1024) / 230e6     # half of the GPUs' bytes twice, for two GPUs
    assert label.step_ms == pytest.approx((400 - reduced_ms) / 8)
    assert label.recomputes and not label.is_fused


def test_sailor_labels_exclude_the_optimizer(tmp_path):
    note = "sum; total_ms=1000; fwd+bwd_ms=800.5; optimizer_ms=199.5"
    v100, a100 = _points(tmp_path, f"eth-easl/sailor@1:x,OPT-350,V100-16,1,2,2048,1,{note}",
                         f"eth-easl/sailor@1:x,OPT-350,A100-80,1,2,2048,1,{note}",
                         f"eth-easl/sailor@1:x,OPT-350,A100-80,2,2,2048,1,{note}")
    assert (v100.step_ms, v100.precision, a100.precision) == (800.5, "fp32", "tf32")


def test_every_model_of_the_points_has_a_definition():
    for name in (*published.SAILOR_MODELS.values(), *(f"mpt-{size}" for size in language.MPT), "GPT-h1024-L24-a16",
                 "bert_large", "gpt2_large", "gpt3_xl", "gpt3_27", "opt_13"):
        kind, arguments = language.definition(name, 1024)
        assert kind and arguments


def test_recomputation_counts_the_forward_pass_twice(make_sequence, make_label):
    sequences = {Network("language.gpt", 224): make_sequence(2)}
    labels = [make_label("language.gpt", 1, 1.0, run="vtrain", kind="backward", recomputes=again) for again in (False, True)]
    data = dataset.build(sequences, labels)
    once, again = (batches.make(data, batches.np.array([i])) for i in (0, 1))
    assert (again.part_weight[:, 0] == 2 * once.part_weight[:, 0]).all()
    assert (again.part_weight[:, 1] == once.part_weight[:, 1]).all()
    assert again.launches > once.launches
