"""Operators that only move values: shapes, joins, parts, padding, gathering."""

import math

import numpy as np

__all__ = ["COPIES", "MOVEMENT", "nearest_indices"]

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


def nearest_indices(operator, source):
    """Indices [output size] of each axis, a tuple of arrays; None for other interpolations.

    ``round(transform(i))`` along each axis, clipped to the input, where the coordinate transform
    is ``(i + 0.5) / scale - 0.5``, ``i / scale``, or one of the other two of the operator.
    """
    attributes, inputs = operator.attributes, [*operator.inputs, "", "", ""]
    rule = attributes.get("coordinate_transformation_mode", "half_pixel")
    rounding = attributes.get("nearest_mode", "round_prefer_floor")
    if attributes.get("mode", "nearest") != "nearest" or rule not in _COORDINATES:
        return None
    if rounding not in _ROUNDINGS or attributes.get("axes") or inputs[1] and (
        source.types[inputs[1]][1] not in ((0,), ()) and source.constant(inputs[1]) is None
    ):
        return None
    shape, output = source.types[operator.inputs[0]][1], source.types[operator.outputs[0]][1]
    scales = np.divide(output, shape)
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    if inputs[2] and source.types[inputs[2]][1] != (0,):
        given = source.constant(inputs[2])
        if given is None or given.size != len(shape):
            return None
        scales = given.ravel()
    found = []
    for size, count, scale in zip(shape, output, scales.astype(np.float32), strict=True):
        if count == size and scale == 1:
            found.append(np.arange(size))
            continue
        places = _COORDINATES[rule](np.arange(count, dtype=np.float32), scale, size, count)
        found.append(np.clip(_ROUNDINGS[rounding](places), 0, size - 1).astype(np.int64))
    return tuple(found)


def _half_pixel(i, scale, size, count):
    return (i + np.float32(0.5)) / scale - np.float32(0.5)


def _pytorch(i, scale, size, count):
    return _half_pixel(i, scale, size, count) if count > 1 else np.zeros_like(i)


def _align_corners(i, scale, size, count):
    return np.zeros_like(i) if count == 1 else i * np.float32(size - 1) / np.float32(count - 1)


def _asymmetric(i, scale, size, count):
    return i / scale


def _prefer_floor(x):
    return np.ceil(x - np.float32(0.5))


def _prefer_ceil(x):
    return np.floor(x + np.float32(0.5))


_COORDINATES = {
    "half_pixel": _half_pixel, "pytorch_half_pixel": _pytorch,
    "align_corners": _align_corners, "asymmetric": _asymmetric,
}
_ROUNDINGS = {
    "round_prefer_floor": _prefer_floor, "round_prefer_ceil": _prefer_ceil, "floor": np.floor,
    "ceil": np.ceil,
}
