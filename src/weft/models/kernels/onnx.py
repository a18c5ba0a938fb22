"""Kernels of operators that only ONNX has; `weft.models.kernels.tflite` says what a kernel is."""

import functools
import itertools
import math

import numpy as np

from weft.models.errors import ModelError

__all__ = ["KERNELS", "RECURRENT", "sigmoid"]


def _plain(function):
    """A kernel without attributes; the result has the type of the first input."""
    def kernel(inputs, attributes):
        with np.errstate(all="ignore"):
            return [np.asarray(function(*inputs)).astype(inputs[0].dtype, copy=False)]

    return kernel


def _compares(function):
    """A kernel with bool results."""
    return lambda inputs, attributes: [np.asarray(function(*inputs))]


def _sum(inputs, attributes):
    """Any number of inputs."""
    return [np.asarray(functools.reduce(np.add, inputs))]


def _divide(x, y):
    """``x / y``; integers are truncated."""
    if x.dtype.kind == "f":
        return x / y
    quotient = np.abs(x.astype(np.int64)) // np.maximum(np.abs(y.astype(np.int64)), 1)
    return quotient * np.sign(x.astype(np.int64)) * np.sign(y.astype(np.int64))


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _clip(inputs, attributes):
    """Inputs: values, least, most; the latter two may be absent."""
    x, *limits = inputs
    low, high = [*limits, None, None][:2]
    x = x if low is None else np.maximum(x, low)
    return [np.asarray(x if high is None else np.minimum(x, high))]


def _cast(inputs, attributes):
    """``dtype`` : str."""
    return [inputs[0].astype(attributes["dtype"])]


def _leaky_relu(inputs, attributes):
    """``alpha`` : float, the slope below 0."""
    [x] = inputs
    return [np.where(x >= 0, x, np.float32(attributes["alpha"]) * x).astype(x.dtype)]


def _prelu(inputs, attributes):
    """Inputs: values, slope below 0."""
    x, slope = inputs
    return [np.where(x >= 0, x, slope * x).astype(x.dtype)]


def _elu(inputs, attributes):
    """``alpha`` : float; ``alpha * (exp(x) - 1)`` below 0."""
    [x] = inputs
    return [np.where(x >= 0, x, attributes["alpha"] * np.expm1(np.minimum(x, 0))).astype(x.dtype)]


def _selu(inputs, attributes):
    """``alpha``, ``gamma`` : float."""
    [y] = _elu(inputs, attributes)
    return [(attributes["gamma"] * y).astype(y.dtype)]


def _hard_sigmoid(inputs, attributes):
    """``alpha``, ``beta`` : float; ``clip(alpha * x + beta, 0, 1)``."""
    [x] = inputs
    return [np.clip(np.float32(attributes["alpha"]) * x + np.float32(attributes["beta"]), 0, 1)
            .astype(x.dtype)]


def _hard_swish(x):
    return x * np.clip(x * np.float32(1 / 6) + np.float32(0.5), 0, 1)


def _gelu(inputs, attributes):
    """``approximate`` : ``none``, or ``tanh``."""
    [x] = inputs
    wide = x.astype(np.float64)
    if attributes["approximate"] == "tanh":
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return [(0.5 * wide * (1 + np.tanh(inner))).astype(x.dtype)]
    return [(0.5 * wide * (1 + _erf(wide / math.sqrt(2)))).astype(x.dtype)]


# Kernels that select values by their places.

def _gather(inputs, attributes):
    """``axis`` : int. Inputs: values, and indices, which may count from the end."""
    return [np.take(inputs[0], inputs[1], attributes["axis"])]


def _select(inputs, attributes):
    """``indices`` : tuple of array, the element for each place along each axis."""
    return [inputs[0][np.ix_(*attributes["indices"])]]


# Kernels of quantized tensors, exact with onnxruntime on x86-64.

F32, F64 = np.float32, np.float64


