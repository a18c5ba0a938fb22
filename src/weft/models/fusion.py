"""Fuses table operators into the products before them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.models.ir import Gemm, Graph, Host, Node

__all__ = ["FusedNode", "fuse_tables"]


@dataclass(frozen=True, eq=False)
class FusedNode:
    """A node, and the table operator that is computed with it.

    Attributes
    ----------
    node : Node
    table : Host or None
    refusal : str
        If the node is a table operator after a product: why it is not fused into that product.
        Empty otherwise.
    field : str
        Setting of the Config with which it would be fused; empty if no setting helps.
    """

    node: Node
    table: Host | None = None
    refusal: str = ""
    field: str = ""

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators of the file."""
        return (self.node.operator, *([self.table.operator] if self.table else []))

    @property
    def position(self) -> tuple[int, ...]:
        """Places of the operators in the file."""
        return (*self.node.position, *(self.table.position if self.table else ()))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Output tensors."""
        return (self.table or self.node).outputs

    @property
    def values(self) -> np.ndarray | None:
        """The table, [256], or None."""
        return self.table.attributes["table"] if self.table else None


def fuse_tables(graph: Graph, fusable: Sequence[bool], has_table: bool) -> list[FusedNode]:
    """Return the nodes of a graph; a table operator becomes a part of the product before it.

    Parameters
    ----------
    graph : Graph
    fusable : sequence of bool
        For each node: True if the core computes it and requantizes its results.
    has_table : bool
        Whether the core has an activation table.
    """
    readers = Counter(number for node in graph.nodes for number in node.inputs)
    readers.update(graph.results)
    products = {
        node.outputs[0]: node for node, fuses in zip(graph.nodes, fusable, strict=True)
        if fuses and isinstance(node, Gemm)
    }
    fused: dict[int, Host] = {}
    refusals: dict[int, tuple[str, str]] = {}
    for node in graph.nodes:
        if not isinstance(node, Host) or node.kernel != "table" or node.inputs[0] not in products:
            continue
        number = node.inputs[0]
        if readers[number] > 1:
            refusals[id(node)] = "the product before it has other readers", ""
        elif not has_table:
            refusals[id(node)] = "the core has no activation table", "activation=table"
        else:
            fused[number] = node
    hidden = {id(node) for node in fused.values()}
    return [
        FusedNode(node, fused.get(node.outputs[0]), *refusals.get(id(node), ()))
        for node in graph.nodes if id(node) not in hidden
    ]
