"""From float scales and functions to the integers of a layer, the way each runtime forms them."""

import math

import numpy as np

__all__ = [
    "activation_table", "gelu", "hard_swish", "leaky_relu", "onnx_scale", "quantize_multiplier",
    "sigmoid", "tanh", "tflite_scale",
]

MODES = ("tflite", "single", "onnx")


def quantize_multiplier(scale):
    """``scale = multiplier * 2**(shift - 31)``, the multiplier rounded to 31 bits, ties up.

    A ``shift`` under -31 is flushed to a multiplier of 0, as in TFLite.

    Parameters
    ----------
    scale : float [N] or scalar
        Each finite, above 0, and under 2**31 when rounded.

    Returns
    -------
    multiplier, shift : int32 [N], or int32 scalars
        Multipliers 0 or in 2**30..2**31-1, shifts in -31..31.

    Raises
    ------
    TypeError, ValueError
        For a scale out of its rule.

    Source: TFLite Micro, ``QuantizeMultiplier``. Its builds with single rounding clip what is not
    under 2**30 to a multiplier of 2**31-1 and a shift of 30; here it stays what it is.
    """
    return _multiplier_of("scale", _positive("scale", scale, np.float64))


def tflite_scale(x_scale, w_scale, y_scale, *, product="float64"):
    """``double(x_scale) * double(w_scale) / double(y_scale)``, as TFLite Micro forms it.

    Before 13 October 2026 its FullyConnected formed the product in float32 where the weights have
    one scale, per tensor; ``product="float32"`` is that older rule::

        per tensor     double(float32(x_scale * w_scale)) / double(y_scale)
        per channel    double(x_scale) * double(w_scale) / double(y_scale)

    Convolutions always formed it in double. The two differ by up to 2**-24, which is seldom seen
    in 8 bits.

    Parameters
    ----------
    x_scale, y_scale : float
        What one step of x, of y, stands for; taken as float32, as all scales in a ``.tflite`` are.
    w_scale : float [N] or scalar
    product : str
        ``float64``, or ``float32`` for the older rule: how ``x_scale * w_scale`` is formed where
        there is one ``w_scale``.

    Returns
    -------
    multiplier, shift : int32 [N], or int32 scalars
        As of :func:`quantize_multiplier`.

    Raises
    ------
    TypeError, ValueError
        For a scale, or a quotient of them, out of its rule.

    Source: TFLite Micro, ``CalculateOpDataFullyConnected``, ``GetQuantizedConvolutionMultipler``.
    """
    if product not in ("float32", "float64"):
        raise ValueError(f"product must be float32 or float64, not {product!r}")
    x, w, y = _scales(x_scale, w_scale, y_scale)
    kind = np.float64 if w.size > 1 else product
    with np.errstate(over="ignore", under="ignore"):  # the check of the quotient speaks
        quotient = (x.astype(kind) * w).astype(np.float64) / y
    return _multiplier_of(_QUOTIENT, _positive(_QUOTIENT, quotient, np.float64))


def onnx_scale(x_scale, w_scale, y_scale):
    """``float32(float32(x_scale * w_scale) / y_scale)``, as onnxruntime forms it.

    Parameters
    ----------
    x_scale, y_scale : float
        What one step of x, of y, stands for; taken as float32.
    w_scale : float [N] or scalar

    Returns
    -------
    float32 [N], or a float32 scalar

    Raises
    ------
    TypeError, ValueError
        For a scale, or a quotient of them, out of its rule.

    Source: onnxruntime, ``QLinearMatMul`` and ``QGemm`` on the CPU.
    """
    x, w, y = _scales(x_scale, w_scale, y_scale)
    with np.errstate(over="ignore", under="ignore"):
        quotient = x * w / y
    return _positive(_QUOTIENT, quotient, np.float32)[()]


