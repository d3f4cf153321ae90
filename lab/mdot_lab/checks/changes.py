"""Prints by how much two builds of mdot differ on ten common questions.

    python3 -m mdot_lab.checks.changes BEFORE AFTER --graphs FOLDER [--jobs weights/jobs]

BEFORE and AFTER are commands, for example build/release/cli/mdot of two checkouts. FOLDER holds lab/graphs.tar.xz. The questions
use options that version 0.3 has. The last line is the geometric mean of the ratios, and the mean of the widths (upper over
lower bound).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

QUESTIONS = (
    ("resnet50.job", "A100-SXM-80GB", "--batch 128 --precision amp --layout nhwc"),
    ("resnet50.job", "H100-SXM-80GB", "--batch 128 --precision amp --gpus 8"),
    ("efficientnet_b0.job", "T4", "--batch 64 --precision amp"),
    ("vit_b_16.job", "RTX-4090", "--batch 64 --precision amp-bf16 --optimizer adamw"),
    ("swin_t.job", "H100-SXM-80GB", "--batch 64 --precision amp-bf16 --optimizer adamw --compile"),
    ("sd-unet.job", "A100-SXM-80GB", "--batch 8 --precision amp-bf16 --optimizer adamw"),
    ("clip-vit-base-patch32.job", "H100-SXM-80GB", "--batch 256 --precision amp-bf16 --optimizer adamw"),
    ("resnet50.job", "RTX-4090", "--batch 32 --precision amp --mode inference"),
    ("language.bert_large.512.job", "V100-SXM-32GB", "--batch 8 --precision amp --optimizer adamw"),
    ("language.gpt2_large.1024.job", "H100-SXM-80GB", "--batch 8 --precision bf16 --optimizer adamw --gpus 8"),
)


def _ask(mdot: str, job: Path, gpu: str, options: str) -> tuple[float, float, float]:
    """Step, lower and upper bound in ms."""
    command = [mdot, "predict", str(job), "--gpu", gpu, *options.split(), "--json"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MDOT_")}   # each has its own predictor
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=own).stdout)["predictions"][0]
    return answer["step_ms"], answer["lower_ms"], answer["upper_ms"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="an earlier mdot")
    parser.add_argument("after", help="today's mdot")
    parser.add_argument("--graphs", type=Path, required=True, help="folder with the networks of lab/graphs.tar.xz")
    parser.add_argument("--jobs", type=Path, default=Path("weights/jobs"), help="folder of ready jobs")
    options = parser.parse_args()
    print("| job | GPU | options | before, ms | after, ms | change | width before | after |\n" + "| --- " * 8 + "|")
    logs, widths = [], []
    for name, gpu, text in QUESTIONS:
        job = next((folder / name for folder in (options.jobs, options.graphs) if (folder / name).exists()), None)
        if job is None:
            print(f"changes: {name} is in neither {options.jobs} nor {options.graphs}", file=sys.stderr)
            return 1
        old, new = (_ask(mdot, job, gpu, text) for mdot in (options.before, options.after))
        logs.append(np.log(new[0] / old[0]))
        widths.append([old[2] / old[1], new[2] / new[1]])
        print(f"| {job.stem} | {gpu} | {text} | {old[0]:.1f} | {new[0]:.1f} | {100 * np.expm1(logs[-1]):+.0f} % | "
              f"{widths[-1][0]:.2f} | {widths[-1][1]:.2f} |")
    print(f"\nmean change {100 * np.expm1(np.mean(np.abs(logs))):.0f} %, bias {100 * np.expm1(np.mean(logs)):+.0f} %, "
          f"width {np.mean(widths, axis=0)[0]:.2f} -> {np.mean(widths, axis=0)[1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
