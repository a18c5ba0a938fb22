"""The tables of a network in a rounding mode: LiteRT and TFLite Micro differ in some of them."""

import dataclasses

from weft.network.ir import Graph, Host

__all__ = ["in_mode"]


def in_mode(graph: Graph, mode: str) -> Graph:
    """The graph with the tables of a mode.

    The attribute ``single`` of the kernel ``table``, if a table has it, is the table of the mode
    ``single``; ``table`` is the one of the others.
    """
    return dataclasses.replace(graph, nodes=tuple(_node(node, mode) for node in graph.nodes))


def _node(node, mode):
    if not isinstance(node, Host) or "single" not in node.attributes:
        return node
    table = node.attributes["single" if mode == "single" else "table"]
    return dataclasses.replace(node, attributes={"table": table})
