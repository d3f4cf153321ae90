"""Compares `mdot.predict` for an LSTM language model with Gavel's measured steps on K80, P100 and V100.

    python3 -m mdot_lab.checks.recurrent_models simulation_throughputs.json [--model PREDICTOR.mdot]

The table is from stanford-futuredata/gavel, and the model is that of the workload "LM": PyTorch's word_language_model with
defaults, 200 units, two layers, 35 steps, on WikiText-2. The measured steps include a data loader that slices every
sample out of the GPU's memory with a dozen additional operations. The recipe trains on the same steps (measured_2026.py); the split
"sources" predicts them without. Needs PyTorch and the package mdot.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import mdot
import torch

from mdot_lab.predictor.measured_2026 import GAVEL_GPUS, GAVEL_STEPS, gavel_steps
from mdot_lab.predictor.other_networks import WordLanguageModel, word_loss

def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("throughputs", type=Path, help="simulation_throughputs.json")
    parser.add_argument("--model", type=Path, help="another predictor than the shipped one")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    predictor = mdot.Predictor(options.model) if options.model else mdot.Predictor()
    words = torch.zeros(2, GAVEL_STEPS, dtype=torch.int64)
    job = mdot.Job.from_torch(WordLanguageModel(), words, loss=word_loss, targets=words)
    print("| GPU model | batch | measured, ms | predicted, ms | predicted / measured | inside the interval |")
    print("| --- " * 6 + "|")
    for measured_on, batch, step_ms in gavel_steps(options.throughputs, "LM"):
        gpu_model = GAVEL_GPUS[measured_on]
        answer = predictor.predict(job, gpu_model, batch=batch, precision="fp32", torch="1.10")
        inside = "yes" if answer.lower_ms <= step_ms <= answer.upper_ms else "no"
        print(f"| {gpu_model} | {batch} | {step_ms:.1f} | {answer.step_ms:.1f} | {answer.step_ms / step_ms:.2f} | {inside} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
