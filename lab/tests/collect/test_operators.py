"""Every kind of operator is timed forward and backward, on the CPU with small shapes."""

import csv

import pytest
import torch

from mdot_lab.collect import operators
from mdot_lab.collect.operators import Case

SMALL = {"m": 8, "n": 8, "k": 8, "count": 2, "batch": 2, "heads": 4, "key_heads": 2, "length": 8, "head_size": 8, "causal": 1,
         "channels": 4, "channels_in": 8, "channels_out": 8, "size": 8, "kernel": 3, "stride": 1, "groups": 4, "nhwc": 1,
         "rows": 4, "columns": 8}


def small(case: Case) -> Case:
    return Case(case.operator, case.precision, {name: min(value, SMALL[name]) for name, value in case.settings.items()})


def first_of_each_kind() -> list[Case]:
    found: dict[str, Case] = {}
    for case in operators.cases():
        found.setdefault(case.operator, case)
    return list(found.values())


def test_cases_are_distinct_and_cover_every_kind():
    cases = list(operators.cases())
    assert len({(case.operator, case.precision, case.text) for case in cases}) == len(cases)
    assert {case.operator for case in cases} == set(operators.MAKERS)


def test_the_kinds_take_turns():
    kinds = [case.operator for case in operators.cases()][:len(operators.MAKERS)]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("case", first_of_each_kind(), ids=lambda case: case.operator)
def test_each_kind_computes_a_gradient_of_each_input(case):
    function, inputs = operators.MAKERS[case.operator](Case(case.operator, "fp32", small(case).settings), "cpu")
    result = function(*inputs)
    gradients = torch.autograd.grad(result, inputs, torch.ones_like(result))
    assert [g.shape for g in gradients] == [x.shape for x in inputs]
    forward, backward = operators.measure(Case(case.operator, "fp32", small(case).settings), "cpu")
    assert (forward[0], backward[0]) == ("forward", "backward") and forward[1] > 0


def test_a_table_is_continued(tmp_path, monkeypatch):
    all_cases = [small(case) for case in first_of_each_kind()][:3]
    out = tmp_path / "operators.csv"
    for count in (2, 3):        # the second run measures the third case alone
        monkeypatch.setattr(operators, "cases", lambda: iter(all_cases[:count]))
        assert operators.run(out, "cpu", float("inf"), print) == 0
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    forward = [(row["operator"], row["settings"]) for row in rows if row["direction"] == "forward"]
    assert forward == [(case.operator, case.text) for case in all_cases]


def test_a_case_that_fails_is_left_out_and_reported(tmp_path, monkeypatch):
    broken = Case("linear", "fp32", {"m": 4, "n": 4, "k": 4})

    def out_of_memory(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(operators, "cases", lambda: iter([broken]))
    monkeypatch.setattr(operators, "measure", out_of_memory)
    lines = []
    assert operators.run(tmp_path / "operators.csv", "cpu", float("inf"), lines.append) == 1
    assert "m=4;n=4;k=4: out of memory" in lines[0]
