"""Which element each output of a nearest-neighbour ``Resize`` is, along each axis."""

import numpy as np

__all__ = ["nearest_indices"]


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
