"""Kernels of ONNX operators that select values by their places."""

import numpy as np

__all__ = ["KERNELS"]


def _gather(inputs, attributes):
    """``axis`` : int. Inputs: values, and indices, which may count from the end."""
    return [np.take(inputs[0], inputs[1], attributes["axis"])]


def _select(inputs, attributes):
    """``indices`` : tuple of array, the element for each place along each axis."""
    return [inputs[0][np.ix_(*attributes["indices"])]]


KERNELS = {"onnx.gather": _gather, "onnx.select": _select}
