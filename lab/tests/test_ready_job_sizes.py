"""The sizes of the traces behind the ready jobs' formulas."""

import itertools
from pathlib import Path

import numpy as np

from mdot_lab.ready_jobs import families, fit

STRUCTURAL = {"hg", "gh", "xe", "ex", "hc", "dq", "dw", "St", "ep", "xp", "mc"}
"""Pairs that networks tie: as many key heads as heads, the head size by two names, places beside patches, ..."""
LEFT = {"qwen2", "phi", "phi3", "olmo", "olmo2", "olmo3", "cohere", "stablelm", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "olmoe", "granitemoe", "glm4_moe"}
"""Families whose sizes still lie on a line. Trace them again after a change."""


def collinear(columns: np.ndarray) -> bool:
    steps = columns - columns[:, :1]
    return bool(np.abs(np.linalg.svd(steps / np.abs(steps).max(axis=1, keepdims=True))[1][-1]) < 1e-9)


def lines(family: families.Family) -> set[str]:
    found = set()
    for variant in family.variants:
        rows = [families.choose_sizes(family, variant, seed) for seed in range(families.TRACES)]
        names = [name for name in rows[0] if len({row[name] for row in rows}) > 2]
        for pair in itertools.combinations(names, 2):
            if collinear(np.array([[float(row[name]) for row in rows] for name in pair])):
                found.add("".join(pair))
    return found - STRUCTURAL


def test_no_size_is_a_line_over_another():
    """Otherwise the fit may take one for the other: Whisper's loss grew with the head size instead of the vocabulary."""
    given = families.read_families(Path(families.__file__).with_name("families.json"))
    assert {family.name for family in given if lines(family)} == LEFT


def test_a_line_lets_the_fit_choose_another_size():
    right = {("V",): 640.0, (): 128.0}
    vocabulary = np.array([2100, 2337, 2174, 2511, 2248])
    for seen, is_right in ((vocabulary, True), (2100 + 37 * np.arange(5), False)):
        fitter = fit.Fitter({"V": list(map(float, seen)), "e": [24.0, 32.0, 40.0, 48.0, 56.0]}, ["V", "e"])
        assert (fitter.fit([640.0 * v + 128 for v in seen]) == right) == is_right
