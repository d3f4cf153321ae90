"""The FLOPs that autograd dispatched for each product of the graph.

A reader of the graph derives gradients from the forward operators. Where they differ from autograd's, for example in an
autograd function, the graph tells it the FLOPs of each product's backward pass (`follow`).
"""

from __future__ import annotations

from typing import Sequence

from mdot.trace.check import TOLERANCE
from mdot.trace.graph import Graph, Node
from mdot.trace.work import Work

NAME = "backward_flops"


def price(graph: Graph, work: Work, batch: int, others: Sequence[Graph]) -> None:
    """Prices calls whose gradients a reader cannot derive, also in the graphs at other batches."""
    graph.gradients = _found(graph, work, batch)
    left: dict[str, list[float]] = {}
    for call, flops in zip(work.calls, work.backward_of(batch)):
        left.setdefault(call.name, []).append(flops)
    for index, node in enumerate(graph.nodes):
        if node.domain == "mdot.call" and not node.attributes["type"]:
            same = left.get(node.op, [])
            if index in graph.gradients or same:
                _set(graph, index, graph.gradients.get(index, same[0] if same else 0.0), others)
            del same[:1]


def follow(graph: Graph, others: Sequence[Graph], dispatched: float) -> bool:
    """Lets the products have the FLOPs that autograd dispatched. Returns whether all of them are known."""
    if abs(sum(graph.gradients.values()) - dispatched) > TOLERANCE * dispatched:
        return False
    for index, flops in graph.gradients.items():
        if graph.nodes[index].op == "View" and flops > 0:  # an autograd function that multiplies in its backward pass alone
            for one in (graph, *others):
                _make_call(one.nodes[index])
        _set(graph, index, flops, others)
    return True


def _make_call(node: Node) -> None:
    node.domain = "mdot.call"
    node.attributes |= {"type": "", "flops": 0.0}


def _set(graph: Graph, index: int, flops: float, others: Sequence[Graph]) -> None:
    """In another graph, gradients grow like the forward operators."""
    graph.nodes[index].attributes[NAME] = float(flops)
    for other in others:
        if index < len(other.nodes) and other.nodes[index].op == graph.nodes[index].op:
            other.nodes[index].attributes[NAME] = float(flops) * other.amount(index) / max(graph.amount(index), 1.0)


def _found(graph: Graph, work: Work, batch: int) -> dict[int, float]:
    """By index of the node. A module's calls are known if it has dispatched the same products in both runs."""
    places = {id(node): index for index, node in enumerate(graph.nodes)}
    found: dict[int, float] = {}
    measured = work.backward_of(batch)
    theirs: dict[str, list[int]] = {}
    for index, call in enumerate(work.calls):
        theirs.setdefault(call.path, []).append(index)
    for path in theirs:
        ours = [product for product in graph.products if product.path == path]
        if len(ours) != len(theirs[path]):
            continue
        pairs = list(zip(ours, theirs[path]))
        if any(abs(product.flops - work.at_batch(index, batch)) > 1e-3 * product.flops for product, index in pairs):
            continue
        for product, index in pairs:
            nodes = [places[id(node)] for node in product.nodes if id(node) in places]
            total = sum(graph.amount(node) for node in nodes) or 1.0
            found.update({node: measured[index] * graph.amount(node) / total for node in nodes})
    if [kind for kind, _ in work.functions] == [kind for kind, _ in graph.functions]:
        for (_, node), flops in zip(graph.functions, work.backward_of_functions(batch)):
            if node is not None and flops > 0:
                found[places[id(node)]] = flops
    return found
