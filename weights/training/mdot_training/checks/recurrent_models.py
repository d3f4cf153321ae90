"""Compares `mdot.predict` for an LSTM language model with Gavel's measured steps on K80, P100 and V100.

    python3 -m mdot_training.checks.recurrent_models simulation_throughputs.json [--model PREDICTOR.mdot]

The table is from stanford-futuredata/gavel, and the model is that of its workload "LM": PyTorch's word_language_model with
its defaults, 200 units, two layers, 35 steps, on WikiText-2. The measured steps include a data loader that slices every
sample out of the GPU's memory with a dozen operations of its own. Needs PyTorch and the package mdot. The predictor is not
trained on this data.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from pathlib import Path

import mdot
import torch
from torch import nn

WORDS, WIDTH, LAYERS, STEPS = 33278, 200, 2, 35
GPUS = {"k80": "K80", "p100": "P100-PCIe-16GB", "v100": "V100-SXM-16GB"}


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        self.words = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        return torch.log_softmax(self.words(self.layers(self.table(words))[0]), dim=-1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("throughputs", type=Path, help="simulation_throughputs.json")
    parser.add_argument("--model", type=Path, help="another predictor than the shipped one")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    job = mdot.Job.from_torch(LanguageModel(), torch.zeros(1, STEPS, dtype=torch.int64))
    print("| GPU model | batch | measured, ms | predicted, ms | predicted / measured | inside the interval |")
    print("| --- " * 6 + "|")
    throughputs = json.loads(options.throughputs.read_text(encoding="utf-8"))
    for measured_on, gpu_model in GPUS.items():
        for name, steps in throughputs[measured_on].items():
            found = re.fullmatch(r"\('LM \(batch size (\d+)\)', 1\)", name)
            if found:
                batch, step_ms = int(found[1]), 1e3 / steps["null"]
                answer = predictor.predict(job, gpu_model, batch=batch, precision="fp32", torch="1.10")
                inside = "yes" if answer.lower_ms <= step_ms <= answer.upper_ms else "no"
                print(f"| {gpu_model} | {batch} | {step_ms:.1f} | {answer.step_ms:.1f} | "
                      f"{answer.step_ms / step_ms:.2f} | {inside} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
