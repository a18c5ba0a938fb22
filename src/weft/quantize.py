"""Converts scales and activation functions of a quantized layer to integers, as runtimes do."""

import math

import numpy as np

from weft.checks import reals, require

__all__ = [
    "activation_table", "gelu", "hard_swish", "leaky_relu", "onnx_scale", "quantize_multiplier",
    "sigmoid", "tanh", "tflite_scale",
]

MODES = ("tflite", "single", "onnx")


def quantize_multiplier(scale):
    """``scale = multiplier * 2**(shift - 31)``, the multiplier rounded to 31 bits, ties up.

    If ``shift`` would be below -31, the multiplier is 0, as in TFLite.

    Parameters
    ----------
    scale : float [N] or scalar
        Each finite, above 0, and below 2**31 after rounding.

    Returns
    -------
    multiplier, shift : int32 [N], or int32 scalars
        Multipliers 0 or in 2**30..2**31-1, shifts in -31..31.

    Raises
    ------
    TypeError, ValueError
        If a scale is invalid.

    Source: TFLite Micro, ``QuantizeMultiplier``. Its builds with single rounding clip scales from
    2**30 on to a multiplier of 2**31-1 and a shift of 30; this function does not.
    """
    return _multiplier_of("scale", reals("scale", scale, np.float64))


def tflite_scale(x_scale, w_scale, y_scale, *, product="float64"):
    """``double(x_scale) * double(w_scale) / double(y_scale)``, as TFLite Micro computes it.

    Before 13 October 2026 its FullyConnected computed the product in float32 if the weights had
    one scale per tensor; ``product="float32"`` selects that older rule::

        per tensor     double(float32(x_scale * w_scale)) / double(y_scale)
        per channel    double(x_scale) * double(w_scale) / double(y_scale)

    Convolutions always used double. The two rules differ by up to 2**-24, which rarely changes an
    8-bit result.

    Parameters
    ----------
    x_scale, y_scale : float
        Scale of x, and of y; converted to float32, the type of all scales in a ``.tflite``.
    w_scale : float [N] or scalar
    product : str
        Type of the product ``x_scale * w_scale`` with a single ``w_scale``: ``float64``, or
        ``float32`` for the older rule.

    Returns
    -------
    multiplier, shift : int32 [N], or int32 scalars
        As from :func:`quantize_multiplier`.

    Raises
    ------
    TypeError, ValueError
        If a scale or the quotient is invalid.

    Source: TFLite Micro, ``CalculateOpDataFullyConnected``, ``GetQuantizedConvolutionMultipler``.
    """
    if product not in ("float32", "float64"):
        raise ValueError(f"product must be float32 or float64, not {product!r}")
    x, w, y = _scales(x_scale, w_scale, y_scale)
    kind = np.float64 if w.size > 1 else product
    with np.errstate(over="ignore", under="ignore"):  # the check of the quotient reports it
        quotient = (x.astype(kind) * w).astype(np.float64) / y
    return _multiplier_of(_QUOTIENT, reals(_QUOTIENT, quotient, np.float64))


def onnx_scale(x_scale, w_scale, y_scale):
    """``float32(float32(x_scale * w_scale) / y_scale)``, as onnxruntime computes it.

    Parameters
    ----------
    x_scale, y_scale : float
        Scale of x, and of y; converted to float32.
    w_scale : float [N] or scalar

    Returns
    -------
    float32 [N], or a float32 scalar

    Raises
    ------
    TypeError, ValueError
        If a scale or the quotient is invalid.

    Source: onnxruntime, ``QLinearMatMul`` and ``QGemm`` on the CPU.
    """
    x, w, y = _scales(x_scale, w_scale, y_scale)
    with np.errstate(over="ignore", under="ignore"):
        quotient = x * w / y
    return reals(_QUOTIENT, quotient, np.float32)[()]


