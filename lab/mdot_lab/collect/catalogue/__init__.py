"""The catalogue of all measured architectures. Rows are data, therefore a new one requires no other change."""

from __future__ import annotations

from mdot_lab.collect.architecture import Architecture
from mdot_lab.collect.catalogue import other, text, vision

CATALOGUE: tuple[Architecture, ...] = (*vision.ROWS, *text.ROWS, *other.ROWS)
BY_NAME: dict[str, Architecture] = {row.name: row for row in CATALOGUE}
