"""Translates ATen operators into ONNX operators. There is one file for each family and one function for each operator,
found by the operator's name without its overload.

A translation adds nodes to the call's graph and returns the result's value, or a list of values. It returns None for
unsupported cases, and the call then becomes an operator of unknown type. In-place operators are found by name
without the trailing underscore.
"""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.operators import indexing, layout, matmul, normalisation, pointwise, pooling, recurrent, reduction
from mdot.trace.operators.call import Call

TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    name: translate
    for family in (pointwise, layout, indexing, reduction, matmul, normalisation, pooling, recurrent)
    for name, translate in family.TRANSLATIONS.items()
}
