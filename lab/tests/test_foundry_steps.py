"""Tests a decoder's step with sharded state: published points, and sharding cost."""

import pytest
import torch

from mdot_lab.operator_benchmarks import foundry_steps, step_costs

HEADER = "source,model,gpu,gpus,batch_per_gpu,seq_or_resolution,throughput,notes\n"
ROWS = ("mosaicml/llm-foundry@1:x.md,mpt-7b,a100_80gb,16,4,2048,10000,grad_accum=2; global_batch=128; amp_bf16; DEFAULT; "
        "FULL_SHARD; True; False; 6658859008; MFU=51\n"
        "mosaicml/llm-foundry@1:x.md,mpt-1b,a100_40gb,8,1,8192,20000,grad_accum=3; global_batch=24; bf16; PURE; FULL_SHARD; "
        "False; False; 1315950592; MFU=44\n")


def test_points_are_read(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(HEADER + ROWS + "someone/else@1:y.csv,GPT,V100,1,1,1,1,x\n")
    s = foundry_steps.read(path)
    assert list(s.model) == ["mpt-7b", "mpt-1b"] and list(s.gpus) == [16, 8]
    assert list(s.accumulation) == [2, 3] and list(s.micro_batch) == [4, 1]
    assert list(s.is_recomputed) == [1, 0] and list(s.is_pure) == [0, 1]
    assert s.step_ms == pytest.approx([1e3 * 128 * 2048 / 10000, 1e3 * 24 * 8192 / 20000])


def test_every_published_model_and_gpu_is_defined():
    for hidden, layers, heads in foundry_steps.SHAPES.values():
        assert hidden % heads == 0 and layers > 0
    assert set(foundry_steps.GPUS) == set(foundry_steps.MEMORY_GBPS)


def _ms(**changes: float) -> float:
    values = {"forward": 5.0, "backward": 10.0, "attention_forward": 1.0, "attention_backward": 2.5, "maps": 0.05,
              "logits": 3.0,
              "logit_maps": 0.5, "gather": 0.5, "scatter": 0.5, "optimizer": 5.0, "layers": 24.0, "accumulation": 2.0,
              "is_recomputed": 0.0, "is_far": 0.0, **changes}
    return foundry_steps.ShardedCosts()({name: torch.tensor([value]) for name, value in values.items()}).item()


def test_collectives_overlap_with_compute_until_they_are_longer():
    assert _ms(gather=2.0) == pytest.approx(_ms(), rel=0.02)
    assert _ms(gather=200.0) > 10 * _ms()


def test_recomputation_is_another_forward_pass():
    more = _ms(is_recomputed=1.0) - _ms()
    assert more == pytest.approx(2 * 24 * (5 + 1 + 0.05 * 12.2), rel=0.05)


def test_longest_is_smooth_and_at_least_both():
    a, b = torch.tensor([1.0, 5.0, 0.0]), torch.tensor([1.0, 0.1, 2.0])
    result = step_costs.longest(a, b)
    assert (result >= torch.maximum(a, b)).all()
    assert result[0] < 1.2 and result[1:].tolist() == pytest.approx([5.0, 2.0], rel=1e-3)
