"""Operators of one operand: functions of a value, which are tables for 8-bit types, and softmax."""

import functools
import math

import numpy as np

from weft.models.kernels import fixed_point, tflite
from weft.models.kernels.fixed_point import (
    inverse_square_root,
    multiplier_of,
    multiply,
    round_shift,
)
from weft.models.tflite import lite
from weft.models.tflite.context import Fallback
from weft.models.tflite.scales import half_away, multiplier_and_shift, per_channel, per_tensor

__all__ = [
    "BUILDERS", "absolute", "elu", "exp", "gelu", "hard_swish", "leaky_attributes", "leaky_relu",
    "logistic", "relu", "rsqrt", "scaled", "tanh",
]


# Tables of functions of an 8-bit value: 256 results, by the byte of x, as TFLite computes them.
#
# Sources: TFLite Micro, ``activations.cc``, ``logistic.cc``, ``tanh.cc``, ``hard_swish_common.cc``,
# ``leaky_relu_common.cc``, ``elu.cc``, ``exp.cc``; LiteRT, ``LUTPopulate`` for GELU.

def _values(tensor):
    """All values of the type of ``tensor``, in the order of their bytes."""
    return np.arange(256, dtype=np.uint8).view(tensor.dtype).astype(np.int64)


def _limited(y, dtype):
    limits = np.iinfo(dtype)
    return np.clip(y, limits.min, limits.max).astype(dtype)


def scaled(x, dtype, x_zero, y_zero, multiplier, shift):
    """``(x - x_zero) * scale + y_zero``."""
    return _limited(multiply(_values(x) - x_zero, multiplier, shift) + y_zero, dtype)


def relu(low, high, operator, x, y):
    """``x`` limited to ``low..high`` (numbers or None), then scaled.

    RELU scales; RELU6 limits the values, whatever the scale of y is.
    """
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    if high is None:
        multiplier, shift = multiplier_and_shift(operator, x_scale / y_scale)
        table = scaled(x, np.int32, x_zero, y_zero, multiplier, shift)
        return _limited(np.maximum(table, y_zero), y.dtype)
    bounds = [x_zero + half_away(float(np.float32(v) / np.float32(x_scale))) for v in (low, high)]
    return _limited(_values(x).clip(*bounds), y.dtype)


def _of_function(function, operator, x, y):
    """A function of float32, rounded: ``LUTPopulate``."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    inverse = np.float32(1) / np.float32(y_scale)
    arguments = np.float32(x_scale) * (_values(x) - x_zero).astype(np.float32)
    results = np.array([function(value) for value in arguments.tolist()], np.float32)
    with np.errstate(over="ignore"):
        steps = [half_away(value) for value in (results * inverse).clip(-1e9, 1e9).tolist()]
    return _limited(np.array(steps, np.int64) + y_zero, y.dtype)


def elu(operator, x, y):
    """``x``, or ``exp(x) - 1`` below 0, where ``exp(x)`` is rounded to float32."""
    one = np.float32(1)
    return _of_function(lambda v: v if v >= 0 else np.float32(math.exp(v)) - one, operator, x, y)


def exp(operator, x, y):
    """``exp(x)``."""
    return _of_function(lambda v: math.exp(min(v, 88.0)), operator, x, y)


def gelu(approximate, operator, x, y):
    """``x * erfc(-x / sqrt(2)) / 2``, or its approximation with tanh, each step in float32."""
    f32 = np.float32
    half = f32(0.5)

    def exact(value):
        return half * f32(value) * f32(math.erfc(f32(value) * f32(-math.sqrt(0.5))))

    def near(value):
        v = f32(value)
        inner = f32(math.sqrt(2 / math.pi)) * (v + f32(0.044715) * v * v * v)
        return half * v * (f32(1) + f32(math.tanh(inner)))

    return _of_function(near if approximate else exact, operator, x, y)


def logistic(operator, x, y):
    """``1 / (1 + exp(-x))``; scale and zero point of y are 1/256 and the lowest value."""
    return _fixed(operator, x, y, 8, np.iinfo(y.dtype).min, fixed_point.logistic)


def tanh(operator, x, y):
    """``tanh(x)``; scale and zero point of y are 1/128 and the middle."""
    return _fixed(operator, x, y, 7, np.iinfo(y.dtype).min + 128, fixed_point.tanh)


def _fixed(operator, x, y, bits, zero, function):
    """A function of fixed point, rounded to ``bits`` fractional bits; x beyond +-15 saturates.

    TFLite Micro does not look at the scale of y.
    """
    x_scale, x_zero = per_tensor(operator, x)
    multiplier, shift = multiplier_of(x_scale * 2**27)
    values = _values(x) - x_zero
    largest = math.floor(15 * 2.0 ** (27 - shift))  # in units of 2**(shift - 27)
    inside = np.abs(values) < largest
    steps = round_shift(function(multiply(values * inside, multiplier, shift)), 31 - bits)
    ends = np.where(values > 0, 1 << 8, -(1 << 8))
    return _limited(np.where(inside, steps, ends) + zero, y.dtype)


def absolute(operator, x, y):
    """``abs(x)``."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    values = np.abs(_values(x) - x_zero)
    if x_scale != y_scale:
        values = multiply(values, *multiplier_and_shift(operator, x_scale / y_scale))
    return _limited(values + y_zero, y.dtype)


