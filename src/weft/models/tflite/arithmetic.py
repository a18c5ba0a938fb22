"""Operators of two operands: sums, products, comparisons, and their multipliers."""

import functools

import numpy as np

from weft.models.tflite import lite
from weft.models.tflite.context import Fallback
from weft.models.tflite.scales import (
    FUSED,
    RANGES,
    float_limits,
    fused_limits,
    lite_limits,
    multiplier_and_shift,
    per_tensor,
)

__all__ = ["BUILDERS"]

REASON = "no product of matrices"
QUANTIZED = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16))
PLAIN = (np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64))


def _pair(graph, operator):
    """Both inputs and the output, of one type and of shapes that broadcast."""
    graph.counts(operator, 2, 2)
    a, b = graph.inputs(operator)
    y = graph.output(operator)
    graph.same_type(operator, a, b)
    graph.expect(operator, graph.broadcast(operator, a.shape, b.shape))
    return a, b, y


def _below_one(operator, scale):
    """Multiplier and shift of a scale below 1."""
    multiplier, shift = multiplier_and_shift(operator, scale)
    if shift > 0 or scale <= 0:
        raise operator.error(f"the ratio of scales must be in 0..1, not {scale}")
    return multiplier, shift


def _sum_terms(operator, a, b, left_shift):
    """Attributes that bring both operands to twice the larger scale, and that scale."""
    (a_scale, a_zero), (b_scale, b_zero) = per_tensor(operator, a), per_tensor(operator, b)
    twice = 2.0 * max(a_scale, b_scale)
    pairs = [_below_one(operator, scale / twice) for scale in (a_scale, b_scale)]
    return {
        "zeros": (a_zero, b_zero), "multipliers": tuple(m for m, _ in pairs),
        "shifts": tuple(s for _, s in pairs), "left_shift": left_shift,
    }, twice


def _limits(operator, kind, y, quantized=fused_limits):
    fused = FUSED.get(operator.options(kind).FusedActivationFunction()) if kind else "none"
    if fused is None:
        raise Fallback("the fused activation is not a clamp")
    if y.dtype in QUANTIZED:
        return quantized(operator, fused, y)
    if y.dtype == np.float32:
        return float_limits(fused)
    return (None, None) if operator.name == "ADD" else RANGES[fused]  # TFLite Micro ignores it


def _linear(kernel, kind, graph, operator):
    a, b, y = _pair(graph, operator)
    graph.same_type(operator, a, y)
    low, high = _limits(operator, kind, y)
    if y.dtype in PLAIN:
        return graph.host(operator, f"tflite.plain_{kernel}", REASON, low=low, high=high)
    if y.dtype not in QUANTIZED:
        raise Fallback(f"no kernel for {y.dtype}")
    terms, twice = _sum_terms(operator, a, b, 15 if y.dtype == np.int16 else 20)
    y_scale, zero = per_tensor(operator, y)
    multiplier, shift = _below_one(operator, twice / ((1 << terms["left_shift"]) * y_scale))
    single = lite.total(
        operator, (a, b, y), 1 if kernel == "add" else -1, *_limits(operator, kind, y, lite_limits)
    )
    return graph.host(
        operator, f"tflite.{kernel}", REASON, **terms, multiplier=multiplier, shift=shift,
        zero=zero, low=low, high=high, single=single,
    )


def _squared_difference(graph, operator):
    a, b, y = _pair(graph, operator)
    graph.same_type(operator, a, y)
    if y.dtype in PLAIN:
        return graph.host(
            operator, "tflite.plain_squared_difference", REASON, low=None, high=None
        )
    if y.dtype not in QUANTIZED[:2]:
        raise Fallback(f"no kernel for {y.dtype}")
    terms, twice = _sum_terms(operator, a, b, 7)
    y_scale, zero = per_tensor(operator, y)
    multiplier, shift = _below_one(operator, twice * twice / ((1 << 14) * y_scale))
    low, high = fused_limits(operator, "none", y)
    return graph.host(
        operator, "tflite.squared_difference", REASON, **terms, multiplier=multiplier,
        shift=shift, zero=zero, low=low, high=high,
    )


def _mul(graph, operator):
    a, b, y = _pair(graph, operator)
    graph.same_type(operator, a, y)
    low, high = _limits(operator, "MulOptions", y)
    if y.dtype in PLAIN:
        return graph.host(operator, "tflite.plain_mul", REASON, low=low, high=high)
    if y.dtype not in QUANTIZED:
        raise Fallback(f"no kernel for {y.dtype}")
    (a_scale, a_zero), (b_scale, b_zero) = per_tensor(operator, a), per_tensor(operator, b)
    y_scale, zero = per_tensor(operator, y)
    multiplier, shift = multiplier_and_shift(operator, a_scale * b_scale / y_scale)
    limits = _limits(operator, "MulOptions", y, lite_limits)
    if operator.inputs[0] == operator.inputs[1]:
        single = lite.square(operator, a, y, *limits)
    else:
        single = lite.product(operator, (a, b, y), *limits)
    return graph.host(
        operator, "tflite.mul", REASON, zeros=(a_zero, b_zero), multiplier=multiplier,
        shift=shift, zero=zero, low=low, high=high, single=single,
    )


