"""The layers of a network, in the form in which the chip would run them."""

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass

from weft.network.ir import Gemm, Graph, Window
from weft.network.lowering import candidates

__all__ = ["NO_PADDING", "ChipLayer", "layers_of", "space_to_depth"]

NO_PADDING = (0, 0, 0, 0)


@dataclass(frozen=True)
class ChipLayer:
    """A convolution, a depthwise convolution, or a matrix product as a 1 x 1 convolution.

    Attributes
    ----------
    name : str
        Operators of the file: ``CONV_2D``, ``CONV_2D + ADD``.
    window : weft.network.ir.Window
    channels : int
        Channels of the stored input map, with unused ones; a multiple of ``depth``.
    columns : int
        Channels of the output map.
    depthwise : bool
        Output channel c reads only input channel c.
    x, y : int
        Tensors of the input map and of the output map.
    residual : int
        Tensor that ADD adds to the output map; -1 without ADD.
    sent : int
        Bytes that the host sends for the input map; 0 if the chip computes it.
    constant : bool
        All weights are equal (a pool): no memory holds them, and all groups share their words of B.
    """

    name: str
    window: Window
    channels: int
    columns: int
    depthwise: bool
    x: int
    y: int
    residual: int = -1
    sent: int = 0
    constant: bool = False

    @property
    def m(self) -> int:
        """Pixels of the output map."""
        return math.prod(self.window.output)

    @property
    def taps(self) -> int:
        """Taps of the kernel."""
        return math.prod(self.window.kernel)

    @property
    def input_bytes(self) -> int:
        """Bytes of the stored input map."""
        return math.prod(self.window.input) * self.channels


def layers_of(graph: Graph, cols: int, depth: int) -> tuple[list[ChipLayer], int]:
    """Return the layers of a network in the order of execution, and the bytes of its result.

    * A map of fewer than ``depth`` channels a pixel gets unused channels.
    * A convolution of the network's input is rewritten by `space_to_depth`.
    * Pooling over windows without padding is a depthwise convolution with equal weights.
    * ADD belongs to a layer whose result only ADD reads, the one with more words of K. That layer
      then runs last.
    * The operators after the last product run on the host.

    Raises ValueError for an operator between two layers that the chip cannot run.
    """
    layers: list[ChipLayer] = []
    alias: dict[int, int] = {}  # tensors that a reshape only renames
    readers = Counter(number for node in graph.nodes for number in node.inputs)
    left = None  # the first operator that the chip does not run
    for node in graph.nodes:
        x, y = alias.get(node.inputs[0], node.inputs[0]), node.outputs[0]
        if isinstance(node, Gemm):
            layer = _product(node, graph, x, layers, cols, depth)
        elif node.kernel == "reshape":
            alias[y] = x
            continue
        elif node.kernel == "tflite.average_pool":
            layer = _pool(node, graph, x, depth)
        elif node.kernel == "tflite.add":
            inputs = [alias.get(n, n) for n in node.inputs]
            layer = _add(graph, layers, inputs, y, readers, cols)
        else:
            left = left or node
            continue
        if left is not None:
            raise ValueError(
                f"{graph.name}: operators before {node.operator} must run on the chip,"
                f" not {left.operator}"
            )
        layers.append(layer)
    sent = math.prod(layers[0].window.input) * _sent_channels(graph, layers[0])
    layers[0] = dataclasses.replace(layers[0], sent=sent)
    return layers, layers[-1].m * layers[-1].columns


def space_to_depth(window: Window, channels: int) -> tuple[Window, int]:
    """Return a window of stride 1, and its channels: each block of ``stride`` pixels is one pixel.

    With e = padding mod stride, block Y holds rows ``Y * stride - e`` and following. The kernel is
    ``ceil(kernel / stride)`` blocks, the map ``ceil((input + e) / stride)`` blocks.
    """
    (sy, sx), (top, _, left, _) = window.stride, window.padding
    blocks = dataclasses.replace(
        window, stride=(1, 1), padding=(top // sy, 0, left // sx, 0),
        kernel=(-(-window.kernel[0] // sy), -(-window.kernel[1] // sx)),
        input=(
            -(-(window.input[0] + top % sy) // sy), -(-(window.input[1] + left % sx) // sx)
        ),
    )
    return blocks, channels * sy * sx


def _product(gemm, graph, x, layers, cols, depth):
    """The layer of a convolution or of a matrix product with constant weights."""
    shape = graph.tensors[gemm.x].shape
    way = candidates(gemm, shape, None, cols)[0]
    m, groups = way.m(shape), gemm.weights.shape[0]
    columns, window = groups * gemm.weights.shape[2], gemm.window
    channels = gemm.weights.shape[1]
    if window is None:
        window = _flat(m)
        for layer in layers:  # a map that becomes a vector keeps its unused channels
            if layer.y == x:
                channels = layer.m * -(-layer.columns // depth) * depth // m
    else:
        channels = shape[-1]
        plain = groups == 1 and window.dilation == (1, 1)
        if channels % depth and plain and gemm.x in graph.inputs:
            window, channels = space_to_depth(window, channels)
        if (window.kernel, window.stride, window.padding) == ((1, 1), (1, 1), NO_PADDING):
            window = _flat(m)
    return ChipLayer(
        gemm.operator, window, -(-channels // depth) * depth, columns, groups > 1, x,
        gemm.outputs[0],
    )


def _flat(m):
    """The window of a 1 x 1 convolution of ``m`` pixels, which are one row of a map."""
    return Window((1, 1), (1, 1), (1, 1), NO_PADDING, (1, m), (1, m))


def _pool(node, graph, x, depth):
    """The depthwise convolution that sums up the inputs of a pool."""
    given = node.attributes
    if any(given["padding"]):
        raise ValueError(f"{graph.name}: padding of {node.operator} must be 0 on the chip")
    _, height, width, channels = graph.tensors[node.inputs[0]].shape
    output = tuple(given["output"])
    # With one output along an axis, any stride gives the same result.
    stride = tuple(s if n > 1 else 1 for s, n in zip(given["stride"], output, strict=True))
    window = Window(
        tuple(given["kernel_size"]), stride, (1, 1), NO_PADDING, (height, width), output
    )
    return ChipLayer(
        node.operator, window, -(-channels // depth) * depth, channels, True, x, node.outputs[0],
        constant=True,
    )


def _add(graph, layers, inputs, y, readers, cols):
    """Take the layer that computes ADD out of the list; return it with ADD."""
    makers = [
        layer for layer in layers
        if layer.y in inputs and layer.residual < 0 and readers[layer.y] == 1
    ]
    if not makers:
        raise ValueError(f"{graph.name}: an input of ADD must be a product that only ADD reads")
    layer = max(
        makers, key=lambda layer: layer.taps * (cols if layer.depthwise else layer.channels)
    )
    layers.remove(layer)
    other, = (number for number in inputs if number != layer.y)
    return dataclasses.replace(layer, name=f"{layer.name} + ADD", y=y, residual=other)


def _sent_channels(graph, layer):
    """Channels of the input map that the host sends: without unused ones."""
    values = math.prod(graph.tensors[layer.x].shape)
    return -(-values // math.prod(layer.window.input))
