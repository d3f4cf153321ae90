"""Runs real steps of tiny networks on the CPU, from the command line to the merged file."""

import warnings

import pytest
import torch

from mdot_lab.collect import plan, records
from mdot_lab.collect.__main__ import main
from mdot_lab.collect.architecture import Architecture, Unavailable, build
from mdot_lab.collect.catalogue import BY_NAME, CATALOGUE
from mdot_lab.collect.measured_configuration import OPTIMIZERS, PRECISIONS, Configuration
from mdot_lab.collect.measurer import Measurer
from mdot_lab.collect.gpu_monitor import GpuMonitor, environment
from mdot_lab.collect.timing import HostClock

TINY = {
    "image": Architecture("torch/t", "t", "torch", "dense_image.unet", "segmentation", (32,), (1,),
                          dict(width=4, levels=2, classes=3), channels_last=True),
    "diffusion": Architecture("torch/t", "t", "torch", "dense_image.diffusion_unet", "diffusion", (16,), (1,),
                              dict(width=32, multipliers=[1, 2], attention_levels=1, channels=3), channels_last=True),
    "dit": Architecture("torch/t", "t", "torch", "dense_image.dit", "diffusion", (8,), (1,),
                        dict(width=32, depth=1, heads=2, patch=2, channels=4, size="$size")),
    "llama": Architecture("torch/t", "t", "torch", "decoder.llama", "tokens", (8,), (1,),
                          dict(width=32, depth=1, heads=4, kv_heads=2, hidden=48, vocab_size=50, length="$size")),
    "switch": Architecture("torch/t", "t", "torch", "decoder.mixture", "tokens", (8,), (1,),
                           dict(width=32, depth=1, heads=4, kv_heads=4, hidden=48, experts=4, chosen=2,
                                expert_choice=False, vocab_size=50, length="$size")),
    "expert choice": Architecture("torch/t", "t", "torch", "decoder.mixture", "tokens", (8,), (1,),
                                  dict(width=32, depth=1, heads=4, kv_heads=4, hidden=48, experts=4, chosen=2,
                                       expert_choice=True, vocab_size=50, length="$size")),
    "translator": Architecture("torch/t", "t", "torch", "encoder.translator", "seq2seq", (8,), (1,),
                               dict(width=32, depth=1, heads=2, hidden=64, vocab_size=50, length="$size")),
    "lstm": Architecture("torch/t", "t", "torch", "recurrent.forecaster", "series", (6,), (1,),
                         dict(cell="LSTM", features=4, width=8, depth=1)),
    "mlp": Architecture("torch/t", "t", "torch", "vector.mlp", "vector", (16,), (1,),
                        dict(features="$size", widths=[8], classes=3)),
    "dlrm": Architecture("torch/t", "t", "torch", "vector.dlrm", "recommendation", (20,), (1,),
                         dict(rows="$size", width=4, bottom=[8], top=[8])),
    "two towers": Architecture("torch/t", "t", "torch", "vector.two_tower", "recommendation", (20,), (1,),
                               dict(rows="$size", width=4, tower=[8, 4])),
}


def measured(row, precision="fp32", channels_last=False, optimizer="sgd", implementation="foreach", batch=3):
    configuration = Configuration(row.name, row.sizes[0], batch, precision, channels_last, optimizer, implementation)
    measurer = Measurer("cpu", HostClock(), GpuMonitor("cpu"), cap_seconds=200.0)
    return measurer.measure(build(row, row.sizes[0], "cpu"), row, configuration)


@pytest.mark.parametrize("kind", TINY)
def test_a_network_of_each_kind_trains(kind):
    fields = measured(TINY[kind])
    assert fields["status"] == "ok", fields
    assert fields["finite"] and fields["steps"] >= 20 and fields["warmup_steps"] >= 5
    assert 0.0 < fields["forward_ms"]["min"] < fields["step_ms"]["median"]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_runs_in_both_layouts(precision):
    for channels_last in (False, True):
        assert measured(TINY["image"], precision, channels_last)["status"] == "ok"


@pytest.mark.parametrize("optimizer, implementation", OPTIMIZERS)
def test_every_optimizer_runs(optimizer, implementation):
    assert measured(TINY["mlp"], optimizer=optimizer, implementation=implementation)["status"] == "ok"


def test_phases_add_up_to_the_step():
    fields = measured(TINY["dlrm"])
    assert sum(fields[f"{phase}_ms"]["mean"] for phase in ("forward", "backward", "optimizer")) == pytest.approx(
        fields["step_ms"]["mean"], rel=1e-3)


@pytest.mark.parametrize("fault, status", [
    (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "oom"),
    (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "oom"),
    (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), "error"),
])
def test_faults_become_statuses_and_the_next_configuration_is_measured(fault, status):
    row = TINY["mlp"]
    model = build(row, 16, "cpu")
    measurer = Measurer("cpu", HostClock(), GpuMonitor("cpu"), 200.0)
    configuration = Configuration(row.name, 16, 2, "fp32", False, "sgd", "foreach")
    forward, model.forward = model.forward, lambda *inputs: (_ for _ in ()).throw(fault)
    failed = measurer.measure(model, row, configuration)
    assert failed["status"] == status and type(fault).__name__ in failed["error"]
    model.forward = forward
    assert measurer.measure(model, row, configuration)["status"] == "ok"


