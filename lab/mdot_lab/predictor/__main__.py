"""The command line: python3 -m mdot_lab.predictor COMMAND. README.md lists the commands in their order."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import mdot_lab.predictor


def _dataset(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import collected, dataset, labels, published, sequences, single_operator_labels

    known = [label for path in options.labels for label in labels.read_timm(path, labels.TRAIN)]
    known += [label for path in options.inference for label in labels.read_timm(path, labels.INFER)]
    known += [label for folder in options.torchvision for label in labels.read_torchvision(folder)]
    known += [label for path in options.published for label in published.read(path)]
    known += [label for path in options.collected for label in collected.read(path)]
    alone = [found for folder in options.operators for found in single_operator_labels.read(folder)]
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
    usable.update((label.network, sequence) for label, sequence in alone)
    data = dataset.build(usable, [*known, *(label for label, _ in alone)])
    data.save(options.out)
    print(f"{len(data.whole_networks)} networks, {len(data.step_ms)} of {len(known) + len(alone)} labels, of which "
          f"{len(alone)} are of single operators, {len(data.operator)} operators, {len(data.type)} distinct ones")
    return 0


def _train(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import final_model

    final_model.train(options.data, options.out)
    return 0


def _fit_interval(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import final_model

    found = final_model.fit_interval(options.model, options.data, options.held_out, options.out)
    for split, (inside, width) in found.items():
        print(f"{split}: {inside:.1f} % of the held-out labels lie in an interval fitted without them, "
              f"median width {width:.2f}")
    if options.table:
        rows = "".join(f"{split.replace(' ', '_')},{inside:.1f},{width:.2f}\n" for split, (inside, width) in found.items())
        options.table.write_text(f"split,inside,width\n{rows}", encoding="utf-8")
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import evaluation

    evaluation.run(options.data, options.out, options.forms, options.splits, options.folds, options.inner, options.joined,
                   options.epochs, options.seed)
    return 0


def _report(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import dataset, report

    data = dataset.Dataset.load_file(options.data)
    print(report.choices(options.results) if options.inner else report.tables(options.results, data))
    return 0


def _export(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import dataset, export, final_model

    worst = export.export(final_model.load(options.model), dataset.Dataset.load_file(options.data), options.out)
    print(f"{options.out}: ONNX Runtime within {worst:.1e} of PyTorch")
    return 0


def _restore(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import dataset, final_model, partial_refit, restored

    model = restored.read(options.weights)
    for refit, path in ((partial_refit.nhwc, options.nhwc), (partial_refit.old_versions, options.old_versions)):
        for member in model.members if path else ():
            refit(member, dataset.Dataset.load_file(path))
    final_model.save(model, options.out)
    return 0


def _export_cv(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import dataset, heldout_predictions

    header, rows = heldout_predictions.export_cv(options.results, dataset.Dataset.load_file(options.data), options.split)
    heldout_predictions.write(options.out, header, rows)
    print(f"{options.out}: {len(rows)} held-out labels, {', '.join(header[len(heldout_predictions.LABEL) + 1:])}")
    return 0


def _import_cv(options: argparse.Namespace) -> int:
    from mdot_lab.predictor import dataset, heldout_predictions

    count = heldout_predictions.import_cv(options.table, dataset.Dataset.load_file(options.data), options.split, options.out)
    print(f"{options.out}: {count} held-out labels")
    return 0


def _parser() -> argparse.ArgumentParser:
    from mdot_lab.predictor import splits

    parser = argparse.ArgumentParser(prog="mdot_lab.predictor", description=mdot_lab.predictor.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    commands.add_parser("graphs", help="write the labelled networks as .job files (see graphs --help)")
    making = commands.add_parser("dataset", help="make the training set from graphs and labels with `mdot extract`")
    making.add_argument("--mdot", type=Path, required=True, help="path of the mdot command")
    making.add_argument("--labels", type=Path, required=True, nargs="+", help="timm's tables of training benchmarks")
    making.add_argument("--inference", type=Path, default=[], nargs="*", help="timm's tables of inference benchmarks")
    making.add_argument("--torchvision", type=Path, default=[], nargs="*", help="folders of pytorch-gpu-benchmark's results")
    making.add_argument("--published", type=Path, default=[], nargs="*",
                        help="published steps: NeuSight's folder of labels, or a table that published.py or measured_2026.py reads")
    making.add_argument("--collected", type=Path, default=[], nargs="*", help="files of records of mdot_lab.collect")
    making.add_argument("--operators", type=Path, default=[], nargs="*",
                        help="folders of tables of measured operators, and profiler_operators.csv")
    making.add_argument("--graphs", type=Path, required=True, help="folder that the command graphs wrote")
    making.add_argument("--out", type=Path, required=True, help="data set to write, FILE.npz")
    making.add_argument("--cache", type=Path, default=Path("cache"), help="folder of cached sequences (default cache)")
    making.add_argument("--threads", type=int, default=2, help="processes of `mdot extract` (default %(default)s)")
    making.set_defaults(run=_dataset)

    evaluating = commands.add_parser("evaluate", help="train and test every form on every fold; a second run resumes")
    evaluating.add_argument("--data", type=Path, required=True)
    evaluating.add_argument("--out", type=Path, required=True,
                            help="folder of predictions, with one file for each form, split and fold")
    evaluating.add_argument("--forms", nargs="*", help="select forms (default: all)")
    evaluating.add_argument("--splits", nargs="*", help="select splits (default: all)")
    evaluating.add_argument("--folds", nargs="*", help="select folds, for example \"fold 1\" or swin (default: all)")
    evaluating.add_argument("--joined", type=int, default=1, metavar="COUNT",
                            help="folds of a split that one training leaves out together (default %(default)s); more take less "
                                 "time and make each fold harder")
    evaluating.add_argument("--inner", type=int, default=0, metavar="COUNT",
                            help="evaluate at most COUNT inner folds of each fold instead, to choose between forms")
    evaluating.add_argument("--epochs", type=int, metavar="COUNT",
                            help="epochs of each training, with draws in proportion (default: the form's own)")
    evaluating.add_argument("--seed", type=int, default=0, help="seed of each training (default %(default)s)")
    evaluating.set_defaults(run=_evaluate)

    reporting = commands.add_parser("report", help="print the tables of the model card from evaluate's predictions")
    reporting.add_argument("--results", type=Path, required=True, help="folder that evaluate wrote")
    reporting.add_argument("--data", type=Path, required=True, help="data set that the predictions were made from")
    reporting.add_argument("--inner", action="store_true", help="print the table of inner folds, for choices")
    reporting.set_defaults(run=_report)

    training = commands.add_parser("train", help="fit the shipped predictor's members to all labels")
    training.add_argument("--data", type=Path, required=True)
    training.add_argument("--out", type=Path, required=True, help="members to write, FILE.pt")
    training.set_defaults(run=_train)

    fitting_interval = commands.add_parser("fit-interval",
                                           help="fit the interval to evaluate's predictions of held-out networks")
    fitting_interval.add_argument("--model", type=Path, required=True, help="FILE.pt that train wrote")
    fitting_interval.add_argument("--data", type=Path, required=True)
    fitting_interval.add_argument("--held-out", type=Path, required=True, help="folder that evaluate wrote")
    fitting_interval.add_argument("--out", type=Path, required=True, help="predictor to write, FILE.pt")
    fitting_interval.add_argument("--table", type=Path, help="table of coverage and width by split, FILE.csv")
    fitting_interval.set_defaults(run=_fit_interval)

    exporting = commands.add_parser("export",
                                    help="write the trained predictor as ONNX files and check them against PyTorch")
    exporting.add_argument("--model", type=Path, required=True, help="FILE.pt that fit-interval wrote")
    exporting.add_argument("--data", type=Path, required=True, help="data set with jobs for the checks")
    exporting.add_argument("--out", type=Path, required=True, help="folder of the ONNX files")
    exporting.set_defaults(run=_export)

    restoring = commands.add_parser("restore", help="read the shipped ONNX files back, to export a changed law without training")
    restoring.add_argument("--weights", type=Path, required=True, help="folder of the ONNX files")
    restoring.add_argument("--out", type=Path, required=True, help="predictor to write, FILE.pt")
    restoring.add_argument("--nhwc", type=Path, metavar="DATA", help="fit what NHWC adds again, to the labels of this data set")
    restoring.add_argument("--old-versions", type=Path, metavar="DATA",
                           help="fit the corrections before PyTorch 1.11 again, to the labels of this data set")
    restoring.set_defaults(run=_restore)

    exporting_cv = commands.add_parser("export-cv",
                                       help="write predictions of held-out labels as a table for mdot-figure4 --predictions")
    exporting_cv.add_argument("--results", type=Path, required=True, nargs="+",
                              help="folders that evaluate and the baselines wrote")
    exporting_cv.add_argument("--data", type=Path, required=True, help="data set that the predictions were made from")
    exporting_cv.add_argument("--split", choices=splits.SPLITS, default=splits.FAMILIES,
                              help="split of the predictions (default %(default)s)")
    exporting_cv.add_argument("--out", type=Path, required=True, help="table to write, FILE.csv")
    exporting_cv.set_defaults(run=_export_cv)

    importing = commands.add_parser("import-cv",
                                    help="convert a table of export-cv back to predictions for report and fit-interval")
    importing.add_argument("--table", type=Path, required=True, help="table that export-cv wrote")
    importing.add_argument("--data", type=Path, required=True)
    importing.add_argument("--split", choices=splits.SPLITS, required=True)
    importing.add_argument("--out", type=Path, required=True, help="folder of predictions")
    importing.set_defaults(run=_import_cv)
    return parser


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["graphs"]:
        from mdot_lab.predictor import graphs

        return graphs.main(arguments[1:])
    options = _parser().parse_args(arguments)
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
