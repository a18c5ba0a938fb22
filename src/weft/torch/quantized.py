"""Products of int8 values in graphs that are quantized with PT2E: exact sums, and their scales.

In such a graph ``quantize_per_tensor`` and ``dequantize_per_tensor`` stand around an operator. A
product of two dequantized operands is computed from the int8 values, with the exact sum::

    float32(sum((a - zero of A) * (b - zero of B))) * (scale of A * scale of B)

Operands of uint8 become int8: 128 is taken from the values and from the zero point.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, Node

from weft.offload import Window

__all__ = ["Dequantized", "Int8Core", "is_quantized", "operands"]

aten = torch.ops.aten
_SPACE = "quantized_decomposed"
_PLAIN = {aten.t.default, aten.transpose.int, aten.permute.default, aten.alias.default,
          aten.detach.default, aten.clone.default}
_VIEWS = _PLAIN | {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.expand.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.slice.Tensor, aten.select.int,
}
# By operator: the axis of operand B that the columns of the product are.
_COLUMNS = {
    aten.mm.default: 1, aten.addmm.default: 1, aten.bmm.default: 2, aten.baddbmm.default: 2,
    aten.linear.default: 0, aten.convolution.default: 0,
}
_NOT_INT8 = (
    "the graph is quantized, and its operands are not both int8 or uint8 values with a scale"
)


@dataclass(frozen=True)
class Dequantized:
    """An operand of a product: ``(values - zero) * scale``.

    Attributes
    ----------
    values : Node
        int8 or uint8.
    scale, zero : Node or float or int
    axis : int or None
        Of the channels that have a scale each; None for one scale.
    """

    values: Node
    scale: Any
    zero: Any
    axis: int | None


def is_quantized(graph: Graph) -> bool:
    """Return whether a graph has quantized values."""
    return any(_name(node) for node in graph.nodes)


def operands(node: Node, places: tuple[int, int]) -> tuple[Dequantized, Dequantized] | str:
    """Return the int8 operands of a product in a quantized graph, or why it has none.

    The values of operands behind transpositions and reshapes are transposed and reshaped by new
    nodes.
    """
    if node.target not in _COLUMNS:
        return _NOT_INT8
    found = [_dequantized(node.args[place], node) for place in places]
    for part in found:
        if not isinstance(part, Dequantized):
            return part
    a, b = found
    if a.axis is not None:
        return "its first operand has a scale for each channel"
    axis = _COLUMNS[node.target]
    if node.target is aten.convolution.default and node.args[6]:
        axis = 1
        if b.axis is not None and node.args[8] != 1:
            return "it is transposed, with groups, and its kernel has a scale for each channel"
    if b.axis not in (None, axis):
        return f"its second operand has a scale along axis {b.axis}, not along the results"
    return a, b


def _dequantized(value, reader) -> Dequantized | str:
    """The operand that a node makes, or why it is none."""
    if not isinstance(value, Node):
        return _NOT_INT8
    name = _name(value)
    if name.startswith("dequantize_per_"):
        values, scale, zero = value.args[:3]
        dtype = value.args[-1]
        axis = value.args[3] if name == "dequantize_per_channel" else None
        if dtype not in (torch.int8, torch.uint8) or name == "dequantize_per_channel_group":
            return _NOT_INT8
        return Dequantized(values, scale, zero, axis)
    if value.target not in _VIEWS:
        return _NOT_INT8
    inner = _dequantized(value.args[0], value)
    if not isinstance(inner, Dequantized):
        return inner
    axis = inner.axis
    if axis is not None:
        if value.target not in _PLAIN:
            kind = value.target.overloadpacket.__name__
            return f"{kind} is between it and an operand with a scale for each channel"
        axis = _moved(value, axis)
    # The values may have other strides than the floats.
    view = value.target in (aten.view.default, aten._unsafe_view.default)
    target = aten.reshape.default if view else value.target
    with reader.graph.inserting_before(reader):
        values = reader.graph.call_function(target, (inner.values, *value.args[1:]), value.kwargs)
    return replace(inner, values=values, axis=axis)


def _moved(view, axis):
    """The place of an axis after a transposition."""
    rank = view.meta["val"].dim()
    order = list(range(rank))
    if view.target is aten.t.default:
        order.reverse()
    elif view.target is aten.transpose.int:
        first, second = (n % rank for n in view.args[1:3])
        order[first], order[second] = order[second], order[first]
    elif view.target is aten.permute.default:
        order = [n % rank for n in view.args[1]]
    return order.index(axis)


class Int8Core:
    """A core for the functions of `weft.torch.products` whose operands are int8 values.

    Parameters
    ----------
    core
        Returns exact sums of int8 products; ``core.refuse(reason, ...)`` gives up.
    scales : sequence
        Scale and zero point of A, and those of B: numbers, or tensors; those of B may have a
        value for each column.
    """

    def __init__(self, core, scales: Sequence):
        self._core = core
        self._a_scale, self._b_scale = (_number(x, torch.float32) for x in scales[::2])
        self._a_zero, self._b_zero = (_number(x, torch.int64) for x in scales[1::2])

    def matmul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return the products [count, M, N] of A [count, M, K] and B [count, K, N]."""
        a, a_zero = _int8(a, self._a_zero)
        b, b_zero = _int8(b, self._b_zero)
        y = self._core.matmul(a, b).to(torch.int64)
        if a_zero.any():
            y = y - a_zero * b.sum(1, keepdim=True)
        if b_zero.any():
            # [count, M, 1] times a value for each column
            y = y - (a.sum(2, keepdim=True) - a.shape[2] * a_zero) * b_zero
        return self._scaled(y)

    def convolution(self, x: torch.Tensor, w: torch.Tensor, window: Window) -> torch.Tensor:
        """Return the convolution [N, positions..., O] of x [N, positions..., C] with a kernel."""
        x, x_zero = _int8(x, self._a_zero)
        w, w_zero = _int8(w, self._b_zero)
        shapes = window.products(x.shape, w.shape)
        if w_zero.any():
            self._core.refuse("the kernel has a zero point other than 0", shapes)
        if x_zero.any():
            if any(gap != 1 for gap in window.x_dilation):
                self._core.refuse("it is transposed, and the map has a zero point", shapes)
            # Around the map is the value 0, which is the zero point.
            pads = [0, 0] + [pad for pair in reversed(window.padding) for pad in pair]
            x = torch.nn.functional.pad(x, pads, value=int(x_zero))
            window = replace(window, padding=((0, 0),) * len(window.padding))
        y = self._core.convolution(x, w, window).to(torch.int64)
        return self._scaled(y - x_zero * w.sum(tuple(range(w.dim() - 1))))

    def _scaled(self, sums):
        return sums.to(torch.float32) * (self._a_scale * self._b_scale)


def floats(values: torch.Tensor, scale, zero, axis: int | None) -> torch.Tensor:
    """Return ``(values - zero) * scale`` in float32."""
    scale, zero = _number(scale, torch.float32), _number(zero, torch.int64)
    if axis is not None:
        shape = [1] * values.dim()
        shape[axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return (values.to(torch.int64) - zero).to(torch.float32) * scale


def _name(node) -> str:
    """The name of an operator on quantized values; "" for another one."""
    target = node.target
    known = isinstance(target, torch._ops.OpOverload) and target.namespace == _SPACE
    return target.overloadpacket.__name__ if known else ""


def _number(value, dtype):
    """A scale or a zero point as a tensor: of no axis, or of a value for each channel."""
    value = torch.as_tensor(value, dtype=dtype)
    return value.reshape(()) if value.numel() == 1 else value


def _int8(values, zero):
    """Values of uint8 as int8, and their zero point."""
    if values.dtype == torch.int8:
        return values, zero
    return (values.to(torch.int16) - 128).to(torch.int8), zero - 128
