"""Layouts that Megatron and PyTorch run are accepted.

The rules are those of Megatron's arguments, parallel_state and schedules, and of PyTorch's ScheduleInterleaved1F1B.
"""

from __future__ import annotations

import random
import unittest
import warnings
from typing import Any, NamedTuple

import mdot


class Network(NamedTuple):
    name: str
    blocks: int
    heads: int
    groups: int
    experts: int


NETWORKS = (Network("gpt2", 12, 12, 12, 0), Network("llama-3-8b", 32, 32, 8, 0), Network("mixtral-8x7b", 32, 32, 8, 8))
LAYOUTS = 60


def _ends(rng: random.Random, blocks: int, stages: int, parts: int) -> dict[str, int] | None:
    """Blocks of the first and the last stage: equal shares, an embedding and a head that count as blocks, or free numbers.
    Parts have equal numbers of blocks. None: not legal."""
    kind = rng.choice(("equal", "counted", "free"))
    if kind == "equal":
        return None if blocks % (stages * parts) else {}
    first = (blocks + 2) // stages - 1 if kind == "counted" else rng.randint(1, blocks)
    last = first if kind == "counted" else rng.randint(1, blocks)
    if kind == "counted":
        is_legal = (blocks + 2) % (stages * parts) == 0 and first > 0
    else:
        rest, sharing = blocks - first - last, (stages - 2) * parts
        is_legal = first % parts == 0 and last % parts == 0 and (rest > 0 and rest % sharing == 0 if sharing else rest == 0)
    return {"first_stage_blocks": first, "last_stage_blocks": last} if is_legal else None


def _fills_groups(micro: int, stages: int, is_megatron: bool) -> bool:
    """An interleaved schedule's groups of micro-batches: at least as many as stages for Megatron, in the last group, too. PyTorch
    divides them into equal rounds."""
    if is_megatron:
        return any(micro % group == 0 or micro % group >= stages for group in range(stages, micro + 1))
    return micro % max(1, micro // stages) == 0


def _draw(rng: random.Random) -> tuple[str, dict[str, Any]] | None:
    n, is_megatron = rng.choice(NETWORKS), rng.random() < 0.5
    tensor, stages, workers = rng.choice((1, 2, 4, 8)), rng.choice((1, 2, 3, 4, 6, 8)), rng.choice((1, 2, 3, 8))
    context, experts, parts = rng.choice((1, 1, 2, 4)), rng.choice((1, 2, 4, 8)), rng.choice((1, 2, 3, 4))
    if n.heads % tensor or n.groups % tensor and tensor % n.groups:
        return None
    made: dict[str, Any] = {"tensor_parallel": tensor, "pipeline_parallel": stages, "context_parallel": context, "precision": "mixed-bf16",
                            "gpus": tensor * stages * context * workers, "framework": "megatron" if is_megatron else "pytorch",
                            "sequence_parallel": int(tensor > 1 and rng.random() < 0.5), "zero": rng.choice((0, 1))}
    if n.experts:
        if workers * context % experts:
            return None
        made["expert_parallel"] = experts
    if stages > 1:
        ends, micro = _ends(rng, n.blocks, stages, parts), rng.randint(1, 24)
        if ends is None or parts > 1 and not _fills_groups(micro, stages, is_megatron):
            return None
        made |= {**ends, "virtual_stages": parts, "micro_batches": micro, "batch": micro * rng.choice((1, 2))}
    return n.name, made


class LayoutTest(unittest.TestCase):
    def test_legal_layouts_are_accepted(self) -> None:
        rng, accepted = random.Random(46), 0
        while accepted < LAYOUTS:
            drawn = _draw(rng)
            if drawn is None:
                continue
            name, layout = drawn
            with self.subTest(name, **layout), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertGreater(mdot.predict(name, "H100", **layout).peak_memory_bytes, 0)
            accepted += 1


if __name__ == "__main__":
    unittest.main()
