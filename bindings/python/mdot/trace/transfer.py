"""GPU time of a traced step on another GPU model, with the errors that each answer had on measured pairs of cards."""

from __future__ import annotations

from typing import Any

from mdot.gpus import GPU
from mdot.library.errors import InvalidArgumentError
from mdot.trace.replay import Profiled

MDOT, RATIO, WAVES = "mdot alone", "measured, times mdot's ratio", "kernels scaled by waves"
ERRORS = {MDOT: (17.1, 17.2), RATIO: (13.8, 12.4), WAVES: (36.7, 34.1)}
"""Mean and median error in %, of 46 fp32 training steps of language models between A100, H100, L4 and V100
(lab/notes/results/habitat_transfer.csv). No combination won on each of the twelve pairs of cards, so none is offered."""
HALF = {"amp", "amp-bf16", "fp16", "bf16", "mixed-fp16", "mixed-bf16"}


def wave_factor(intensity: float, have: GPU, wanted: GPU, half: bool = False) -> float:
    """A kernel's time on the wanted GPU over that on the other, by Habitat (USENIX ATC, 2021): the ratio of bandwidths to the
    power g, and that of multiprocessors and clocks to the power 1 - g. g falls from 1 to 1/2, where `intensity`, FLOPs per
    byte, is the wanted GPU's balance, and then to 0."""
    if not all((gpu.sm_count or 0) > 0 and (gpu.boost_mhz or 0) > 0 for gpu in (have, wanted)):
        raise InvalidArgumentError("waves need sm_count and boost_mhz of both GPU models")
    balance = (wanted.fp16_tflops if half else wanted.fp32_tflops) * 1e3 / wanted.memory_gbps
    memory = 1 - intensity / balance / 2 if intensity < balance else balance / intensity / 2
    compute = have.sm_count / wanted.sm_count * have.boost_mhz / wanted.boost_mhz
    return float((have.memory_gbps / wanted.memory_gbps) ** memory * compute ** (1 - memory))


def intensities(job: Any, batch: int, half: bool = False) -> dict[str, float]:
    """FLOPs per byte of each module, over all phases."""
    sums: dict[str, list[float]] = {}
    for operator in job:
        row = sums.setdefault(operator.module or "", [0.0, 0.0])
        for loads, times in ((operator.per_square, batch * batch), (operator.per_sample, batch), (operator.per_step, 1)):
            for load in loads.values():
                row[0] += times * load.flops
                row[1] += times * (load.bytes_read + load.bytes_written) / (2 if half else 1)
    return {module: flops / moved if moved > 0 else 0.0 for module, (flops, moved) in sums.items()}


def answers_ms(profiled: Profiled, job: Any, here: Any, there: Any, gpus: tuple[GPU, GPU]) -> dict[str, float]:
    """GPU milliseconds of a step on the second GPU, from explanations on both. Kernels outside the network's calls, for
    example the optimizer's, count as bound by memory. Waves need kernels of calls."""
    own = [sum(share.ms for share in explanation.operators) for explanation in (here, there)]
    half = here.configuration.precision in HALF
    known = intensities(job, profiled.batch, half)
    measured = sum(profiled.kernels_ms.values())
    scaled = sum(ms * wave_factor(known.get(module, 0.0), *gpus, half) for module, ms in profiled.kernels_ms.items())
    answers = {MDOT: own[1], RATIO: measured * own[1] / own[0], WAVES: scaled}
    return answers if any(profiled.kernels_ms) else {name: ms for name, ms in answers.items() if name != WAVES}


def table(answers: dict[str, float], name: str) -> str:
    lines = [f"{'GPU time on ' + name:<40}{'ms':>14}{'mean error':>14}{'median':>8}"]
    lines += [f"{method:<40}{ms:>14.3f}{ERRORS[method][0]:>12.1f} %{ERRORS[method][1]:>6.1f} %" for method, ms in answers.items()]
    return "\n".join([*lines, "(errors of fp32 steps of language models, between A100, H100, L4 and V100)"])
