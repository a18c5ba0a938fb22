"""Operators that together are a function of one byte: they become one table.

``x * 3``, ``x * f(x)``, or a chain of dequantization, sums of float32 and quantization: the kernels
compute the results of all 256 bytes.
"""

import dataclasses
from collections import Counter
from typing import NamedTuple

import numpy as np

from weft.models import kernels
from weft.models.ir import Graph, Host

__all__ = ["with_functions"]

# Kernels that compute each value of their output from the values at the same place, in the same
# way whatever the shape is.
_EACH_VALUE = frozenset({
    "litert.add", "litert.mul", "litert.quantize", "litert.square", "logical_and", "logical_not",
    "logical_or", "maximum", "minimum", "select", "table", "tflite.abs", "tflite.add",
    "tflite.cast", "tflite.ceil", "tflite.clip", "tflite.dequantize", "tflite.equal",
    "tflite.floor", "tflite.greater", "tflite.greater_equal", "tflite.less", "tflite.less_equal",
    "tflite.mul", "tflite.neg", "tflite.not_equal", "tflite.plain_add", "tflite.plain_div",
    "tflite.plain_mul", "tflite.plain_squared_difference", "tflite.plain_sub", "tflite.prelu",
    "tflite.prelu_float",
    "tflite.quantize", "tflite.requantize", "tflite.round", "tflite.sqrt", "tflite.square",
    "tflite.squared_difference", "tflite.sub",
})
_BYTES = np.dtype(np.int8), np.dtype(np.uint8)
_MOST = 32  # functions of a tensor that are followed back


class _Function(NamedTuple):
    """A tensor as a function of another one of 8 bits, by the bytes of that one."""

    root: int
    values: np.ndarray


def with_functions(graph: Graph) -> Graph:
    """Return the graph with one table for operators that are a function of one tensor of 8 bits.

    A table of one operator stays as it is. An operator whose result only such a table needs is a
    part of it.
    """
    return _Functions(graph).graph()


class _Functions:
    def __init__(self, graph):
        self._graph, self._tensors = graph, graph.tensors
        self._makers: dict[int, int] = {}  # the place of the node, by the tensor of its function
        self._functions: dict[int, list[_Function]] = {}  # the nearest root first
        self._readers: dict[int, set[int]] = {}
        for place, node in enumerate(graph.nodes):
            for number in node.inputs:
                self._readers.setdefault(number, set()).add(place)

    def graph(self) -> Graph:
        graph, joined = self._graph, {}  # by the table's place, the nodes that it replaces
        for place, node in enumerate(graph.nodes):
            found = self._found(node)
            if found:
                [y] = node.outputs
                self._makers[y], self._functions[y] = place, found
                if self._tensors[y].dtype in _BYTES:
                    joined[place] = self._chosen(place, found)
        nodes, left_out = list(graph.nodes), set()
        needed = Counter(n for node in graph.nodes for n in node.inputs) + Counter(graph.results)
        for place, (function, between) in reversed(joined.items()):
            node = nodes[place]
            if place in left_out or node.kernel == "table" and len(between) == 1:
                continue
            parts = [node]
            needed.subtract(node.inputs)
            for other in sorted(between - {place}, reverse=True):
                if needed[graph.nodes[other].outputs[0]] <= 0 and other not in left_out:
                    left_out.add(other)
                    needed.subtract(nodes[other].inputs)
                    parts.insert(0, graph.nodes[other])
            needed[function.root] += 1
            nodes[place] = dataclasses.replace(
                node, operator="+".join(part.operator for part in parts),
                position=tuple(n for part in parts for n in part.position),
                inputs=(function.root,), kernel="table", attributes={"table": function.values},
                single=None,
            )
        return dataclasses.replace(
            graph, nodes=tuple(node for n, node in enumerate(nodes) if n not in left_out)
        )

    def _found(self, node):
        """Return a node's output as functions of tensors of 8 bits."""
        if not isinstance(node, Host) or node.kernel not in _EACH_VALUE or len(node.outputs) != 1:
            return []
        shape = self._tensors[node.outputs[0]].shape
        operands: list[np.ndarray | dict[int, np.ndarray]] = []
        for number in node.inputs:
            tensor = self._tensors[number]
            if tensor.data is not None:
                if tensor.data.size == 0 or (tensor.data != tensor.data.flat[0]).any():
                    return []
                operands.append(tensor.data.reshape(-1)[:1])
            elif tensor.shape == shape:
                operands.append(self._of(number))
            else:
                return []
        maps = [entry for entry in operands if isinstance(entry, dict)]
        roots = [n for n in maps[0] if all(n in entry for entry in maps)] if maps else []
        found = []
        for root in roots[:_MOST]:
            inputs = [entry[root] if isinstance(entry, dict) else entry for entry in operands]
            [values] = kernels.run(node.kernel, inputs, node.attributes)
            found.append(_Function(root, values))
        return found

    def _of(self, number):
        """Return a tensor's values by its roots, the nearest one first: itself, if of 8 bits."""
        own, tensor = {}, self._tensors[number]
        if tensor.dtype in _BYTES:
            own[number] = np.arange(256).astype(np.uint8).view(tensor.dtype)
        return own | {found.root: found.values for found in self._functions.get(number, ())}

    def _chosen(self, place, found):
        """Return the function with the nearest root that somebody else needs, and its nodes."""
        chosen = found[0], self._between(place, found[0].root)
        for function in found[1:]:
            before = self._makers[chosen[0].root]
            between = self._between(place, function.root)
            others = self._readers[chosen[0].root] - between
            if others or chosen[0].root in self._graph.results or before not in between:
                break
            chosen = function, between
        return chosen

    def _between(self, place, root):
        """Return the places of the nodes that compute the output of one from a root."""
        found, open_places = set(), [place]
        while open_places:
            place = open_places.pop()
            if place not in found:
                found.add(place)
                open_places += [
                    self._makers[number] for number in self._graph.nodes[place].inputs
                    if number != root and number in self._makers
                ]
        return found
