"""How sums become results: as int32 by the driver, or as 8 bits by the core."""

from dataclasses import dataclass

import numpy as np

from weft.commands import JobFlag
from weft.config import Config
from weft.host.checks import INT32, columns, fits, integers, reals, require
from weft.host.packing import ENTRY
from weft.quantize import quantize_multiplier

__all__ = ["Epilogue"]

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_HALF, _TOP = 1 << 30, (1 << 31) - 1  # of a multiplier
_NORMAL = np.finfo(np.float32).tiny


@dataclass(frozen=True, kw_only=True, eq=False)
class Epilogue:
    """What the arguments of `Accelerator.matmul` ask for behind the product, checked.

    Parameters of columns are scalars, or of a shape that broadcasts to that of the batch, then N.

    Attributes
    ----------
    flags : JobFlag
        REQUANTIZE and TABLE, or none: the results are the sums.
    dtype : numpy.dtype
        Of the results.
    bias : int64 [..., N] or scalar
    multiplier : uint32 [..., N] or scalar
        As in a parameter: in mode ``onnx`` the bits of a scale.
    shift, zero, low, high : int64 [..., N] or scalar
    table : int8 or uint8 [..., 256], or None
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
        """From what a caller gave for a batch of products: ``shape`` is that of the batch, then N.

        Raises TypeError or ValueError for what breaks a rule, or is not in the Config.
        """
        bias = columns("bias", integers("bias", 0 if bias is None else bias, *INT32), shape)
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
        wrong = low > high
        if np.any(wrong):
            least, most = (np.broadcast_to(x, wrong.shape)[wrong][0] for x in (low, high))
            raise ValueError(f"low must be at most high ({most}), not {least}")
        return cls(
            flags=flags, dtype=dtype, bias=bias, multiplier=multiplier, shift=shift,
            zero=zero, low=low, high=high, table=table,
        )

    @property
    def requantizes(self) -> bool:
        return JobFlag.REQUANTIZE in self.flags

    def entries(self, bias: np.ndarray, b_zero) -> np.ndarray:
        """The parameters, `ENTRY` [..., N], of columns with ``bias`` [..., N], wrapped to int32."""
        values = {
            "bias": bias.astype(np.int32), "multiplier": self.multiplier, "shift": self.shift,
            "b_zero": b_zero, "zero": self.zero, "low": self.low, "high": self.high,
        }
        entries = np.zeros(np.broadcast_shapes(*map(np.shape, values.values())), ENTRY)
        for name, value in values.items():
            entries[name] = value
        return entries

    def add_bias(self, sums: np.ndarray) -> np.ndarray:
        """int32 ``sums`` [..., M, N] and the bias, exact; ValueError where one leaves int32."""
        if not np.any(self.bias):
            return sums
        total = sums + np.atleast_1d(self.bias)[..., None, :]
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


def _multiplier(config, multiplier, shift, shape):
    for name, value, other in (("multiplier", multiplier, "shift"), ("shift", shift, "multiplier")):
        if value is None:
            raise TypeError(f"{name} must be given with {other}, not {value}")
    _mode(config, ("tflite", "single"), "a multiplier and a shift")
    rule = "0 or in 2**30..2**31-1"
    multiplier = integers("multiplier", multiplier, 0, _TOP, rule)
    require("multiplier", rule, multiplier, (multiplier == 0) | (multiplier >= _HALF))
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
    # A subnormal one gives 0 for every sum, and so does the least that is normal.
    return np.maximum(scale, _NORMAL).view(np.uint32), 0


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
