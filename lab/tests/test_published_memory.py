"""Published peaks: reading each source's rows, and rows beyond mdot's options."""

import json

import pytest

pytest.importorskip("mdot")

from mdot_lab.checks.memory import published, run_published    # noqa: E402
from mdot_lab.checks.memory.published import hf_trainer, litgpt, llm_points, megatron, megatron_golden    # noqa: E402
from mdot_lab.checks.memory.published.point import GB, GIB, Point    # noqa: E402


def _llm(**changed):
    row = {"source": "pytorch/torchtitan@1:x.md", "model": "Llama 3.1 8B", "gpu": "H100", "gpus": "8", "micro_batch": "2",
           "precision": "bf16", "sequence": "8192", "parallel": "fsdp=8", "checkpointing": "selective", "compile": "eager",
           "peak_memory_gib": "82.4", "notes": ""}
    return {**row, **changed}


def _bigscience(**changed):
    row = {"place": "a.md:1", "gpu": "A100-SXM-80GB", "gpus": "384", "size": "181B", "layers": "", "hidden": "", "heads": "",
           "dp": "4", "tp": "8", "pp": "12", "micro_batch": "2", "global_batch": "2048", "memory": "37GB", "section": "",
           "near": "NHIDDEN=14336 / NLAYERS=72"}
    return {**row, **changed}


def _litgpt(**changed):
    row = {"data": "alpaca2k", "model": "llama-2-7b", "method": "lora", "gpu": "A10G", "gpus": "1", "micro_batch": "2",
           "peak_memory_gb": "19.77"}
    return {**row, **changed}


def test_torchtitan_counts_reserved_memory_of_sharded_fp32_weights():
    point = llm_points.read(_llm())
    assert (point.counted, point.measured_bytes) == ("reserved", 82.4 * GIB)
    assert point.model.type == "bfloat16" and point.model.sequence == 8192
    assert point.options["zero"] == 3 and not point.options["compiled"]


def test_selective_checkpoints_of_torchtitan_belong_to_its_program():
    selective, full = llm_points.read(_llm()), llm_points.read(_llm(checkpointing="full"))
    assert (selective.options["checkpoint"], selective.model.saves_every_second_product) == ("nothing", True)
    assert (full.options["checkpoint"], full.model.saves_every_second_product) == ("blocks", False)


def test_degrees_of_parallelism_become_options():
    row = {"parallel": "fsdp=4,tp=8,pp=8,cp=2", "gpus": "512", "micro_batch": "32"}
    names = ("tensor_parallel", "pipeline_parallel", "context_parallel", "micro_batches", "virtual_stages", "sequence_parallel")
    plain, interleaved = (llm_points.read(_llm(notes=notes, **row)) for notes in ("1F1B", "interleaved 1F1B"))
    assert [plain.options[name] for name in names] == [8, 8, 2, 8, 1, True]
    assert [interleaved.options[name] for name in names] == [8, 8, 2, 16, 2, True]


def test_other_sources_and_rows_without_memory_are_left_out():
    assert llm_points.read(_llm(peak_memory_gib="")) is None
    assert llm_points.read(_llm(source="AMD-AGI/Primus@1:x.md")) is None


def test_litgpt_adapts_the_modules_of_its_configuration():
    point, tiny = litgpt.read(_litgpt()), litgpt.read(_litgpt(model="tiny-llama"))
    assert point.measured_bytes == pytest.approx(19.77 * GB)
    assert (point.model.lora_rank, point.model.lora_modules) == (32, ("q_proj", "v_proj"))
    assert tiny.model.lora_modules[-1] == "lm_head"
    assert dict(litgpt.read(_litgpt(model="gemma-2b")).model.values)["tie_word_embeddings"] is False


def test_litgpt_quantises_the_base_of_qlora_and_leaves_out_failures():
    assert litgpt.read(_litgpt(method="qlora")).options["frozen_weights"] == "nf4-single"
    lora = "Finetuning with LoRA on 1 GPU, bnb."
    assert litgpt.read(_litgpt(method=lora + "nf4-dq")).options["frozen_weights"] == "nf4"
    assert litgpt.read(_litgpt(method=lora + "nf4")).options["frozen_weights"] == "nf4-single"
    assert litgpt.read(_litgpt(peak_memory_gb="OOM")) is None
    assert litgpt.read(_litgpt(method="Single-GPU Inference")) is None


def test_litgpt_rows_that_cannot_be_rebuilt_say_why():
    assert "adapters" in litgpt.read(_litgpt(method="Finetuning with Adapter on 1 GPU")).missing
    assert "below weights" in litgpt.read(_litgpt(method="full", model="llama-3.2-3b")).missing


def test_bigscience_takes_the_widths_that_give_the_size():
    assert megatron.widths(_bigscience()) == (14336, 72)
    assert megatron.widths(_bigscience(near="NHIDDEN=13824 / NLAYERS=84 / NHIDDEN=14336 / NLAYERS=72")) == (14336, 72)
    assert megatron.widths(_bigscience(size="203B")) is None


def test_bigscience_divides_the_global_batch_into_micro_batches():
    point = megatron.bigscience(_bigscience())
    assert (point.options["batch"], point.options["micro_batches"]) == (512, 256)
    assert dict(point.model.values)["n_head"] == 64
    assert megatron.bigscience(_bigscience(memory="GB")) is None
    assert "heads" in megatron.bigscience(_bigscience(heads="100")).missing


def test_bigscience_counts_in_thousands_of_mib_on_an_early_version():
    point = megatron.bigscience(_bigscience(memory="80GB"))
    assert point.measured_bytes == 80000 * 2**20 < 79.2 * GIB
    assert point.options["torch"] == "1.11"