def _div(graph, operator):
    a, _, y = _pair(graph, operator)
    if graph.same_type(operator, a, y) != np.float32:
        raise Fallback(f"no kernel for {y.dtype}")
    low, high = _limits(operator, "DivOptions", y)
    return graph.host(operator, "tflite.plain_div", REASON, low=low, high=high)


def _compare(kernel, graph, operator):
    a, b, y = _pair(graph, operator)
    if y.dtype != np.bool_:
        raise operator.error(f"output must be bool, not {y.dtype}")
    if a.dtype not in QUANTIZED or a.quantization is None:
        return graph.host(operator, f"tflite.{kernel}", REASON)
    if a.dtype == np.int16:
        raise Fallback("no kernel for int16")
    pairs = [per_tensor(operator, tensor) for tensor in (a, b)]
    scaled = [_below_one(operator, scale) for scale, _ in pairs]
    return graph.host(
        operator, f"tflite.{kernel}", REASON, zeros=tuple(zero for _, zero in pairs),
        multipliers=tuple(m for m, _ in scaled), shifts=tuple(s for _, s in scaled),
        left_shift=8,
    )


def _extreme(kernel, graph, operator):
    a, _, y = _pair(graph, operator)
    graph.same_type(operator, a, y)
    return graph.host(operator, kernel, REASON)


def _logical(kernel, graph, operator):
    graph.counts(operator, 1, 2)
    y, inputs = graph.output(operator), graph.inputs(operator)
    if graph.same_type(operator, y, *inputs) != np.bool_:
        raise operator.error(f"types must be bool, not {y.dtype}")
    if len(inputs) != 1 + (kernel != "logical_not"):
        raise operator.error(f"inputs must be {1 + (kernel != 'logical_not')}, not {len(inputs)}")
    graph.expect(operator, graph.broadcast(operator, *(tensor.shape for tensor in inputs)))
    return graph.host(operator, kernel, REASON)


def _prelu(graph, operator):
    x, slope, y = _pair(graph, operator)
    if graph.same_type(operator, x, y) == np.float32:
        return graph.host(operator, "tflite.prelu_float", REASON)
    if y.dtype not in QUANTIZED[:2]:
        raise Fallback(f"no kernel for {y.dtype}")
    (x_scale, x_zero), (scale, zero) = per_tensor(operator, x), per_tensor(operator, slope)
    y_scale, y_zero = per_tensor(operator, y)
    ratios = x_scale / y_scale, x_scale * scale / y_scale
    pairs = [multiplier_and_shift(operator, ratio) for ratio in ratios]
    return graph.host(
        operator, "tflite.prelu", REASON, zeros=(x_zero, zero), zero=y_zero,
        multipliers=tuple(m for m, _ in pairs), shifts=tuple(s for _, s in pairs),
    )


def _select(graph, operator):
    """SELECT, whose shapes are equal, or SELECT_V2, whose shapes broadcast."""
    graph.counts(operator, 3, 3)
    condition, a, b = graph.inputs(operator)
    if operator.name == "SELECT" and not condition.shape == a.shape == b.shape:
        raise operator.error(
            f"shapes must be equal, not {condition.shape}, {a.shape} and {b.shape}"
        )
    y = graph.output(operator)
    graph.same_type(operator, a, b, y)
    if condition.dtype != np.bool_:
        raise operator.error(f"condition must be bool, not {condition.dtype}")
    graph.expect(operator, graph.broadcast(operator, condition.shape, a.shape, b.shape))
    return graph.host(operator, "select", REASON)


BUILDERS = {
    "ADD": functools.partial(_linear, "add", "AddOptions"),
    "SUB": functools.partial(_linear, "sub", "SubOptions"),
    "MUL": _mul, "DIV": _div, "SQUARED_DIFFERENCE": _squared_difference, "PRELU": _prelu,
    "MAXIMUM": functools.partial(_extreme, "maximum"),
    "MINIMUM": functools.partial(_extreme, "minimum"), "SELECT": _select, "SELECT_V2": _select,
    **{
        name: functools.partial(_compare, name.lower())
        for name in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    },
    **{
        name: functools.partial(_logical, name.lower())
        for name in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")
    },
}
