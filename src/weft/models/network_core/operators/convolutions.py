"""TRANSPOSE_CONV; and convolutions of batches that are parts of one map: a dilation.

SPACE_TO_BATCH_ND makes a batch of every n-th row and column, a convolution computes it, and
BATCH_TO_SPACE_ND puts the results between each other: old converters write a dilation so.
"""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from weft.models.ir import Gemm, Graph, Host, Node
from weft.models.network_core.layers import NetworkLayer, Refusal
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.products import NetworkCoreProduct, weights_of

__all__ = ["transposed", "with_dilations"]

# The fields that `NetworkCoreProduct` and `OperatorBuilder.layer` have.
_FIELDS = "layout", "groups", "bias", "x_zero", "zero", "low", "high", "digits", "reads_pairs"


def transposed(
    builder: OperatorBuilder, gemm: Gemm, product_of: Callable[[Gemm], NetworkCoreProduct]
) -> tuple[int, tuple[NetworkLayer, ...]]:
    """Return the map and the layers of a transposed convolution.

    Parameters
    ----------
    builder : OperatorBuilder
    gemm : Gemm
        With a window that spreads its input.
    product_of : callable
        Returns the layer of a Gemm.
    """
    window = gemm.window
    if window.stride != (1, 1) or window.dilation != (1, 1):
        raise Refusal("a transposed convolution must have no dilation and no second stride")
    columns = gemm.weights.shape[0] * gemm.weights.shape[2]
    channels = math.prod(builder.tensor(0).shape) // math.prod(window.input)
    x = builder.read(0, (*window.input, channels))
    target, maps = builder.map((*window.output, columns)), {1: x}
    phases = [
        _phases(*numbers) for numbers in zip(
            window.kernel, window.spread, window.padding[::2], window.output, strict=True
        )
    ]
    for (top, rows, *row), (left, across, *column) in itertools.product(*phases):
        (first_row, row_count), (first_column, column_count) = row, column
        part = dataclasses.replace(
            window, kernel=(len(rows), len(across)), spread=(1, 1), padding=(-top, 0, -left, 0),
            output=(row_count, column_count),
        )
        product = product_of(dataclasses.replace(
            gemm, window=part, weights=_taken(gemm.weights, window.kernel, rows, across)
        ))
        if product.copies not in maps:
            maps[product.copies] = builder.repeated(x, product.copies)
        y = target
        if window.spread != (1, 1):
            y = builder.view(
                target, (row_count, column_count, columns), row=first_row, column=first_column,
                line=(window.spread[0], 0), pixel=(0, window.spread[1]),
            )
        builder.layer(
            maps[product.copies], product.window, product.weights, y=y,
            scale=(product.multiplier, product.shift),
            **{name: getattr(product, name) for name in _FIELDS},
        )
    *layers, last = builder.finished((target,))
    macs = math.prod(window.output) * weights_of(gemm)
    return target, (*layers, dataclasses.replace(last, macs=macs, left_out=gemm.left_out))


def _phases(kernel, spread, before, output):
    """Yield for each phase along an axis: where its first output begins to read the input, its
    taps, its first output, and the number of its outputs.

    A tap that the kernel lacks has weights of 0: of a phase without any tap.
    """
    for first in range(min(spread, output)):
        tap = (before - first) % spread
        taps = list(range(tap, kernel, spread)) or [None]
        yield (first + tap - before) // spread, taps, first, -(-(output - first) // spread)


