"""The command line: python -m predictor COMMAND. README.md has the commands in their order."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def _dataset(options: argparse.Namespace) -> int:
    from predictor import dataset, labels, sequences

    known = labels.read_labels(options.labels)
    networks = sorted({label.network for label in known})
    there = [n for n in networks if (options.graphs / n.graph_file).exists()]
    if len(there) < len(networks):
        print(f"predictor: {len(networks) - len(there)} of {len(networks)} graphs are not in {options.graphs}", file=sys.stderr)
    read = sequences.read_all(options.mdot, [options.graphs / n.graph_file for n in there], options.cache, options.threads)
    for reason in sorted(r for r in read.values() if isinstance(r, str)):
        print(f"predictor: {reason}", file=sys.stderr)
    usable = {n: read[n.graph_file] for n in there if not isinstance(read[n.graph_file], str)}
    if not usable:
        print("predictor: no graph could be read", file=sys.stderr)
        return 1
    data = dataset.build(usable, known)
    data.save(options.out)
    print(f"{data.network_count} networks, {len(data.step_ms)} of {len(known)} labels, {len(data.operator)} operators, "
          f"{len(data.type)} distinct ones")
    return 0


def _train(options: argparse.Namespace) -> int:
    from predictor import shipped

    shipped.train(options.data, options.out)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from predictor import shipped

    inside = shipped.calibrate(options.model, options.data, options.held_out, options.out)
    print(f"{options.out}: {inside:.1f} % of left-out labels lie in the interval of the other half")
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from predictor import evaluation

    evaluation.run(options.data, options.out, options.forms, options.splits, options.folds)
    return 0


def _report(options: argparse.Namespace) -> int:
    from predictor import report

    print(report.tables(options.results))
    return 0


def _export(options: argparse.Namespace) -> int:
    from predictor import dataset, export, shipped

    model = shipped.load(options.model)
    worst = export.export(model, dataset.Dataset.load_file(options.data), options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes, ONNX Runtime within {worst:.1e} of PyTorch")
    return 0


def _explain(options: argparse.Namespace) -> int:
    from predictor import explanation

    worst = explanation.write(options.predictor, options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes, parts add up to the step within {worst:.1e}")
    return 0


def _split(options: argparse.Namespace) -> int:
    from predictor import recovered, split

    worst = split.split(recovered.load(options.model), options.model, options.encode, options.price)
    print(f"{options.encode}, {options.price}: within {worst:.1e} of {options.model}")
    return 0


def _transfer(options: argparse.Namespace) -> int:
    from predictor import dataset, shipped, transfer

    print(transfer.table(shipped.load(options.model), dataset.Dataset.load_file(options.data), options.measured))
    return 0


def _forward(options: argparse.Namespace) -> int:
    from predictor import dataset, forward, shipped

    print(forward.table(shipped.load(options.model), dataset.Dataset.load_file(options.data), options.inference))
    return 0


def _folds(options: argparse.Namespace) -> int:
    from predictor import dataset, scheduler

    header, rows = scheduler.folds(options.results, dataset.Dataset.load_file(options.data), options.split)
    scheduler.write(options.out, header, rows)
    print(f"{options.out}: {len(rows)} left-out labels, {', '.join(header[2:])}")
    return 0


def _unseen(options: argparse.Namespace) -> int:
    from predictor import scheduler

    if (options.labels is None) == (options.measured is None) or (options.labels is None) != (options.seen is None):
        print("predictor: unseen takes --labels with --seen, or --measured", file=sys.stderr)
        return 2
    rows = (scheduler.newer(options.labels, options.seen, options.graphs, options.out) if options.labels
            else scheduler.other_gpus(options.measured, options.graphs, options.out))
    if not rows:
        print(f"predictor: no graph of what was measured is in {options.graphs}", file=sys.stderr)
        return 1
    scheduler.write(options.out, scheduler.MEASURED, rows)
    print(f"{options.out}: {len(rows)} measured steps")
    return 0


def _parser() -> argparse.ArgumentParser:
    from predictor import splits

    parser = argparse.ArgumentParser(prog="predictor", description=__import__("predictor").__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    making = commands.add_parser("dataset", help="graphs and labels → the training set, through `mdot tokens`")
    making.add_argument("--mdot", type=Path, required=True, help="the mdot binary")
    making.add_argument("--labels", type=Path, required=True, help="timm's train.csv")
    making.add_argument("--graphs", type=Path, required=True, help="folder of `predictor graphs`")
    making.add_argument("--out", type=Path, required=True, help="FILE.npz")
    making.add_argument("--cache", type=Path, default=Path("cache"), help="folder of sequences read before (default cache)")
    making.add_argument("--threads", type=int, default=2)
    making.set_defaults(run=_dataset)

    evaluating = commands.add_parser("evaluate", help="every form and baseline on both splits; goes on where it stopped")
    evaluating.add_argument("--data", type=Path, required=True)
    evaluating.add_argument("--out", type=Path, required=True, help="folder of predictions, one file a form and split")
    evaluating.add_argument("--forms", nargs="*", help="only these (default: all)")
    evaluating.add_argument("--splits", nargs="*", help="only these (default: all)")
    evaluating.add_argument("--folds", nargs="*", help="only these, such as \"fold 1\" or swin (default: all)")
    evaluating.set_defaults(run=_evaluate)

    reporting = commands.add_parser("report", help="the tables of the model card, from evaluate's predictions")
    reporting.add_argument("--results", type=Path, required=True)
    reporting.set_defaults(run=_report)

    training = commands.add_parser("train", help="fit the shipped predictor's members to all labels")
    training.add_argument("--data", type=Path, required=True)
    training.add_argument("--out", type=Path, required=True, help="FILE.pt")
    training.set_defaults(run=_train)

    calibrating = commands.add_parser("calibrate", help="fit the interval to evaluate's predictions of left-out networks")
    calibrating.add_argument("--model", type=Path, required=True, help="of train")
    calibrating.add_argument("--data", type=Path, required=True)
    calibrating.add_argument("--held-out", type=Path, required=True, help="evaluate's folder")
    calibrating.add_argument("--out", type=Path, required=True, help="FILE.pt")
    calibrating.set_defaults(run=_calibrate)

    exporting = commands.add_parser("export", help="the trained predictor → ONNX, checked with ONNX Runtime")
    exporting.add_argument("--model", type=Path, required=True)
    exporting.add_argument("--data", type=Path, required=True, help="jobs to check with")
    exporting.add_argument("--out", type=Path, required=True, help="FILE.onnx")
    exporting.set_defaults(run=_export)

    explaining = commands.add_parser("explain", help="an exported predictor → its answer operator by operator")
    explaining.add_argument("--predictor", type=Path, required=True, help="of export")
    explaining.add_argument("--out", type=Path, required=True, help="FILE.onnx")
    explaining.set_defaults(run=_explain)

    splitting_up = commands.add_parser("split", help="the exported predictor → two pieces: encode a job once, price it often")
    splitting_up.add_argument("--model", type=Path, required=True, help="FILE.onnx of export")
    splitting_up.add_argument("--encode", type=Path, required=True, help="FILE.onnx")
    splitting_up.add_argument("--price", type=Path, required=True, help="FILE.onnx")
    splitting_up.set_defaults(run=_split)

    carrying = commands.add_parser("transfer", help="error on other GPUs and in fp32, against measurements by others")
    carrying.add_argument("--model", type=Path, required=True)
    carrying.add_argument("--data", type=Path, required=True)
    carrying.add_argument("--measured", type=Path, required=True, help="folder of pytorch-gpu-benchmark's results")
    carrying.set_defaults(run=_transfer)

    splitting = commands.add_parser("forward", help="the forward part of a step, against measured inference")
    splitting.add_argument("--model", type=Path, required=True)
    splitting.add_argument("--data", type=Path, required=True)
    splitting.add_argument("--inference", type=Path, required=True, help="timm's infer.csv")
    splitting.set_defaults(run=_forward)

    folding = commands.add_parser("folds", help="evaluate's predictions of left-out labels, for mdot-figure4 --predictions")
    folding.add_argument("--results", type=Path, required=True, help="evaluate's folder")
    folding.add_argument("--data", type=Path, required=True, help="that it was made of")
    folding.add_argument("--split", choices=splits.SPLITS, default=splits.FAMILIES, help="(default %(default)s)")
    folding.add_argument("--out", type=Path, required=True, help="PREDICTIONS.csv")
    folding.set_defaults(run=_folds)

    unseen = commands.add_parser("unseen", help="measured steps that the shipped predictor did not see, for mdot-predictions")
    unseen.add_argument("--labels", type=Path, help="timm's later table, and")
    unseen.add_argument("--seen", type=Path, help="the one that was trained on; or")
    unseen.add_argument("--measured", type=Path, help="folder of pytorch-gpu-benchmark's results: other GPUs")
    unseen.add_argument("--graphs", type=Path, required=True, help="folder of `predictor graphs`")
    unseen.add_argument("--out", type=Path, required=True, help="MEASURED.csv")
    unseen.set_defaults(run=_unseen)
    return parser


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["graphs"]:
        from predictor import graphs

        return graphs.main(arguments[1:])
    options = _parser().parse_args(arguments)
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
