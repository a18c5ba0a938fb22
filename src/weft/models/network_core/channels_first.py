"""Networks of ONNX as a network core computes them: their maps have the channels last.

So do those of TensorFlow Lite; a TRANSPOSE at their end may put the channels first.

The values of such a tensor are ``map.transpose(2, 0, 1)``, in any shape of the tensor: a Flatten
renames the map. The host rearranges the values when it writes or reads the map
(`weft.models.ir.Tensor.channels_first`).
"""

import dataclasses
import math

import numpy as np

from weft.models.ir import Gemm, Graph, Host, Node, Tensor
from weft.models.network_core.layers import Refusal, WrongMap
from weft.models.network_core.onnx_nodes import (
    ADDITION,
    AVERAGE,
    MAXIMUM,
    CoreNode,
    core_nodes,
)
from weft.models.network_core.wide_maps import with_pairs
from weft.network_core.config import NetworkCoreConfig

__all__ = ["CoreView", "flat_product", "order_in", "values_first"]

_POOLS = {AVERAGE, MAXIMUM}
_SAME_ORDER = {"table", ADDITION, *_POOLS, "concatenation", "pad", "reshape"}
_BYTES = np.dtype(np.int8), np.dtype(np.uint8)
_UNKNOWN = "channels first"  # instead of a kernel whose axes are the ones of the file


class CoreView:
    """A graph as the core sees it; the same one for a file whose maps have their channels last.

    Parameters
    ----------
    graph : Graph
    depth, convert
        As of `weft.models.network_core.onnx_nodes.core_nodes`.
    core : NetworkCoreConfig or None
        The core, if it is known.

    Attributes
    ----------
    graph : Graph
        For the host: its tensors say `channels_first`.
    nodes : list of CoreNode
        Their operators for the core have NHWC.
    tensors : tuple of Tensor
        Of these operators: shapes of maps have the channels last.
    wide : set of int
        Tensors of int16 whose maps have the bytes of their values, as `with_pairs` has them.
    """

    def __init__(
        self, graph: Graph, depth: int, *, convert: bool, core: NetworkCoreConfig | None
    ):
        self.wide: frozenset[int] = frozenset()
        if graph.source != "onnx":
            self.graph = _with_last_transposes(graph)
            nodes, self.tensors = list(graph.nodes), self.graph.tensors
            if core is not None and core.int16:
                nodes, self.tensors, self.wide = with_pairs(self.graph)
            self.nodes = [
                CoreNode(node, (given,)) for node, given in zip(nodes, graph.nodes, strict=True)
            ]
            return
        found, tensors = core_nodes(graph, depth, convert=convert)
        first = _channels_first([core_node.node for core_node in found], len(tensors))
        tensors = tuple(
            dataclasses.replace(tensor, channels_first=True) if number in first else tensor
            for number, tensor in enumerate(tensors)
        )
        self.graph = dataclasses.replace(graph, tensors=tensors)
        self.tensors = tuple(
            dataclasses.replace(tensor, shape=_last(tensor.shape)) if tensor.channels_first
            else tensor for tensor in tensors
        )
        self.nodes = [
            dataclasses.replace(core_node, node=_for_maps(core_node.node, tensors))
            for core_node in found
        ]

    def core_graph(self) -> Graph:
        """Return the operators for the core as a graph."""
        nodes = tuple(core_node.node for core_node in self.nodes)
        return dataclasses.replace(self.graph, nodes=nodes, tensors=self.tensors)


def _with_last_transposes(graph: Graph) -> Graph:
    """Return a graph whose last TRANSPOSE is one of the host's bytes.

    If it puts the channels before the pixels of a map, and nothing but the user reads its result,
    the host reads the map before it in this order.
    """
    read = {number for node in graph.nodes for number in node.inputs}
    tensors = list(graph.tensors)
    for node in graph.nodes:
        if not isinstance(node, Host) or node.kernel != "transpose":
            continue
        [y], shape, axes = node.outputs, tensors[node.inputs[0]].shape, node.attributes["axes"]
        long = [axis for axis in range(len(shape)) if shape[axis] > 1]
        turned = [*long[-1:], *long[:-1]] == [axis for axis in axes if shape[axis] > 1]
        is_last = y in graph.outputs and y not in read and tensors[y].dtype in _BYTES
        if is_last and turned and len(long) > 1 and shape[-1] > 1:
            tensors[y] = dataclasses.replace(tensors[y], channels_first=True)
    return dataclasses.replace(graph, tensors=tuple(tensors))


