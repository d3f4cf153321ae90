"""ATen's operators → ONNX's: a file a family, a function an operator, found by the operator's name without its overload.

A translation adds nodes to the call's graph and returns the value of the result, or a list of them; None where it does not
know the case, which makes an operator of its own kind. What is in place goes by the name without its underscore.
"""

from __future__ import annotations

from typing import Any, Callable

from mdot.trace.operators import indexing, layout, normalisation, pointwise, pooling, products, recurrent, reduction
from mdot.trace.operators.call import Call

TRANSLATIONS: dict[str, Callable[[Call], Any]] = {
    name: translate
    for family in (pointwise, layout, indexing, reduction, products, normalisation, pooling, recurrent)
    for name, translate in family.TRANSLATIONS.items()
}
