"""Operators of int16 beside products and moves: ADD, SUB, pools, means, conversions of scales.

A value is two channels, its bytes: `weft.models.network_core.wide_maps`. So a sum of values is a
layer whose columns are its digits, and a scale and limits of 16 bits complete most operators.

ADD of the runtime scales both operands to terms of 32 bits, and rescales their sum. So the first
layers store such terms: four channels, the highest byte first, and the others less 128. The next
layer adds them byte by byte, as digits of a sum modulo 2^32::

    term[n] = scale_n(2^15 * x[n])                                   words
    y       = clamp(scale(term[0] + term[1]), low, high)             quad_pairs

A maximum is a difference with limits, and a sum: both fit 16 bits::

    more = clamp(b - a - 2^15, -2^15, 2^15 - 1)                      max(b - a, 0), less 2^15
    max  = a + more + 2^15
"""

import math

import numpy as np

from weft.models.arithmetic import lane_parameters, lane_results
from weft.models.ir import Window
from weft.models.network_core.layers import LOW_ZERO, Refusal, WeightLayout
from weft.models.network_core.operators.builder import OperatorBuilder, pointwise
from weft.models.network_core.operators.reductions import average_pool, mean_window, taps_along
from weft.models.network_core.pools import MAX_COUNT, average_scale
from weft.models.network_core.wide_maps import WIDE

__all__ = ["LOWERINGS"]

_PAIR, _WORD = 2, 4  # bytes of a value, and of a term
_LIMITS = {"low": -(1 << 15), "high": (1 << 15) - 1}
_LEFT = 15  # how far the runtime shifts the operands of ADD to the left
# From the bytes of x to the bytes of 2^15 * x = 2^23 * high + 2^15 * low + 2^22.
_TERM = np.array([[1, -128, 0, 0], [0, 1, -128, 0]])
_TERM_BIAS = [0, 0, 0, -LOW_ZERO << _LEFT]


