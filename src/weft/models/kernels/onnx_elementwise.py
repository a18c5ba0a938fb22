"""Kernels of ONNX operators that compute each element from the elements at its place."""

import functools
import math

import numpy as np

__all__ = ["KERNELS", "sigmoid"]


def _plain(function):
    """A kernel without attributes; the result has the type of the first input."""
    def kernel(inputs, attributes):
        with np.errstate(all="ignore"):
            return [np.asarray(function(*inputs)).astype(inputs[0].dtype, copy=False)]

    return kernel


def _compares(function):
    """A kernel with bool results."""
    return lambda inputs, attributes: [np.asarray(function(*inputs))]


def _sum(inputs, attributes):
    """Any number of inputs."""
    return [np.asarray(functools.reduce(np.add, inputs))]


def _divide(x, y):
    """``x / y``; integers are truncated."""
    if x.dtype.kind == "f":
        return x / y
    quotient = np.abs(x.astype(np.int64)) // np.maximum(np.abs(y.astype(np.int64)), 1)
    return quotient * np.sign(x.astype(np.int64)) * np.sign(y.astype(np.int64))


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _clip(inputs, attributes):
    """Inputs: values, least, most; the latter two may be absent."""
    x, *limits = inputs
    low, high = [*limits, None, None][:2]
    x = x if low is None else np.maximum(x, low)
    return [np.asarray(x if high is None else np.minimum(x, high))]


def _cast(inputs, attributes):
    """``dtype`` : str."""
    return [inputs[0].astype(attributes["dtype"])]


def _leaky_relu(inputs, attributes):
    """``alpha`` : float, the slope below 0."""
    [x] = inputs
    return [np.where(x >= 0, x, np.float32(attributes["alpha"]) * x).astype(x.dtype)]


def _prelu(inputs, attributes):
    """Inputs: values, slope below 0."""
    x, slope = inputs
    return [np.where(x >= 0, x, slope * x).astype(x.dtype)]


def _elu(inputs, attributes):
    """``alpha`` : float; ``alpha * (exp(x) - 1)`` below 0."""
    [x] = inputs
    return [np.where(x >= 0, x, attributes["alpha"] * np.expm1(np.minimum(x, 0))).astype(x.dtype)]


def _selu(inputs, attributes):
    """``alpha``, ``gamma`` : float."""
    [y] = _elu(inputs, attributes)
    return [(attributes["gamma"] * y).astype(y.dtype)]


def _hard_sigmoid(inputs, attributes):
    """``alpha``, ``beta`` : float; ``clip(alpha * x + beta, 0, 1)``."""
    [x] = inputs
    return [np.clip(np.float32(attributes["alpha"]) * x + np.float32(attributes["beta"]), 0, 1)
            .astype(x.dtype)]


def _hard_swish(x):
    return x * np.clip(x * np.float32(1 / 6) + np.float32(0.5), 0, 1)


def _gelu(inputs, attributes):
    """``approximate`` : ``none``, or ``tanh``."""
    [x] = inputs
    wide = x.astype(np.float64)
    if attributes["approximate"] == "tanh":
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return [(0.5 * wide * (1 + np.tanh(inner))).astype(x.dtype)]
    return [(0.5 * wide * (1 + _erf(wide / math.sqrt(2)))).astype(x.dtype)]


KERNELS = {
    **{f"onnx.{function.__name__}": _plain(function) for function in (
        np.ceil, np.exp, np.floor, np.log, np.negative, np.reciprocal, np.sqrt, np.tanh,
        np.add, np.subtract, np.multiply, np.power,
    )},
    "onnx.abs": _plain(np.abs), "onnx.divide": _plain(_divide), "onnx.round": _plain(np.rint),
    "onnx.relu": _plain(lambda x: np.maximum(x, 0)), "onnx.sigmoid": _plain(sigmoid),
    "onnx.softplus": _plain(lambda x: np.logaddexp(x, 0)), "onnx.erf": _plain(_erf),
    "onnx.softsign": _plain(lambda x: x / (1 + np.abs(x))),
    "onnx.hard_swish": _plain(_hard_swish),
    "onnx.sum": _sum,
    "onnx.equal": _compares(np.equal), "onnx.greater": _compares(np.greater),
    "onnx.less": _compares(np.less), "onnx.clip": _clip, "onnx.cast": _cast,
    "onnx.leaky_relu": _leaky_relu, "onnx.prelu": _prelu, "onnx.elu": _elu, "onnx.selu": _selu,
    "onnx.hard_sigmoid": _hard_sigmoid, "onnx.gelu": _gelu,
}