def _channels_first(nodes: list[Node], count: int) -> set[int]:
    """The tensors whose values have the order of a map with NCHW.

    Tensors of one order are the ones around convolutions and averages, and all that operators on
    each value, concatenations and reshapes join with them.
    """
    root, marked = list(range(count)), set()

    def find(number):
        while root[number] != number:
            root[number] = number = root[root[number]]
        return number

    for node in nodes:
        window = isinstance(node, Gemm) and node.window is not None and node.layout == "NCHW"
        kernel = node.kernel if isinstance(node, Host) else ""
        numbers = [node.x, *node.outputs] if window else [*node.inputs, *node.outputs]
        if not window and kernel not in _SAME_ORDER:
            continue
        for number in numbers:
            root[find(number)] = find(numbers[0])
        if window or kernel in _POOLS:
            marked.add(numbers[0])
    marked = {find(number) for number in marked}
    return {number for number in range(count) if find(number) in marked}


def _last(shape):
    """The shape of a map with the channels last; other shapes as they are."""
    if len(shape) not in (3, 4) or shape[0] != 1:
        return shape
    rows = shape[2] if len(shape) == 4 else 1
    return 1, rows, shape[-1], shape[1]


def _for_maps(node, tensors):
    """A node for maps with the channels last."""
    if isinstance(node, Gemm):
        return node if node.window is None else dataclasses.replace(node, layout="NHWC")
    if isinstance(node, Host) and node.kernel not in _SAME_ORDER:
        return dataclasses.replace(node, kernel=_UNKNOWN)
    shape = tensors[node.outputs[0]].shape
    if not tensors[node.outputs[0]].channels_first or _last(shape) == shape:
        return node
    if node.kernel == "concatenation":
        axis = node.attributes["axis"] % len(shape)
        axis = 3 if axis == 1 else 0 if axis == 0 else axis + 3 - len(shape)
        return dataclasses.replace(node, attributes={**node.attributes, "axis": axis})
    if node.kernel == "pad":
        batch, channels, *sides = node.attributes["padding"]
        sides = [(0, 0)] * (4 - len(shape)) + sides
        attributes = {**node.attributes, "padding": (batch, *sides, channels)}
        return dataclasses.replace(node, attributes=attributes)
    return node


def values_first(size: tuple[int, int, int]) -> np.ndarray:
    """Return the place of each value of a map of ``size`` in a tensor with the channels first."""
    height, width, channels = size
    return np.arange(math.prod(size)).reshape(channels, height, width).transpose(1, 2, 0).ravel()


def order_in(stored: tuple[int, int, int], size: tuple[int, int, int], node: Node) -> np.ndarray:
    """Return where a map ``stored`` has the values that a node reads as a map of ``size``.

    Raises Refusal if the node is a product of rows: they are no pixels.
    """
    if isinstance(node, Gemm) and node.window is None:
        raise Refusal("its rows are no pixels of a map whose channels are the first axis")
    return np.argsort(values_first(stored))[values_first(size)]


def flat_product(
    gemm: Gemm, x: Tensor, y: Tensor, stored: tuple[int, int, int] | None
) -> Gemm:
    """Return a Gemm with its weights in the order in which the core has the values of x.

    Parameters
    ----------
    stored : (int, int, int) or None
        Size of the map on the core that has x; None if the host writes x.

    Raises
    ------
    WrongMap
        If the rows of x are not pixels of that map.
    Refusal
        If the rows of y would be channels.
    """
    if gemm.window is not None or gemm.weights is None:
        return gemm
    _, k, n = gemm.weights.shape
    if y.channels_first and n > 1 and math.prod(y.shape) != n:
        raise Refusal("its rows must be one row, whose columns are channels of a map")
    if not x.channels_first or stored is None:
        return gemm
    height, width, channels = stored
    if height * width == 1 or channels == 1:
        return gemm
    if height * width * channels != k:
        raise WrongMap(f"M must be 1 for a map of {stored} whose channels are the first axis")
    weights = gemm.weights.reshape(len(gemm.weights), channels, height * width, n)
    weights = np.ascontiguousarray(weights.swapaxes(1, 2)).reshape(gemm.weights.shape)
    return dataclasses.replace(gemm, weights=weights)