def test_simumax_shards_sequences_beside_tensors():
    row = {"case": "x", "layers": "12", "tp": "2", "cp": "4", "pp": "1", "dp": "1", "micro_batches": "4",
           "sequence_if_said": "32768", "measured_alloc_gib": "68.43"}
    point = megatron.simumax(row)
    assert point.options["sequence_parallel"] and point.options["context_parallel"] == 4 and point.options["accumulate"] == 4
    assert megatron.simumax({**row, "sequence_if_said": ""}).model.sequence == 4096


def _megatron(**arguments):
    a = {"num-layers": 4, "hidden-size": 512, "num-attention-heads": 8, "seq-length": 1024, "micro-batch-size": 4, **arguments}
    return {"model": "gpt", "parallel": "", "software": "Megatron-Core 0.13.0", "source": "x:test_cases/gpt/x/golden.json", "gpu": "A100",
            "gpus": "8", "global_batch": "32", "peak_memory_gib": "1.5", "notes": json.dumps({"args": a, "env": ""})}


@pytest.mark.parametrize("instances", (1, 2, 4))
@pytest.mark.parametrize("shards", (True, False))
def test_each_instance_of_an_optimizer_shards_over_its_own_gpus(instances, shards):
    row = _megatron(**{"num-distributed-optimizer-instances": instances, "use-distributed-optimizer": shards, "tensor-model-parallel-size": 2})
    point = megatron_golden.read(row)
    assert point.options["gpus"] == 8 and point.options["accumulate"] == 2  # a step has the samples of all GPUs
    assert {**point.options, **point.for_memory}["gpus"] == (8 // instances if shards else 8)


def test_schedules_of_batches_leave_the_number_of_gpus_open():
    assert "GPUs" in megatron_golden.read({**_megatron(**{"step-batch-size-schedule": "0:384"}), "gpus": ""}).missing


@pytest.mark.parametrize("top, layers, tensor, hidden", [(1, 12, 2, 512), (2, 12, 2, 512), (2, 6, 1, 1024), (4, 3, 4, 256)])
def test_grouped_products_have_four_workspaces_and_keep_what_probabilities_multiply(top, layers, tensor, hidden):
    def beside(gpu, software, **more):
        a = {"num-layers": layers, "hidden-size": hidden, "num-attention-heads": 8, "seq-length": 1024, "micro-batch-size": 4,
             "tensor-model-parallel-size": tensor, "num-experts": 8, "moe-router-topk": top, "transformer-impl": "transformer_engine", **more}
        row = {"model": "moe: x", "source": "a@1:test_cases/moe/x", "software": software}
        network = megatron_golden.network(row, a, "")
        return megatron_golden.beside(row, a, "CUBLAS_WORKSPACE_CONFIG=:4096:8", gpu, network)

    new, old, kept = "NGC PyTorch 25.05", "NGC PyTorch 24.01", 2 * 4096 * top * 4 * hidden * layers / tensor
    grouped = {"moe-grouped-gemm": True}
    assert beside("A100", new, **grouped) - beside("A100", old, **grouped) == 16 * 2**20 + kept
    assert beside("H100", new, **grouped) - beside("A100", new, **grouped) == 140 * 2**20
    assert beside("H100", new, **grouped, swiglu=True) - beside("H100", new, swiglu=True) == 128 * 2**20
    assert beside("H100", new) == beside("H100", old)


@pytest.mark.parametrize("mib, is_left_out", (("5527.0", True), ("79000", False), (None, False)))
def test_failures_with_an_empty_card_are_no_label(mib, is_left_out):
    notes = {"oom": True, "method": "full", "nvidia_smi_mib": mib}
    row = {"model": "mistralai/Mistral-7B-v0.1", "precision": "bfloat16 weights", "gpus": "1", "micro_batch": "4", "compile": "eager", "doubt": "",
           "gpu": "A100", "software": "torch 2.4.1", "seq_or_size": "4096", "peak_memory_gib": "", "notes": json.dumps(notes)}
    assert ("empty" in hf_trainer.read(row).missing) == is_left_out


def test_options_that_mdot_lacks_are_named():
    known, lacking = run_published.expressible({"batch": 2, "precision": "fp7", "warp_parallel": 2, "zero": 1})
    assert known == {"batch": 2, "zero": 1}
    assert lacking == ["precision=fp7", "warp_parallel=2"]


def test_row_that_mdot_cannot_express_has_no_prediction():
    model = llm_points.read(_llm()).model
    point = Point("source", "row", 1.0 * GIB, "reserved", "A100", model=model, options={"warp_parallel": 2})
    row = run_published.predict(point, run_published.Jobs(None))
    assert row.ratio is None and row.note == "not expressible: warp_parallel=2"


def test_missing_files_are_reported(tmp_path, capsys):
    assert published.read(tmp_path) == []
    assert capsys.readouterr().err.count("skipped") == len(published.FILES)


def test_summary_lists_sources_and_reasons():
    good = run_published.Row(Point("a", "x", 4 * GIB, "allocated", "A100"), 5 * GIB)
    bad = run_published.Row(Point("b", "y", 4 * GIB, "nvidia-smi", "A100"), note="not expressible: z=1")
    lines = run_published.summary([good, bad]).splitlines()
    assert "| a, allocated | 1 | 25.0 | 0 | 0 | 25.0 |" in lines
    assert "| b, nvidia-smi | 0 | | | | |" in lines
    assert "    1 x b: not expressible: z=1" in lines
