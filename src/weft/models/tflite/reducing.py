"""Operators that take many values to one: pools and reductions, and resizing of maps."""

import functools

import numpy as np

from weft.models.kernels.tflite import MAX_WINDOW
from weft.models.tflite import lite
from weft.models.tflite.context import Fallback
from weft.models.tflite.moving import axes_of
from weft.models.tflite.products import padding_of, positive
from weft.models.tflite.scales import (
    FUSED,
    float_limits,
    fused_limits,
    is_dense,
    lite_limits,
    multiplier_and_shift,
    per_tensor,
)

__all__ = ["BUILDERS"]

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
QUANTIZED = (*BYTES, np.dtype(np.int16))
FLOAT = np.dtype(np.float32)
WINDOW = "a reduction over a window has no weights"


def _pool(kernel, graph, operator):
    graph.counts(operator, 1, 1)
    options = operator.options("Pool2DOptions")
    x, y = graph.input(operator, 0), graph.output(operator)
    if len(x.shape) != 4 or 0 in x.shape:
        raise operator.error(f"input must have 4 dimensions above 0, not {x.shape}")
    window = positive(operator, "filter", options.FilterHeight(), options.FilterWidth())
    stride = positive(operator, "stride", options.StrideH(), options.StrideW())
    parts = [
        padding_of(operator, options.Padding(), size, k, s, 1)
        for size, k, s in zip(x.shape[1:3], window, stride, strict=True)
    ]
    graph.expect(operator, (x.shape[0], parts[0][0], parts[1][0], x.shape[3]))
    if max(window) > MAX_WINDOW:
        raise Fallback(f"a pool of more than {MAX_WINDOW} rows or columns")
    kind = graph.same_type(operator, x, y)
    fused = FUSED.get(options.FusedActivationFunction())
    if fused is None or kind not in (*QUANTIZED, FLOAT):
        raise Fallback(f"no kernel for {kind} with activation {fused}")
    if kind == FLOAT:
        low, high = float_limits(fused)
    else:
        low, high = fused_limits(operator, fused, y)
    attributes = {
        "kernel_size": window, "stride": stride, "padding": (parts[0][1], parts[1][1]),
        "output": (parts[0][0], parts[1][0]), "low": low, "high": high,
    }
    single = None
    if operator.name == "MAX_POOL_2D" and y.dtype in BYTES and is_dense(operator):
        limits = dict(zip(("low", "high"), lite_limits(operator, fused, y), strict=True))
        if attributes != attributes | limits:
            single = kernel, attributes | limits
    return graph.host(operator, kernel, WINDOW, single=single, **attributes)


def _axes(graph, operator):
    """Axes of a reduction, sorted; the shape of y is checked."""
    graph.counts(operator, 2, 2)
    x, y = graph.input(operator, 0), graph.output(operator)
    axes = tuple(sorted(set(axes_of(operator, graph.integers(operator, 1), len(x.shape)))))
    keep = operator.options("ReducerOptions").KeepDims()
    if 0 in x.shape:
        raise operator.error(f"input must not be empty, not {x.shape}")
    shape = [
        1 if axis in axes else size
        for axis, size in enumerate(x.shape) if keep or axis not in axes
    ]
    graph.expect(operator, shape)
    graph.same_type(operator, x, y)
    return x, y, axes


def _average(kernel, graph, operator):
    x, y, axes = _axes(graph, operator)
    if x.dtype not in QUANTIZED:
        raise Fallback(f"no kernel for {x.dtype}: the order of float sums is the runtime's")
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    multiplier, shift = multiplier_and_shift(operator, x_scale / y_scale)
    return graph.host(
        operator, kernel, "a reduction has no weights", inputs=(0,), axes=axes, shape=y.shape,
        multiplier=multiplier, shift=shift, zeros=(x_zero, y_zero),
        single=lite.reduction(operator, x, y, axes, kernel == "tflite.mean"),
    )


def _extreme(kernel, graph, operator):
    x, y, axes = _axes(graph, operator)
    return graph.host(
        operator, kernel, "a reduction has no weights", inputs=(0,), axes=axes, shape=y.shape
    )


def _arg(kernel, graph, operator):
    graph.counts(operator, 2, 2)
    x, y = graph.input(operator, 0), graph.output(operator)
    values = graph.integers(operator, 1)
    if len(values) != 1:
        raise operator.error(f"axes must be 1, not {len(values)}")
    [axis] = axes_of(operator, values, len(x.shape))
    if x.shape[axis] == 0 or y.dtype not in (np.int32, np.int64):
        raise operator.error("input must not be empty, and the output int32 or int64")
    graph.expect(operator, x.shape[:axis] + x.shape[axis + 1 :])
    return graph.host(
        operator, kernel, "a search has no weights", inputs=(0,), axis=axis, dtype=str(y.dtype),
        shape=y.shape,
    )


def _resize(kernel, kind, types, reason, graph, operator):
    graph.counts(operator, 2, 2)
    x, y = graph.input(operator, 0), graph.output(operator)
    if len(x.shape) != 4 or 0 in x.shape or len(y.shape) != 4 or 0 in y.shape:
        raise operator.error(f"maps must have 4 dimensions above 0, not {x.shape}, {y.shape}")
    size = graph.integers(operator, 1)
    if len(size) != 2:
        raise operator.error(f"the size must have 2 numbers, not {len(size)}")
    graph.expect(operator, (x.shape[0], *size, x.shape[3]))
    if types and graph.same_type(operator, x, y) not in types:
        raise Fallback(f"no kernel for {x.dtype}")
    options = operator.options(kind)
    attributes = {
        "size": tuple(size), "align_corners": bool(options.AlignCorners()),
        "half_pixel_centers": bool(options.HalfPixelCenters()),
    }
    single = lite.resize_bilinear(attributes) if types else None
    return graph.host(operator, kernel, reason, inputs=(0,), single=single, **attributes)


BUILDERS = {
    "AVERAGE_POOL_2D": functools.partial(_pool, "tflite.average_pool"),
    "MAX_POOL_2D": functools.partial(_pool, "tflite.max_pool"),
    "MEAN": functools.partial(_average, "tflite.mean"),
    "SUM": functools.partial(_average, "tflite.sum"),
    "REDUCE_MAX": functools.partial(_extreme, "reduce_max"),
    "REDUCE_MIN": functools.partial(_extreme, "reduce_min"),
    "ARG_MAX": functools.partial(_arg, "arg_max"), "ARG_MIN": functools.partial(_arg, "arg_min"),
    "RESIZE_NEAREST_NEIGHBOR": functools.partial(
        _resize, "tflite.resize_nearest", "ResizeNearestNeighborOptions", (),
        "it only moves values",
    ),
    "RESIZE_BILINEAR": functools.partial(
        _resize, "tflite.resize_bilinear", "ResizeBilinearOptions", BYTES,
        "weights that change from pixel to pixel",
    ),
}
