"""Convolutions and matrix products become `Gemm`: weights in its order, windows, parameters."""

from dataclasses import dataclass

import numpy as np

from weft.models.onnx.windows import conv_transpose_window, conv_window

__all__ = ["MapLayout", "layout_of", "per_column"]


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
