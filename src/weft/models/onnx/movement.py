"""Operators that only move values: shapes, joins, parts, padding, gathering."""

import math

import numpy as np

from weft.models.onnx.indices import nearest_indices

__all__ = ["COPIES", "MOVEMENT"]

MOVES = "moves no data"
COPIES = "no product: copies values"


def _reshape(operator, source):
    before, shape = (source.types[n][1] for n in (operator.inputs[0], operator.outputs[0]))
    if math.prod(before) != math.prod(shape):
        return None
    return "reshape", operator.inputs[:1], {"shape": shape}, MOVES


def _transpose(operator, source):
    rank = len(source.types[operator.inputs[0]][1])
    axes = operator.attributes.get("perm", tuple(range(rank))[::-1])
    if sorted(axes) != list(range(rank)):
        return None
    return "transpose", operator.inputs, {"axes": tuple(axes)}, COPIES


def _concat(operator, source):
    return "concatenation", operator.inputs, {"axis": operator.attributes["axis"]}, COPIES


def _split(operator, source):
    axis = operator.attributes.get("axis", 0)
    sizes = tuple(source.types[name][1][axis] if name else -1 for name in operator.outputs)
    if -1 in sizes:
        return None
    return "split", operator.inputs[:1], {"axis": axis, "sizes": sizes}, COPIES


def _slice(operator, source):
    values = [source.constant(name) if name else None for name in operator.inputs[1:]]
    values += [None] * (4 - len(values))
    if any(v is None and n for v, n in zip(values, operator.inputs[1:], strict=False)):
        return None
    starts, ends, axes, steps = values
    shape = source.types[operator.inputs[0]][1]
    axes = range(len(starts)) if axes is None else [int(axis) % len(shape) for axis in axes]
    steps = [1] * len(starts) if steps is None else steps
    begin, end, step = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, first, last, stride in zip(axes, starts, ends, steps, strict=True):
        begin[axis], end[axis] = _bounds(int(first), int(last), int(stride), shape[axis])
        step[axis] = int(stride)
    return "slice", operator.inputs[:1], {
        "begin": tuple(begin), "end": tuple(end), "step": tuple(step),
        "shape": source.types[operator.outputs[0]][1],
    }, COPIES


def _bounds(start, end, step, size):
    """The bounds of a Python slice of an axis; ONNX clips both to the axis."""
    start, end = (number + size if number < 0 else number for number in (start, end))
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return start, None if end < 0 else end


def _gather(operator, source):
    return "onnx.gather", operator.inputs, {"axis": operator.attributes.get("axis", 0)}, COPIES


def _pad(operator, source):
    mode = operator.attributes.get("mode", "constant")
    inputs = [*operator.inputs, "", ""]
    pads = source.constant(inputs[1])
    value = source.constant(inputs[2]) if inputs[2] else np.zeros(1)
    rank = len(source.types[inputs[0]][1])
    if pads is None or value is None or mode not in ("constant", "reflect", "edge"):
        return None
    if inputs[3] or pads.size != 2 * rank or (pads < 0).any():
        return None
    pads = tuple(int(number) for number in pads)
    attributes = {"padding": tuple(zip(pads[:rank], pads[rank:], strict=True))}
    if mode == "constant":
        return "pad", inputs[:1], {**attributes, "value": value.ravel()[0].item()}, COPIES
    return "mirror_pad", inputs[:1], {**attributes, "mode": mode}, COPIES


def _expand(operator, source):
    shape = source.types[operator.outputs[0]][1]
    return "broadcast", operator.inputs[:1], {"shape": shape}, COPIES


def _resize(operator, source):
    selected = nearest_indices(operator, source)
    if selected is None:
        return None
    return "onnx.select", operator.inputs[:1], {"indices": selected}, COPIES


# By the operator's name, its rule; `weft.models.onnx.host.lower` has the result of a rule.
MOVEMENT = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
    "Transpose": _transpose, "Concat": _concat, "Split": _split, "Slice": _slice,
    "Gather": _gather, "Pad": _pad, "Expand": _expand, "Resize": _resize,
}
