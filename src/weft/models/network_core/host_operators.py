"""Operators that are no layers, as steps of a program for a network core.

The host computes them. The sums of their products come from the core, if it can compute them.
"""

from weft.models.errors import ModelError
from weft.models.ir import Gemm, Graph, Node, Recurrence
from weft.models.lowering import candidates
from weft.models.network_core.list_steps import shape_of
from weft.models.placement import decide
from weft.models.products import host_product
from weft.models.program import MatrixProduct, Placement, Step
from weft.models.work import HostProduct, HostWork, ListProduct, RecurrentWork, list_products
from weft.network_core.config import NetworkCoreConfig

__all__ = ["host_step"]


def host_step(
    graph: Graph, node: Node, mode: str, reason: str, before: Node | None, config: NetworkCoreConfig
    | None
) -> Step:
    """Return the step of a node.

    Parameters
    ----------
    mode : str
        Rounding mode.
    reason : str
        Why it is no layer.
    before : Node or None
        An operator that a convolution computes, too: PAD in its window.
    config : NetworkCoreConfig or None
        The core, for the products; None: the host computes them.

    Raises
    ------
    ModelError
        If the operator is not valid.
    """
    nodes = [node] if before is None else [before, node]
    try:
        macs, work = _work(graph, node, mode, config)
    except ValueError as error:
        raise ModelError(
            f"{graph.name}: operator {node.position[0]} ({node.operator} {node.name}): {error}"
        ) from error
    found = list_products(work)
    shapes = ((*shape_of(part, graph.tensors, 1), part.rows.count) for part in found)
    times = node.steps if isinstance(node, Recurrence) else 1
    return Step(
        operators=tuple(n.operator for n in nodes), name=node.name,
        position=tuple(place for n in nodes for place in n.position), inputs=node.inputs,
        outputs=node.outputs, macs=macs, placement=Placement(bool(found), reason), work=work,
        method=found[0].rows.method if found else "",
        products=tuple(MatrixProduct(m, k, n, count * times) for m, k, n, count in shapes),
        left_out=node.left_out if isinstance(node, Gemm) else 0,
    )


def _work(graph, node, mode, config) -> tuple[int, HostProduct | HostWork | RecurrentWork]:
    """Return the MAC and the work of a node."""
    if isinstance(node, Gemm):
        return _product(graph, node, mode, _core_for([node], graph, mode, config))
    if isinstance(node, Recurrence):
        config = _core_for(node.products, graph, mode, config)
        products = [_product(graph, gemm, mode, config) for gemm in node.products]
        return sum(macs for macs, _ in products) * node.steps, RecurrentWork(
            kernel=node.kernel, attributes=node.attributes, steps=node.steps, mode=mode,
            products=tuple(work for _, work in products),
        )
    return node.macs, HostWork(node.kernel, node.attributes)


def _core_for(gemms, graph, mode, config):
    """Return the core, if it can compute all these products; else None."""
    able = config is not None and all(
        decide(gemm, graph.tensors, config.array, mode).on_weft for gemm in gemms
    )
    return config if able else None


def _product(graph, gemm, mode, config):
    x = graph.tensors[gemm.x].shape
    b = None if gemm.b is None else graph.tensors[gemm.b].shape
    ways = candidates(gemm, x, b, 1 if config is None else config.array.cols)
    rows = min(ways, key=lambda way: way.count) if config is not None else ways[0]
    kind = HostProduct if config is None else ListProduct
    return ways[0].macs(x), host_product(gemm, graph.tensors, rows, mode, kind)