def _each_value(builder, x, matrix, bias, **fields):
    """Append a layer that reads each value of a map alone, and return its map.

    The channels of a value, times a ``matrix`` [channels, columns], are its columns; ``bias`` is
    that of the columns of a value.
    """
    (own, columns), size = matrix.shape, builder.size(x)
    count = size[2] // own
    # Groups of whole vectors and tiles; otherwise each column reads all channels.
    group = max(1, builder.depth // own, builder.cols // columns, builder.depth // columns)
    groups = count // group if count % group == 0 else 1
    group = count // groups
    weights = np.zeros((group, own, groups, group, columns), np.int8)
    for value in range(group):
        weights[value, :, :, value] = matrix[:, None]
    return builder.layer(
        x, pointwise(size), weights.reshape(1, group * own, -1), layout=WeightLayout.DENSE,
        groups=groups, bias=np.tile(bias, count), **fields,
    )


def _sum_of_taps(builder, x, window, weights, bias=0, **fields):
    """Append a layer whose results are sums of taps by their weights, and return its map."""
    offset = -LOW_ZERO * int(np.sum(weights)) + bias
    return builder.taps(
        x, window, weights, bias=np.tile([0, offset], builder.size(x)[2] // _PAIR),
        digits="pairs", **{**_LIMITS, **fields},
    )


def _last_channels(builder, x, of, count):
    """Append a layer that selects the last ``count`` of ``of`` channels, and return its map."""
    return _each_value(builder, x, np.eye(of)[:, of - count :], [0] * count)


def _check_zeros(*zeros):
    """Raise Refusal for zero points of values of 16 bits other than 0."""
    if any(zeros):
        raise Refusal(f"zero points of int16 must be 0, not {' and '.join(map(str, zeros))}")


def _add(builder: OperatorBuilder) -> int:
    """ADD and SUB of two maps of equal shapes."""
    given, sign = builder.node.attributes, 1 if builder.node.kernel == WIDE + "tflite.add" else -1
    _check_zeros(*given["zeros"], given["zero"])
    shapes = {builder.tensor(operand).shape for operand in range(2)}
    if len(shapes) > 1 or any(builder.tensor(operand).data is not None for operand in range(2)):
        raise Refusal("its operands must be maps of equal shapes")
    size = builder.map_size(builder.tensor(0).shape)
    height, width, channels = size
    # The terms of both operands are the rows of one map, row by row.
    terms = builder.map((2 * height, width, _WORD // _PAIR * channels))
    for operand in range(2):
        y = builder.view(terms, (height, width, 2 * channels), row=operand, line=(2, 0))
        scale = given["multipliers"][operand], given["shifts"][operand]
        _each_value(
            builder, builder.read(operand, size), _TERM, _TERM_BIAS, scale=scale, digits="words",
            y=y,
        )
    offset = -LOW_ZERO * (1 + sign)
    window = Window((2, 1), (2, 1), (1, 1), (0, 0, 0, 0), (2 * height, width), (height, width))
    total = builder.taps(
        terms, window, [1, sign], bias=np.tile([0, offset, offset, offset], channels // _PAIR),
        scale=(given["multiplier"], given["shift"]), low=given["low"], high=given["high"],
        digits="quad_pairs",
    )
    return _last_channels(builder, total, _WORD, _PAIR)


def _requantize(builder: OperatorBuilder) -> int:
    """QUANTIZE from int16 to int16 or int8."""
    given, x = builder.node.attributes, builder.read()
    zero, y_zero = given["zeros"]
    _check_zeros(zero)
    scale = given["multiplier"], given["shift"]
    if builder.is_wide:
        _check_zeros(y_zero)
        return _sum_of_taps(builder, x, pointwise(builder.size(x)), [1], scale=scale)
    if builder.output.dtype != np.int8:
        raise Refusal(f"its results must be int16 or int8, not {builder.output.dtype}")
    y = _each_value(
        builder, x, np.eye(_PAIR, _WORD, _PAIR), [0, 0, 0, -LOW_ZERO], scale=scale, zero=y_zero,
        digits="quads",
    )
    return _last_channels(builder, y, _WORD, 1)


def _table(builder: OperatorBuilder) -> int:
    """QUANTIZE from int8 to int16, whose table has all results."""
    x, y = builder.tensor(0), builder.output
    values = np.arange(-128, 128)
    expected = builder.node.attributes["table"].astype(np.int64)[values & 255]
    if x.dtype != np.int8 or None in (x.quantization, y.quantization):
        raise Refusal("its input must be int8 with a scale")
    zero = int(x.quantization.zero[0])
    scale = lane_parameters(
        float(x.quantization.scale[0]) / float(y.quantization.scale[0]), builder.mode
    )
    found = lane_results((values - zero).astype(np.int32), *scale, builder.mode)
    if not np.array_equal(np.clip(found, *_LIMITS.values()), expected):
        raise Refusal("its table is no scale of its input")
    return _each_value(
        builder, builder.read(), np.array([[0, 1]]), [0, -zero], scale=scale, digits="pairs",
        **_LIMITS,
    )


def _average_pool(builder: OperatorBuilder) -> int:
    """AVERAGE_POOL_2D: taps outside the map are 0."""
    given = builder.node.attributes

    def average(x, window, inputs, y):
        scale = average_scale(inputs, builder.mode, 0, 16)
        _sum_of_taps(
            builder, x, window, [scale.weight] * math.prod(window.kernel),
            scale=(scale.multiplier, scale.shift), reads_pairs=True, low=given["low"],
            high=given["high"], y=y,
        )

    return average_pool(builder, average)


def _mean(builder: OperatorBuilder) -> int:
    """MEAN and SUM over rows and columns, as the kernel computes them."""
    given, shape = builder.node.attributes, builder.tensor(0).shape
    _check_zeros(*given["zeros"])
    x, window, over_channels = mean_window(builder)
    if over_channels:
        raise Refusal("a mean of int16 must not be over channels")
    count = math.prod(shape[axis] for axis in given["axes"])
    if count >= MAX_COUNT:
        raise Refusal(f"its results must be of less than {MAX_COUNT} values, not {count}")
    multiplier, shift = given["multiplier"], given["shift"]
    if builder.node.kernel == WIDE + "tflite.mean":
        places = min(count.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << places) // count, shift - places
    if not -31 <= shift <= 31:
        raise Refusal(f"its scale must be in 2^-32..2^31, and its shift is {shift}")
    return _sum_of_taps(
        builder, x, window, [1] * math.prod(window.kernel), scale=(multiplier, shift)
    )


def _max_pool(builder: OperatorBuilder) -> int:
    """MAX_POOL_2D: the rows of the windows first, then their columns."""
    given, x = builder.node.attributes, builder.read()
    for axis in (1, 0):
        limits = {} if axis else {name: given[name] for name in ("low", "high")}
        x = _maximum_along(
            builder, x, axis, given["kernel_size"][axis], given["stride"][axis],
            given["padding"][axis], given["output"][axis], limits,
        )
    return x


def _maximum_along(builder, x, axis, kernel, stride, before, output, limits):
    """Return the maxima of windows along an axis of a map; taps outside are the least value."""
    def tap(first):
        return taps_along(builder.size(x), axis, stride, before, output, first, 1)

    outside = {"x_zero": LOW_ZERO}  # both bytes: -2^15
    if kernel == 1:
        return _sum_of_taps(builder, x, tap(0), [1], **outside, **limits)
    height, width = tap(0).output
    size = height, width, builder.size(x)[2]
    # Rows of one map: the largest value so far, the next one, and what that is larger.
    rows = builder.map((3 * height, width, size[2]))
    largest, other, more = (builder.view(rows, size, row=n, line=(3, 0)) for n in range(3))

    def two(distance):
        """The window of the first row and of another one."""
        return Window(
            (2, 1), (3, 1), (distance, 1), (0, 0, 0, 0), (3 * height, width), (height, width)
        )

    builder.copy(x, tap(0), y=largest, **outside)
    for number in range(1, kernel):
        builder.copy(x, tap(number), y=other, **outside)
        _sum_of_taps(builder, rows, two(1), [-1, 1], bias=-(1 << _LEFT), y=more)
        last = number == kernel - 1
        y = _sum_of_taps(
            builder, rows, two(2), [1, 1], bias=1 << _LEFT,
            **(limits if last else {"y": largest}),
        )
    return y


LOWERINGS = {
    WIDE + kernel: function for kernel, function in {
        "table": _table, "tflite.add": _add, "tflite.sub": _add, "tflite.requantize": _requantize,
        "tflite.average_pool": _average_pool, "tflite.max_pool": _max_pool, "tflite.mean": _mean,
        "tflite.sum": _mean,
    }.items()
}
