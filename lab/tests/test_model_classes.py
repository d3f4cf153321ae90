"""The page of model classes is that of the tables, and the methods behind it recover laws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("scipy")

from mdot_lab.baselines import classes, distributed

LAB = Path(__file__).resolve().parents[1]


def test_the_page_is_that_of_the_tables() -> None:
    written = classes.page(LAB / "notes" / "results")
    assert (LAB / "notes" / "model-classes.md").read_text(encoding="utf-8") == written, "run python3 -m mdot_lab.baselines classes"


def test_a_class_shows_its_best_system() -> None:
    rows = [{"baseline": name, "split": "random", "fold": "fold 1", "seed": seed, "labels": "10", "mean": mean, "median": "1",
             "fit_s": "2", "answer_us": "nan"}
            for name, seed, mean in (("horus", "0", "9"), ("dnnabacus", "0", "6"), ("dnnabacus", "1", "10"), ("seer", "0", "7"))]
    lines = classes.classes_table(rows, [])
    graph, operators = (next(line for line in lines if line.startswith(f"| {name} ")) for name in ("graph", "operators"))
    assert "8.0 DNNAbacus" in graph and "7.0 after SEER" in operators
    assert "8.0 (6.0 to 10.0) / 1.0" in next(line for line in classes.systems_table(rows) if line.startswith("| DNNAbacus"))


def _steps(law) -> distributed.Steps:
    rows = []
    for nodes in (1, 2, 4):
        for gpus in (nodes, 2 * nodes, 4 * nodes):
            for batch in (8, 16, 64):
                step, sync = law(nodes, gpus, batch)
                rows.append({"table": "t", "placement": f"{nodes}x{gpus}", "nodes": str(nodes), "gpus": str(gpus), "batch_per_gpu": str(batch),
                             "step_ms": str(step), "sync_ms": str(sync)})
    return distributed.Steps(rows)


def _genie(nodes, gpus, batch):
    sync = 3 + (gpus - 1) / gpus * (40 if nodes > 1 else 10) + 2 * nodes
    return 5 + 2 * batch + sync, sync


def _optimus(nodes, gpus, batch):
    return 2 * batch + 7 + 1.5 * gpus, 1


@pytest.mark.parametrize("method, law", [(distributed.genie, _genie), (distributed.optimus, _optimus)])
def test_regressions_recover_their_law(method, law) -> None:
    steps = _steps(law)
    few = steps.nodes <= 2
    assert method(steps.take(few), steps.take(~few)) == pytest.approx(steps.step_ms[~few], rel=1e-6)


def test_a_profile_answers_with_the_nearest_placement() -> None:
    steps = _steps(_genie)
    assert distributed.profile(steps, steps) == pytest.approx(steps.step_ms)


def test_the_search_takes_the_model_of_the_law() -> None:
    pytest.importorskip("sklearn"), pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    from mdot_lab.baselines import model_search

    random = np.random.default_rng(1)
    x, groups = random.normal(0, 1, (240, 4)), np.repeat(np.arange(40), 6)
    assert model_search.search(x, x @ [1.0, -0.5, 0.2, 0], groups)[0] == "ridge"
    name, model = model_search.search(x, np.where(x[:, 0] > 0, 2.0, 0.0) + np.where(x[:, 1] > 0, 1.0, 0.0), groups)
    assert name not in ("ridge", "neighbours")
    assert model.predict(np.array([[1.0, 1, 0, 0]]))[0] == pytest.approx(3, abs=0.3)


def test_perceptrons_learn_products_of_a_card_that_is_left_out(monkeypatch) -> None:
    pytest.importorskip("mdot")
    from mdot_lab.baselines import habitat_perceptrons

    random, names = np.random.default_rng(2), ("V100-PCIE-32GB", "L4", "T4")
    sizes = np.exp(random.uniform(np.log(32), np.log(2048), (300, 4)))
    sizes[:, 0] = 1
    card = np.repeat(names, len(sizes))
    every = np.concatenate([sizes] * len(names))
    seconds = every.prod(1) * 2 / np.array([habitat_perceptrons.mdot.gpu(str(name)).fp32_tflops * 1e12 for name in card])
    products = habitat_perceptrons.Products(every, card, seconds * 1e3)
    monkeypatch.setattr(habitat_perceptrons, "BATCH", 64)
    fitted = habitat_perceptrons.Perceptron(products)
    assert fitted.inner_error < 0.15
    assert np.median(np.abs(fitted.ms(sizes, "T4") / products.ms[card == "T4"] - 1)) < 0.15
    triple = fitted.ms(sizes, "T4") + fitted.ms(sizes[:, [0, 1, 3, 2]], "T4") + fitted.ms(sizes[:, [0, 3, 2, 1]], "T4")
    assert fitted.training_ms(sizes, "T4") == pytest.approx(triple)
    without = habitat_perceptrons.Products(every, card, np.where(card == "T4", 1e9, products.ms))
    left_out = habitat_perceptrons.Perceptron(without, left_out="T4")
    assert left_out.ms(sizes, "T4").max() < 1e6     # no label of the left-out card was used


def test_one_measured_slice_recovers_a_law_of_its_form() -> None:
    from mdot_lab.interference import slices

    jobs = {(f"n{i}", 2**i): {s: 5 * i + 3 + (20 + i) / s for s in (1, 2, 3, 4, 7)} for i in range(4)}
    rows = {row[0]: row for row in slices.judge(jobs)}
    assert rows["one measured slice"][2:4] == ("0.0", "0.0") and float(rows["proportional"][2]) > 10
    flat = {job: dict.fromkeys(steps, 4.0) for job, steps in jobs.items()}
    assert {row[0]: row[2] for row in slices.judge(flat)}["median by slice"] == "0.0"


def test_rivals_answer_for_left_out_pairs_alone() -> None:
    from mdot_lab.interference import evaluation, rivals
    from mdot_lab.interference.pairs import Pairs

    random = np.random.default_rng(3)
    slowdowns = np.exp(random.uniform(0, 1, (12, 2)))
    jobs = np.array([[f"a{i % 4}", "b"] for i in range(12)])
    pairs = Pairs(np.exp(random.normal(0, 1, (12, 2, 9))), slowdowns, jobs, jobs, np.repeat(["k80", "p100", "v100"], 4))
    folds = evaluation.left_out_cards(pairs)
    answer = rivals.predict_left_out(pairs, folds, rivals.METHODS["constant"])[0]
    for fold in folds:
        assert answer[fold] == pytest.approx(np.median(np.log(slowdowns[~fold])))
    same, _, known = rivals.same_pair_elsewhere(pairs)
    assert known.all() and same[0] == pytest.approx((np.log(slowdowns[4]) + np.log(slowdowns[8])) / 2)
