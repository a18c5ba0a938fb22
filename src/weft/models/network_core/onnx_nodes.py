"""Operators of ONNX as a network core computes them: on bytes, between their quantizations.

A file in the form QDQ has ``DequantizeLinear, Add, QuantizeLinear`` where another one has
``QLinearAdd``. The core computes both with the ADD table, if all 65,536 results are exact.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.models import kernels
from weft.models.arithmetic import lane_parameters, lane_results
from weft.models.ir import Graph, Host, Node, Quantization, Tensor, Window
from weft.models.network_core.layers import Addition, Refusal
from weft.models.network_core.pools import MAX_COUNT, NO_PADDING, EqualWeights

__all__ = [
    "ADDITION", "AVERAGE", "MAXIMUM", "CoreNode", "average_of", "core_nodes", "onnx_addition",
]

# Kernels of nodes that only the core executes: the host has the nodes of the file.
ADDITION = "onnx.byte_addition"
AVERAGE = "onnx.byte_average"
MAXIMUM = "tflite.max_pool"  # which a network core has
_BYTES = np.dtype(np.int8), np.dtype(np.uint8)
_LIMITS = {"onnx.relu", "onnx.clip"}  # kernels between an addition and its QuantizeLinear
_PAIRS = {"onnx.add", "onnx.multiply"}
_AVERAGES = {"onnx.average_pool", "onnx.global_average_pool", "onnx.reduce_mean"}


@dataclass(frozen=True, eq=False)
class CoreNode:
    """An operator for the core, and the nodes that the host computes if the core does not.

    Attributes
    ----------
    node : Node
    nodes : tuple of Node
        In their order. A DequantizeLinear may belong to several operators.
    """

    node: Node
    nodes: tuple[Node, ...]


def core_nodes(
    graph: Graph, depth: int, *, convert: bool = True
) -> tuple[list[CoreNode], tuple[Tensor, ...]]:
    """Return the operators of a graph, those on bytes with the nodes around them; and its tensors.

    ``convert``: parts of a concatenation that have other scales than its result are converted by
    tables, if they begin at multiples of ``depth`` channels. The tables have tensors of their own.
    """
    fusion = _Fusion(graph, depth, convert)
    return fusion.operators(), (*graph.tensors, *fusion.converted)


@dataclass(frozen=True)
class _Quantized:
    """A tensor of bytes with its scale and its zero point."""

    tensor: int
    scale: np.float32
    zero: int


class _Fusion:
    """Finds the operators on bytes, and the conversions around them.

    Attributes
    ----------
    converted : list of Tensor
        Converted parts of concatenations.
    """

    def __init__(self, graph, depth, convert):
        self._graph, self._tensors = graph, graph.tensors
        self._depth, self._converts = depth, convert
        self.converted: list[Tensor] = []
        self._before: dict[int, list[CoreNode]] = {}  # tables, by the result of a concatenation
        self._producer = {number: node for node in graph.nodes for number in node.outputs}
        self._readers = defaultdict(list)
        for node in graph.nodes:
            for number in {*node.inputs}:
                self._readers[number].append(node)

    def operators(self) -> list[CoreNode]:
        fused = {}
        for node in self._graph.nodes:
            found = self._fused(node) if isinstance(node, Host) else None
            if found is not None:
                fused[node] = found
        inside = {node for found in fused.values() for node in found.nodes}
        before = (node for nodes in self._before.values() for node in nodes)
        read = {n for found in (*fused.values(), *before) for n in found.node.inputs}
        operators = []
        for node in self._graph.nodes:
            if node in fused:
                operators += [*self._before.get(node.outputs[0], ()), fused[node]]
            elif node not in inside or not self._is_read_inside(node, inside, read):
                operators.append(CoreNode(node, (node,)))
        return operators

    def _is_read_inside(self, node, inside, read):
        """Whether only nodes of operators on bytes read the results of a node.

        ``read`` : what these operators read themselves; a table, of which another one is a part.
        """
        readers = (reader for number in node.outputs for reader in self._readers[number])
        needed = read | {*self._graph.results}
        return needed.isdisjoint(node.outputs) and inside.issuperset(readers)

    def _fused(self, node):
        """The operator on bytes whose last node is ``node``; None if there is none."""
        inputs = node.inputs
        if node.kernel == "onnx.qlinear_add":
            ends = (*inputs[:3],), (*inputs[3:6],), (node.outputs[0], *inputs[6:8])
            return self._addition((node,), *(self._quantized(*end) for end in ends))
        if node.kernel == "onnx.qlinear_global_average_pool":
            ends = (*inputs[:3],), (node.outputs[0], *inputs[3:5])
            return self._average((node,), node, *(self._quantized(*end) for end in ends))
        if node.kernel == "onnx.qlinear_concat":
            parts = [(*inputs[n : n + 3],) for n in range(2, len(inputs), 3)]
            ends = [self._quantized(*end) for end in ((node.outputs[0], *inputs[:2]), *parts)]
            return self._concatenation((node,), node.attributes["axis"], *ends)
        if node.kernel == "onnx.max_pool":
            return self._maximum(node)
        if node.kernel == "onnx.quantize":
            return self._between(node)
        return None

    def _maximum(self, node):
        """MaxPool of bytes as TensorFlow Lite has it."""
        given, tensor = node.attributes, self._tensors[node.inputs[0]]
        if tensor.dtype not in _BYTES or given["dilations"] != (1, 1):
            return None
        limits = np.iinfo(tensor.dtype)
        return CoreNode(replace(node, kernel=MAXIMUM, attributes={
            "kernel_size": given["window"], "stride": given["strides"], "padding": given["begin"],
            "output": given["output"], "low": int(limits.min), "high": int(limits.max),
        }), (node,))

    def _between(self, last):
        """An operator of float32 between DequantizeLinear and the QuantizeLinear ``last``."""
        y, chain = self._quantized(last.outputs[0], *last.inputs[1:]), [last]
        while True:
            number = chain[0].inputs[0]
            node = self._producer.get(number)
            sole = len(self._readers[number]) == 1 and number not in self._graph.results
            if node is None or not isinstance(node, Host) or not sole:
                return None
            chain.insert(0, node)
            if node.kernel not in _LIMITS or any(
                self._tensors[n].data is None for n in node.inputs[1:] if n >= 0
            ):
                break
        before = [self._producer.get(number) for number in node.inputs]
        if not all(isinstance(n, Host) and n.kernel == "onnx.dequantize" for n in before):
            return None
        operands = [self._quantized(*n.inputs) for n in before]
        if node.kernel in _PAIRS and len(operands) == 2:
            found = self._table((*before, *chain), *operands, y)
            if found is not None or node.kernel != "onnx.add":
                return found
            return self._addition((*before, *chain), *operands, y)
        if node.kernel == "concatenation" and len(chain) == 2:
            return self._concatenation((*before, *chain), node.attributes["axis"], y, *operands)
        if node.kernel in _AVERAGES and len(chain) == 2:
            return self._average((*before, *chain), node, *operands, y)
        return None

    def _quantized(self, tensor, scale, zero=-1):
        """A tensor of bytes with its constants; None if it is another one."""
        values = [np.zeros(1) if n < 0 else self._tensors[n].data for n in (scale, zero)]
        if self._tensors[tensor].dtype not in _BYTES or self._tensors[tensor].data is not None:
            return None
        if scale < 0 or any(value is None or value.size != 1 for value in values):
            return None
        return _Quantized(tensor, np.float32(values[0].ravel()[0]), int(values[1].ravel()[0]))

    def _operator(self, nodes, kernel, operands, y, **attributes):
        own = [n for n in nodes if n.kernel not in ("onnx.dequantize", "onnx.quantize")]
        node, places = own[0], {place for n in own for place in n.position}
        return CoreNode(Host(
            operator=node.operator, name=node.name, position=tuple(sorted(places)),
            inputs=tuple(x.tensor for x in operands), outputs=(y.tensor,), kernel=kernel,
            attributes=attributes, reason=node.reason,
        ), nodes)

    def _addition(self, nodes, a, b, y):
        if None in (a, b, y) or a.tensor == b.tensor:
            return None
        kinds = [self._tensors[end.tensor] for end in (a, b, y)]
        if len({(kind.dtype, kind.shape) for kind in kinds}) > 1:
            return None
        return self._operator(
            nodes, ADDITION, (a, b), y, scales=(a.scale, b.scale, y.scale),
            zeros=(a.zero, b.zero, y.zero), results=self._results(nodes, a, b, y),
        )

    def _table(self, nodes, a, b, y):
        """A function of x and of a function of x, such as ``x * sigmoid(x)``: a table of x."""
        if None in (a, b, y):
            return None
        for x, function in ((a, b), (b, a)):
            before = self._producer.get(function.tensor)
            is_table = isinstance(before, Host) and before.kernel == "table"
            if is_table and before.inputs == (x.tensor,):
                nodes = before, *nodes
                break
        else:
            if a.tensor != b.tensor:
                return None
            x = a
        values = {x.tensor: self._bytes(x)}
        table = self._computed(nodes, values, y).astype(self._tensors[y.tensor].dtype)
        return self._operator(nodes, "table", (x,), y, table=table)

    def _results(self, nodes, a, b, y):
        """The results of nodes for all pairs of bytes: int64 [byte of a, byte of b]."""
        values = {
            a.tensor: np.tile(self._bytes(a)[:, None], 256),
            b.tensor: np.tile(self._bytes(b), (256, 1)),
        }
        return self._computed(nodes, values, y)

    def _bytes(self, x):
        return np.arange(256, dtype=np.uint8).view(self._tensors[x.tensor].dtype)

    def _computed(self, nodes, values, y):
        """The results of nodes, as int64, where some tensors have ``values``."""
        for node in nodes:
            inputs = [
                None if n < 0 else values.get(n, self._tensors[n].data) for n in node.inputs
            ]
            values.update(zip(
                node.outputs, kernels.run(node.kernel, inputs, node.attributes), strict=True
            ))
        return values[y.tensor].astype(np.int64)

    def _average(self, nodes, pool, x, y):
        if None in (x, y) or self._tensors[x.tensor].dtype != self._tensors[y.tensor].dtype:
            return None
        axes = pool.attributes.get("axes", (2, 3)), len(self._tensors[x.tensor].shape)
        if axes != ((2, 3), 4):
            return None
        return self._operator(
            nodes, AVERAGE, (x,), y, scales=(x.scale, y.scale), zeros=(x.zero, y.zero),
            window=pool.attributes if pool.kernel == "onnx.average_pool" else None,
        )

    def _concatenation(self, nodes, axis, y, *parts):
        if None in (y, *parts) or len({x.tensor for x in parts}) < len(parts):
            return None
        tables = [x for x in parts if (x.scale, x.zero) != (y.scale, y.zero)]
        offsets = np.cumsum([self._tensors[x.tensor].shape[axis] for x in parts])[:-1]
        if tables and not (self._converts and (offsets % self._depth == 0).all()):
            return None
        joined = [self._convert(nodes, x, y) if x in tables else x for x in parts]
        return self._operator(nodes, "concatenation", joined, y, axis=axis)

    def _convert(self, nodes, x, y):
        """A part of a concatenation with the scale of its result."""
        steps = (x.scale, x.zero), (y.scale, y.zero)
        table = _converted(self._bytes(x), *steps, self._tensors[y.tensor].dtype)
        number = len(self._tensors) + len(self.converted)
        self.converted.append(replace(
            self._tensors[x.tensor], dtype=table.dtype,
            quantization=Quantization(np.array([y.scale]), np.array([y.zero])),
        ))
        part = _Quantized(number, y.scale, y.zero)
        found = self._operator(nodes, "table", (x,), part, table=table)
        self._before.setdefault(y.tensor, []).append(replace(found, nodes=()))
        return part


def _converted(values, before, after, dtype):
    """Bytes with the scale and zero point ``before``, with others: float32, as onnxruntime."""
    (x_scale, x_zero), (y_scale, y_zero) = before, after
    [numbers] = kernels.run("onnx.dequantize", [values, x_scale, np.asarray(x_zero)], {"axis": 0})
    zero = np.asarray(y_zero, dtype)
    return kernels.run(
        "onnx.quantize", [numbers, y_scale, zero], {"axis": 0, "dtype": dtype.name}
    )[0]


def average_of(
    node: Host, size: tuple[int, int]
) -> tuple[Window, EqualWeights, tuple[int, int]]:
    """Return window, weight and scale, and zero points of an average over a map of ``size``.

    The lanes compute ``rint(sum(x - x_zero) * (x_scale / (y_scale * count))) + zero`` in float32,
    as QLinearGlobalAveragePool does. Raises Refusal if windows have different numbers of inputs.
    """
    given, (x_scale, y_scale) = node.attributes["window"], node.attributes["scales"]
    window = Window(size, (1, 1), (1, 1), NO_PADDING, size, (1, 1))
    if given is not None:
        begin, kernel, output = given["begin"], given["window"], given["output"]
        # With one output along an axis, any stride gives the same result.
        stride = tuple(s if n > 1 else 1 for s, n in zip(given["strides"], output, strict=True))
        ends = [
            (n - 1) * s + k - first
            for n, s, k, first in zip(output, stride, kernel, begin, strict=True)
        ]
        inside = not any(begin) and all(end <= most for end, most in zip(ends, size, strict=True))
        if not inside and not given["count_padding"] or given["dilations"] != (1, 1):
            raise Refusal("its windows have padding, so they have different numbers of inputs")
        window = Window(kernel, stride, (1, 1), (begin[0], 0, begin[1], 0), size, output)
    count = math.prod(window.kernel)
    if count > MAX_COUNT:
        raise Refusal(f"its windows must have at most {MAX_COUNT} inputs, not {count}")
    scale = np.float32(x_scale / (y_scale * np.float32(count)))
    return window, EqualWeights(1, *lane_parameters(scale, "onnx")), node.attributes["zeros"]


_BITS = 29  # of a sum of the table
_ROUNDS = 1024  # of a search for a table


def onnx_addition(node: Host, own: int, tensors: Sequence[Tensor]) -> Addition:
    """Return the ADD table of a node whose input ``own`` (0 or 1) is the layer's result.

    The sum has the scale ``2**-bits``, and a word of the table is a value in steps of the result.
    onnxruntime adds in float32. Where its result lies next to a tie, words next to the exact ones
    give the same result: they are searched for. Raises Refusal if no table is exact for all pairs.
    """
    half = 128 if tensors[node.outputs[0]].dtype == np.uint8 else 0
    scales, zeros = node.attributes["scales"], node.attributes["zeros"]
    values = np.arange(256).astype(np.int8).astype(np.int64)  # of the bytes on the core
    places = (values + half) & 255
    expected = node.attributes["results"][np.ix_(places, places)] - half
    if own == 0:
        expected = expected.T
    terms = [
        (values + half - zeros[n]) * float(scales[n]) / float(scales[2]) for n in (1 - own, own)
    ]
    # QLinearAdd adds the zero point before it rounds, QuantizeLinear afterwards: an odd one changes
    # which neighbour of a tie is even.
    for zero in (0, zeros[2] - half):
        inside = zeros[2] - half - zero
        found = _exact_addition([terms[0] + inside, terms[1]], zero, expected)
        if found is not None:
            return found
    raise Refusal("no table gives all its results in mode onnx")


def _exact_addition(terms, zero, expected):
    """The ADD table with ``rint(sum) + zero``, where the sum of two terms is exact; or None."""
    bits = int(_BITS - math.log2(sum(np.abs(term).max() for term in terms) + 1))
    parameters = lane_parameters(2.0**-bits, "onnx")
    low, high = int(expected.min()), int(expected.max())

    def result(total):
        scaled = lane_results(total.astype(np.int32), *parameters, "onnx").astype(np.int64)
        return np.clip(scaled + zero, low, high)

    least = _least(result, np.arange(low + 1, high + 1))
    limits = np.array([-(1 << 40), *least, 1 << 40])
    table = _table([np.rint(term * 2.0**bits) for term in terms], limits, expected - low)
    fits = np.abs(table).max(axis=1).sum() < 1 << 31
    if not fits or not np.array_equal(result(table[0][:, None] + table[1]), expected):
        return None
    return Addition(table.astype(np.int32), *parameters, zero, low, high)


def _least(result, values):
    """The least sums with at least these results, by bisection."""
    low, high = np.full(len(values), -(1 << 30)), np.full(len(values), 1 << 30)
    for _ in range(31):
        middle = (low + high) >> 1
        reached = result(middle) >= values
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return high


def _table(terms, limits, places):
    """The integers next to both terms whose sums lie in ``limits[place] .. limits[place + 1] - 1``.

    These are difference constraints, which the algorithm of Bellman and Ford solves.
    """
    x, y = (term.astype(np.int64) for term in terms)
    low, high = limits[places], limits[places + 1] - 1
    for _ in range(_ROUNDS):
        next_x = np.minimum(x, (high - y).min(axis=1))
        next_y = np.maximum(y, (low - next_x[:, None]).max(axis=0))
        if np.array_equal(x, next_x) and np.array_equal(y, next_y):
            break
        x, y = next_x, next_y
    return np.stack([x, y])
