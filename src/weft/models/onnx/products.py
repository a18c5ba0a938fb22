"""Convolutions and matrix products become `Gemm`: weights in its order, windows, parameters."""

from dataclasses import dataclass

import numpy as np

from weft.models.ir import Window

__all__ = ["MapLayout", "conv_transpose_window", "conv_window", "layout_of", "per_column"]


@dataclass(frozen=True, eq=False)
class MapLayout:
    """How a product of a node becomes a Gemm.

    Attributes
    ----------
    weights : array [groups, K, N], or None
        None: the second operand is a tensor.
    arguments : dict
        Further arguments of the Gemm: ``window``, ``layout``, ``x_transposed``, ``b_transposed``.
    x_shape, y_shape : tuple of int
        Shapes that x and y must have; for 1-D operands they differ from the node's shapes.
    columns : int
        groups * N.
    weight_axis : int
        Axis of the columns in the second operand.
    """

    weights: np.ndarray | None
    arguments: dict
    x_shape: tuple[int, ...]
    y_shape: tuple[int, ...]
    columns: int
    weight_axis: int


def layout_of(kind, attributes, x_shape, w_shape, w, y_shape) -> MapLayout | None:
    """The layout of a product, or None if it does not fit a Gemm.

    Parameters
    ----------
    kind : str
        ``Conv``, ``ConvTranspose``, ``MatMul`` or ``Gemm``.
    attributes : mapping
        Of the node.
    x_shape, w_shape, y_shape : tuple of int
        Of the operands and the result of the node.
    w : array or None
        Value of the second operand, if it is constant.
    """
    if 0 in (*x_shape, *w_shape, *y_shape):
        return None
    if kind in ("Conv", "ConvTranspose"):
        return _convolution(kind, attributes, x_shape, w, y_shape)
    return _matrix(kind, attributes, x_shape, w_shape, w, y_shape)


def per_column(values, columns, groups=1):
    """Numbers per tensor or per column; one group's numbers are repeated. None if they do not fit.
    """
    if values.size == 1:
        return values.reshape(1)
    if values.size * groups == columns and groups > 1:
        return np.tile(values.ravel(), groups)
    return values.ravel() if values.size == columns else None