def activation_table(
    function, x_scale, x_zero_point, y_scale, y_zero_point, *,
    mode="tflite", x_dtype=np.int8, y_dtype=np.int8,
) -> np.ndarray:
    """``round(function(x_scale * (x - x_zero_point)) / y_scale) + y_zero_point`` for all 256 ``x``.

    Computed in binary64, saturated to ``y_dtype``. Entry ``i`` is for the ``x`` whose byte is
    ``i``. A runtime's own kernel may approximate the function: to be equal to that one, take its
    256 results for the table.

    Parameters
    ----------
    function : callable
        From float to float; infinite results saturate. `sigmoid`, `tanh`, `gelu`, `hard_swish`
        and `leaky_relu` are here.
    x_scale, y_scale : float
        What one step of x, of y, stands for; taken as float32.
    x_zero_point, y_zero_point : int
        In the range of ``x_dtype``, of ``y_dtype``.
    mode : str
        ``tflite`` and ``single`` round ties away from zero, ``onnx`` to even.
    x_dtype, y_dtype : int8 or uint8

    Returns
    -------
    y_dtype [256]

    Raises
    ------
    TypeError, ValueError
        For a number, a type or a mode out of its rule, and for a function that gives NaN.
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
    """``x * (1 + erf(x / sqrt(2))) / 2``: the exact one, not its approximation by tanh."""
    return x * math.erfc(-x / math.sqrt(2)) / 2


def hard_swish(x):
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return x * min(max(x + 3, 0), 6) / 6


def leaky_relu(slope):
    """The function ``x if x >= 0 else slope * x``."""
    return lambda x: x if x >= 0 else slope * x


_QUOTIENT = "x_scale * w_scale / y_scale"


def _multiplier_of(name, scale):
    """Multiplier and shift of positive numbers."""
    fraction, shift = np.frexp(scale)
    multiplier = _half_away(fraction * 2.0**31).astype(np.int64)
    carry = multiplier == 1 << 31
    multiplier, shift = np.where(carry, 1 << 30, multiplier), shift + carry
    _require(name, "under 2**31 when rounded", scale, shift <= 31)
    flushed = shift < -31
    multiplier, shift = np.where(flushed, 0, multiplier), np.where(flushed, 0, shift)
    return multiplier.astype(np.int32)[()], shift.astype(np.int32)[()]


def _half_away(x):
    """``x`` rounded to the nearest integer, ties away from zero; exact, unlike with 0.5 added."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):  # infinity less itself
        return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)


def _scales(x_scale, w_scale, y_scale):
    w = _positive("w_scale", w_scale, np.float32)
    if w.ndim > 1:
        raise ValueError(f"w_scale must be a scalar or of shape (N,), not {w.shape}")
    return _scalar("x_scale", x_scale), w, _scalar("y_scale", y_scale)


def _scalar(name, value):
    value = _positive(name, value, np.float32)
    if value.ndim:
        raise ValueError(f"{name} must be a scalar, not of shape {value.shape}")
    return value


def _positive(name, value, dtype):
    """``value`` in ``dtype``, each number of it finite and above 0."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, not {array.dtype}")
    with np.errstate(over="ignore", under="ignore"):
        converted = array.astype(dtype)
    holds = np.isfinite(converted) & (converted > 0)
    _require(name, f"finite and above 0 in {np.dtype(dtype)}", array, holds)
    return converted


def _zero_point(which, value, dtype):
    if np.dtype(dtype) not in (np.int8, np.uint8):
        raise TypeError(f"{which}_dtype must be int8 or uint8, not {np.dtype(dtype)}")
    name, limits, value = f"{which}_zero_point", np.iinfo(dtype), np.asarray(value)
    if value.dtype.kind not in "iu":
        raise TypeError(f"{name} must be an integer, not {value.dtype}")
    if value.ndim:
        raise ValueError(f"{name} must be a scalar, not of shape {value.shape}")
    holds = (value >= limits.min) & (value <= limits.max)
    _require(name, f"in {limits.min}..{limits.max}", value, holds)
    return int(value)


def _require(name, rule, values, holds):
    """Refuses ``values`` with the first one that breaks ``rule``."""
    if not np.all(holds):
        raise ValueError(f"{name} must be {rule}, not {np.ravel(values)[~np.ravel(holds)][0]}")
