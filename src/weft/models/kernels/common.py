"""Kernels that move, look up or compare values, which all runtimes compute alike."""

import functools

import numpy as np

from weft.models.errors import ModelError

__all__ = ["KERNELS", "onnx_model", "tflite_model"]


def _read_variable(inputs, attributes):
    """The value of a variable; ``assigned`` : whether the file gives its first value."""
    return [inputs[0]]


def _reshape(inputs, attributes):
    """``shape`` : tuple of int, without -1."""
    return [inputs[0].reshape(attributes["shape"])]


def _transpose(inputs, attributes):
    """``axes`` : tuple of int, the axis of the input for each axis of the output."""
    return [np.asarray(inputs[0].transpose(attributes["axes"]), order="C")]


def _rearrange(inputs, attributes):
    """Reshape to ``split``, transpose by ``axes``, reshape to ``shape``: tuples of int."""
    x = inputs[0].reshape(attributes["split"]).transpose(attributes["axes"])
    return [np.asarray(x, order="C").reshape(attributes["shape"])]


def _table(inputs, attributes):
    """``table`` : array [256], the result for each byte of an int8 or uint8 input."""
    return [attributes["table"][np.asarray(inputs[0], order="C").view(np.uint8)]]


def _concatenation(inputs, attributes):
    """``axis`` : int."""
    return [np.concatenate(inputs, attributes["axis"])]


def _stack(inputs, attributes):
    """``axis`` : int, the new axis."""
    return [np.stack(inputs, attributes["axis"])]


def _unstack(inputs, attributes):
    """``axis`` : int, the axis that becomes the outputs."""
    return [np.array(part) for part in np.moveaxis(inputs[0], attributes["axis"], 0)]


def _split(inputs, attributes):
    """``axis`` : int; ``sizes`` : tuple of int, one for each output."""
    ends = np.cumsum(attributes["sizes"])[:-1]
    parts = np.split(inputs[0], ends, attributes["axis"])
    return [np.ascontiguousarray(part) for part in parts]


def _slice(inputs, attributes):
    """``begin``, ``end`` (None: to the end), ``step`` : one for each axis; ``shape`` of y."""
    bounds = zip(attributes["begin"], attributes["end"], attributes["step"], strict=True)
    y = inputs[0][tuple(slice(*bound) for bound in bounds)]
    return [np.asarray(y, order="C").reshape(attributes["shape"])]


def _pad(inputs, attributes):
    """``padding`` : a pair for each axis; ``value`` : number, or the second input."""
    value = attributes["value"] if len(inputs) == 1 else inputs[1].reshape(())
    return [np.pad(inputs[0], attributes["padding"], constant_values=value)]


def _mirror_pad(inputs, attributes):
    """``padding`` : a pair for each axis; ``mode`` : ``reflect``, ``symmetric`` or ``edge``."""
    return [np.pad(inputs[0], attributes["padding"], attributes["mode"])]


def _gather(inputs, attributes):
    """``axis`` : int. The second input has the indices, none of them negative."""
    x, indices = inputs
    size, axis = x.shape[attributes["axis"]], attributes["axis"]
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        wrong = indices[(indices < 0) | (indices >= size)].ravel()[0]
        raise ModelError(f"indices of a gather must be in 0..{size - 1}, not {wrong}")
    return [np.take(x, indices, axis)]


def _broadcast(inputs, attributes):
    """``shape`` : tuple of int."""
    return [np.array(np.broadcast_to(inputs[0], attributes["shape"]))]


def _tile(inputs, attributes):
    """``repeats`` : tuple of int, one for each axis."""
    return [np.tile(inputs[0], attributes["repeats"])]


def _reverse(inputs, attributes):
    """``axes`` : tuple of int."""
    return [np.asarray(np.flip(inputs[0], attributes["axes"]), order="C")]


def _maximum(inputs, attributes):
    return [np.asarray(functools.reduce(np.maximum, inputs))]


def _minimum(inputs, attributes):
    return [np.asarray(functools.reduce(np.minimum, inputs))]


def _reduce_max(inputs, attributes):
    """``axes`` : tuple of int; ``shape`` of y."""
    return [inputs[0].max(attributes["axes"]).reshape(attributes["shape"])]


def _reduce_min(inputs, attributes):
    """``axes`` : tuple of int; ``shape`` of y."""
    return [inputs[0].min(attributes["axes"]).reshape(attributes["shape"])]


def _arg_max(inputs, attributes):
    """``axis`` : int; ``dtype`` : str; ``shape`` of y. The first of equal values."""
    y = inputs[0].argmax(attributes["axis"]).astype(attributes["dtype"])
    return [y.reshape(attributes["shape"])]


def _arg_min(inputs, attributes):
    """``axis`` : int; ``dtype`` : str; ``shape`` of y. The first of equal values."""
    y = inputs[0].argmin(attributes["axis"]).astype(attributes["dtype"])
    return [y.reshape(attributes["shape"])]


def _select(inputs, attributes):
    """The second input where the first one is true, else the third; they broadcast."""
    return [np.where(*inputs)]


def _logical(function):
    def kernel(inputs, attributes):
        return [function(*inputs)]

    return kernel


KERNELS = {
    "read_variable": _read_variable, "reshape": _reshape, "transpose": _transpose,
    "rearrange": _rearrange, "table": _table,
    "concatenation": _concatenation, "stack": _stack, "unstack": _unstack, "split": _split,
    "slice": _slice, "pad": _pad, "mirror_pad": _mirror_pad, "gather": _gather,
    "broadcast": _broadcast, "tile": _tile, "reverse": _reverse,
    "maximum": _maximum, "minimum": _minimum, "reduce_max": _reduce_max,
    "reduce_min": _reduce_min, "arg_max": _arg_max, "arg_min": _arg_min, "select": _select,
    "logical_and": _logical(np.logical_and), "logical_or": _logical(np.logical_or),
    "logical_not": _logical(np.logical_not),
}


def onnx_model(inputs, attributes, state):
    """The outputs of a model of one node: `weft.models.onnx.fallback.run_model`.

    ``model`` : bytes.
    """
    from weft.models.onnx.fallback import run_model

    return run_model(attributes["model"], inputs, state)


def tflite_model(inputs, attributes, state):
    """The outputs of a TFLite model: `weft.models.tflite.runtime.model`."""
    from weft.models.tflite.runtime import model

    return model(inputs, attributes, state)
