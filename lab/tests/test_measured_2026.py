"""Tests that steps collected in 2026 become labels for one pass on one GPU, without ambiguous ones."""

import json

import pytest

from mdot_lab.predictor import language, measured_2026, published
from mdot_lab.predictor.labels import ADAMW, BACKWARD, CIFAR_RESNET18, SELECTIVE, SGD, Network


def _read(folder, name, *lines):
    path = folder / name
    path.write_text("# where it is from\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return list(published.read(path))


def test_superbench_nodes_count_once(tmp_path):
    rows = [f"node-{node},{step}" for node in (1, 2) for step in ("bert-large,32,float32,307.9,1", "resnet50,192,float16,200.1,1")]
    bert, resnet = _read(tmp_path, "superbench_a100.csv", "node,model,batch,precision,step_ms,samples_s", *rows)
    assert (bert.network, bert.precision, bert.optimizer, bert.is_fused) == (
        Network("language.bert_large_classifier", 224), "tf32", ADAMW, False)
    assert (resnet.network, resnet.precision, resnet.optimizer) == (Network("torchvision.resnet50", 224), "fp16", SGD)
    assert {bert.kind, resnet.kind} == {BACKWARD}


POINTS = "source,model,gpu,gpus,micro_batch,precision,sequence,parallel,checkpointing,compile,throughput,unit,peak_memory_gib,notes"


def test_steps_of_one_node_without_tensor_parallelism_are_read(tmp_path):
    titan, evo = "pytorch/torchtitan@b5:x.md,Llama 3.1 8B,H100-SXM", "InternLM/InternEvo@c6:x.md,InternLM 7B,A100-SXM-80GB"
    labels = _read(tmp_path, "llm_points.csv", POINTS,
                   f"{titan},8,2,bf16,8192,fsdp=8,selective,compile,8192,tokens/s/gpu,77,",
                   f"{titan},8,2,fp8,8192,fsdp=8,selective,compile,8192,tokens/s/gpu,77,",
                   f"{titan},128,2,bf16,8192,fsdp=128,selective,compile,8192,tokens/s/gpu,77,",
                   f'{evo},8,8,bf16,2048,"tp=1,zero1=8",full,,4096,tokens/s/gpu,,1 micro batches a step',
                   f'{evo},8,4,bf16,2048,"tp=2,zero1=4",none,,4096,tokens/s/gpu,,4 micro batches a step',
                   "pytorch/torchtune@bd:x.md,Llama 3.1 8B,RTX-A6000,1,2,bf16,2048,,,compile,2579,tokens/s,37.4,full")
    llama, internlm = labels
    assert (llama.step_ms, llama.recomputes, llama.is_compiled, llama.is_fused) == (2000.0, SELECTIVE, True, True)
    assert (internlm.step_ms, internlm.recomputes, internlm.batch, internlm.is_compiled) == (4000.0, 1.0, 8, False)


def test_nanogpt_records_with_known_networks_are_read(tmp_path):
    head = "track,record,gpu,torch,batch,device_batch,sequence,step_ms_median"
    label, = _read(tmp_path, "modded_nanogpt.csv", head, "t,2024-10-18_PyTorch25,H100,2.5.0+cu124,8*64,32,1024,140",
                   "t,2024-10-10_Muon,H100,2.4.1+cu121,8*64,64,1024,216")
    assert (label.batch, label.step_ms, label.software, label.precision) == (32, 70.0, "pt250", "amp_bf16")


def test_the_time_of_a_further_micro_batch_excludes_what_a_step_has_once(tmp_path):
    rows = [f"{measured_2026.SIMUMAX_CASE.format(count)},{count},{100 + 50 * count}" for count in (4, 8, 32)]
    label, = _read(tmp_path, "simumax_b200.csv", "case,micro_batches,measured_ms", *rows)
    assert (label.step_ms, label.batch, label.gpu) == (50.0, 1, "B200-SXM-180GB")


def test_gavel_jobs_become_steps(tmp_path):
    steps = {"('LM (batch size 5)', 1)": {"null": 100.0}, "('ResNet-18 (batch size 16)', 1)": {"null": 30.0},
             "('ResNet-18 (batch size 128)', 1)": {"null": 10.0}, "('LM (batch size 5)', 2)": {"null": 150.0}}
    path = tmp_path / "simulation_throughputs.json"
    path.write_text(json.dumps({gpu: steps for gpu in measured_2026.GAVEL_GPUS}), encoding="utf-8")
    found = [(label.network.name, label.gpu, label.batch, label.step_ms) for label in published.read(path)]
    words = language.LANGUAGE + language.WORDS
    assert found == [(words, "K80", 5, 10.0), (words, "P100-PCIe-16GB", 5, 10.0), (words, "V100-SXM-16GB", 5, 10.0),
                     (CIFAR_RESNET18, "P100-PCIe-16GB", 128, 100.0), (CIFAR_RESNET18, "V100-SXM-16GB", 128, 100.0)]


def test_pollux_steps_of_one_gpu_are_read(tmp_path):
    head = "application,table,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms"
    label, = _read(tmp_path, "pollux_step_times.csv", head, "cifar10,placements,1,1,1,128,103.8,0.5",
                   "cifar10,placements,1,1,1,32,42.8,0.5", "cifar10,placements,2,1,2,128,120,20", "bert,placements,1,1,1,4,455,13")
    assert (label.network, label.gpu, label.step_ms) == (Network(CIFAR_RESNET18, 32), "T4", 103.8)


@pytest.mark.parametrize("name", ("bert_base_classifier", "bert_large_classifier", "gpt2_large_classifier", "llama3_8b",
                                  "llama3_70b_6_layers", "internlm_7b", "nanogpt"))
def test_every_language_model_of_the_labels_has_a_definition(name):
    kind, settings = language.definition(name, 1024)
    assert kind and settings


def test_graphs_call_the_attention_kernels_that_were_measured():
    fused = ("mpt-7b", "llama3_8b", "internlm_7b", "nanogpt", "llama3_70b_6_layers")
    assert {language.attention(name) for name in fused} == {"sdpa"}
    assert {language.attention(name) for name in ("bert_large", "gpt2_large", "GPT-h1024-L24-a16", "opt_350m")} == {"eager"}
