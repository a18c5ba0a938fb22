"""How sums become results: as int32 by the driver, or as 8 bits by the core."""

from dataclasses import dataclass

import numpy as np

from weft.commands import JobFlag
from weft.config import Config
from weft.host.checks import INT32, columns, integers, reals, require, scalar
from weft.host.packing import ENTRY
from weft.quantize import quantize_multiplier

__all__ = ["Finish"]

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_HALF, _TOP = 1 << 30, (1 << 31) - 1  # of a multiplier
_NORMAL = np.finfo(np.float32).tiny


@dataclass(frozen=True, kw_only=True, eq=False)
class Finish:
    """What the arguments of `Accelerator.matmul` ask for behind the product, checked.

    Attributes
    ----------
    flags : JobFlag
        REQUANTIZE and TABLE, or none: the results are the sums.
    dtype : numpy.dtype
        Of the results.
    bias : int64 [N] or scalar
    multiplier : uint32 [N] or scalar
        As in a parameter: in mode ``onnx`` the bits of a scale.
    shift : int64 [N] or scalar
    zero, low, high : int
    table : int8 or uint8 [256], or None
    """

    flags: JobFlag = JobFlag(0)
    dtype: np.dtype = np.dtype(np.int32)
    bias: np.ndarray
    multiplier: np.ndarray | None = None
    shift: np.ndarray | int = 0
    zero: int = 0
    low: int = 0
    high: int = 0
    table: np.ndarray | None = None

    @classmethod
    def of(
        cls, config: Config, n: int, *, bias=None, scale=None, multiplier=None, shift=None,
        zero_point=0, low=None, high=None, activation=None, out_dtype=None,
    ) -> "Finish":
        """From what a caller gave for a product of ``n`` columns.

        Raises TypeError or ValueError for what breaks a rule, or is not in the Config.
        """
        bias = columns("bias", integers("bias", 0 if bias is None else bias, *INT32), n)
        if scale is None and multiplier is None and shift is None:
            _check_raw(zero_point, low, high, activation, out_dtype)
            return cls(bias=bias)
        if scale is None:
            multiplier, shift = _multiplier(config, multiplier, shift, n)
        else:
            multiplier, shift = _scale(config, scale, multiplier, shift, n)
        flags, table = JobFlag.REQUANTIZE, None
        if activation is not None:
            table = _table(config, activation)
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
            scalar(name, default if value is None else value, limits.min, limits.max)
            for name, value, default in (
                ("zero_point", zero_point, 0), ("low", low, limits.min), ("high", high, limits.max)
            )
        )
        if low > high:
            raise ValueError(f"low must be at most high ({high}), not {low}")
        return cls(
            flags=flags, dtype=dtype, bias=bias, multiplier=multiplier, shift=shift,
            zero=zero, low=low, high=high, table=table,
        )

    @property
    def requantizes(self) -> bool:
        return JobFlag.REQUANTIZE in self.flags

    def entries(self, bias: np.ndarray, b_zero) -> np.ndarray:
        """The parameters, `ENTRY` [..., N], of columns with ``bias`` [..., N], wrapped to int32."""
        entries = np.zeros(bias.shape, ENTRY)
        for name, value in (
            ("bias", bias.astype(np.int32)), ("multiplier", self.multiplier),
            ("shift", self.shift), ("b_zero", b_zero), ("zero", self.zero),
            ("low", self.low), ("high", self.high),
        ):
            entries[name] = value
        return entries

    def add_bias(self, sums: np.ndarray) -> np.ndarray:
        """int32 ``sums`` [..., N] and the bias, exact; ValueError where one leaves int32."""
        if not np.any(self.bias):
            return sums
        total = sums + self.bias
        low, high = INT32
        require("sums with bias", f"in {low}..{high}", total, (total >= low) & (total <= high))
        return total.astype(np.int32)


def _check_raw(zero_point, low, high, activation, out_dtype):
    """Refuses what is for scaled results alone."""
    for name, value, absent in (
        ("zero_point", zero_point, 0), ("low", low, None), ("high", high, None),
        ("activation", activation, None),
    ):
        if value is not absent and not np.array_equal(value, absent):
            raise TypeError(f"{name} must be absent without a scale, not {value}")
    if out_dtype is not None and np.dtype(out_dtype) != np.int32:
        raise TypeError(f"out_dtype must be int32 without a scale, not {np.dtype(out_dtype)}")


def _multiplier(config, multiplier, shift, n):
    for name, value, other in (("multiplier", multiplier, "shift"), ("shift", shift, "multiplier")):
        if value is None:
            raise TypeError(f"{name} must be given with {other}, not {value}")
    _mode(config, ("tflite", "single"), "a multiplier and a shift")
    rule = "0 or in 2**30..2**31-1"
    multiplier = integers("multiplier", multiplier, 0, _TOP, rule)
    require("multiplier", rule, multiplier, (multiplier == 0) | (multiplier >= _HALF))
    shift = integers("shift", shift, -31, 31)
    return columns("multiplier", multiplier, n).astype(np.uint32), columns("shift", shift, n)


def _scale(config, scale, multiplier, shift, n):
    for name, value in (("multiplier", multiplier), ("shift", shift)):
        if value is not None:
            raise TypeError(f"{name} must be absent where scale is given, not {value}")
    _mode(config, ("tflite", "single", "onnx"), "a scale")
    if config.requantize != "onnx":
        multiplier, shift = quantize_multiplier(columns("scale", np.asarray(scale), n))
        return multiplier.astype(np.uint32), shift
    scale = columns("scale", reals("scale", scale, np.float32), n)
    # A subnormal one gives 0 for every sum, and so does the least that is normal.
    return np.maximum(scale, _NORMAL).view(np.uint32), 0


def _mode(config, modes, what):
    if config.requantize not in modes:
        names = " or ".join([", ".join(modes[:-1]), modes[-1]])
        raise ValueError(
            f"Config.requantize must be {names} for {what}, not {config.requantize}"
        )


def _table(config, activation):
    if config.activation != "table":
        raise ValueError(
            f"Config.activation must be table for an activation, not {config.activation}"
        )
    table = np.asarray(activation)
    if table.dtype not in _BYTES:
        raise TypeError(f"activation must be a table of int8 or uint8, not of {table.dtype}")
    if table.shape != (256,):
        raise ValueError(f"activation must be of shape (256,), not {table.shape}")
    return table