def activation_table(
    function, x_scale, x_zero_point, y_scale, y_zero_point, *,
    mode="tflite", x_dtype=np.int8, y_dtype=np.int8,
) -> np.ndarray:
    """``round(function(x_scale * (x - x_zero_point)) / y_scale) + y_zero_point`` for all 256 ``x``.

    Computed in binary64 and saturated to ``y_dtype``. Entry ``i`` belongs to the ``x`` with byte
    ``i``. A runtime may approximate the function: to match it, use its own 256 results as the
    table.

    Parameters
    ----------
    function : callable
        From float to float; infinite results saturate. This module has `sigmoid`, `tanh`, `gelu`,
        `hard_swish` and `leaky_relu`.
    x_scale, y_scale : float
        Scale of x, and of y; converted to float32.
    x_zero_point, y_zero_point : int
        In the range of ``x_dtype``, and of ``y_dtype``.
    mode : str
        ``tflite`` and ``single`` round ties away from zero, ``onnx`` to even.
    x_dtype, y_dtype : int8 or uint8

    Returns
    -------
    y_dtype [256]

    Raises
    ------
    TypeError, ValueError
        If a number, a type or the mode is invalid, or the function returns NaN.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be {', '.join(MODES[:-1])} or {MODES[-1]}, not {mode!r}")
    x_zero_point = _zero_point("x", x_zero_point, x_dtype)
    y_zero_point = _zero_point("y", y_zero_point, y_dtype)
    x_scale, y_scale = _scalar("x_scale", x_scale), _scalar("y_scale", y_scale)
    x = np.arange(256, dtype=np.uint8).view(x_dtype).astype(np.float64)
    arguments = (x - x_zero_point) * np.float64(x_scale)
    results = np.array([float(function(argument)) for argument in arguments.tolist()])
    if np.isnan(results).any():
        argument = arguments[np.isnan(results)][0]
        raise ValueError(f"function must give a number, not nan for {argument}")
    with np.errstate(over="ignore"):
        steps = results / np.float64(y_scale)
    rounded = np.rint(steps) if mode == "onnx" else _half_away(steps)
    limits = np.iinfo(y_dtype)
    return np.clip(rounded + y_zero_point, limits.min, limits.max).astype(y_dtype)


def sigmoid(x):
    """``1 / (1 + exp(-x))``."""
    e = math.exp(-abs(x))  # never overflows
    return 1 / (1 + e) if x >= 0 else e / (1 + e)


def tanh(x):
    """``tanh(x)``."""
    return math.tanh(x)


def gelu(x):
    """``x * (1 + erf(x / sqrt(2))) / 2``, exact; not the approximation with tanh."""
    return x * math.erfc(-x / math.sqrt(2)) / 2


def hard_swish(x):
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return x * min(max(x + 3, 0), 6) / 6


def leaky_relu(slope):
    """The function ``x if x >= 0 else slope * x``."""
    return lambda x: x if x >= 0 else slope * x


_QUOTIENT = "x_scale * w_scale / y_scale"


def _multiplier_of(name, scale):
    """Multiplier and shift of positive scales."""
    fraction, shift = np.frexp(scale)
    multiplier = _half_away(fraction * 2.0**31).astype(np.int64)
    carry = multiplier == 1 << 31
    multiplier, shift = np.where(carry, 1 << 30, multiplier), shift + carry
    require(name, "under 2**31 when rounded", scale, shift <= 31)
    flushed = shift < -31
    multiplier, shift = np.where(flushed, 0, multiplier), np.where(flushed, 0, shift)
    return multiplier.astype(np.int32)[()], shift.astype(np.int32)[()]


def _half_away(x):
    """``x`` rounded to nearest, ties away from zero; exact, which adding 0.5 is not."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)


def _scales(x_scale, w_scale, y_scale):
    w = reals("w_scale", w_scale, np.float32)
    if w.ndim > 1:
        raise ValueError(f"w_scale must be a scalar or of shape (N,), not {w.shape}")
    return _scalar("x_scale", x_scale), w, _scalar("y_scale", y_scale)


def _scalar(name, value):
    value = reals(name, value, np.float32)
    if value.ndim:
        raise ValueError(f"{name} must be a scalar, not of shape {value.shape}")
    return value


def _zero_point(which, value, dtype):
    if np.dtype(dtype) not in (np.int8, np.uint8):
        raise TypeError(f"{which}_dtype must be int8 or uint8, not {np.dtype(dtype)}")
    name, limits, value = f"{which}_zero_point", np.iinfo(dtype), np.asarray(value)
    if value.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer, not {value.dtype}")
    if value.ndim:
        raise ValueError(f"{name} must be a scalar, not of shape {value.shape}")
    holds = (value >= limits.min) & (value <= limits.max)
    require(name, f"in {limits.min}..{limits.max}", value, holds)
    return int(value)