def _convolution(kind, attributes, x_shape, w, y_shape):
    if w is None or w.ndim not in (3, 4):
        return None
    if w.ndim == 3:  # one row of pixels
        w = w[:, :, None]
        x_shape, y_shape = (*x_shape[:2], 1, x_shape[2]), (*y_shape[:2], 1, y_shape[2])
    groups, kernel = attributes.get("group", 1), w.shape[2:]
    if groups < 1 or w.shape[0] % groups:
        return None
    if kind == "Conv":
        columns = w.shape[0]
        w = w.reshape(groups, columns // groups, *w.shape[1:]).transpose(0, 3, 4, 2, 1)
        window = conv_window(attributes, kernel, x_shape[2:], y_shape[2:])
    else:
        columns = w.shape[1] * groups
        w = w[:, :, ::-1, ::-1].reshape(groups, w.shape[0] // groups, *w.shape[1:])
        w = w.transpose(0, 3, 4, 1, 2)
        window = conv_transpose_window(attributes, kernel, x_shape[2:], y_shape[2:])
    weights = np.ascontiguousarray(w).reshape(groups, -1, columns // groups)
    return MapLayout(
        weights, dict(window=window, layout="NCHW"), x_shape, y_shape, columns,
        0 if kind == "Conv" else 1,
    )


def _matrix(kind, attributes, x_shape, w_shape, w, y_shape):
    x_transposed = b_transposed = False
    if kind == "Gemm":
        x_transposed = bool(attributes.get("transA", 0))
        b_transposed = bool(attributes.get("transB", 0))
    weight_axis = len(w_shape) - (2 if b_transposed else 1)
    if len(w_shape) == 1:
        if w is None:
            return None
        w, w_shape, y_shape, weight_axis = w[:, None], (*w_shape, 1), (*y_shape, 1), -1
    if len(x_shape) == 1:
        x_shape, y_shape = (1, *x_shape), (*y_shape[:-1], 1, y_shape[-1])
    while w is not None and w.ndim > 2 and w.shape[0] == 1 and w.ndim <= len(x_shape):
        w, w_shape = w[0], w_shape[1:]
    columns = w_shape[-2 if b_transposed else -1]
    arguments = dict(x_transposed=x_transposed)
    weights = None
    if w is not None and w.ndim == 2:
        weights = np.ascontiguousarray(w.T if b_transposed else w)[None]
    else:
        arguments["b_transposed"] = b_transposed
    return MapLayout(weights, arguments, x_shape, y_shape, columns, weight_axis)


def conv_window(attributes, kernel, input, output) -> Window:
    """The window of a convolution.

    Parameters
    ----------
    attributes : mapping
        Of the node: ``strides``, ``dilations``, ``pads``, ``auto_pad``.
    kernel, input, output : (int, int)
        Heights and widths.
    """
    stride = _pair(attributes, "strides")
    dilation = _pair(attributes, "dilations")
    begin, end = _pads(attributes, kernel, stride, dilation, input, output)
    return Window(
        kernel, stride, dilation, (begin[0], end[0], begin[1], end[1]), input, output
    )


def conv_transpose_window(attributes, kernel, input, output) -> Window:
    """The window of a transposed convolution, whose kernel is mirrored.

    The map is spread by the strides and convolved with a stride of 1. ``dilation * (kernel - 1)``
    less the padding of the node surrounds it, at the end as much as the output needs.
    """
    spread = _pair(attributes, "strides")
    dilation = _pair(attributes, "dilations")
    extra = tuple(attributes.get("output_padding", ())) or (0, 0)
    extra = (0, *extra) if len(extra) == 1 else extra
    edges = []
    for axis in range(2):
        reach = dilation[axis] * (kernel[axis] - 1)
        spread_size = spread[axis] * (input[axis] - 1) + 1
        total = spread_size + reach + extra[axis] - output[axis]  # that the node cuts off
        begin = _cut_at_begin(attributes, axis, total)
        before = reach - begin
        edges += [before, output[axis] + reach - spread_size - before]
    return Window(kernel, (1, 1), dilation, tuple(edges), input, output, spread)


def _cut_at_begin(attributes, axis, total):
    """Rows that a transposed convolution cuts off at the begin of an axis, of ``total``."""
    rule = attributes.get("auto_pad", "NOTSET")
    if rule == "VALID":
        return 0
    if rule == "NOTSET" and "output_shape" not in attributes:
        pads = tuple(attributes.get("pads", ())) or (0, 0, 0, 0)
        pads = (0, pads[0], 0, pads[1]) if len(pads) == 2 else pads
        return pads[axis]
    total = max(total, 0)
    return total // 2 if rule == "SAME_UPPER" else total - total // 2


def _pads(attributes, kernel, stride, dilation, input, output):
    """Padding (top, left) and (bottom, right) of a convolution."""
    rule = attributes.get("auto_pad", "NOTSET")
    if rule == "NOTSET":
        pads = tuple(attributes.get("pads", ())) or (0, 0, 0, 0)
        pads = (0, pads[0], 0, pads[1]) if len(pads) == 2 else pads
        return pads[:2], pads[2:]
    if rule == "VALID":
        return (0, 0), (0, 0)
    begin, end = [], []
    for axis in range(2):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        total = max((output[axis] - 1) * stride[axis] + reach - input[axis], 0)
        begin.append(total - total // 2 if rule == "SAME_LOWER" else total // 2)
        end.append(total - begin[-1])
    return tuple(begin), tuple(end)


def _pair(attributes, name):
    """An attribute of two axes; (1, 1) by default. A missing first axis is 1."""
    values = tuple(attributes.get(name, ())) or (1, 1)
    return (1, *values) if len(values) == 1 else values
