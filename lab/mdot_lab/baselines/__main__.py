"""The command line: python3 -m mdot_lab.baselines COMMAND. README.md lists the commands."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import mdot_lab.baselines
from mdot_lab.predictor.ablations import SHIPPED_FORM


def _evaluate(options: argparse.Namespace) -> None:
    from mdot_lab.baselines import baseline_evaluation

    baseline_evaluation.run(options.data, options.out, options.baselines, options.splits, options.folds)


def _report(options: argparse.Namespace) -> None:
    from mdot_lab.baselines import baseline_evaluation

    print(baseline_evaluation.report(options.results, options.ours, options.form))


def _tune(options: argparse.Namespace) -> None:
    from mdot_lab.baselines import baseline_evaluation

    print(baseline_evaluation.tune(options.data, options.baselines))


def _trials(options: argparse.Namespace) -> None:
    from mdot_lab.baselines import trials

    trials.run(options.data, options.out, options.table, options.baselines, options.splits, options.seeds, options.minutes)
    trials.write(options.data, options.out, options.ours, options.table)


def _classes(options: argparse.Namespace) -> None:
    from mdot_lab.baselines import classes

    options.out.write_text(classes.page(options.results), encoding="utf-8")


def _export(options: argparse.Namespace) -> None:
    from mdot_lab.baselines import export_published

    worst = export_published.export(options.data, options.results, options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes, ONNX Runtime within {worst:.1e} of PyTorch")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mdot_lab.baselines", description=mdot_lab.baselines.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    evaluating = commands.add_parser("evaluate", help="run every baseline on every fold; a second run resumes")
    evaluating.add_argument("--data", type=Path, required=True, help="FILE.npz that mdot_lab.predictor dataset wrote")
    evaluating.add_argument("--out", type=Path, required=True,
                            help="folder of predictions, with one file for each baseline, split and fold")
    evaluating.add_argument("--baselines", nargs="*", help="select by name (default: all)")
    evaluating.add_argument("--splits", nargs="*", help="select by name (default: all)")
    evaluating.add_argument("--folds", nargs="*", help="select folds, for example \"fold 1\" or swin (default: all)")
    evaluating.set_defaults(run=_evaluate)

    reporting = commands.add_parser("report", help="print a table for each split, from evaluate's predictions")
    reporting.add_argument("--results", type=Path, required=True)
    reporting.add_argument("--ours", type=Path,
                           help="folder that mdot_lab.predictor evaluate wrote; adds a row with the predictor's errors")
    reporting.add_argument("--form", default=SHIPPED_FORM,
                           help=f"the predictor's form (default {SHIPPED_FORM}, the shipped one)")
    reporting.set_defaults(run=_report)

    tuning = commands.add_parser("tune", help="try the settings of each baseline on folds within training labels")
    tuning.add_argument("--data", type=Path, required=True)
    tuning.add_argument("--baselines", nargs="*", help="select by name (default: all)")
    tuning.set_defaults(run=_tune)

    lab = Path(__file__).resolve().parents[2]
    trying = commands.add_parser("trials", help="all baselines on equal folds with several seeds; a second run resumes")
    trying.add_argument("--data", type=Path, required=True)
    trying.add_argument("--out", type=Path, required=True, help="folder of runs")
    trying.add_argument("--table", type=Path, required=True, help="FILE.csv with a row for each run; the rows that it has are kept")
    trying.add_argument("--ours", type=Path, default=lab.parent / "weights" / "results", help="tables of the shipped form's answers")
    trying.add_argument("--baselines", nargs="*", help="select by name (default: all)")
    trying.add_argument("--splits", nargs="*", help="select by name (default: all)")
    trying.add_argument("--seeds", type=int, default=3)
    trying.add_argument("--minutes", type=float, default=float("inf"), help="no run begins later")
    trying.set_defaults(run=_trials)

    writing = commands.add_parser("classes", help="write notes/model-classes.md, one table by class, from the measured tables")
    writing.add_argument("--results", type=Path, default=lab / "notes" / "results")
    writing.add_argument("--out", type=Path, default=lab / "notes" / "model-classes.md")
    writing.set_defaults(run=_classes)

    exporting = commands.add_parser("export", help="fit MDOT as published to all labels, and write it as ONNX")
    exporting.add_argument("--data", type=Path, required=True)
    exporting.add_argument("--results", type=Path, required=True, help="folder that evaluate wrote, for the interval")
    exporting.add_argument("--out", type=Path, required=True, help="FILE.onnx")
    exporting.set_defaults(run=_export)
    return parser


def main() -> int:
    options = _parser().parse_args()
    try:
        options.run(options)
    except (OSError, ValueError) as fault:
        print(f"baselines: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
