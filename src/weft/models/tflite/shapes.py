"""Operators that give values a shape, and the arithmetic of shapes.

LiteRT computes the shapes of a dynamic network while it runs. Here all shapes are known, so the
arithmetic is computed when the file is read, from constants alone. TFLite Micro has little of it.
"""

import math

import numpy as np

from weft.models.tflite.context import ELEMENTS, Fallback
from weft.models.tflite.moving import axes_of, moved, sliced

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


NEW_AXIS, WHOLE_AXIS = "new axis", "whole axis"  # what an entry stands for, if not a range


def _strided_slice(graph, operator):
    graph.counts(operator, 4, 4)
    options = operator.options("StridedSliceOptions")
    x = graph.input(operator, 0)
    numbers = [graph.integers(operator, place) for place in (1, 2, 3)]
    if options.Offset():
        raise operator.error("option offset must be false, not true")
    count = len(numbers[0])
    if {len(part) for part in numbers} != {count}:
        lengths = ", ".join(str(len(part)) for part in numbers)
        raise operator.error(f"begin, end and strides must have equal lengths, not {lengths}")
    slices, shape = [], []
    for i in _entries(operator, options, count, len(x.shape)):
        if i is NEW_AXIS:
            shape.append(1)
            continue
        size, part, single = x.shape[len(slices)], slice(None, None, 1), False
        if i is not WHOLE_AXIS:
            part, single = _part(operator, options, i, [each[i] for each in numbers], size)
        if not single:
            shape.append(len(range(*part.indices(size))))
        slices.append(part)
    graph.expect(operator, shape)
    return sliced(
        graph, operator, [part.start for part in slices], [part.stop for part in slices],
        [part.step for part in slices],
    )


def _entries(operator, options, count, rank):
    """The numbers of the entries of a strided slice, or what the output has in their place.

    An ellipsis, or the end of the entries, stands for all axes that no other entry names. A bit of
    an ellipsis counts more than one of a new axis, and this one more than one of a single index.
    """
    masks = options.EllipsisMask(), options.NewAxisMask()
    ellipses = [i for i in range(count) if masks[0] >> i & 1]
    if len(ellipses) > 1:
        raise operator.error(f"ellipses must be at most 1, not {len(ellipses)}")
    new = [i for i in range(count) if masks[1] >> i & 1 and i not in ellipses]
    rest = rank - (count - len(new) - len(ellipses))
    if rest < 0:
        raise operator.error(f"entries must name at most {rank} axes, not {rank - rest}")
    if ellipses and rest == 0:  # LiteRT computes other values than numpy
        raise operator.error("an ellipsis must stand for at least 1 axis, not 0")
    entries = []
    for i in range(count):
        if i in ellipses:
            entries += [WHOLE_AXIS] * rest
        else:
            entries.append(NEW_AXIS if i in new else i)
    return entries if ellipses else entries + [WHOLE_AXIS] * rest


def _part(operator, options, i, numbers, size):
    """The slice of one axis of ``size``, and whether it is a single index without an axis."""
    begin, end, step = numbers
    if step == 0:
        raise operator.error(f"stride of axis {i} must not be 0")
    begin = None if options.BeginMask() >> i & 1 else begin
    if options.ShrinkAxisMask() >> i & 1:
        if step < 0:  # the runtimes disagree with each other
            raise operator.error(f"stride of the single index of axis {i} must be above 0: {step}")
        begin = begin or 0
        if not -size <= begin < size:
            raise operator.error(f"index of axis {i} must be in {-size}..{size - 1}: {begin}")
        return slice(begin % size, begin % size + 1, 1), True
    return slice(begin, None if options.EndMask() >> i & 1 else end, step), False


BUILDERS = {
    "RESHAPE": _reshape, "SQUEEZE": _reshape, "EXPAND_DIMS": _reshape, "SHAPE": _shape,
    "BROADCAST_TO": _broadcast_to, "FILL": _fill,
    "BROADCAST_ARGS": _broadcast_args, "RANGE": _range, "RANK": _rank,
    "FLOOR_DIV": _pair(np.floor_divide), "FLOOR_MOD": _pair(np.mod),
    "STRIDED_SLICE": _strided_slice, "REDUCE_PROD": _reduced(np.prod),
}
