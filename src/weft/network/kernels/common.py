"""Kernels that move or look up values, which all runtimes compute alike."""

import numpy as np

__all__ = ["KERNELS"]


def _reshape(inputs, attributes):
    """``shape`` : tuple of int, without -1."""
    return [inputs[0].reshape(attributes["shape"])]


def _transpose(inputs, attributes):
    """``axes`` : tuple of int, the axis of the input for each axis of the output."""
    return [np.ascontiguousarray(inputs[0].transpose(attributes["axes"]))]


def _table(inputs, attributes):
    """``table`` : array [256], the result for each byte of an int8 or uint8 input."""
    return [attributes["table"][np.ascontiguousarray(inputs[0]).view(np.uint8)]]


KERNELS = {"reshape": _reshape, "transpose": _transpose, "table": _table}
