"""Divides a network: which operators the core computes, in which lists, and which the host."""

import contextlib
import dataclasses
import itertools
import math
from collections import Counter

import numpy as np

from weft.models.exactness import check_kind, in_mode
from weft.models.ir import Gemm, Graph, Host, Node, Window
from weft.models.network_core.additions import lookup
from weft.models.network_core.channels_first import CoreView, flat_product, order_in
from weft.models.network_core.layers import (
    InputForm,
    NetworkCoreGraph,
    NetworkLayer,
    NotKept,
    Refusal,
    WeightLayout,
    WrongMap,
)
from weft.models.network_core.list_steps import host_step
from weft.models.network_core.onnx_nodes import ADDITION, AVERAGE, average_of, onnx_addition
from weft.models.network_core.operators import LOWERINGS
from weft.models.network_core.operators.builder import OperatorBuilder
from weft.models.network_core.operators.convolutions import transposed, with_dilations
from weft.models.network_core.operators.filters import (
    HOST_FILTER,
    WHOLE,
    check_filter,
    filters_of,
    with_filters,
    without_filter,
)
from weft.models.network_core.operators.functions import with_functions
from weft.models.network_core.operators.lstm import HOST_KERNEL as HOST_LSTM
from weft.models.network_core.operators.map_products import product_of_maps
from weft.models.network_core.operators.moves import moved
from weft.models.network_core.operators.operands import PRODUCTS, SUMS, operand, parameters
from weft.models.network_core.pieces import check_window, job_limits, needed
from weft.models.network_core.pools import NO_PADDING, average_scale, conversion_scale
from weft.models.network_core.products import half_of, product_of, weights_of
from weft.models.network_core.tensor_places import PaddedMaps, TensorPlaces, written_size
from weft.models.network_core.variables import assigned, check_wanted
from weft.models.network_core.weights import LayerWords
from weft.models.program import Step
from weft.network_core.config import NetworkCoreConfig

__all__ = ["divide"]

_RENAMES = "reshape", "read_variable"  # kernels whose result has the values of their input
_BIT8 = np.dtype(np.int8), np.dtype(np.uint8)


def divide(
    graph: Graph, mode: str, cols: int, depth: int, *, fuse: bool = True,
    config: NetworkCoreConfig | None = None, tables: bool = True, batch: int = 1,
    variables: bool = False,
) -> NetworkCoreGraph:
    """Return the layers of a network, and the operators of the host.

    The host computes an operator if the core cannot, and an operator without products that would
    begin a list after the first one. The lists are as few as possible. ``fuse``: ADD belongs to
    the layer before it, if only ADD reads this layer's result. With the ``config``, an operator is
    no layer if its weights do not fit the buffers, and products that are no layers have their sums
    from the core. Without ``tables``, the host computes operators that need one, except
    ADD, or that need several layers, and products whose weights exceed the buffer. ``variables``:
    the memory of the core keeps variables from inference to inference, if it can.

    Raises
    ------
    KindError
        If the core rounds as another runtime than the one of the file.
    ModelError
        If an operator is not valid.
    """
    check_kind(graph, mode)
    graph = in_mode(graph, mode)
    if mode != "onnx":
        graph = with_functions(with_dilations(graph))
    kept = graph.states if variables else ()
    graph, filters = filters_of(graph, mode, cols, depth, batch, variables)
    while True:
        whole, states = with_filters(graph, filters, kept)
        division = _Division(whole, mode, cols, depth, fuse, config, tables, batch, states)
        try:
            return division.divided()
        except NotKept as refused:
            graph, filters = without_filter(graph, filters, refused)
            kept = tuple(state for state in kept if state is not refused.state)


