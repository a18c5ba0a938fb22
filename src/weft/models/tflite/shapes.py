"""Operators that give values a shape, and the arithmetic of shapes.

LiteRT computes the shapes of a dynamic network while it runs. Here all shapes are known, so the
arithmetic is computed when the file is read, from constants alone. TFLite Micro has little of it.
"""

import math

import numpy as np

from weft.models.tflite.context import ELEMENTS, Fallback
from weft.models.tflite.moving import axes_of, moved

__all__ = ["BUILDERS", "constant"]


def _reshape(graph, operator):
    graph.counts(operator, 1, 2)
    x = graph.input(operator, 0)
    graph.expect_size(operator, math.prod(x.shape), _shape_of(graph, operator, x.shape))
    return moved(graph, operator, "reshape", shape=graph.output(operator).shape)


def _shape_of(graph, operator, shape):
    """The shape that RESHAPE, SQUEEZE or EXPAND_DIMS asks for; None if a tensor has it."""
    if operator.name == "SQUEEZE":
        given = operator.options("SqueezeOptions").SqueezeDimsAsNumpy()
        given = [] if isinstance(given, int) else given.tolist()  # 0: absent
        axes = axes_of(operator, given, len(shape)) or range(len(shape))
        return [size for i, size in enumerate(shape) if size != 1 or i not in axes]
    if graph.constant(operator, 1, required=False) is None:
        return None
    wanted = graph.integers(operator, 1)
    if operator.name == "EXPAND_DIMS":
        [axis] = axes_of(operator, wanted[:1] or [0], len(shape) + 1)
        return [*shape[:axis], 1, *shape[axis:]]
    if wanted.count(-1) == 1:
        others = -math.prod(wanted)
        wanted[wanted.index(-1)] = math.prod(shape) // others if others else 0
    return wanted


def _shape(graph, operator):
    graph.counts(operator, 1, 1)
    shape = graph.input(operator, 0).shape
    graph.expect(operator, (len(shape),))
    graph.values[operator.outputs[0]] = np.array(shape, graph.output(operator).dtype)


def _broadcast_to(graph, operator):
    graph.counts(operator, 2, 2)
    x = graph.input(operator, 0)
    if graph.constant(operator, 1, required=False) is not None:
        graph.expect(operator, graph.integers(operator, 1))
    shape = graph.output(operator).shape
    if graph.broadcast(operator, x.shape, shape) != shape:
        raise operator.error(f"{x.shape} must broadcast to {shape}")
    return moved(graph, operator, "broadcast", shape=shape)


def _fill(graph, operator):
    graph.counts(operator, 2, 2)
    if math.prod(graph.input(operator, 1).shape) != 1:
        raise operator.error(f"the value must be one number, not {graph.input(operator, 1).shape}")
    shape = tuple(graph.integers(operator, 0))
    if min(shape, default=0) < 0:
        raise operator.error(f"sizes must be at least 0, not {min(shape)}")
    graph.expect(operator, shape)
    return moved(graph, operator, "broadcast", (1,), shape=shape)


def _constants(graph, operator):
    """All inputs, which are constants of integers or of float32."""
    values = [graph.constant(operator, place) for place in range(len(operator.inputs))]
    if any(value.dtype.kind not in "iuf" for value in values):
        raise Fallback("an input is no number")
    return values


def _result(graph, operator, value):
    """Make ``value`` the constant that the operator computes."""
    y = graph.output(operator)
    graph.expect(operator, value.shape)
    graph.spend(operator, value.nbytes)
    graph.values[operator.outputs[0]] = value.astype(y.dtype)


def _broadcast_args(graph, operator):
    graph.counts(operator, 2, 2)
    shapes = [graph.integers(operator, place) for place in range(2)]
    _result(graph, operator, np.array(graph.broadcast(operator, *shapes), np.int64))


def _rank(graph, operator):
    graph.counts(operator, 1, 1)
    _result(graph, operator, np.array(len(graph.input(operator, 0).shape)))


def _range(graph, operator):
    """``start``, ``start + delta`` ... before ``limit``; float32 is rounded after each step."""
    graph.counts(operator, 3, 3)
    start, limit, delta = (value.ravel()[:1] for value in _constants(graph, operator))
    if not delta.size or not delta.any() or not np.isfinite([*start, *limit, *delta]).all():
        raise operator.error(f"the step must not be 0 or infinite, not {delta}")
    count = math.ceil(((limit.astype(np.float64) - start) / delta)[0])
    if count < 0:
        raise operator.error(f"the limit {limit[0]} must not be before the start {start[0]}")
    if count > ELEMENTS:
        raise operator.error(f"numbers must be at most {ELEMENTS}, not {count}")
    graph.spend(operator, 8 * count)
    steps = np.repeat(np.append(start, delta), [min(count, 1), max(count - 1, 0)])
    _result(graph, operator, np.cumsum(steps, dtype=start.dtype))


def _pair(function):
    """A function of two integers that broadcast."""

    def build(graph, operator):
        graph.counts(operator, 2, 2)
        a, b = _constants(graph, operator)
        if a.dtype.kind not in "iu" or a.dtype != b.dtype:
            raise Fallback(f"no kernel for {a.dtype} and {b.dtype}")
        if not b.all():
            raise operator.error("the divisor must not be 0")
        graph.broadcast(operator, a.shape, b.shape)
        with np.errstate(over="ignore"):
            _result(graph, operator, function(a, b))

    return build


def _reduced(function):
    """A reduction of integers, which wraps."""

    def build(graph, operator):
        graph.counts(operator, 2, 2)
        keep = operator.options("ReducerOptions").KeepDims()
        x = graph.constant(operator, 0)
        if x.dtype.kind not in "iu" or graph.input(operator, 0).quantization is not None:
            raise Fallback(f"no kernel for {x.dtype}")
        axes = tuple(sorted({*axes_of(operator, graph.integers(operator, 1), x.ndim)}))
        value = function(x, axis=axes, keepdims=bool(keep), dtype=x.dtype)
        _result(graph, operator, np.asarray(value))

    return build


def _truncated(a, b):
    return np.where((a < 0) == (b < 0), abs(a) // abs(b), -(abs(a) // abs(b))).astype(a.dtype)


BUILDERS = {
    "RESHAPE": _reshape, "SQUEEZE": _reshape, "EXPAND_DIMS": _reshape, "SHAPE": _shape,
    "BROADCAST_TO": _broadcast_to, "FILL": _fill,
    "BROADCAST_ARGS": _broadcast_args, "RANGE": _range, "RANK": _rank,
    "FLOOR_DIV": _pair(np.floor_divide), "FLOOR_MOD": _pair(np.mod),
    "REDUCE_PROD": _reduced(np.prod),
}
# Operators with a kernel for other types.
_INTEGERS = {"DIV": _pair(_truncated), "SUM": _reduced(np.sum)}


def constant(graph, operator):
    """Whether an operator that has no kernel became a constant."""
    if operator.name not in _INTEGERS:
        return False
    try:
        _INTEGERS[operator.name](graph, operator)
    except Fallback:
        return False
    return True
