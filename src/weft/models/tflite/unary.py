"""Operators of one operand: functions of a value, which are tables for 8-bit types, and softmax."""

import functools
import math

import numpy as np

from weft.models.tflite import lite, lite_tables, tables
from weft.models.tflite.context import Fallback
from weft.models.tflite.scales import multiplier_and_shift, per_channel, per_tensor

__all__ = ["BUILDERS"]

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
    function, single = functools.partial(tables.relu, low, high), None
    if high is not None:
        single = functools.partial(lite_tables.clip, low, high)
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
            **tables.leaky_attributes(operator, x, y, alpha),
            single=lite.leaky_relu16(operator, x, y, alpha),
        )
    return _table(
        functools.partial(tables.leaky_relu, alpha), graph, operator,
        functools.partial(lite_tables.leaky_relu, alpha),
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
    return _table(functools.partial(tables.gelu, approximate), graph, operator)


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
        table = tables.scaled(x, y.dtype, x_zero, zero, multiplier, shift)
        return _table_node(graph, operator, table, lite_tables.converted(operator, x, y))
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
    "LOGISTIC": functools.partial(_sigmoid, "tflite.logistic16", tables.logistic,
                                  lite_tables.logistic),
    "TANH": functools.partial(_sigmoid, "tflite.tanh16", tables.tanh, lite_tables.tanh),
    "HARD_SWISH": functools.partial(_table, tables.hard_swish),
    "ELU": functools.partial(_table, tables.elu, single=lite_tables.elu),
    "EXP": functools.partial(_table, tables.exp),
    "ABS": functools.partial(_float, "tflite.abs", tables.absolute),
    "NEG": functools.partial(_float, "tflite.neg", None),
    "SQRT": functools.partial(_float, "tflite.sqrt", None),
    "RSQRT": functools.partial(_float, "tflite.rsqrt", None),
    "SQUARE": functools.partial(_float, "tflite.square", None),
    "FLOOR": functools.partial(_float, "tflite.floor", None),
    "CEIL": functools.partial(_float, "tflite.ceil", None),
    "ROUND": functools.partial(_float, "tflite.round", None),
    "QUANTIZE": _quantize, "DEQUANTIZE": _dequantize, "CAST": _cast, "SOFTMAX": _softmax,
}