class _Division:
    """The state of `divide`: layers, operators of the host, and where each tensor is.

    `weft.models.network_core.operators` reads ``operators``, ``tensors``, ``wide``, ``mode``,
    ``cols``, ``depth``, ``network_core``, ``batch`` and ``places``.
    """

    def __init__(self, graph, mode, cols, depth, fuse, config, tables, batch, variables):
        self._view = view = CoreView(graph, depth, convert=fuse, core=config)
        self._graph, self.tensors, self.wide = view.graph, view.tensors, view.wide
        self.mode, self.cols, self.depth, self._fuse = mode, cols, depth, fuse
        self.network_core, self._has_tables, self._used_tables = config, tables, False
        self.operators, self._variables, self.batch = graph.operators, variables, batch
        self.places = TensorPlaces(view.tensors, depth, [state.before for state in variables])
        self._layers: list[NetworkLayer] = []
        self._host: list[tuple[int, Step]] = []  # with the list that it is computed before
        self._on_host_already: set[Node] = set()
        self._pads = PaddedMaps()
        self._renamed: list[tuple] = []
        self._delayed: dict[int, Host] = {}  # renames of the host's tensors, by their outputs
        self._readers = Counter(graph.results)
        self._readers.update(number for entry in view.nodes for number in entry.node.inputs)

    def divided(self) -> NetworkCoreGraph:
        graph, places = self._graph, self.places
        for entry in self._view.nodes:
            try:
                self._try(self._on_core, entry.node)
            except WrongMap as wrong:
                self._reshaped(entry, str(wrong))
            except Refusal as refusal:
                self._all_on_host(entry, str(refusal))
        self._layers += assigned(self, self._layers, self._variables)
        results = [*graph.outputs, *(
            state.after for state in graph.states if state.before not in places.variables
        )]
        self._need(results)
        self._renamed += ((node, number) for number, node in self._delayed.items())
        layers = sorted(self._layers, key=self._list_of)
        count = self._list_of(layers[-1]) + 1 if layers else 0
        wanted = [number for _, step in self._host for number in step.operands if number >= 0]
        check_wanted(places, self._variables, [*wanted, *results])
        wanted += [*results, *(form.tensor for form in places.forms)]
        read = set(wanted)
        tensors = tuple(
            tensor if number in read else dataclasses.replace(tensor, data=None)
            for number, tensor in enumerate(graph.tensors)
        )
        return NetworkCoreGraph(
            name=graph.name, source=graph.source, mode=self.mode, tensors=tensors,
            inputs=graph.inputs, outputs=graph.outputs, operators=graph.operators,
            notes=graph.notes, states=graph.states, maps=tuple(places.maps), layers=tuple(layers),
            segments=places.segments(layers, self._host, self._renamed, wanted),
            after=tuple(step for first, step in self._host if first == count),
            variables=dict(places.variables), has_tables=self._used_tables,
        )

    def _list_of(self, layer):
        return self.places.first_list[layer.y]

    def _on_core(self, node):
        """Append the layer of a node; Refusal if the host must compute it."""
        if isinstance(node, Gemm):
            self._product(node)
            return
        if node.kernel == "pad" and self._pads.take(node, self._view.core_graph()):
            return
        if node.kernel in (HOST_FILTER, HOST_LSTM):
            raise Refusal(node.reason)
        elif node.kernel not in WHOLE and self.places.begins_list(node.inputs):
            raise Refusal("it has no product, and the host computes an operator before it")
        elif node.kernel in _RENAMES and self.places.map_of(node.inputs[0]) is None:
            self.places.rename(node)
            self._delayed[node.outputs[0]] = node
        elif node.kernel in _RENAMES:
            self.places.rename(node)
            self._renamed.append((node, node.outputs[0]))
        elif node.kernel == "transpose" and self.tensors[node.outputs[0]].channels_first:
            self._last_transpose(node)
        elif node.kernel == "table":
            self._table(node)
        elif node.kernel == AVERAGE:
            self._average(node)
        elif node.kernel == ADDITION:
            self._onnx_add(node)
        elif self._is_fused(node):
            self._add(node)
        elif node.kernel in LOWERINGS:
            self._lower(node)
        else:
            raise Refusal(node.reason)

    def _last_transpose(self, node):
        """The host reads the map of a tensor with its channels first."""
        x, place = self.tensors[node.inputs[0]], self.places.map_of(node.inputs[0])
        if place is None:
            raise Refusal(node.reason)
        if self.places.maps[place].channels != x.shape[-1]:
            raise WrongMap(f"its input must have {x.shape[-1]} channels")
        self.places.rename(node)
        self._renamed.append((node, node.outputs[0]))

    def _try(self, function, *arguments):
        """Call a function that appends layers; after a Refusal there are none of them."""
        kept, layers = self.places.kept(), self._layers.copy()
        try:
            function(*arguments)
        except Refusal:
            self.places.restore(kept)
            self._layers = layers
            raise

    def _reshaped(self, entry, reason):
        """Compute a node whose inputs are maps that it cannot read.

        First the core reshapes them. If it cannot, the host does between two lists, for a product.
        """
        node = entry.node
        with contextlib.suppress(Refusal):
            self._try(self._on_reshaped_maps, node)
            return
        try:
            if isinstance(node, Gemm):
                self._try(self._product, node, True)
                return
        except Refusal as refusal:
            reason = str(refusal)
        self._all_on_host(entry, reason)

    def _on_reshaped_maps(self, node):
        """Append the layers of a node, after layers that reshape its inputs."""
        self._reshape(node)
        self._on_core(node)

    def _reshape(self, node):
        """Move the values of a node's inputs into maps of their shapes."""
        if isinstance(node, Gemm):
            node, _ = self._pads.inside(node)
        for number in dict.fromkeys(node.inputs):
            place = None if number < 0 else self.places.map_of(number)
            if place is None:
                continue
            shape = self.tensors[number].shape
            if isinstance(node, Gemm) and not node.window and number == node.x and node.b is None:
                shape = (math.prod(shape) // node.weights.shape[1], node.weights.shape[1])
            size = OperatorBuilder.map_size(shape)
            try:
                found = self.places.reshaped(place, size)
            except WrongMap:
                builder = OperatorBuilder(self, node)
                origins = np.arange(math.prod(size))
                if self.tensors[number].channels_first:
                    origins = order_in(self.places.maps[place].size, size, node)
                found = moved(builder, origins, size, [(place, True)])
                if builder.layers:
                    self._take_memory("layers")
                self._layers += builder.layers
            if found != place:
                self.places.put(number, found)

    def _lower(self, node):
        """Append the layers of an operator."""
        builder = OperatorBuilder(self, node)
        result = LOWERINGS[node.kernel](builder)
        results = result if isinstance(result, tuple) else (result,)
        layers = builder.finished(results)
        if len(layers) > 1:
            self._take_memory("layers")
        elif any(layer.addition for layer in layers):
            self._take_memory("table")
        self._layers += layers
        for number, place in zip(node.outputs, results, strict=True):
            self.places.put(number, place)
            if not layers:
                self._renamed.append((node, number))

    def _take_memory(self, what):
        """An operator needs what takes much memory; Refusal if the memory has no space for it."""
        if not self._has_tables:
            raise Refusal(f"the memory has no space for its {what}")
        self._used_tables = True

    def _all_on_host(self, entry, reason):
        """Append the nodes of an operator as operators of the host."""
        for node in entry.nodes:
            check_filter(node, self._variables, reason)
            self._on_host(node, reason)

    def _on_host(self, node, reason):
        """Append a node as an operator of the host, once."""
        if node in self._on_host_already:
            return
        self._on_host_already.add(node)
        self._need(node.inputs)
        pad = None
        if isinstance(node, Gemm):
            node, pad = self._pads.inside(node)
        step = host_step(self._graph, node, self.mode, reason, pad, self.network_core)
        first = self.places.host_list(step.operands)
        self._host.append((first, step))
        self.places.on_host(node.outputs, first)

    def _need(self, numbers):
        """Let the host compute the reshapes that it needs: a layer needs none."""
        for number in numbers:
            node = self._delayed.pop(number, None)
            if node is not None:
                self._on_host(node, "the host reads its result")

    def _append(self, node, source, size, before=None, **fields):
        """Append a layer; ``size`` is the one of its output.

        ``source`` is the map that it reads, the form of one that the host writes, or the tensor and
        the size of one. ``before`` is an operator in its window. Raises Refusal if the layer does
        not fit the buffers, or its window the descriptor of a job.
        """
        nodes, places = [node] if before is None else [before, node], self.places
        layer = NetworkLayer(
            operators=tuple(n.operator for n in nodes), name=node.name,
            position=tuple(place for n in nodes for place in n.position), x=-1, y=-1, **fields,
        )
        x = source
        if isinstance(source, InputForm):
            x = places.written(source)
        elif isinstance(source, tuple):
            x = places.input(*source)
        self.check_layer(layer, places.maps[x].channels)
        y = places.computed(node.outputs[0], size, places.first_list[x])
        self._layers.append(dataclasses.replace(layer, x=x, y=y))

    def check_layer(self, layer, channels):
        """Raise Refusal if a layer of a map with ``channels`` does not fit a job or the buffers."""
        check_window(layer.window)
        if self.network_core is not None:
            sizes = LayerWords.of(layer, channels, self.network_core)
            for name, field, room, least in job_limits(sizes, self.network_core):
                if least > room:
                    raise Refusal(
                        f"a job needs {least:,} {name}, and the buffer has {room:,}:"
                        f" {needed(field, least)}"
                    )
            if sizes.words(1) > self.network_core.b_words:  # as a single product, it needs less
                self._take_memory("weights")

    def _product(self, gemm, written=False):
        """Append the layer of a product; ``written``: of a map that the host writes again."""
        gemm, pad = self._pads.inside(gemm)
        is_spread = gemm.window is not None and gemm.window.spread != (1, 1)
        if is_spread or gemm.b is not None and not written:
            builder = OperatorBuilder(self, gemm)
            made = transposed(builder, gemm, self._product_of) if is_spread else None
            y, layers = made or product_of_maps(builder, gemm)
            self._take_memory("layers")
            self._layers += layers
            self.places.put(gemm.outputs[0], y)
            return
        product = self._product_of(gemm, written)
        fields = {f.name: getattr(product, f.name) for f in dataclasses.fields(product)}
        form, size, copies = (fields.pop(name) for name in ("form", "size", "copies"))
        columns = len(product.bias)
        macs = math.prod(product.window.output) * weights_of(gemm)
        if copies > 1:
            x = self.places.written(form) if form else self.places.input(gemm.x, size)
            builder = OperatorBuilder(self, gemm)
            x = builder.repeated(x, copies)
            self._layers += builder.layers
        self._append(
            gemm, x if copies > 1 else form or (gemm.x, size), (*product.window.output, columns),
            pad, columns=columns, macs=macs, left_out=gemm.left_out, **fields,
        )

    def _product_of(self, gemm, written=False):
        """Return the product, over the map as it is, over a view of it, or over one of the host."""
        arguments = self.tensors, self.mode, self.cols, self.depth
        if written:
            return product_of(gemm, *arguments, None)
        ends = self.tensors[gemm.x], self.tensors[gemm.outputs[0]]
        stored = self.places.stored(gemm.x)
        try:
            return product_of(flat_product(gemm, *ends, stored), *arguments, stored)
        except WrongMap:
            size = written_size(ends[0].shape)
            product = product_of(flat_product(gemm, *ends, size), *arguments, size)
            self.places.input(gemm.x, product.size)
            return product

    def _average(self, node):
        """Append the layer of an average of ONNX."""
        x = self.tensors[node.inputs[0]]
        size, half = written_size(x.shape), half_of(x.dtype)  # other channels are other averages
        window, scale, zeros = average_of(node, size[:2])
        x_zero, zero = (number - half for number in zeros)
        self._equal(node, size, window, scale, x_zero, zero, -128, 127)

    def _table(self, node):
        """A table of 256 results: behind the layer that computes its input, or behind a copy of it.

        One that scales and clamps (QUANTIZE, RELU) is a 1 x 1 layer with equal weights instead,
        which takes half as long.
        """
        x, y = (self.tensors[n] for n in (node.inputs[0], node.outputs[0]))
        if not {x.dtype, y.dtype} <= {*_BIT8}:
            raise Refusal("its values must be of 8 bits")
        stored = np.arange(-128, 128) + half_of(x.dtype)
        table = node.attributes["table"].astype(np.int64)[stored & 255] - half_of(y.dtype)
        size = self.places.stored(node.inputs[0]) or written_size(x.shape)
        conversion = None
        if None not in (x.quantization, y.quantization):
            scales = [float(kind.quantization.scale[0]) for kind in (x, y)]
            zeros = tuple(int(kind.quantization.zero[0]) - half_of(kind.dtype) for kind in (x, y))
            conversion = conversion_scale(table, scales[0] / scales[1], zeros, self.mode)
        if conversion is None:
            self._take_memory("table")
            self._behind(node, self._own(node), size, lookup(table, self.mode))
            return
        scale, low, high = conversion
        window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, size[:2], size[:2])
        self._equal(node, size, window, scale, *zeros, low, high)

    def _equal(self, node, size, window, scale, x_zero, zero, low, high):
        """Append a layer with equal weights."""
        channels, taps = size[2], math.prod(window.kernel)
        columns = max(self.cols, self.depth)  # whole vectors and whole words of B
        parts = channels // columns
        if window.output != (1, 1) or channels % columns:
            columns, parts = channels, 1
        self._append(
            node, (node.inputs[0], size), (*window.output, channels),
            columns=columns, parts=parts, macs=0, window=window, layout=WeightLayout.EQUAL,
            weights=np.full((taps, columns), scale.weight, np.int8), x_zero=x_zero,
            bias=np.full(columns, -x_zero * taps * scale.weight),
            multiplier=np.full(columns, scale.multiplier), shift=np.full(columns, scale.shift),
            zero=zero, low=low, high=high,
        )

    def _is_fused(self, node):
        """Whether the layer before computes a sum of two operands, or a product of two maps."""
        constant = any(self.tensors[number].data is not None for number in node.inputs)
        kernels = SUMS if constant else (*SUMS, *PRODUCTS)
        return node.kernel in kernels and self._own(node) is not None

    def _add(self, node):
        """Fuse ADD, SUB or MUL with the layer that computes an input."""
        builder, own = OperatorBuilder(self, node), self._own(node)
        scales = parameters(builder, own)
        size = self.places.stored(node.inputs[own])
        added = operand(builder, 1 - own, size)
        self._layers += builder.layers
        self._behind(node, own, size, scales, added)

    def _onnx_add(self, node):
        """Fuse a sum of ONNX with the layer that computes an input; without one, with a copy."""
        maker = self._own(node)
        own = maker or 0
        scales = onnx_addition(node, own, self.tensors)
        number, other = node.inputs[own], node.inputs[1 - own]
        size = self.places.stored(number) or written_size(self.tensors[number].shape)
        self._behind(node, maker, size, scales, self.places.input(other, size))

    def _behind(self, node, maker, size, addition, added=-1):
        """Let the layer that computes input ``maker`` of a node compute the node, too.

        Without such a layer, a copy of the first input does, a map of ``size``. Raises Refusal if
        the parameters do not fit the buffers.
        """
        places = self.places
        if maker is None:
            layer = self._copy(node, size)
        else:
            place = places.map_of(node.inputs[maker])
            layer, = (layer for layer in self._layers if layer.y == place)
        copied = maker is None
        whole = dataclasses.replace(
            layer, added=added, addition=addition,
            operators=layer.operators if copied else (*layer.operators, node.operator),
            position=layer.position if copied else (*layer.position, *node.position),
        )
        lists = [places.first_list[n] for n in (layer.y, added) if n >= 0]
        self._layers.remove(layer)
        places.replace(layer.y, node.outputs[0], max(lists))
        self._layers.append(whole)

    def _own(self, node):
        """Return the input whose layer computes the node, too: that with more steps; or None.

        The layers of an operator stay together, so none of several computes another one.
        """
        steps = {}
        for index, number in enumerate(node.inputs):
            place = self.places.map_of(number)
            sole = (
                self._readers[number] == 1 and self.places.root(number) == number
                and self.tensors[number].shape == self.tensors[node.outputs[0]].shape
            )
            for before, layer in itertools.pairwise((None, *self._layers)):
                alone = layer.operators and (before is None or before.operators)
                if layer.y == place and layer.addition is None and alone and sole:
                    steps[index] = layer.taps * math.prod(layer.weights.shape[1:])
        return max(steps, key=steps.get) if steps and self._fuse else None

    def _copy(self, node, size):
        """Append a layer that copies the first input of a node, a map of ``size``."""
        window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, size[:2], size[:2])
        self._equal(node, size, window, average_scale(1, self.mode, 0), 0, 0, -128, 127)
        return self._layers[-1]
