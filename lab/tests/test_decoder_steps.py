"""Tests how parallelism changes a decoder's layers, and reads published steps."""

import numpy as np
import pytest
import torch

from mdot_lab.operator_benchmarks import decoder_steps, step_costs

HEADER = "source,model,gpu,batch_per_gpu,seq_or_resolution,notes\n"
ROW = ("VIA-Research/vTrain@1:x.csv,GPT-h2048-L16-a8,A100-SXM-80GB,2.0,1024.0,"
       "iteration_ms=396.5; global_batch=32; tp=4; dp=2; pp=1; activation checkpointing on\n")


def test_points_are_read_with_their_parallelism(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(HEADER + ROW + "someone/else@1:y.csv,GPT-h1-L1-a1,V100,1,1,\n")
    s = decoder_steps.read(path)
    assert len(s.step_ms) == 1 and s.step_ms[0] == 396.5
    assert (s.hidden[0], s.layers[0], s.heads[0], s.sequence[0]) == (2048, 16, 8, 1024)
    assert (s.tensor[0], s.data[0], s.pipeline[0], s.gpus[0]) == (4, 2, 1, 8)
    assert s.micro_batches[0] == 32 / (2 * 2)


def _features(**changes: float) -> dict[str, torch.Tensor]:
    values = {"forward": 1.0, "backward": 2.0, "logits": 1.0, "maps": 0.01, "wide_maps": 0.04, "score_maps": 0.01,
              "logit_maps": 0.1,
              "exchange": 0.0, "optimizer_step": 5.0, "reduced_step": 0.0, "sent": 0.0, "layers": 24.0, "micro_batches": 8.0,
              "stages": 1.0, "is_parallel": 0.0, "step_ms": 100.0, **changes}
    return {name: torch.tensor([float(value)]) for name, value in values.items()}


def _ms(**changes: float) -> float:
    return decoder_steps.StepCosts()(_features(**changes)).item()


def test_a_pipeline_has_a_bubble():
    stages = 4
    split, whole = _ms(layers=24 / stages, stages=stages), _ms()
    assert split > whole / stages
    ratio = _ms(layers=24 / stages, stages=stages, micro_batches=800) / _ms(micro_batches=800)
    assert ratio == pytest.approx(1 / stages, rel=0.1)


def test_small_steps_take_the_host_time():
    assert _ms(forward=1e-3, backward=2e-3) == pytest.approx(_ms(forward=1e-4, backward=2e-4), rel=0.01)
    assert _ms(forward=1e-3, backward=2e-3, is_parallel=1) > _ms(forward=1e-3, backward=2e-3)


def test_collectives_add_time():
    assert _ms(exchange=0.5, is_parallel=1) > _ms(is_parallel=1) + 8 * 24 * 0.5
    assert _ms(reduced_step=50) == pytest.approx(_ms() + 50)


def test_fitting_recovers_the_costs():
    random = np.random.default_rng(0)
    count = 60
    f = {name: value.expand(count) * torch.tensor(random.uniform(0.5, 2, count), dtype=torch.float32)
         for name, value in _features(exchange=0.3).items()}
    truth = decoder_steps.StepCosts()
    with torch.no_grad():
        truth.log["matmul"] += 0.5
        truth.log["maps"] -= 0.5
        f["step_ms"] = truth(f)
    torch.manual_seed(0)
    model = step_costs.fit(decoder_steps.StepCosts, f)
    assert (model(f) / f["step_ms"] - 1).abs().median().item() < 0.02
    assert model.log["matmul"].item() == pytest.approx(0.5, abs=0.1)