def _saturated(values, dtype):
    """``values`` rounded to nearest, ties to even, and saturated; NaN is the lowest value.

    x86-64 converts NaN to the lowest integer, and onnxruntime then saturates it.
    """
    limits = np.iinfo(dtype)
    rounded = np.where(np.isnan(values), limits.min, np.rint(values))
    return np.clip(rounded, limits.min, limits.max).astype(dtype)


def _along(values, ndim, axis):
    """Scales or zero points, one or one for each slice along ``axis``, in a shape to broadcast."""
    if values.size == 1:
        return values.reshape(())
    shape = [1] * ndim
    shape[axis] = values.size
    return values.reshape(shape)


def _quantize(inputs, attributes):
    """``dtype`` : str; ``axis`` : int. ``saturate(rint(x / scale) + zero)``."""
    x, scale, *zero = inputs
    dtype, axis = np.dtype(attributes["dtype"]), attributes["axis"]
    zero = zero[0] if zero and zero[0] is not None else np.zeros(1, dtype)
    with np.errstate(all="ignore"):
        steps = np.rint(x / _along(scale, x.ndim, axis))
    return [_saturated(steps + _along(zero, x.ndim, axis).astype(F32), dtype)]


def _dequantize(inputs, attributes):
    """``axis`` : int. ``float32(x - zero) * scale``."""
    x, scale, *zero = inputs
    wide = x.astype(np.int64)
    if zero and zero[0] is not None:
        wide = wide - _along(zero[0], x.ndim, attributes["axis"]).astype(np.int64)
    return [wide.astype(F32) * _along(scale, x.ndim, attributes["axis"])]


def _dynamic_quantize(inputs, attributes):
    """x as uint8; scale and zero point come from its range, from the smallest to the largest value.

    The range always includes 0.
    """
    [x] = inputs
    low, high = np.minimum(x.min(), F32(0)), np.maximum(x.max(), F32(0))
    scale = F32(1) if high == low else (high - low) / F32(255)
    zero = _saturated(F32(0) - low / scale, np.uint8)
    y = _saturated(np.rint(x / scale) + F32(zero), np.uint8)
    return [y, np.asarray(scale, F32), np.asarray(zero)]


def _scale(inputs, attributes):
    """``float32(sums) * scale``. Inputs: sums, scale."""
    sums, scale = inputs
    return [sums.astype(F32) * scale]


def _subtract_zero(inputs, attributes):
    """``sums - zero * columns`` in int32. Inputs: sums, zero point of x,
    sums of the columns of the weights."""
    sums, zero, columns = inputs
    wide = sums.astype(np.int64) - int(zero.ravel()[0]) * columns.astype(np.int64)
    return [wide.astype(np.int32)]


