"""Golden model of the int8 epilogue: int32 sums to 8-bit results, bit-exact in three modes."""

import numpy as np

from weft.checks import require

__all__ = ["MODES", "activate", "add_bias", "requantize", "scaled"]

MODES = ("tflite", "single", "onnx")
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1  # of int32


def add_bias(acc, bias) -> np.ndarray:
    """``acc + bias``, wrapped to int32 like the accumulator.

    Parameters
    ----------
    acc : int32 [..., N]
    bias : int32 [N] or scalar

    Returns
    -------
    int32 [..., N]
    """
    acc, bias = _int32("acc", acc), _int32("bias", bias)
    _fits("bias", bias, acc)
    return _wrapped(acc + bias).astype(np.int32)


def requantize(
    acc, multiplier=None, shift=None, *, scale=None, mode="tflite",
    zero_point=0, low=None, high=None, dtype=np.int8,
) -> np.ndarray:
    """``clamp(scaled(acc, ...) + zero_point, low, high)``; the addition does not wrap.

    Parameters
    ----------
    acc, multiplier, shift, scale, mode
        As in `scaled`.
    zero_point : int
        Zero point of the result, in the range of ``dtype``.
    low, high : int, optional
        Limits of the clamp, in the range of ``dtype``; the whole range if absent. A fused ReLU has
        ``low = zero_point``.
    dtype : int8 or uint8

    Returns
    -------
    dtype [..., N]

    Raises
    ------
    TypeError, ValueError
        As in `scaled`, and for an invalid zero point, limit or type.
    """
    if np.dtype(dtype) not in (np.int8, np.uint8):
        raise TypeError(f"dtype must be int8 or uint8, not {np.dtype(dtype)}")
    limits = np.iinfo(dtype)
    low = limits.min if low is None else low
    high = limits.max if high is None else high
    for name, value in (("zero_point", zero_point), ("low", low), ("high", high)):
        value = _integers(name, value)
        if value.ndim:
            raise ValueError(f"{name} must be a scalar, not of shape {value.shape}")
        _within(name, value, limits.min, limits.max)
    if low > high:
        raise ValueError(f"low must be at most high ({high}), not {low}")
    y = scaled(acc, multiplier, shift, scale=scale, mode=mode).astype(np.int64)
    return np.clip(y + int(zero_point), int(low), int(high)).astype(dtype)


