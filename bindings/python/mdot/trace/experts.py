"""Costly or untraceable ways to run a mixture's experts.

transformers has several ways to run the same experts. `grouped_mm`, the default, reads each expert's matrices in
place. `batched_mm` is made for decoding: it gathers a copy of the matrices for each pair of token and expert.
`eager` is a loop over experts with at least one token.
"""

from __future__ import annotations

from torch import nn

from mdot.trace.graph import BFLOAT16, DOUBLE, FLOAT16, Graph, Node, Value

REMEDY = 'model.set_experts_implementation("grouped_mm")'
_BYTES = {FLOAT16: 2, BFLOAT16: 2, DOUBLE: 8}
"""Of other types than float."""
_SAME_CONTENT = ("Cast", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "StopGradient")


def copies(graph: Graph, batch: int) -> str | None:
    """A note for the user if matrix products read matrices gathered by computed indices, and these copies are larger
    than the parameter."""
    made_by = {value: node for node in graph.nodes for value in node.outputs if value is not None}
    gathered: dict[Value, Value] = {}
    for node in graph.nodes:
        for operand in node.inputs[:2] if node.op == "MatMul" else ():
            copy = _content(operand, made_by)
            gather = made_by.get(copy) if copy is not None else None
            if copy is None or gather is None or gather.op != "Gather":
                continue
            parameter, indices = _content(gather.inputs[0], made_by), gather.inputs[1]
            if parameter is None or parameter.kind != "parameter" or len(parameter.shape) < 3:
                continue
            if indices is not None and indices.kind == "data" and copy.count > parameter.count:
                gathered[copy] = parameter
    if not gathered:
        return None
    size = sum(copy.count * _BYTES.get(copy.dtype, 4) for copy in gathered) / batch / 2**30
    names = list(dict.fromkeys(parameter.name for parameter in gathered.values()))
    more = f" and of {len(names) - 1} more parameters" if len(names) > 1 else ""
    return (
        f"each token gathers copies of its matrices of {names[0]}{more}, which take {size:.3g} GiB per sample in PyTorch as "
        "well; grouped matrix products read the matrices in place, and expert_parallel needs them; for a model of "
        f"transformers, call {REMEDY}"
    )


def _content(value: Value | None, made_by: dict[Value, Node]) -> Value | None:
    """The original value behind views and copies in another type."""
    while value is not None and value in made_by and made_by[value].op in _SAME_CONTENT:
        value = made_by[value].inputs[0]
    return value


def remedy_for_loop(model: nn.Module) -> str | None:
    """How to run the experts of a transformers model without the loop, if it has one."""
    for module in model.modules():
        way = getattr(getattr(module, "config", None), "_experts_implementation", None)
        has_experts = any("expert" in type(one).__name__.lower() for one in module.modules())
        if way == "eager" and has_experts and hasattr(module, "set_experts_implementation"):
            return f"its experts are a loop: call {REMEDY}"
    return None
