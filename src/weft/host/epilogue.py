"""Conversion of sums to results: to int32 by the driver, or to 8 bits by the core."""

from dataclasses import dataclass

import numpy as np

from weft.checks import INT32, columns, fits, integers, reals, require
from weft.commands import JobFlag
from weft.config import Config
from weft.host.packing import ENTRY
from weft.quantize import quantize_multiplier

__all__ = ["Epilogue"]

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_MIN_MULTIPLIER, _MAX_MULTIPLIER = 1 << 30, (1 << 31) - 1  # normalized, other than 0
_NO_BIAS = np.zeros((), np.int64)
_MIN_NORMAL = np.finfo(np.float32).tiny


@dataclass(frozen=True, kw_only=True, eq=False)
class Epilogue:
    """The checked arguments of `Accelerator.matmul` that apply after the product.

    A parameter of columns is a scalar, or broadcasts to [batch..., N].

    Attributes
    ----------
    flags : JobFlag
        REQUANTIZE, TABLE, or neither: then the results are the sums.
    dtype : numpy.dtype
        Type of the results.
    bias : int64 [..., N] or scalar
    multiplier : uint32 [..., N] or scalar
        As in a parameter entry: in mode ``onnx`` the bits of a float32 scale.
    shift, zero, low, high : int64 [..., N] or scalar
        Shift of the scale, zero point and limits of the results.
    table : int8 or uint8 [..., 256], or None
        Activation table.
    """

    flags: JobFlag = JobFlag(0)
    dtype: np.dtype = np.dtype(np.int32)
    bias: np.ndarray
    multiplier: np.ndarray | None = None
    shift: np.ndarray | int = 0
    zero: np.ndarray | int = 0
    low: np.ndarray | int = 0
    high: np.ndarray | int = 0
    table: np.ndarray | None = None

    @classmethod
    def of(
        cls, config: Config, shape: tuple[int, ...], *, bias=None, scale=None, multiplier=None,
        shift=None, zero_point=0, low=None, high=None, activation=None, out_dtype=None,
    ) -> "Epilogue":
        """Check the arguments for products with columns of ``shape`` [batch..., N].

        Raises TypeError or ValueError for an invalid argument, or one that needs a feature that the
        Config does not have.
        """
        bias = _NO_BIAS if bias is None else columns("bias", integers("bias", bias, *INT32), shape)
        if scale is None and multiplier is None and shift is None:
            _check_raw(zero_point, low, high, activation, out_dtype)
            return cls(bias=bias)
        if scale is None:
            multiplier, shift = _multiplier(config, multiplier, shift, shape)
        else:
            multiplier, shift = _scale(config, scale, multiplier, shift, shape)
        flags, table = JobFlag.REQUANTIZE, None
        if activation is not None:
            table = _table(config, activation, shape[:-1])
            flags |= JobFlag.TABLE
        if out_dtype is None:
            out_dtype = np.int8 if table is None else table.dtype
        dtype = np.dtype(out_dtype)
        if dtype not in _BYTES:
            raise TypeError(f"out_dtype must be int8 or uint8 for scaled results, not {dtype}")
        if table is not None and table.dtype != dtype:
            raise TypeError(f"activation must be {dtype} as out_dtype is, not {table.dtype}")
        limits = np.iinfo(dtype)
        zero, low, high = (
            columns(name, integers(name, value, limits.min, limits.max), shape)
            for name, value in (
                ("zero_point", zero_point), ("low", limits.min if low is None else low),
                ("high", limits.max if high is None else high),
            )
        )
        invalid = low > high
        if np.any(invalid):
            first, limit = (np.broadcast_to(x, invalid.shape)[invalid][0] for x in (low, high))
            raise ValueError(f"low must be at most high ({limit}), not {first}")
        return cls(
            flags=flags, dtype=dtype, bias=bias, multiplier=multiplier, shift=shift,
            zero=zero, low=low, high=high, table=table,
        )

    @property
    def requantizes(self) -> bool:
        """Whether the core converts the sums to 8 bits."""
        return JobFlag.REQUANTIZE in self.flags

    def entries(self, bias: np.ndarray, b_zero) -> np.ndarray:
        """Return the parameters, `ENTRY` [..., N], with ``bias`` [..., N] wrapped to int32."""
        values = {
            "bias": bias.astype(np.int32), "multiplier": self.multiplier, "shift": self.shift,
            "b_zero": b_zero, "zero": self.zero, "low": self.low, "high": self.high,
        }
        entries = np.zeros(np.broadcast_shapes(*map(np.shape, values.values())), ENTRY)
        for name, value in values.items():
            entries[name] = value
        return entries

    def add_bias(self, sums: np.ndarray) -> np.ndarray:
        """Add the bias to int32 ``sums`` [..., M, N]; ValueError if a result exceeds int32."""
        if not self.bias.any():
            return sums
        total = sums + np.atleast_1d(self.bias)[..., None, :]
        low, high = INT32
        require("sums with bias", f"in {low}..{high}", total, (total >= low) & (total <= high))
        return total.astype(np.int32)


