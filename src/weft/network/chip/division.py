"""Divides a network: which operators the core computes, and which the host before and after."""

import dataclasses
import math
from collections import Counter

import numpy as np

from weft.network.chip.additions import addition
from weft.network.chip.layers import (
    ChipGraph,
    InputForm,
    NetworkLayer,
    NetworkMap,
    WeightLayout,
)
from weft.network.chip.padding import PaddedMaps
from weft.network.chip.pools import (
    NO_PADDING,
    average_scale,
    conversion_scale,
    mean_scale,
    pool_window,
)
from weft.network.chip.products import half_of, product_of
from weft.network.chip.refusal import Refusal, refused
from weft.network.errors import ModelError
from weft.network.ir import Gemm, Graph, Window
from weft.network.program import Placement, Step
from weft.network.work import HostWork

__all__ = ["divide"]

_BIT8 = np.dtype(np.int8), np.dtype(np.uint8)


def divide(graph: Graph, mode: str, cols: int, depth: int, *, fuse: bool = True) -> ChipGraph:
    """Return the layers of a network, and the operators of the host.

    An operator that the core cannot run is the host's, if no layer comes before it, or none after
    it. ``fuse``: ADD belongs to the layer before it, if only ADD reads this layer's result.

    Raises
    ------
    ModelError
        For an operator between two layers that the core cannot run; the message has the reason.
    """
    if graph.source != "tflite":
        raise ModelError(
            f"{graph.name}: a core for networks has the rounding of TensorFlow Lite, and the"
            f" network must be a .tflite file, not .{graph.source}"
        )
    return _Division(graph, mode, cols, depth, fuse).divided()


