"""Finds the formula of a number from its values in several traces: a sum of at most three products of sizes.

The sizes of the traces are chosen at random, so that only the right formula gives all values. Formulas are dictionaries
from a product, which is a sorted tuple of names of sizes, to a coefficient.
"""

from __future__ import annotations

import itertools
from typing import Mapping, Sequence

import numpy as np

Formula = dict[tuple[str, ...], float]


class Fitter:
    """`sizes` has the values of each size in all traces, and `atoms` the factors, for example "h*e"."""

    def __init__(self, sizes: Mapping[str, Sequence[float]], atoms: Sequence[str]) -> None:
        self._known: dict[tuple[float, ...], Formula] = {}
        self.near: dict[tuple[float, ...], int] = {}
        """Values without a formula, and how often they were found."""
        values = {atom: np.prod([sizes[name] for name in atom.split("*")], axis=0) for atom in atoms}
        made: dict[tuple[str, ...], np.ndarray] = {(): np.ones(len(next(iter(sizes.values()))))}
        for count in (1, 2, 3):
            for factors in itertools.combinations_with_replacement(atoms, count):
                if "rank" in factors and count == 3:  # an adapter has two matrices
                    continue
                if all(factors.count(factor) == 1 or factor in ("L", "S", "d", "t") and factors.count(factor) == 2 for factor in factors):
                    product = tuple(sorted("*".join(factors).split("*")))
                    made.setdefault(product, np.prod([values[factor] for factor in factors], axis=0))
        self._products, self._columns = list(made), np.array(list(made.values()))
        self._scale = self._columns.max(axis=1)

    def fit(self, values: Sequence[float]) -> Formula:
        """The formula; ValueError if there is none."""
        key = tuple(values)
        if key not in self._known:
            self._known[key] = self._search(np.array(values, dtype=float))
        return self._known[key]

    def fit_or_near(self, values: Sequence[float]) -> Formula:
        """The formula, or if there is none, the nearest multiple of a product. That of a negative number is negative."""
        if min(values) < 0:
            return {product: -c for product, c in self.fit_or_near([-value for value in values]).items()}
        try:
            return self.fit(values)
        except ValueError:
            self.near.setdefault(tuple(values), 0)
            self.near[tuple(values)] += 1
            ratios = np.array(values) / self._columns
            nearest = int(np.argmin(ratios.std(axis=1) / ratios.mean(axis=1)))
            return {self._products[nearest]: round(float(ratios[nearest].max()) * 64) / 64}

    def _search(self, wanted: np.ndarray) -> Formula:
        if not wanted.any():
            return {}
        usable = np.flatnonzero((self._columns / 64 <= np.abs(wanted)).all(axis=1))
        columns, products = self._columns[usable], [self._products[i] for i in usable]
        with_length = np.array([not product or not {"L", "S", "t"}.isdisjoint(product) for product in products], dtype=bool)
        for count, kept in ((1, None), (2, None), (3, with_length), (3, ~with_length)):
            rows = np.arange(len(products)) if kept is None else np.flatnonzero(kept)
            scale = self._scale[usable[rows]]
            best = self._exact(columns[rows] / scale[:, None], scale, [products[i] for i in rows], wanted, count)
            if best is not None:
                return best
        raise ValueError(f"no formula for {wanted}")

    @staticmethod
    def _exact(
        columns: np.ndarray, scale: np.ndarray, products: list[tuple[str, ...]], wanted: np.ndarray, count: int
    ) -> Formula | None:
        """The simplest exact sum of `count` products, with positive coefficients in units of 1/64."""
        found = []
        for first in itertools.combinations(range(len(products)), count - 1):
            start = first[-1] + 1 if first else 0
            rest = columns[start:]
            if not len(rest):
                continue
            matrix = np.empty((len(rest), columns.shape[1], count))
            matrix[:, :, : count - 1] = columns[list(first)].T
            matrix[:, :, -1] = rest
            relative = matrix / wanted[None, :, None]
            squares = relative.transpose(0, 2, 1) @ relative
            good = np.flatnonzero(np.linalg.det(squares / squares.max(axis=(1, 2), keepdims=True)) > 1e-10)
            if not len(good):
                continue
            solved = np.linalg.solve(squares[good], relative[good].sum(axis=1)[..., None])[..., 0]
            chosen = np.stack([np.full(len(good), i) for i in first] + [start + good], axis=1)
            units = np.rint(64 * solved / scale[chosen])
            sums = (matrix[good] @ (units * scale[chosen] / 64)[..., None])[..., 0]
            exact = np.abs(sums - wanted).max(axis=1) < 1e-9 * np.abs(wanted).max()
            for row in np.flatnonzero(exact & (units > 0).all(axis=1)):
                found.append({products[i]: c / 64 for i, c in zip(chosen[row], units[row])})
        return min(found, key=lambda f: (sum(map(len, f)), -sum(f.values())), default=None)


def add(total: Formula, part: Formula, factor: float = 1, more: tuple[str, ...] = ()) -> None:
    """Adds a formula, multiplied by a number and by sizes."""
    for product, coefficient in part.items():
        key = tuple(sorted(product + more))
        total[key] = total.get(key, 0) + factor * coefficient


def text_of(formula: Formula) -> str:
    """For example "4*L*d+12"."""
    return "+".join("*".join([f"{c:g}" if c % 1 else str(int(c)), *p]) for p, c in sorted(formula.items()) if c).replace("+-", "-") or "0"
