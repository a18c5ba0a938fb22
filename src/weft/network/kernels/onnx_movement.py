"""Kernels of ONNX operators that copy values: parts, joins, padding, selection."""

import numpy as np

__all__ = ["KERNELS"]


def _concat(inputs, attributes):
    """``axis`` : int."""
    return [np.concatenate(inputs, attributes["axis"])]


def _split(inputs, attributes):
    """``axis`` : int; ``sizes`` : tuple of int, of the parts along it."""
    places = np.cumsum(attributes["sizes"])[:-1]
    return [np.ascontiguousarray(p) for p in np.split(inputs[0], places, attributes["axis"])]


def _slice(inputs, attributes):
    """``ranges`` : tuple of (axis, start, end, step), as in Python, clipped to the axis."""
    x = inputs[0]
    slices = [slice(None)] * x.ndim
    for axis, start, end, step in attributes["ranges"]:
        size = x.shape[axis]
        start, end = (number + size if number < 0 else number for number in (start, end))
        if step > 0:
            slices[axis] = slice(min(max(start, 0), size), min(max(end, 0), size), step)
        else:
            start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
            slices[axis] = slice(start, None if end < 0 else end, step)
    return [np.ascontiguousarray(x[tuple(slices)])]


def _gather(inputs, attributes):
    """``axis`` : int. Inputs: values, and indices, which may count from the end."""
    return [np.take(inputs[0], inputs[1], attributes["axis"])]


def _pad(inputs, attributes):
    """``pads`` : tuple of (before, after); ``mode`` : constant, reflect or edge; ``value``."""
    mode = attributes["mode"]
    values = {"constant_values": attributes["value"]} if mode == "constant" else {}
    return [np.pad(inputs[0], attributes["pads"], mode, **values)]


def _expand(inputs, attributes):
    """``shape`` : tuple of int."""
    return [np.ascontiguousarray(np.broadcast_to(inputs[0], attributes["shape"]))]


def _select(inputs, attributes):
    """``indices`` : tuple of array, the element for each place along each axis."""
    return [inputs[0][np.ix_(*attributes["indices"])]]


KERNELS = {
    "onnx.concat": _concat, "onnx.split": _split, "onnx.slice": _slice, "onnx.gather": _gather,
    "onnx.pad": _pad, "onnx.expand": _expand, "onnx.select": _select,
}
