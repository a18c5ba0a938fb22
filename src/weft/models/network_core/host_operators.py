"""Operators that the host computes, as steps of a program for a core for networks."""

from weft.models.errors import ModelError
from weft.models.ir import Gemm, Graph, Node, Recurrence
from weft.models.lowering import candidates
from weft.models.products import host_product
from weft.models.program import Placement, Step
from weft.models.work import HostProduct, HostWork, RecurrentWork

__all__ = ["host_step"]


def host_step(graph: Graph, node: Node, mode: str, reason: str, before: Node | None) -> Step:
    """Return the step of a node.

    Parameters
    ----------
    mode : str
        Rounding mode.
    reason : str
        Why the core does not compute it.
    before : Node or None
        An operator that a convolution computes, too: PAD in its window.

    Raises
    ------
    ModelError
        If the operator is not valid.
    """
    nodes = [node] if before is None else [before, node]
    try:
        macs, work = _work(graph, node, mode)
    except ValueError as error:
        raise ModelError(
            f"{graph.name}: operator {node.position[0]} ({node.operator} {node.name}): {error}"
        ) from error
    return Step(
        operators=tuple(n.operator for n in nodes), name=node.name,
        position=tuple(place for n in nodes for place in n.position), inputs=node.inputs,
        outputs=node.outputs, macs=macs, placement=Placement(False, reason), work=work,
        left_out=node.left_out if isinstance(node, Gemm) else 0,
    )


def _work(graph, node, mode) -> tuple[int, HostProduct | HostWork | RecurrentWork]:
    """Return the MAC and the work of a node."""
    if isinstance(node, Gemm):
        return _product(graph, node, mode)
    if isinstance(node, Recurrence):
        products = [_product(graph, gemm, mode) for gemm in node.products]
        return sum(macs for macs, _ in products) * node.steps, RecurrentWork(
            kernel=node.kernel, attributes=node.attributes, steps=node.steps, mode=mode,
            products=tuple(work for _, work in products),
        )
    return node.macs, HostWork(node.kernel, node.attributes)


def _product(graph, gemm, mode):
    x = graph.tensors[gemm.x].shape
    b = None if gemm.b is None else graph.tensors[gemm.b].shape
    rows, *_ = candidates(gemm, x, b, 1)
    return rows.macs(x), host_product(gemm, graph.tensors, rows, mode)
