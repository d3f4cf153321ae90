"""The networks of the table: `CASES` by name. Each builds a module whose forward returns the loss, and inputs, at any
batch."""

from __future__ import annotations

from mdot_lab.checks.memory.networks import diffusion, held_out, language, other, torchvision_models, timm_models
from mdot_lab.checks.memory.networks.case import Case

CASES: dict[str, Case] = {
    case.name: case
    for module in (torchvision_models, timm_models, language, other, diffusion, held_out)
    for case in module.cases()
}