_RSQRT_BITS = 20  # that the inverse square root has beside the integer


def rsqrt(operator, x, y):
    """``1 / sqrt(x)``, for x of 0 or more; that of 0 is the largest value.

    Source: TFLite Micro, ``elementwise.cc``.
    """
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    least = np.iinfo(x.dtype).min
    if x_zero != least:
        raise Fallback(f"the zero point of x is {x_zero}, not {least}: some values are below 0")
    multiplier, shift = multiplier_and_shift(operator, 1 / (math.sqrt(x_scale) * y_scale))
    values = _values(x) - x_zero
    root, root_shift = inverse_square_root(values)
    fine = multiply(np.ones_like(values), root, root_shift + _RSQRT_BITS)
    results = multiply(fine, multiplier, shift - _RSQRT_BITS) + y_zero
    return _limited(np.where(values == 0, np.iinfo(y.dtype).max, results), y.dtype)


def leaky_attributes(operator, x, y, alpha):
    """Zero points, and multipliers of positive and negative x."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    ratios = x_scale / y_scale, x_scale * alpha / y_scale
    pairs = [multiplier_and_shift(operator, ratio) for ratio in ratios]
    return {
        "zeros": (x_zero, y_zero), "multipliers": tuple(m for m, _ in pairs),
        "shifts": tuple(s for _, s in pairs),
    }


def leaky_relu(alpha, operator, x, y):
    """``x``, or ``alpha * x`` below 0."""
    attributes = leaky_attributes(operator, x, y, alpha)
    zero, y_zero = attributes["zeros"]
    values = tflite.leaky_relu(
        _values(x) - zero, attributes["multipliers"], attributes["shifts"]
    )
    return _limited(values + y_zero, y.dtype)


def hard_swish(operator, x, y):
    """``x * min(max(x + 3, 0), 6) / 6`` in 16-bit fixed point."""
    (x_scale, x_zero), (y_scale, y_zero) = per_tensor(operator, x), per_tensor(operator, y)
    fine = x_scale / 128
    out, out_exponent = _multiplier16(operator, fine / y_scale)
    inner, exponent = _multiplier16(operator, fine / (3 / 32768))
    values = (_values(x) - x_zero) << 7
    preshift = _high_mul16(values, out)
    gate = values
    if exponent > 0:
        gate = _saturated16(gate << (exponent - 1))
    gate = _high_mul16(gate, inner)
    if exponent > 0:
        gate = _saturated16(gate << 1)
    if exponent < 0:
        gate = round_shift(gate, -exponent)
    gate = (gate + (1 << 15)) >> 1
    product = gate * preshift
    product = np.sign(product) * (np.abs(product) >> 15)
    if out_exponent > 0:
        raise operator.error(f"scale of y must be above {fine}, not {y_scale}")
    return _limited(round_shift(_saturated16(product), -out_exponent) + y_zero, y.dtype)


def _multiplier16(operator, scale):
    """A multiplier of 16 bits (``DownScaleInt32ToInt16Multiplier``), and its exponent."""
    multiplier, shift = multiplier_and_shift(operator, scale)
    if multiplier >= (1 << 31) - 1 - (1 << 15):
        return (1 << 15) - 1, shift
    return (multiplier + (1 << 15)) >> 16, shift


def _saturated16(x):
    return np.clip(x, -(1 << 15), (1 << 15) - 1)


def _high_mul16(a, b):
    """``(a * b + 2**14) >> 15``, saturated."""
    return _saturated16((a * b + (1 << 14)) >> 15)


# The operators.

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
QUANTIZED = (*BYTES, np.dtype(np.int16))
FLOAT = np.dtype(np.float32)
REASON = "no product of matrices"


def _one(graph, operator):
    """The input and the output, of equal shapes."""
    graph.counts(operator, 1, 1)
    x, y = graph.input(operator, 0), graph.output(operator)
    graph.expect(operator, x.shape)
    return x, y


def _table(function, graph, operator, single=None):
    """``function(operator, x, y)`` is the table of an 8-bit x, and ``single`` that of LiteRT.

    ``single`` returns None where LiteRT has the table of TFLite Micro.
    """
    x, y = _one(graph, operator)
    if graph.same_type(operator, x, y) not in BYTES:
        raise Fallback(f"no kernel for {x.dtype}")
    return _table_node(
        graph, operator, function(operator, x, y), single and single(operator, x, y)
    )


def _table_node(graph, operator, table, single):
    if single is not None:
        single = None if np.array_equal(single, table) else ("table", {"table": single})
    return graph.host(
        operator, "table", "a table without a product before it", table=table, single=single
    )


def _relu(low, high, graph, operator):
    x, y = _one(graph, operator)
    if graph.same_type(operator, x, y) == FLOAT:
        return graph.host(operator, "tflite.clip", REASON, low=low, high=high)
    function, single = functools.partial(relu, low, high), None
    if high is not None:
        single = functools.partial(lite.clip, low, high)
    if operator.name not in ("RELU", "RELU6"):  # TFLite Micro does not have it
        function = single
    return _table(function, graph, operator, single)


def _leaky_relu(graph, operator):
    x, y = _one(graph, operator)
    alpha = operator.options("LeakyReluOptions").Alpha()
    if not math.isfinite(alpha):
        raise operator.error(f"alpha must be finite, not {alpha}")
    kind = graph.same_type(operator, x, y)
    if kind == FLOAT:
        return graph.host(operator, "tflite.leaky_relu", REASON, alpha=alpha)
    if kind == np.int16:
        return graph.host(
            operator, "tflite.leaky_relu_quantized", REASON,
            **leaky_attributes(operator, x, y, alpha),
            single=lite.leaky_relu16(operator, x, y, alpha),
        )
    return _table(
        functools.partial(leaky_relu, alpha), graph, operator,
        functools.partial(lite.leaky_relu, alpha),
    )


def _sigmoid(kernel, table, single, graph, operator):
    """LOGISTIC or TANH: a table of 8 bits, or a table with interpolation of 16."""
    x, y = _one(graph, operator)
    if graph.same_type(operator, x, y) != np.int16:
        return _table(table, graph, operator, single)
    scale, zero = per_tensor(operator, x)
    if zero:
        raise operator.error(f"the zero point of x must be 0, not {zero}")
    multiplier, shift = _steps(scale, 1 if kernel == "tflite.logistic16" else 2)
    return graph.host(
        operator, kernel, REASON, multiplier=multiplier, shift=shift,
        single=lite.sigmoid16(kernel, scale),
    )


def _steps(scale, most):
    """Multiplier and shift to steps of 1 / (3 * 4096); powers of two below ``most`` are exact."""
    fraction, exponent = math.frexp(scale)
    if fraction == 0.5 and 0 <= exponent + 11 < most:
        return 3 << (exponent + 11), 0
    multiplier, shift = scale * 4096 * 3, 0
    while multiplier <= 32767 / 2 and shift <= 30:
        multiplier, shift = multiplier * 2, shift + 1
    return int(multiplier), shift


def _gelu(graph, operator):
    x, y = _one(graph, operator)
    approximate = bool(operator.options("GeluOptions").Approximate())
    if graph.same_type(operator, x, y) == FLOAT:
        return graph.host(
            operator, "onnx.gelu", REASON, approximate="tanh" if approximate else "none"
        )
    return _table(functools.partial(gelu, approximate), graph, operator)


def _float(kernel, table, graph, operator):
    """A float32 kernel, or a table for 8-bit types."""
    x, y = _one(graph, operator)
    if graph.same_type(operator, x, y) == FLOAT:
        return graph.host(operator, kernel, REASON)
    if operator.name == "SQRT":
        raise operator.error(f"input must be float32, not {x.dtype}: TFLite Micro has no other")
    if table is None:
        raise Fallback(f"no kernel for {x.dtype}")
    return _table(table, graph, operator)


def _quantize(graph, operator):
    x, y = _one(graph, operator)
    scale, zero = per_tensor(operator, y)
    if x.dtype == FLOAT:
        if y.dtype not in QUANTIZED:
            raise Fallback(f"no kernel for {x.dtype} to {y.dtype}")
        return graph.host(
            operator, "tflite.quantize", "a conversion from float32", scale=scale, zero=zero,
            dtype=str(y.dtype), single=lite.quantize(scale, zero, y.dtype),
        )
    if y.dtype not in (*QUANTIZED, np.int32) or x.dtype not in (*QUANTIZED, np.int32):
        raise Fallback(f"no kernel for {x.dtype} to {y.dtype}")
    x_scale, x_zero = per_tensor(operator, x)
    multiplier, shift = multiplier_and_shift(operator, x_scale / scale)
    if x.dtype in BYTES:
        table = scaled(x, y.dtype, x_zero, zero, multiplier, shift)
        return _table_node(graph, operator, table, lite.converted(operator, x, y))
    return graph.host(
        operator, "tflite.requantize", "a conversion of scales", zeros=(x_zero, zero),
        multiplier=multiplier, shift=shift, dtype=str(y.dtype),
    )


def _dequantize(graph, operator):
    x, y = _one(graph, operator)
    number = operator.inputs[0]
    if y.dtype != FLOAT or x.dtype not in (*QUANTIZED, np.float16):
        raise Fallback(f"no kernel for {x.dtype} to {y.dtype}")
    if x.dtype == np.float16:
        attributes = {"scale": 1.0, "zero": 0}
    elif x.quantization is not None and x.quantization.scale.size > 1 and number in graph.values:
        return _dequantized_channels(graph, operator, x)
    else:
        scale, zero = per_tensor(operator, x)
        attributes = {"scale": scale, "zero": zero}
    if number in graph.values:
        graph.spend(operator, 4 * math.prod(x.shape))
        return graph.fold(operator, "tflite.dequantize", [graph.values[number]], attributes)
    return graph.host(operator, "tflite.dequantize", "a conversion to float32", **attributes)


def _dequantized_channels(graph, operator, x):
    """A constant with a scale for each channel."""
    graph.spend(operator, 4 * math.prod(x.shape))
    along, rank = x.quantization.axis, len(x.shape)
    if not 0 <= along < rank:
        raise operator.error(f"axis of the scales must be in 0..{rank - 1}, not {along}")
    scale, zero = per_channel(operator, x, along)
    shape = [-1 if axis == along else 1 for axis in range(rank)]
    value = (graph.values[operator.inputs[0]] - zero.reshape(shape)) * np.float64(1)
    graph.values[operator.outputs[0]] = (
        value * scale.reshape(shape).astype(np.float64)
    ).astype(np.float32)


def _cast(graph, operator):
    x, y = _one(graph, operator)
    if x.dtype == FLOAT and y.dtype.kind in "iu":
        raise Fallback("the machine decides how floats beyond the range are truncated")
    return graph.host(operator, "tflite.cast", REASON, dtype=str(y.dtype))


def _softmax(graph, operator):
    x, y = _one(graph, operator)
    beta = operator.options("SoftmaxOptions").Beta()
    if x.dtype not in BYTES or y.dtype not in (x.dtype, np.int16):
        raise Fallback(f"no kernel for {x.dtype} to {y.dtype}")
    if not x.shape or x.shape[-1] == 0:
        raise operator.error(f"input must have a last axis, not shape {x.shape}")
    if not 0 < beta < 2**20:
        raise operator.error(f"beta must be above 0 and below 2**20, not {beta}")
    scale, _ = per_tensor(operator, x)
    multiplier, left_shift, least = _softmax_scale(operator, beta, scale)
    return graph.host(
        operator, "tflite.softmax", "softmax needs exponentials and a sum of a row",
        multiplier=multiplier, left_shift=left_shift, least=least, dtype=str(y.dtype),
        single=lite.softmax(operator, x, y, beta),
    )


def _softmax_scale(operator, beta, scale):
    """Multiplier, left shift and lowest difference (``PreprocessSoftmaxScaling``)."""
    limit = (1 << 31) - 1.0
    multiplier, left_shift = multiplier_and_shift(operator, min(beta * scale * (1 << 26), limit))
    radius = 31.0 * (1 << 26) / 2.0**left_shift  # CalculateInputRadius with 5 bits
    return multiplier, left_shift, -math.floor(radius)


BUILDERS = {
    "RELU": functools.partial(_relu, 0, None), "RELU6": functools.partial(_relu, 0, 6),
    "RELU_N1_TO_1": functools.partial(_relu, -1, 1), "RELU_0_TO_1": functools.partial(_relu, 0, 1),
    "LEAKY_RELU": _leaky_relu, "GELU": _gelu,
    "LOGISTIC": functools.partial(_sigmoid, "tflite.logistic16", logistic,
                                  lite.logistic),
    "TANH": functools.partial(_sigmoid, "tflite.tanh16", tanh, lite.tanh),
    "HARD_SWISH": functools.partial(_table, hard_swish),
    "ELU": functools.partial(_table, elu, single=lite.elu),
    "EXP": functools.partial(_table, exp),
    "ABS": functools.partial(_float, "tflite.abs", absolute),
    "NEG": functools.partial(_float, "tflite.neg", None),
    "SQRT": functools.partial(_float, "tflite.sqrt", None),
    "RSQRT": functools.partial(_float, "tflite.rsqrt", rsqrt),
    "SQUARE": functools.partial(_float, "tflite.square", None),
    "FLOOR": functools.partial(_float, "tflite.floor", None),
    "CEIL": functools.partial(_float, "tflite.ceil", None),
    "ROUND": functools.partial(_float, "tflite.round", None),
    "QUANTIZE": _quantize, "DEQUANTIZE": _dequantize, "CAST": _cast, "SOFTMAX": _softmax,
}
