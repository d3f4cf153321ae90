"""Compares predicted memory with PyTorch's, and with published peaks.

    python3 -m mdot_lab.checks.memory networks --out table.csv [--only PATTERN] [--precisions fp32,bf16,amp] [--jobs N]
        [--references EARLIER.csv] [--same-batch]
    python3 -m mdot_lab.checks.memory published FOLDER [--only PATTERN] [--jobs-folder FOLDER] [--out table.csv]

`networks` needs torch built for CUDA, torchvision, timm, transformers, diffusers and peft, and no GPU. It appends a row to
the CSV for each network and precision, and skips rows that the file has. The first rows cover all libraries and precisions,
so that a run may be stopped early. A later run on changed predictions is faster with
--references, which takes PyTorch's peaks from an earlier table.

`published` needs torch, transformers and peft. FOLDER has llm_points.csv, litgpt_finetuning.csv, bigscience_steps.csv and
simumax_b200.csv, as the modules of `published/` describe them; missing files are skipped with a message. Reading the largest
networks takes minutes, and --jobs-folder keeps the jobs for later runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdot_lab.checks.memory import reference, run_networks, table


def _precisions(text: str) -> list[str]:
    found = text.split(",")
    unknown = [name for name in found if name not in reference.PRECISIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown precision {unknown[0]}; expected of {', '.join(reference.PRECISIONS)}")
    return found


def _networks(options: argparse.Namespace) -> int:
    rows = run_networks.run(options.out, options.only, options.precisions, options.jobs, options.references, options.same_batch)
    print(table.summary(rows, options.worst))
    return 0


def _published(options: argparse.Namespace) -> int:
    from mdot_lab.checks.memory import run_published  # it imports torch, which fake_cuda.install must precede

    rows = run_published.run(options.folder, options.only, options.jobs_folder)
    if options.out is not None:
        run_published.write(options.out, rows)
    print(run_published.summary(rows))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    networks = commands.add_parser("networks", help="networks of torchvision, timm, transformers and diffusers")
    networks.add_argument("--out", type=Path, required=True, help="CSV file; its rows are skipped, and new rows are appended")
    networks.add_argument("--only", default="", help="regular expression of the names of networks (default: all)")
    networks.add_argument("--precisions", type=_precisions, default=list(reference.PRECISIONS), help="default: fp32,bf16,amp")
    networks.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    networks.add_argument("--references", type=Path, help="earlier table whose reference peaks are used again")
    networks.add_argument("--same-batch", action="store_true", help="trace at the predicted batch, too: a third more time")
    networks.add_argument("--worst", type=int, default=20, help="number of the worst rows to print (default: 20)")
    networks.set_defaults(run=_networks)
    published = commands.add_parser("published", help="peaks that others published")
    published.add_argument("folder", type=Path, help="folder of the sources' tables")
    published.add_argument("--only", default="", help='regular expression of "source: row" (default: all)')
    published.add_argument("--jobs-folder", type=Path, help="folder of .job files; missing ones are made")
    published.add_argument("--out", type=Path, help="CSV file to write")
    published.set_defaults(run=_published)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
