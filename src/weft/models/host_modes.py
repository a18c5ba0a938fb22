"""A graph in a rounding mode: LiteRT and TFLite Micro differ in some operators of the host."""

import dataclasses

from weft.models.errors import ModelError
from weft.models.ir import Graph, Host

__all__ = ["in_mode"]


def in_mode(graph: Graph, mode: str) -> Graph:
    """The graph with the host's kernels of a mode: `Host.single` in ``single``.

    Raises ModelError if the runtime of the mode refuses a node (`Node.refused`).
    """
    return dataclasses.replace(graph, nodes=tuple(_node(node, mode) for node in graph.nodes))


def _node(node, mode):
    if mode in node.refused:
        others = " or ".join({"tflite", "single"} - {*node.refused})
        raise ModelError(f"{node.refused[mode]}; a Config with requantize = {others!r} computes it")
    if not isinstance(node, Host) or node.single is None:
        return node
    kernel, attributes = node.single if mode == "single" else (node.kernel, node.attributes)
    return dataclasses.replace(node, kernel=kernel, attributes=attributes, single=None)
