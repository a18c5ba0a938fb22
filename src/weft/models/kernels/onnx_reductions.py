"""Kernels of ONNX operators that combine elements: pools, reductions, softmax.

Sources: onnxruntime, ``pool_functors.h`` (AveragePool from operator set 19 on) and
``mlas/pooling.cpp`` (before, and GlobalAveragePool): they add float32 values in different orders.
"""

import itertools

import numpy as np

__all__ = ["KERNELS"]


def _windows(x, attributes, fill):
    """The elements of each window: a view [N, C, output..., window...] of the padded input."""
    window, strides, dilations, begin, output = (
        attributes[name] for name in ("window", "strides", "dilations", "begin", "output")
    )
    pads = [(0, 0), (0, 0)]
    for axis, size in enumerate(window):
        reach = dilations[axis] * (size - 1) + 1
        needed = (output[axis] - 1) * strides[axis] + reach
        pads.append((begin[axis], max(needed - begin[axis] - x.shape[axis + 2], 0)))
    x = np.pad(x, pads, constant_values=fill)
    reach = [d * (size - 1) + 1 for d, size in zip(dilations, window, strict=True)]
    axes = tuple(range(2, x.ndim))
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    steps = [slice(None), slice(None)]
    steps += [slice(0, (n - 1) * s + 1, s) for n, s in zip(output, strides, strict=True)]
    return view[(*steps, *(slice(None, None, d) for d in dilations))]


def _max_pool(inputs, attributes):
    """``window``, ``strides``, ``dilations``, ``begin`` (padding), ``output`` : tuples of int."""
    [x] = inputs
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    view = _windows(x, attributes, lowest)
    return [view.max(axis=tuple(range(x.ndim, view.ndim)))]


def _average_pool(inputs, attributes):
    """As ``max_pool``; ``count_padding`` : bool, whether padding counts as elements of 0.

    ``columns`` : bool, whether each column of a window is added first, and then the columns; by
    default, the elements are added in their order.
    """
    [x] = inputs
    view = _windows(x, attributes, 0)
    axes = tuple(range(x.ndim, view.ndim))
    places = [range(size) for size in attributes["window"]]
    rows = [places[-1]] if not attributes["columns"] else [[i] for i in places[-1]]
    sums = x.dtype.type(0)
    for row in rows:
        part = x.dtype.type(0)
        for place in itertools.product(*places[:-1], row):
            part = part + view[(..., *place)]
        sums = sums + part
    if attributes["count_padding"]:
        count = np.prod(attributes["window"])
    else:
        count = _windows(np.ones((1, 1, *x.shape[2:]), x.dtype), attributes, 0).sum(axis=axes)
    return [(sums / count).astype(x.dtype)]


def _global_average_pool(inputs, attributes):
    """The mean of each map of float32: four sums in turns, and the rest; ``shape`` of y."""
    [x] = inputs
    values = x.reshape(*x.shape[:2], -1)
    size = values.shape[2]
    whole = size - size % 4
    lanes = np.zeros((*x.shape[:2], 4), x.dtype)
    for start in range(0, whole, 4):
        lanes = lanes + values[..., start : start + 4]
    sums = (lanes[..., 0] + lanes[..., 2]) + (lanes[..., 1] + lanes[..., 3])
    for place in range(whole, size):
        sums = sums + values[..., place]
    return [(sums / x.dtype.type(size)).reshape(attributes["shape"])]


def _reduction(function):
    """A kernel with ``axes`` : tuple of int; ``shape`` of y."""
    def kernel(inputs, attributes):
        [x] = inputs
        result = function(x, axis=attributes["axes"])
        return [np.asarray(result).astype(x.dtype, copy=False).reshape(attributes["shape"])]

    return kernel


def _mean(x, axis):
    """The mean; of integers, truncated."""
    if x.dtype.kind == "f":
        return x.mean(axis=axis)
    return np.trunc(x.sum(axis=axis, dtype=np.int64) / np.prod([x.shape[a] for a in axis]))


def _softmax(inputs, attributes):
    """``axis`` : int."""
    [x] = inputs
    e = np.exp(x - x.max(axis=attributes["axis"], keepdims=True))
    return [(e / e.sum(axis=attributes["axis"], keepdims=True)).astype(x.dtype)]


def _batch_normalization(inputs, attributes):
    """``epsilon`` : float. Inputs: values, and gamma, beta, mean, variance of each channel."""
    x = inputs[0]
    shape = (-1, *[1] * (x.ndim - 2))
    gamma, beta, mean, variance = (values.reshape(shape) for values in inputs[1:])
    factor = gamma / np.sqrt(variance + np.float32(attributes["epsilon"]))
    return [((x - mean) * factor + beta).astype(x.dtype)]


KERNELS = {
    "onnx.max_pool": _max_pool, "onnx.average_pool": _average_pool,
    "onnx.global_average_pool": _global_average_pool,
    "onnx.reduce_mean": _reduction(_mean), "onnx.reduce_sum": _reduction(np.sum),
    "onnx.softmax": _softmax, "onnx.batch_normalization": _batch_normalization,
}