def _check_raw(zero_point, low, high, activation, out_dtype):
    """Raise TypeError for arguments that are for scaled results only."""
    for name, value, absent in (
        ("zero_point", zero_point, 0), ("low", low, None), ("high", high, None),
        ("activation", activation, None),
    ):
        if value is not absent and not np.array_equal(value, absent):
            raise TypeError(f"{name} must be absent without a scale, not {value}")
    if out_dtype is not None and np.dtype(out_dtype) != np.int32:
        raise TypeError(f"out_dtype must be int32 without a scale, not {np.dtype(out_dtype)}")


def _multiplier(config, multiplier, shift, shape):
    for name, value, other in (("multiplier", multiplier, "shift"), ("shift", shift, "multiplier")):
        if value is None:
            raise TypeError(f"{name} must be given with {other}, not {value}")
    _mode(config, ("tflite", "single"), "a multiplier and a shift")
    rule = "0 or in 2**30..2**31-1"
    multiplier = integers("multiplier", multiplier, 0, _MAX_MULTIPLIER, rule)
    require("multiplier", rule, multiplier, (multiplier == 0) | (multiplier >= _MIN_MULTIPLIER))
    shift = integers("shift", shift, -31, 31)
    multiplier = columns("multiplier", multiplier, shape)
    return multiplier.astype(np.uint32), columns("shift", shift, shape)


def _scale(config, scale, multiplier, shift, shape):
    for name, value in (("multiplier", multiplier), ("shift", shift)):
        if value is not None:
            raise TypeError(f"{name} must be absent where scale is given, not {value}")
    _mode(config, ("tflite", "single", "onnx"), "a scale")
    if config.requantize != "onnx":
        multiplier, shift = quantize_multiplier(columns("scale", np.asarray(scale), shape))
        return multiplier.astype(np.uint32), shift
    scale = columns("scale", reals("scale", scale, np.float32), shape)
    # A subnormal scale gives 0 for every sum, and so does the smallest normal one.
    return np.maximum(scale, _MIN_NORMAL).view(np.uint32), 0


def _mode(config, modes, what):
    if config.requantize not in modes:
        names = " or ".join([", ".join(modes[:-1]), modes[-1]])
        raise ValueError(
            f"Config.requantize must be {names} for {what}, not {config.requantize}"
        )


def _table(config, activation, lead):
    if config.activation != "table":
        raise ValueError(
            f"Config.activation must be table for an activation, not {config.activation}"
        )
    table = np.asarray(activation)
    if table.dtype not in _BYTES:
        raise TypeError(f"activation must be a table of int8 or uint8, not of {table.dtype}")
    if table.shape[-1:] != (256,) or not fits(table.shape, (*lead, 256)):
        rule = "of shape (256,)"
        if lead:
            rule += f", or of one that broadcasts to {(*lead, 256)}"
        raise ValueError(f"activation must be {rule}, not {table.shape}")
    return table