def scaled(acc, multiplier=None, shift=None, *, scale=None, mode="tflite") -> np.ndarray:
    """``acc * multiplier * 2**(shift - 31)``, or ``acc * scale``, rounded to int32 by ``mode``.

    Mode ``tflite``, with ``e = max(-shift, 0)``::

        x = int32(acc << max(shift, 0))                                    wraps
        v = (x * multiplier + 2**30) >> 31                                 ties up
        y = (v >> e) + ((v mod 2**e) > ((2**e - 1) >> 1) + (v < 0))        ties away from 0

    Mode ``single``; with a ``shift`` of 31 nothing is rounded::

        y = saturate((acc * multiplier + 2**(30 - shift)) >> (31 - shift))  ties up

    Mode ``onnx``, in IEEE 754 binary32, rounded to nearest even in each step::

        y = saturate(round(float32(acc) * scale))

    If ``y`` exceeds int32, runtimes with single rounding differ: TFLite Micro takes the low 32
    bits of ``y``, CMSIS-NN the low 32 bits of ``2 * y`` before its last rounding. Here ``single``
    saturates. Saturation in ``onnx`` does not change 8-bit results: onnxruntime clamps before it
    converts.

    Parameters
    ----------
    acc : int32 [..., N]
    multiplier : int [N] or scalar
        Each in 0..2**31-1; for ``tflite`` and ``single``.
    shift : int [N] or scalar
        Each in -31..31, positive to the left; for ``tflite`` and ``single``.
    scale : float32 [N] or scalar
        Each finite and above 0; for ``onnx``.
    mode : str
        One of `MODES`.

    Returns
    -------
    int32 [..., N]

    Raises
    ------
    TypeError
        If a number has the wrong type, or a parameter belongs to another mode.
    ValueError
        If the mode is unknown, or a number or a shape is invalid.

    Sources: TFLite Micro, ``MultiplyByQuantizedMultiplier``, built with and without
    ``TFLITE_SINGLE_ROUNDING``; CMSIS-NN, ``arm_nn_requantize``; onnxruntime,
    ``MlasRequantizeOutput``.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be {', '.join(MODES[:-1])} or {MODES[-1]}, not {mode!r}")
    parameters = {"multiplier": multiplier, "shift": shift, "scale": scale}
    for name, value in parameters.items():
        required = (name == "scale") == (mode == "onnx")
        if required != (value is not None):
            rule = "given" if required else "absent"
            raise TypeError(f"{name} must be {rule} in mode {mode}, not {value!r}")
    acc = _int32("acc", acc)
    if mode == "onnx":
        return _onnx(acc, _scale(scale, acc))
    multiplier, shift = _multiplier(multiplier, acc), _shift(shift, acc)
    return (_tflite if mode == "tflite" else _single)(acc, multiplier, shift)


def activate(values, table) -> np.ndarray:
    """``table[byte of value]`` for each of ``values``: any function of an 8-bit number.

    Parameters
    ----------
    values : int8 or uint8 [...]
    table : int8 or uint8 [256]
        Entry ``i`` is the result for the value with byte ``i``. For int8, entries 0 to 127 belong
        to 0 to 127, and entries 128 to 255 to -128 to -1.

    Returns
    -------
    type of ``table`` [...]

    Raises
    ------
    TypeError, ValueError
        If the values or the table have another type, or the table another shape.
    """
    values, table = np.asarray(values), np.asarray(table)
    for name, array in (("values", values), ("table", table)):
        if array.dtype not in (np.int8, np.uint8):
            raise TypeError(f"{name} must be int8 or uint8, not {array.dtype}")
    if table.shape != (256,):
        raise ValueError(f"table must be of shape (256,), not {table.shape}")
    return table[values.view(np.uint8)]


def _tflite(acc, multiplier, shift):
    x = _wrapped(acc << np.maximum(shift, 0))
    v = (x * multiplier + (1 << 30)) >> 31
    e = np.maximum(-shift, 0)
    mask = (np.int64(1) << e) - 1
    return ((v >> e) + ((v & mask) > (mask >> 1) + (v < 0))).astype(np.int32)


def _single(acc, multiplier, shift):
    half = (np.int64(1) << (31 - shift)) >> 1  # 0 if nothing is shifted out
    y = (acc * multiplier + half) >> (31 - shift)
    return np.clip(y, _LOW, _HIGH).astype(np.int32)


def _onnx(acc, scale):
    with np.errstate(over="ignore", under="ignore"):  # infinity saturates; below a half is 0
        product = acc.astype(np.float32) * scale
    # float64 represents both limits of int32; float32 does not represent the upper one.
    return np.clip(np.rint(product).astype(np.float64), _LOW, _HIGH).astype(np.int32)


def _wrapped(x):
    """``x`` of int64 wrapped to int32, as int64."""
    return x.astype(np.int32).astype(np.int64)


def _multiplier(value, acc):
    value = _integers("multiplier", value)
    _fits("multiplier", value, acc)
    _within("multiplier", value, 0, _HIGH)
    return value


def _shift(value, acc):
    value = _integers("shift", value)
    _fits("shift", value, acc)
    _within("shift", value, -31, 31)
    return value


def _scale(value, acc):
    value = np.asarray(value)
    if value.dtype != np.float32:
        raise TypeError(f"scale must be float32, not {value.dtype}")
    _fits("scale", value, acc)
    require("scale", "finite and above 0", value, np.isfinite(value) & (value > 0))
    return value


def _integers(name, value):
    """``value`` as int64."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not {array.dtype}")
    if array.dtype == np.uint64:
        require(name, "under 2**63", array, array < 1 << 63)
    return array.astype(np.int64)


def _int32(name, value):
    """``value`` as int64; ValueError if a number exceeds int32."""
    array = _integers(name, value)
    require(name, "in -2**31..2**31-1", array, (array >= _LOW) & (array <= _HIGH))
    return array


def _within(name, values, low, high):
    require(name, f"in {low}..{high}", values, (values >= low) & (values <= high))


def _fits(name, value, acc):
    """Raise ValueError if ``value`` is neither a scalar nor one number per column of ``acc``."""
    if value.ndim and value.shape != acc.shape[-1:]:
        raise ValueError(f"{name} must be a scalar or of shape {acc.shape[-1:]}, not {value.shape}")