def test_a_step_over_the_cap_is_a_record_with_an_estimate():
    row = TINY["mlp"]
    measurer = Measurer("cpu", HostClock(), GpuMonitor("cpu"), cap_seconds=1e-6)
    configuration = Configuration(row.name, 16, 2, "fp32", False, "sgd", "foreach")
    fields = measurer.measure(build(row, 16, "cpu"), row, configuration)
    assert fields["status"] == "over_cap" and fields["estimate_ms"] > 0


def test_expert_capacity_drops_excess_tokens():
    from mdot_lab.collect.models.decoder import Experts, Shape

    experts = Experts(Shape(8, 2, 2, 16, experts=2, chosen=1))
    with torch.no_grad():
        experts.router.weight.copy_(torch.tensor([[1.0] * 8, [-1.0] * 8]))
        outputs = experts(torch.ones(1, 6, 8))      # all six tokens choose expert 0, whose capacity is three
    assert (outputs[0, :3].abs().sum(1) > 0).all() and (outputs[0, 3:] == 0).all()


def test_an_absent_model_is_unavailable_rather_than_an_error():
    pytest.importorskip("timm")
    row = Architecture("timm/none", "f", "timm", "no_such_model", "image", (32,), (1,))
    with pytest.raises(Unavailable, match="no no_such_model"):
        build(row, 32, "cpu")


def test_environment_names_versions_and_no_host():
    import platform

    found = environment(GpuMonitor("cpu"), "cpu")
    assert found["torch"] == torch.__version__ and found["device"] == "cpu" and found["gpu"] is None
    assert platform.node() not in (str(value) for value in found.values())


@pytest.mark.parametrize("row", [row for row in CATALOGUE if row.library == "torch"], ids=lambda row: row.name)
def test_own_models_train_at_every_size(row):
    """Runs on the meta device, which checks shapes in forward, loss and backward without computing."""
    from mdot_lab.collect.tasks import TASKS

    for size in row.sizes:
        with torch.device("meta"):
            model = build(row, size, "meta")
        inputs = TASKS[row.task].inputs(2, size, row.arguments, "meta")
        outputs = model(*inputs)
        TASKS[row.task].loss(outputs, TASKS[row.task].targets(outputs)).backward()
        assert all(p.grad is not None for p in model.parameters())


def test_the_command_line_measures_resumes_repeats_and_merges(tmp_path, capsys, monkeypatch):
    # A twentieth of so few configurations may be zero, therefore repeat all.
    monkeypatch.setattr(plan, "to_repeat", lambda keys, fraction: sorted(set(keys)))
    run = ["--out", str(tmp_path / "parts"), "--device", "cpu", "--only", "torch/(mlp_mnist|tcn_small)",
           "--max-batch", "1", "--seconds", "1000", "--cap-seconds", "200"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["run", *run, "--shard", "0/1"]) == 0
        first = list(records.read_all([tmp_path / "parts"]))
        assert main(["run", *run]) == 0
        assert list(records.read_all([tmp_path / "parts"])) == first
        assert main(["repeat", *run]) == 0
    assert len(first) >= 4 and {r["status"] for r in first} == {"ok"}
    assert all(records.faults(r) == [] for r in first)
    assert {r["family"] for r in first} == {"mlp", "temporal convolution"}
    out = tmp_path / "cpu.jsonl.gz"
    assert main(["merge", str(tmp_path / "parts"), "--out", str(out), "--summary", str(tmp_path / "summary.md")]) == 0
    merged = list(records.read(out))
    assert len(merged) == 2 * len(first)
    assert f"{len(first)} configurations; median difference" in (tmp_path / "summary.md").read_text()


def test_run_without_a_gpu_fails_with_a_message(tmp_path, capsys):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert main(["run", "--out", str(tmp_path)]) == 1
    assert "no CUDA device" in capsys.readouterr().err


@pytest.mark.parametrize("shard", ["1/1", "x", "-1/2", "3/2"])
def test_an_invalid_shard_is_refused(shard, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["plan", "--shard", shard])
    assert "expected INDEX/COUNT" in capsys.readouterr().err or shard.startswith("-")


def test_keys_contain_catalogue_names():
    first = [visit.configurations[0].key for visit in plan.visits(CATALOGUE[:20])]
    assert all(Configuration.from_key(key).architecture in BY_NAME for key in first)


def test_inference_is_measured_beside_training_and_leaves_the_model_in_training_mode():
    row = TINY["image"]
    model = build(row, row.sizes[0], "cpu")
    configuration = Configuration(row.name, row.sizes[0], 3, "bf16", True, "sgd", "foreach")
    fields = Measurer("cpu", HostClock(), GpuMonitor("cpu"), cap_seconds=200.0).measure(model, row, configuration)
    assert 0.0 < fields["inference_ms"]["median"] < fields["step_ms"]["median"]
    assert "inference_error" not in fields and model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_fault_in_inference_keeps_the_measured_step():
    class TrainsOnly(torch.nn.Linear):
        def forward(self, x):
            if not self.training:
                raise RuntimeError("no evaluation")
            return super().forward(x)

    row = TINY["mlp"]
    configuration = Configuration(row.name, 16, 3, "fp32", False, "sgd", "foreach")
    fields = Measurer("cpu", HostClock(), GpuMonitor("cpu"), 200.0).measure(TrainsOnly(16, 3), row, configuration)
    assert fields["status"] == "ok" and "no evaluation" in fields["inference_error"] and "inference_ms" not in fields
