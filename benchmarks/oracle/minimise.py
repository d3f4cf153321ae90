"""Reduces a failing graph: fewer outputs, and inputs with ONNX Runtime's values in place of nodes."""

import copy

from compare import expected, session
from graphs import Value, is_nameable


def pruned(graph, outputs):
    """A copy with these outputs and only the nodes, inputs and initializers that they need."""
    needed, nodes = {v.name for v in outputs}, []
    for node in reversed(graph.nodes):
        if needed & set(node.output):
            nodes.insert(0, node)
            needed |= set(node.input)
            for attribute in node.attribute:  # bodies read weights of the graph around them
                needed |= {name for inner in attribute.g.node for name in inner.input}
    smaller = copy.copy(graph)
    smaller.nodes, smaller.outputs = nodes, list(outputs)
    smaller.inputs = [v for v in graph.inputs if v.name in needed]
    smaller.initializers = [v for v in graph.initializers if v.name in needed]
    return smaller


def with_input(graph, node, feeds):
    """A copy with a node's results as inputs. The answer is None if the cut graph is invalid."""
    made = [v for v in graph.values if v.name in node.output]
    if len(made) != len([name for name in node.output if name]) or any(v.name == o.name for v in made for o in graph.outputs):
        return None
    if not all(is_nameable(d) for v in made for d in v.shape):
        return None
    try:
        arrays = expected(session(graph.model(made), optimised=False), feeds)
    except Exception:  # the cut graph is invalid
        return None
    smaller = copy.copy(graph)
    smaller.nodes = [n for n in graph.nodes if n is not node]
    smaller.inputs = graph.inputs + [Value(v.name, v.dtype, v.shape, v.exact) for v in made]
    smaller = pruned(smaller, graph.outputs)
    held = dict(feeds, **{v.name: a for v, a in zip(made, arrays)})
    return smaller, {v.name: held[v.name] for v in smaller.inputs}


def minimise(graph, feeds, fails, budget=40):
    """`fails(graph, feeds)` must hold at the start; returns the smallest graph and feeds for which it still does."""
    for output in graph.outputs:
        smaller = pruned(graph, [output])
        held = {v.name: feeds[v.name] for v in smaller.inputs}
        if len(graph.outputs) > 1 and smaller.inputs and fails(smaller, held):
            graph, feeds = smaller, held
            break
    changed = True
    while changed and budget > 0:
        changed = False
        for node in list(graph.nodes):
            cut = with_input(graph, node, feeds) if budget > 0 else None
            budget -= cut is not None
            if cut is not None and len(cut[0].nodes) > 0 and fails(*cut):
                graph, feeds = cut
                changed = True
                break
    return graph, feeds