def _taken(weights, kernel, rows, columns):
    """Return the weights [groups, K, N] of some rows and columns of a kernel."""
    groups, k, n = weights.shape
    whole = weights.reshape(groups, *kernel, k // math.prod(kernel), n)
    if rows == [None] or columns == [None]:
        return np.zeros((groups, len(rows) * len(columns) * whole.shape[3], n), weights.dtype)
    return whole[:, rows][:, :, columns].reshape(groups, -1, n)


def with_dilations(graph: Graph) -> Graph:
    """Return the graph with one convolution for each of these sequences."""
    makers = {number: node for node in graph.nodes for number in node.outputs}
    readers = Counter(n for node in graph.nodes for n in node.inputs) + Counter(graph.results)
    replaced: dict[Node, Gemm | None] = {}
    for node in graph.nodes:
        found = _sequence(node, makers, readers)
        joined = None if found is None else _joined(graph, found)
        if found is not None and joined is not None:
            replaced |= dict.fromkeys(found.nodes) | {node: joined}
    nodes = (replaced.get(node, node) for node in graph.nodes)
    return dataclasses.replace(graph, nodes=tuple(node for node in nodes if node is not None))


class _Sequence(NamedTuple):
    """The nodes from the map to the map; ``reshapes`` are beside the convolution."""

    pad: Host
    before: Host
    gemm: Gemm
    after: Host
    cut: Host
    reshapes: tuple[Host, ...]

    @property
    def nodes(self):
        """All of them, in their order."""
        nodes = self.pad, self.before, self.gemm, self.after, self.cut, *self.reshapes
        return sorted(nodes, key=lambda node: node.position)


def _sequence(cut, makers, readers):
    """Return the sequence that ends with a node; None if it ends with another one."""
    if not _is(cut, "slice", "BATCH_TO_SPACE_ND"):
        return None

    def before(node):
        number = node.x if isinstance(node, Gemm) else node.inputs[0]
        return makers.get(number) if readers[number] == 1 else None

    after, reshapes = before(cut), []
    node = None if after is None else before(after)
    if _is(node, "reshape"):
        reshapes.append(node)
        node = before(node)
    gemm = node
    node = before(node) if isinstance(node, Gemm) else None
    if _is(node, "reshape"):
        reshapes.append(node)
        node = before(node)
    pad = before(node) if _is(node, "rearrange", "SPACE_TO_BATCH_ND") else None
    if not _is(pad, "pad", "SPACE_TO_BATCH_ND"):
        return None
    return _Sequence(pad, node, gemm, after, cut, tuple(reshapes))


def _is(node, kernel, operator=None):
    return isinstance(node, Host) and node.kernel == kernel and operator in (None, node.operator)


def _joined(graph, found) -> Gemm | None:
    """Return the convolution of a sequence; None if it is not the one of a single map."""
    x, y = (graph.tensors[n].shape for n in (found.pad.inputs[0], found.cut.outputs[0]))
    window, rank = found.gemm.window, len(x)
    blocks = found.before.attributes["split"][2 : 2 * _count(found.before, rank) + 1 : 2]
    if (
        window is None or window.stride != (1, 1) or window.spread != (1, 1)
        or found.gemm.layout != "NHWC" or found.gemm.weights is None or x[0] != 1
        or blocks != found.after.attributes["split"][: _count(found.after, rank)]
        or found.pad.attributes["value"] != found.gemm.x_zero
    ):
        return None
    borders = [before for before, _ in found.pad.attributes["padding"][1:]]
    numbers = [*zip(borders, found.cut.attributes["begin"][1:], x[1:], y[1:], strict=True)]
    along = [
        (block, before - cut, given, size)
        for block, (before, cut, given, size) in zip(blocks, numbers, strict=False)
    ]
    along += [(1, 0, given, size) for _, _, given, size in numbers[len(along) : rank - 2]]
    batch = math.prod(blocks)
    if rank == 3:  # of values in time: rows or columns
        shape = graph.tensors[found.gemm.x].shape
        along.insert(0 if shape[1] == 1 else 1, (1, 0, 1, 1))
    if len(along) != 2 or math.prod(graph.tensors[found.gemm.x].shape[:1]) != batch:
        return None
    tops = [
        before + block * inner
        for (block, before, _, _), inner in zip(along, window.padding[::2], strict=True)
    ]
    dilated = dataclasses.replace(
        window, dilation=tuple(
            block * d for (block, *_), d in zip(along, window.dilation, strict=True)
        ),
        padding=(tops[0], 0, tops[1], 0), input=tuple(given for _, _, given, _ in along),
        output=tuple(size for *_, size in along),
    )
    places = [place for node in found.nodes for place in node.position]
    return dataclasses.replace(
        found.gemm, x=found.pad.inputs[0], inputs=(found.pad.inputs[0], *found.gemm.inputs[1:]),
        outputs=found.cut.outputs, window=dilated, position=tuple(dict.fromkeys(places)),
        operator="+".join(dict.fromkeys(node.operator for node in found.nodes)),
    )


def _count(node, rank):
    """The number of axes that have blocks."""
    return len(node.attributes["split"]) - rank
