"""A BF16 product: float32 sums that start from C or a bias, then clamp and rounding."""

import math

import numpy as np
from ml_dtypes import bfloat16

from weft.checks import columns, fits, float32, require
from weft.commands import JobFlag
from weft.host.packing import LIMITS
from weft.host.product import Product, Side

__all__ = ["FloatProduct"]

_FLOAT32, _BFLOAT16 = np.dtype(np.float32), np.dtype(bfloat16)
_NAN = np.uint32(0x7FC00000).view(np.float32)  # the only NaN in results
_MIN_NORMAL = np.finfo(np.float32).tiny


class FloatProduct(Product):
    """The checked arguments of one `Accelerator.matmul` on a bf16 core."""

    ARGUMENTS = frozenset({"bias", "c", "low", "high", "cast", "out_dtype"})

    def __init__(
        self, a, b, owner, *, bias=None, c=None, low=None, high=None, cast=False, out_dtype=None
    ):
        def check(name, array):
            return self.to_core_type(name, array, cast=cast)[0]

        self._check = check

        super().__init__(Side("a", a, owner, check), Side("b", b, owner, check))
        config = owner.config
        self._flush = config.flush_subnormals
        self._start = self._check_start(config, c, bias)
        self._limits = self._check_limits(config, low, high)
        limits = self._limits
        self.arrange(columns_differ=limits is not None and math.prod(limits.shape[:-1]) > 1)
        self.dtype = _FLOAT32 if out_dtype is None else np.dtype(out_dtype)
        if self.dtype not in (_FLOAT32, _BFLOAT16):
            raise TypeError(f"out_dtype must be float32 or bfloat16, not {self.dtype}")
        self.flags = JobFlag(0)
        if self._start is not None:
            self.flags |= JobFlag.PRELOAD
        if self._start is not None and self._one_row:
            self.flags |= JobFlag.BROADCAST
        if self._limits is not None:
            self.flags |= JobFlag.CLAMP
        if self.dtype == _BFLOAT16:
            self.flags |= JobFlag.ROUND

    def replace_a(self, array) -> None:
        values = self._check("a", array)
        self.b.check_loaded()
        self.a.replace(values)

    @staticmethod
    def to_core_type(name: str, array, *, cast=False) -> tuple[np.ndarray, np.dtype]:
        array = np.asarray(array)
        if cast and array.dtype.newbyteorder("=") == _FLOAT32:  # in either byte order
            array = _rounded(array)
        if array.dtype != _BFLOAT16:
            rule = "bfloat16, or float32 with cast=True"
            raise TypeError(f"{name} must be {rule}, not {array.dtype}")
        return array, array.dtype

    @staticmethod
    def sums(lines: np.ndarray) -> None:
        return None

    def entries(self, index: int) -> np.ndarray:
        """Return the limits of the columns of product ``index``: `LIMITS` [N]."""
        return self.of_columns(self._limits, index)

    def start(self, index: int) -> np.ndarray:
        rows, n = 1 if self._one_row else self.a.shape[-2], self.b.shape[-1]
        start = np.broadcast_to(self._start, (*self.lead, rows, n))
        if self.fold == "a":
            return start.reshape(-1, n)[: rows if self._one_row else None]
        if self.fold == "b":
            return start.reshape(-1, rows, n).swapaxes(0, 1).reshape(rows, -1)
        return self.part(start, index, 2)

    def empty_result(self) -> np.ndarray:
        """Return the start values of the sums, clamped and rounded as by the core."""
        y = np.zeros(self.raw_shape, np.float32)
        if y.size and self._start is not None:
            y[:] = [np.broadcast_to(self.start(index), y.shape[1:]) for index in range(len(y))]
        if self._flush:
            y = _flushed(y)
        if y.size and self._limits is not None:
            limits = np.stack([self.entries(index) for index in range(len(y))])[:, None, :]
            low, high = limits["low"], limits["high"]
            y = np.where(y <= low, low, np.where(y >= high, high, y))
            y = np.where(y == 0, np.float32(0), y)
        y = np.where(np.isnan(y), _NAN, y)
        return y if self.dtype == _FLOAT32 else _rounded(y)

    @property
    def _one_row(self):
        """Whether all rows of a product start from the same row of C."""
        lead = math.prod(self._start.shape[:-2])
        return self._start.shape[-2] == 1 and (self.fold != "a" or lead == 1)

    def _check_start(self, config, c, bias):
        """Return the start values of the sums as [..., M or 1, N], or None for 0."""
        if c is None and bias is None:
            return None
        if c is not None and bias is not None:
            raise TypeError("bias must be absent where c is given, not given as well")
        if not config.c_words:
            raise ValueError("Config.c_words must be 32 or more for c and bias, not 0")
        if c is None:
            bias = np.atleast_1d(columns("bias", float32("bias", bias), self.columns))
            return bias[..., None, :]
        c = float32("c", c)
        whole = *self.lead, self.a.shape[-2], self.b.shape[-1]
        shape = self.as_vectors(np.broadcast_to(0, whole)).shape
        if not fits(c.shape, shape):
            rule = f"of a shape that broadcasts to {shape}"
            raise ValueError(f"c must be {rule}, not {c.shape}")
        if self.b.vector and c.ndim:
            c = c[..., None]
        if self.a.vector and c.ndim:
            c = c[..., None, :]
        return c.reshape((1,) * (2 - c.ndim) + c.shape)

    def _check_limits(self, config, low, high):
        """Return the limits of the columns, [N] or [batch..., N], or None without limits."""
        if low is None and high is None:
            return None
        if config.activation != "clamp":
            raise ValueError(
                f"Config.activation must be clamp for low and high, not {config.activation}"
            )
        given = {}
        for name, value, default in (("low", low, -np.inf), ("high", high, np.inf)):
            value = float32(name, default if value is None else value)
            require(name, "a number", value, ~np.isnan(value))
            given[name] = columns(name, _flushed(value) if self._flush else value, self.columns)
        shapes = (value.shape for value in given.values())
        limits = np.empty(np.broadcast_shapes(*shapes, self.columns[-1:]), LIMITS)
        for name, value in given.items():
            limits[name] = value
        invalid = limits[limits["low"] > limits["high"]]
        if invalid.size:
            raise ValueError(f"low must be at most high ({invalid[0][1]}), not {invalid[0][0]}")
        return limits


def _rounded(x):
    """Round float32 to bfloat16, to nearest even."""
    # Overflow gives infinity; a signalling NaN becomes a quiet NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(bfloat16)


def _flushed(x):
    """Replace each subnormal by a zero of the same sign."""
    return np.where(np.abs(x) < _MIN_NORMAL, np.copysign(x.dtype.type(0), x), x)