def _add(inputs, attributes):
    """QLinearAdd: ``rint(fma(a, sa/sc, fma(b, sb/sc, zc - (sa/sc * za + sb/sc * zb))))``.

    Each fma rounds once, to float32; inputs: a, its scale and zero point, b, c likewise.

    Source: onnxruntime, ``MlasQLinearAdd`` for AVX2.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = _numbers(inputs, (0, 3))
    ratio_a, ratio_b = F64(a_scale / c_scale), F64(b_scale / c_scale)
    offset = F32(ratio_a * F64(a_zero) + F64(F32(ratio_b * F64(b_zero))))
    offset = F64(F32(c_zero) - offset)
    inner = (b.astype(F64) * ratio_b + offset).astype(F32)
    return [_saturated((a.astype(F64) * ratio_a + inner).astype(F32), a.dtype)]


def _multiply(inputs, attributes):
    """QLinearMul: ``rint((a - za) * (b - zb) * (sa * sb / sc) + zc)`` in float32."""
    a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = _numbers(inputs, (0, 3))
    product = (a.astype(F32) - F32(a_zero)) * (b.astype(F32) - F32(b_zero))
    return [_saturated(product * (a_scale * b_scale / c_scale) + F32(c_zero), a.dtype)]


def _global_average_pool(inputs, attributes):
    """QLinearGlobalAveragePool: ``rint(sum(x - zx) * (sx / (sy * size))) + zy``."""
    x, x_scale, x_zero, y_scale, y_zero = _numbers(inputs, (0,))
    axes = tuple(range(2, x.ndim))
    size = int(np.prod(x.shape[2:]))
    sums = x.sum(axis=axes, keepdims=True, dtype=np.int64) - int(x_zero) * size
    scale = x_scale / (y_scale * F32(size))
    return [_saturated(np.rint(sums.astype(F32) * scale) + F32(y_zero), x.dtype)]


def _concat(inputs, attributes):
    """QLinearConcat: ``axis`` : int.

    Inputs: scale and zero point of y; then each part, its scale and its zero point. A part is
    requantized if its scale or its zero point is not the one of y.
    """
    y_scale, y_zero = inputs[0].ravel()[0], inputs[1].ravel()[0]
    parts = []
    for place in range(2, len(inputs), 3):
        x, scale, zero = inputs[place], inputs[place + 1].ravel()[0], inputs[place + 2].ravel()[0]
        if scale != y_scale or zero != y_zero:
            values = (x.astype(F32) - F32(zero)) * scale
            x = _saturated(np.rint(values / y_scale) + F32(y_zero), x.dtype)
        parts.append(x)
    return [np.concatenate(parts, attributes["axis"])]


def _numbers(inputs, tensors):
    """Inputs with each scale and zero point as a number; an absent zero point is 0."""
    return [
        value if place in tensors else (F32(0) if value is None else value.ravel()[0])
        for place, value in enumerate(inputs)
    ]


# Kernels that combine elements: pools, reductions, softmax.
#
# Sources: onnxruntime, ``pool_functors.h`` (AveragePool from operator set 19 on) and
# ``mlas/pooling.cpp`` (before, and GlobalAveragePool): they add float32 values in different orders.

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


def _float_global_average_pool(inputs, attributes):
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


# Recurrent layers: gates and states. The caller computes the products that a cell asks for.
#
# Source: ONNX operators ``LSTM``, ``GRU`` and ``RNN``; the zeros after the end of a short sequence,
# and the states of an empty one, are onnxruntime's.

def _lstm_cell(direction, fed, attributes, hidden, cell):
    """One product: hidden with the weights of input, output, forget and new value.

    ::

        cell = sigmoid(forget) * cell + sigmoid(input) * tanh(new)
        hidden = sigmoid(output) * tanh(cell)
    """
    enter, leave, forget, new = np.split(fed + (yield direction, hidden), 4, axis=1)
    cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(cell), cell


def _gru_cell(direction, fed, attributes, hidden):
    """One product with the weights of update, reset and new value; or two.

    ::

        new = tanh(fed + reset * (hidden @ weights))       with ``linear_before_reset``
        new = tanh(fed + (reset * hidden) @ weights)       without it: a product of its own
        hidden = (1 - update) * new + update * hidden
    """
    units = hidden.shape[1]
    if attributes["linear_before_reset"]:
        own = yield direction, hidden
        update, reset = np.split(sigmoid(fed[:, : 2 * units] + own[:, : 2 * units]), 2, axis=1)
        new = np.tanh(fed[:, 2 * units :] + reset * own[:, 2 * units :])
    else:
        own = yield 2 * direction, hidden
        update, reset = np.split(sigmoid(fed[:, : 2 * units] + own), 2, axis=1)
        new = np.tanh(fed[:, 2 * units :] + (yield 2 * direction + 1, reset * hidden))
    return ((1 - update) * new + update * hidden,)


def _rnn_cell(direction, fed, attributes, hidden):
    """One product: ``hidden = tanh(fed + hidden @ weights)``."""
    return (np.tanh(fed + (yield direction, hidden)),)


def _layer(cell, states):
    """A kernel whose ``cell`` computes one step in time of one direction; ``states`` : number.

    Inputs: products of the input with the weights of all gates and directions, float32 [time,
    batch, directions * gates * units]; lengths of the sequences, int [batch], or None; the states
    at the start, float32 [directions, batch, units], or None. ``backward`` : for each direction,
    whether it runs from the end; ``units``; ``outputs`` : which of the results (Y, and the states
    at the end) are wanted.
    """
    def kernel(inputs, attributes, state, mode):
        sums, lengths, *starts = inputs
        time, batch, _ = sums.shape
        backward, units = attributes["backward"], attributes["units"]
        shape = len(backward), batch, units
        fed = sums.reshape(time, batch, len(backward), -1)
        lengths = np.full(batch, time) if lengths is None else lengths
        if lengths.min() < 0 or lengths.max() > time:
            wrong = lengths[(lengths < 0) | (lengths > time)][0]
            raise ModelError(f"sequence_lens must be in 0..{time}, not {wrong}")
        starts = [*starts, None][:states]
        values = [np.zeros(shape, np.float32) if v is None else v.copy() for v in starts]
        for value in values:
            value[:, lengths == 0] = 0
        outputs, every = np.zeros((time, *shape), np.float32), np.arange(batch)
        for step in range(time):
            on = step < lengths
            for direction, turned in enumerate(backward):
                place = np.where(on, lengths - 1 - step if turned else step, 0)
                found = yield from cell(
                    direction, fed[place, every, direction], attributes,
                    *(value[direction] for value in values),
                )
                for value, new in zip(values, found, strict=True):
                    value[direction, on] = new[on]
                outputs[place[on], direction, every[on]] = found[0][on]
        results = [outputs, *values]
        return [results[n] for n in attributes["outputs"]]

    return kernel


RECURRENT = {
    "onnx.lstm": _layer(_lstm_cell, 2), "onnx.gru": _layer(_gru_cell, 1),
    "onnx.rnn": _layer(_rnn_cell, 1),
}


KERNELS = {
    **{f"onnx.{function.__name__}": _plain(function) for function in (
        np.ceil, np.exp, np.floor, np.log, np.negative, np.reciprocal, np.sqrt, np.tanh,
        np.add, np.subtract, np.multiply, np.power,
    )},
    "onnx.abs": _plain(np.abs), "onnx.divide": _plain(_divide), "onnx.round": _plain(np.rint),
    "onnx.relu": _plain(lambda x: np.maximum(x, 0)), "onnx.sigmoid": _plain(sigmoid),
    "onnx.softplus": _plain(lambda x: np.logaddexp(x, 0)), "onnx.erf": _plain(_erf),
    "onnx.softsign": _plain(lambda x: x / (1 + np.abs(x))),
    "onnx.hard_swish": _plain(_hard_swish),
    "onnx.sum": _sum,
    "onnx.equal": _compares(np.equal), "onnx.greater": _compares(np.greater),
    "onnx.less": _compares(np.less), "onnx.clip": _clip, "onnx.cast": _cast,
    "onnx.leaky_relu": _leaky_relu, "onnx.prelu": _prelu, "onnx.elu": _elu, "onnx.selu": _selu,
    "onnx.hard_sigmoid": _hard_sigmoid, "onnx.gelu": _gelu,
    "onnx.gather": _gather, "onnx.select": _select,
    "onnx.quantize": _quantize, "onnx.dequantize": _dequantize,
    "onnx.dynamic_quantize": _dynamic_quantize, "onnx.scale": _scale,
    "onnx.subtract_zero": _subtract_zero, "onnx.qlinear_add": _add,
    "onnx.qlinear_multiply": _multiply,
    "onnx.qlinear_global_average_pool": _global_average_pool, "onnx.qlinear_concat": _concat,
    "onnx.max_pool": _max_pool, "onnx.average_pool": _average_pool,
    "onnx.global_average_pool": _float_global_average_pool,
    "onnx.reduce_mean": _reduction(_mean), "onnx.reduce_sum": _reduction(np.sum),
    "onnx.softmax": _softmax, "onnx.batch_normalization": _batch_normalization,
}