class _Division:
    """The state of `divide`: layers, maps, and where each tensor is."""

    def __init__(self, graph, mode, cols, depth, fuse):
        self._graph, self._tensors, self._mode = graph, graph.tensors, mode
        self._cols, self._depth, self._fuse = cols, depth, fuse
        self._layers: list[NetworkLayer] = []
        self._maps: list[NetworkMap] = []
        self._place: dict[int, int] = {}  # the map of a tensor that a layer computes
        self._alias: dict[int, int] = {}  # tensors that a reshape only renames
        self._forms: dict[InputForm, int] = {}
        self._pads = PaddedMaps()
        self._late: dict[int, tuple] = {}  # by tensor: the operator after which the host computes
        self._renamed: list[tuple] = []
        self._before: list[Step] = []
        self._after: list[Step] = []
        readers = Counter(number for node in graph.nodes for number in node.inputs)
        readers.update(graph.outputs)
        self._readers = readers

    def divided(self) -> ChipGraph:
        graph = self._graph
        for node in graph.nodes:
            self._take(node)
        if not self._layers:
            raise ModelError(f"{graph.name}: the network has no layer for a core for networks")
        wanted = [n for step in self._after for n in step.inputs if n >= 0] + list(graph.outputs)
        results = {n: self._place[self._root(n)] for n in wanted if self._root(n) in self._place}
        read = {n for step in (*self._before, *self._after) for n in step.inputs}
        read |= {form.tensor for form in self._forms}
        tensors = tuple(
            tensor if number in read or number in graph.outputs
            else dataclasses.replace(tensor, data=None)
            for number, tensor in enumerate(self._tensors)
        )
        return ChipGraph(
            name=graph.name, source=graph.source, mode=self._mode, tensors=tensors,
            inputs=graph.inputs, outputs=graph.outputs, operators=graph.operators,
            notes=graph.notes, maps=tuple(self._maps), layers=tuple(self._layers),
            results=results, before=tuple(self._before), after=tuple(self._after),
            renamed=tuple((node, n, self._place[self._root(n)]) for node, n in self._renamed),
        )

    def _take(self, node):
        """Place one node."""
        late = [self._late[n] for n in node.inputs if n in self._late]
        reason = None
        if not late:
            try:
                self._on_chip(node)
                return
            except Refusal as refusal:
                reason = str(refusal)
        if isinstance(node, Gemm):
            blamed, reason = late[0] if late else (node, reason)
            raise refused(self._graph.name, blamed, reason)
        if late or any(self._root(n) in self._place for n in node.inputs):
            self._after.append(self._host(node))
            self._late.update((n, late[0] if late else (node, reason)) for n in node.outputs)
        else:
            self._before.append(self._host(node))

    def _on_chip(self, node):
        """Append the layer of a node; Refusal if the core cannot run it."""
        if isinstance(node, Gemm):
            self._product(node)
        elif node.kernel == "pad":
            self._pads.add(node, self._graph)
        elif node.kernel == "reshape":
            self._rename(node)
        elif node.kernel in ("tflite.average_pool", "tflite.mean"):
            self._pool(node)
        elif node.kernel == "tflite.requantize":
            self._convert(node)
        elif node.kernel == "tflite.add":
            self._add(node)
        else:
            raise Refusal(node.reason)

    def _rename(self, node):
        if self._root(node.inputs[0]) not in self._place:
            raise Refusal("the host writes its values")
        self._alias[node.outputs[0]] = self._root(node.inputs[0])
        self._renamed.append((node, node.outputs[0]))

    def _root(self, number):
        return self._alias.get(number, number)

    def _stored(self, number):
        """Return the size of the map that has a tensor, or None if the host writes it."""
        if self._root(number) in self._place:
            return self._maps[self._place[self._root(number)]].size
        return None

    def _map_of(self, form):
        """Return the map of an input, the same one for equal forms."""
        if form not in self._forms:
            self._forms[form] = len(self._maps)
            self._maps.append(NetworkMap(form.tensor, *form.map_size, form))
        return self._forms[form]

    def _input(self, number, size):
        """Return the map of a tensor that a layer reads, of ``size``."""
        stored = self._stored(number)
        if stored is None:
            return self._map_of(InputForm(number, *size))
        if stored != size:
            raise Refusal(f"its input must be a map of {size}, not of {stored}")
        return self._place[self._root(number)]

    def _append(self, node, size, before=None, **fields):
        """Append a layer whose output is the node's; ``before`` is an operator in its window."""
        y = node.outputs[0]
        nodes = [node] if before is None else [before, node]
        self._place[y] = len(self._maps)
        self._maps.append(NetworkMap(y, *size))
        self._layers.append(NetworkLayer(
            operators=tuple(n.operator for n in nodes), name=node.name,
            position=tuple(place for n in nodes for place in n.position), y=self._place[y],
            **fields,
        ))

    def _product(self, gemm):
        gemm, pad = self._pads.inside(gemm)
        found = product_of(
            gemm, self._tensors, self._mode, self._cols, self._depth, self._stored(gemm.x)
        )
        fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
        form = fields.pop("form")
        size = fields.pop("size")
        columns = len(found.bias)
        macs = math.prod(found.window.output) * gemm.weights.size
        self._append(
            gemm, (*found.window.output, columns), pad, columns=columns, macs=macs,
            x=self._input(gemm.x, size) if form is None else self._map_of(form), **fields,
        )

    def _pool(self, node):
        x, y = (self._tensors[n] for n in (node.inputs[0], node.outputs[0]))
        if x.dtype not in _BIT8 or y.dtype != x.dtype or len(x.shape) != 4 or x.shape[0] != 1:
            raise Refusal("its input must be one map of 8 bits")
        half, size = half_of(x.dtype), x.shape[1:]
        if node.kernel == "tflite.mean":
            scale = mean_scale(node, x.shape, self._mode)
            window = Window(size[:2], (1, 1), (1, 1), NO_PADDING, size[:2], (1, 1))
            x_zero, zero = (number - half for number in node.attributes["zeros"])
            low, high = -128, 127
        else:
            window = pool_window(node, size[:2])
            scale = average_scale(math.prod(window.kernel), self._mode, -half)
            x_zero = zero = -half
            low, high = node.attributes["low"] - half, node.attributes["high"] - half
        if max(window.kernel) > 255:
            raise Refusal(f"its windows must have at most 255 rows, not {window.kernel}")
        self._equal(node, size, window, scale, x_zero, zero, low, high)

    def _convert(self, node):
        """A conversion of scales is a 1 x 1 layer with equal weights."""
        x, y = (self._tensors[n] for n in (node.inputs[0], node.outputs[0]))
        if x.dtype not in _BIT8 or y.dtype not in _BIT8:
            raise Refusal("its input and output must be of 8 bits")
        zeros = tuple(
            zero - half_of(kind.dtype)
            for zero, kind in zip(node.attributes["zeros"], (x, y), strict=True)
        )
        size = self._stored(node.inputs[0]) or _size_of(x.shape)
        window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, size[:2], size[:2])
        scale = conversion_scale(node, zeros, self._mode)
        self._equal(node, size, window, scale, *zeros, -128, 127)

    def _equal(self, node, size, window, scale, x_zero, zero, low, high):
        """Append a layer with equal weights."""
        columns, taps = size[2], math.prod(window.kernel)
        self._append(
            node, (*window.output, columns), columns=columns, macs=0,
            x=self._input(node.inputs[0], size), window=window, layout=WeightLayout.EQUAL,
            weights=np.full((taps, columns), scale.weight, np.int8), x_zero=x_zero,
            bias=np.full(columns, -x_zero * taps * scale.weight),
            multiplier=np.full(columns, scale.multiplier), shift=np.full(columns, scale.shift),
            zero=zero, low=low, high=high,
        )

    def _add(self, node):
        """Fuse ADD with the layer that computes an input; without such a layer, with a copy."""
        maker = self._own(node)
        own = maker or 0
        scales = addition(node, own, self._tensors, self._mode)
        number, other = node.inputs[own], node.inputs[1 - own]
        size = self._stored(number) or _size_of(self._tensors[number].shape)
        added = self._input(other, size)
        if maker is None:
            layer = self._copy(node, size)
        else:
            layer, = (
                layer for layer in self._layers if layer.y == self._place[self._root(number)]
            )
        self._layers.remove(layer)
        y = node.outputs[0]
        self._place[y] = layer.y
        self._maps[layer.y] = dataclasses.replace(self._maps[layer.y], tensor=y)
        copied = layer.position == node.position
        self._layers.append(dataclasses.replace(
            layer, added=added, addition=scales,
            operators=layer.operators if copied else (*layer.operators, node.operator),
            position=layer.position if copied else (*layer.position, *node.position),
        ))

    def _own(self, node):
        """Return the input of ADD whose layer adds: that with more steps; None if no layer can."""
        found = {}
        for index, number in enumerate(node.inputs):
            place = self._place.get(self._root(number))
            for layer in self._layers:
                sole = self._readers[number] == 1 and self._root(number) == number
                if layer.y == place and layer.addition is None and sole:
                    found[index] = layer.taps * math.prod(layer.weights.shape[1:])
        return max(found, key=found.get) if found and self._fuse else None

    def _copy(self, node, size):
        """Append a layer that copies the first input of ADD, a map of ``size``."""
        number = node.inputs[0]
        window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, size[:2], size[:2])
        scale = average_scale(1, self._mode, 0)
        zero = node.attributes["zeros"][0] - half_of(self._tensors[number].dtype)
        self._equal(node, size, window, scale, zero, zero, -128, 127)
        return self._layers[-1]

    def _host(self, node):
        return Step(
            operators=(node.operator,), name=node.name, position=node.position,
            inputs=node.inputs, outputs=node.outputs, macs=node.macs,
            placement=Placement(False, node.reason), work=HostWork(node.kernel, node.attributes),
        )


def _size_of(shape):
    """Return a shape as height, width and channels of a map."""
    if len(shape) == 4 and shape[0] == 1:
        return shape[1:]
    return (1, math.prod(shape[:-1]), shape[-1]) if shape else (1, 1, 1)
