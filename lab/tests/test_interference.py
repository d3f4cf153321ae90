"""interference: the process recovers a known law, returns to the prior far away, and its ONNX graph says the same."""

from __future__ import annotations

import numpy as np
import pytest

from mdot_lab.interference import evaluation, process
from mdot_lab.interference.pairs import NUMBERS, Pairs, parse_job

export = pytest.importorskip("mdot_lab.interference.export")


def made(jobs: int = 14) -> Pairs:
    """All pairs of random loads; a job slows down by its own and its partner's bandwidth."""
    random = np.random.default_rng(50)
    loads = np.exp(random.normal(0, 1, (jobs, len(NUMBERS))))
    loads[:, 1] = 1 - 0.5 * random.random(jobs)
    index = np.array([(a, b) for a in range(jobs) for b in range(a, jobs)])
    bandwidth = 0.3 * np.log1p(loads[:, 4])
    logs = 0.4 + bandwidth[index] + 0.5 * bandwidth[index[:, ::-1]]
    names, found, cards = index.astype(str), loads[index], random.integers(0, 3, len(index))
    found[..., process.RATES] = np.array([(4, 240), (9, 700), (15, 900)])[cards][:, None]
    return Pairs(found, np.exp(logs), names, names, np.array(["k80", "p100", "v100"])[cards])


def test_left_out_pairs_follow_the_law() -> None:
    pairs = made()
    answer = evaluation.predict_left_out(pairs, evaluation.left_out_pairs(pairs))
    assert np.median(np.abs(np.exp(answer[0]) / pairs.slowdowns - 1)) < 0.02
    rule = np.exp(evaluation.obvious_rule(pairs)[0])
    assert np.median(np.abs(rule / pairs.slowdowns - 1)) > 0.05


def test_bounds_know_an_additive_law_and_measured_pairs() -> None:
    from mdot_lab.interference import rivals

    pairs = made(8)
    assert np.allclose(rivals.own_and_partners_factor(pairs), np.maximum(np.log(pairs.slowdowns), 0), atol=1e-9)
    errors = []
    for count in (0, 4):
        mean, judged = rivals.with_measured_pairs(pairs, count, 0)
        assert judged.all() or count > 0
        errors.append(np.abs(mean - np.log(pairs.slowdowns))[judged].mean())
    assert errors[1] < errors[0]


def test_alone_again_reads_the_other_table_in_both_orders(tmp_path) -> None:
    from mdot_lab.interference import rivals

    table = tmp_path / "pairs.csv"
    table.write_text("# source\ntable,gpu,job_a,job_b,gpus,kept_a,kept_b\nphysical,v100,0,1,1,0.5,0.8\nphysical,v100,1,1,1,0,0\n"
                     "simulation,v100,0,0,1,0.9,0.9\nphysical,v100,2,Recommendation,1,0.5,0.5\n")
    names = np.array([["0", "1"], ["1", "0"], ["1", "1"], ["0", "0"], ["2", "Recommendation"]])
    loads = np.ones((len(names), 2, len(NUMBERS)))
    logs, judged = rivals.alone_again(table, Pairs(loads, loads[:, :, 0], names, names, np.array(["v100"] * len(names))))
    assert judged.tolist() == [True, True, False, False, False]
    assert np.allclose(np.exp(-logs[:2]), [[0.5, 0.8], [0.8, 0.5]])


def test_folds_leave_out_whole_groups() -> None:
    pairs = made(6)
    for tested in evaluation.left_out_networks(pairs):
        kept = set(pairs.networks[~tested].ravel())
        assert len(kept) == 5
    assert sum(fold.sum() for fold in evaluation.left_out_pairs(pairs)) == len(pairs.gpus)


def test_far_from_the_data_the_prior_and_a_wide_deviation_answer() -> None:
    pairs = made()
    fitted = process.fit(pairs.loads, pairs.slowdowns)
    loads = pairs.loads * 1e9
    loads[..., process.RATES] = pairs.loads[..., process.RATES]
    near, far = fitted(pairs.loads), fitted(loads)
    assert np.allclose(far[0], fitted.prior, atol=1e-3)
    assert far[1].min() > 2 * np.median(near[1])


def test_two_equal_jobs_on_an_unknown_card_are_at_most_twice_as_slow() -> None:
    pairs = made()
    fitted = process.fit(pairs.loads, pairs.slowdowns * 4)
    loads = np.exp(np.random.default_rng(1).normal(0, 2, (500, 2, len(NUMBERS))))
    loads[..., process.RATES] = 1e4
    loads[:, 1] = loads[:, 0]
    mean, deviation = fitted(loads)
    assert (mean >= 0).all() and mean.max() <= np.log(2) + 1e-9
    assert np.allclose(mean, process.time_slicing(fitted.law, loads))
    assert np.allclose(deviation**2, fitted.law_variance)
    assert (fitted.familiarity(pairs.loads) == 1).all() and fitted.familiarity(loads).max() < 1e-9


def test_the_graph_is_the_process() -> None:
    pairs = made()
    fitted = process.fit(pairs.loads, pairs.slowdowns)
    model = export.to_onnx(fitted, 1.7)
    assert export.difference(model, fitted, pairs.loads) < 2e-3
    random = np.random.default_rng(2)
    for factor in (1.2, 2, 1e3):
        loads = pairs.loads[random.permutation(len(pairs.loads))[:30]].copy()
        loads[..., process.RATES] *= factor
        assert export.difference(model, fitted, loads) < 2e-3


def test_cards_unlike_the_measured_ones_are_outside_training() -> None:
    import onnxruntime

    pairs = made()
    fitted = process.fit(pairs.loads, pairs.slowdowns)
    session = onnxruntime.InferenceSession(export.to_onnx(fitted, 1.7).SerializeToString(), providers=["CPUExecutionProvider"])
    for factor in (0.1, 0.7, 1, 1.3, 2, 1e3):
        loads = pairs.loads[:20].copy()
        loads[..., process.RATES] *= factor
        for (own, partner), known in zip(loads.astype(np.float32), fitted.familiarity(loads), strict=True):
            outside = session.run(["outside_training"], {"own": own[None], "partner": partner[None]})[0]
            assert outside.shape == (1, 1) and (outside[0, 0] > 0) == (known < export.LEAST_FAMILIARITY)


def test_an_idle_partner_costs_nothing() -> None:
    import onnxruntime

    pairs = made()
    model = export.to_onnx(process.fit(pairs.loads, pairs.slowdowns), 1.7)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    own, partner = pairs.loads[0].astype(np.float32)
    partner[[process.BUSY, process.HOST]] = 0
    assert (session.run(None, {"own": own[None], "partner": partner[None]})[0] == 1).all()


def test_jobs_without_a_batch_have_one() -> None:
    assert parse_job("LM (batch size 5)") == ("LM", 5)
    assert parse_job("A3C") == ("A3C", 4)
