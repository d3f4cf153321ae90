"""The command line: python3 -m mdot_lab.operator_benchmarks KIND --measured FOLDER. Prints the errors of predictions with
each architecture left out in turn."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from mdot_lab.operator_benchmarks import (attention_model, collective_model, convolution_model, error_table, matmul_model,
                                               measurements, operator_fitting, stream_model)

KINDS = {"matmuls": (measurements.matmuls, matmul_model.MatmulModel),
         "attention": (measurements.attention, attention_model.AttentionModel),
         "convolutions": (measurements.convolutions, convolution_model.ConvolutionModel),
         "collectives": (measurements.collectives, collective_model.CollectiveModel),
         "streams": (measurements.streams, stream_model.StreamModel)}

NOT_TRAINED_ON = (("P4", "NeuSight:linear"), ("P100-PCIe-16GB", "NeuSight:linear"))
"""GPU and source with times for equal work that differ by up to six times, as on GPUs throttled by heat."""


def _without_throttled(rows: measurements.Measured) -> measurements.Measured:
    kept = [(gpu_model, source) not in NOT_TRAINED_ON for gpu_model, source in zip(rows.gpu_model, rows.source)]
    return rows.take(torch.tensor(kept).nonzero()[:, 0].numpy())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mdot_lab.operator_benchmarks", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--measured", type=Path, required=True, help="folder of the tables of measured operators")
    parser.add_argument("--rows", type=int, default=2000,
                        help="number of random rows of each GPU model and source to train on (default 2000)")
    parser.add_argument("--leave-out", nargs="*", default=["Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell"],
                        help="architectures to leave out, one at a time")
    parser.add_argument("--all", action="store_true", help="train on every architecture as well, and print its errors")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    read, make = KINDS[options.kind]
    everything = read(options.measured)
    some = _without_throttled(everything).at_most(options.rows)
    print(error_table.HEADER, flush=True)
    if options.all:
        model, sources = operator_fitting.fit(make, some)
        print("\n".join(error_table.lines("nothing", operator_fitting.predict(model, sources, everything), everything)),
              flush=True)
    for name, train, _ in operator_fitting.folds(some, tuple(options.leave_out)):
        model, sources = operator_fitting.fit(make, some.take(train))
        tested = everything.take((everything.architecture == name).nonzero()[0])
        print("\n".join(error_table.lines(name, operator_fitting.predict(model, sources, tested), tested)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
