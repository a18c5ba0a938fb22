"""The products of each data type: operands, results and how a product core computes them."""

import functools
import math
from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16

from weft.checks import columns, fits, float32, integers, require
from weft.commands import JobFlag
from weft.dtypes import DTYPES
from weft.host.packing import HALF, LIMITS, Epilogue, signed
from weft.host.product import Product, Side

__all__ = [
    "PRODUCTS", "FloatProduct", "IntegerProduct", "Values", "check_depth", "check_type", "correct",
    "has_any", "zero_point",
]


# Largest K for which a sum always fits int32: K * 128 * 128, or K * 255 * 255 with zero points.
_RAW_LIMIT = 131_071
_SHIFTED_LIMIT = 33_025


@dataclass(frozen=True)
class Values:
    """One operand as int8: ``values - offset`` are the numbers that the caller means.

    Attributes
    ----------
    values : array of int8
    offset : int or array
        One integer, or [batch..., M] for A and [batch..., N] for B.
    """

    values: np.ndarray
    offset: int | np.ndarray

    @classmethod
    def of(cls, array: np.ndarray, zero: int | np.ndarray) -> "Values":
        """Convert an int8 or uint8 array with a checked zero point."""
        if array.dtype == np.int8:
            return cls(array, zero)
        return cls(signed(array), zero - HALF)


def check_type(name: str, array) -> np.ndarray:
    """Return ``array`` as a numpy array; TypeError if its type is not int8 or uint8."""
    array = np.asarray(array)
    if array.dtype not in (np.int8, np.uint8):
        raise TypeError(f"{name} must be int8 or uint8, not {array.dtype}")
    return array


def zero_point(name: str, value, dtype, lines: str, shape: tuple[int, ...]) -> int | np.ndarray:
    """Return a zero point as int, or as an int64 array that broadcasts to ``shape``; 0 for None.

    ``shape`` is [batch..., size]; ``lines`` names its last axis in error messages, as in "rows of
    a". Raises TypeError if ``value`` is not integer, and ValueError if its shape does not broadcast
    or a number is outside the range of ``dtype``.
    """
    if value is None:
        return 0
    limits = np.iinfo(dtype)
    array = columns(name, integers(name, value, limits.min, limits.max), shape, lines)
    return array if array.ndim else int(array)


def check_depth(k: int, plain: bool) -> None:
    """Raise ValueError if a sum over ``k`` could exceed int32.

    ``plain``: both operands are int8 without zero points.
    """
    if k > (_RAW_LIMIT if plain else _SHIFTED_LIMIT):
        kind = "int8" if plain else "uint8 operands or zero points"
        limit = _RAW_LIMIT if plain else _SHIFTED_LIMIT
        raise ValueError(f"K must be at most {limit} with {kind}, not {k}")


def has_any(values: int | np.ndarray) -> bool:
    """Return whether a value is not 0."""
    # For a Python integer, np.any takes some microseconds.
    return values != 0 if isinstance(values, int) else bool(values.any())


def correct(raw, k, a_offset, b_offset, a_sums, b_sums) -> np.ndarray:
    """Subtract the offsets from ``raw = a @ b`` [..., M, N]; exact in int64, returned as int32.

    ``(a - p) @ (b - q) = a @ b - p * sums(b) - sums(a) * q + k * p * q``

    ``p`` is ``a_offset``, one per row; ``q`` is ``b_offset``, one per column. ``a_sums()`` and
    ``b_sums()`` return the sums of the int8 values over K, of shapes [..., M] and [..., N].
    """
    with_a, with_b = has_any(a_offset), has_any(b_offset)
    if not with_a and not with_b:
        return raw
    total = raw.astype(np.int64)
    p, q = np.asarray(a_offset)[..., None], np.atleast_1d(b_offset)[..., None, :]
    if with_a:
        total -= p * b_sums()[..., None, :]
    if with_b:
        total -= a_sums()[..., :, None] * q
    total += k * p * q
    return total.astype(np.int32)


class IntegerProduct(Product):
    """The checked arguments of one `Accelerator.matmul` on an int8 core.

    Attributes
    ----------
    epilogue : `Epilogue`
        Conversion of the sums to results.
    """

    ARGUMENTS = frozenset({
        "a_zero_point", "b_zero_point", "bias", "scale", "multiplier", "shift", "zero_point", "low",
        "high", "activation", "out_dtype",
    })

    def __init__(self, a, b, owner, *, a_zero_point=None, b_zero_point=None, **arguments):
        super().__init__(Side("a", a, owner, check_type), Side("b", b, owner, check_type))
        rows = *self.lead, self.a.shape[-2]
        self._left = _SignedSide(self.a, a_zero_point, "rows", rows)
        self._right = _SignedSide(self.b, b_zero_point, "columns", self.columns)
        plain = not has_any(self._left.offset) and not has_any(self._right.offset)
        check_depth(self.k, plain)
        self.epilogue = Epilogue.of(owner.config, self.columns, **arguments)
        self.flags, self.dtype = self.epilogue.flags, self.epilogue.dtype
        scaled, table = self.epilogue.requantizes, self.epilogue.table
        if scaled:
            self._check_scaled(owner.config)
            if not self.k:
                self._pad_k()
        self.arrange(
            columns_differ=scaled and math.prod(self._entries.shape[:-1]) > 1,
            jobs_differ=table is not None and math.prod(table.shape[:-1]) > 1,
        )

    def replace_a(self, array) -> None:
        array = check_type("a", array)
        if array.dtype != self._left.dtype:
            raise TypeError(f"a must be {self._left.dtype}, not {array.dtype}")
        self.b.check_loaded()
        self.a.replace(Values.of(array, 0).values)

    @staticmethod
    def to_core_type(name: str, array) -> tuple[np.ndarray, np.dtype]:
        array = check_type(name, array)
        return Values.of(array, 0).values, array.dtype

    @staticmethod
    def sums(lines: np.ndarray) -> np.ndarray:
        return lines.sum(-1, dtype=np.int64)

    def entries(self, index: int) -> np.ndarray:
        """Return the parameters of the columns of product ``index``: [N]."""
        return self.of_columns(self._entries, index)

    def check_prepared(self) -> None:
        super().check_prepared()
        table = self.epilogue.table
        if table is not None and table.ndim > 1:
            rule = "of shape (256,) for a prepared product"
            raise ValueError(f"activation must be {rule}, not {table.shape}")

    def table(self, index: int) -> np.ndarray | None:
        table = self.epilogue.table
        return table if table is None or table.ndim == 1 else self.part(table, index, 1)

    def empty_result(self) -> np.ndarray:
        return np.zeros(self.raw_shape, self.dtype)

    def result(self, raw: np.ndarray) -> np.ndarray:
        result = self.unfolded(raw)
        if not self.epilogue.requantizes:
            left, right = self._left, self._right
            result = self.epilogue.add_bias(correct(
                result, self.k, left.offset, right.offset, left.sums, right.sums
            ))
        return self.as_vectors(result)

    @functools.cached_property
    def _entries(self):
        """The parameters of columns: [N], or [batch..., N] if they differ within the batch.

        ``sum((a - p) * (b - q)) = sum(a * b) - p * sum(b) - q * sum(a) + K * p * q``

        The core subtracts ``q * sum(a)``; the other terms are part of the bias.
        """
        p, q, bias = self._left.offset, self._right.offset, self.epilogue.bias
        if has_any(p):
            bias = bias + self.k * p * q - p * self._right.sums()
        return self.epilogue.entries(np.broadcast_to(
            bias, np.broadcast_shapes(bias.shape, self.columns[-1:])
        ), q)

    def _pad_k(self):
        """Replace K of 0, which the core does not support, by K of 1 with operands of 0."""
        a, b = self.a, self.b
        a.shape, b.shape = (*a.shape[:-1], 1), (*b.shape[:-2], 1, b.shape[-1])
        a.values, b.values = np.zeros(a.shape, np.int8), np.zeros(b.shape, np.int8)
        self._left.offset = self._right.offset = 0
        self.k = 1

    def _check_scaled(self, config):
        """Raise ValueError for zero points that the core does not support with a scale."""
        p, q = self._left.offset, self._right.offset
        if not fits(np.shape(p), (*self.lead, 1)):
            rule = "one number for scaled results"
            if self.lead:
                rule += f", or of a shape that broadcasts to {(*self.lead, 1)}"
            raise ValueError(f"a_zero_point must be {rule}, not of shape {p.shape}")
        if has_any(q) and config.b_zero_point == "none":
            dtype = self._right.dtype
            plain = 0 if dtype == np.int8 else 128
            raise ValueError(
                f"Config.b_zero_point must be column for scaled results where b is"
                f" {dtype} and b_zero_point not {plain}, not none"
            )


class _SignedSide:
    """One operand converted to int8, with its offset and sums.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the operand before the conversion.
    offset : int or array
        The int8 values minus ``offset`` are the numbers that the caller means.
    """

    def __init__(self, side, zero, lines, shape):
        self._side = side
        resident = side.resident
        self.dtype = side.values.dtype if resident is None else resident.dtype
        name, lines = f"{side.name}_zero_point", f"{lines} of {side.name}"
        zero = zero_point(name, zero, self.dtype, lines, shape)
        given = np.empty(0, self.dtype) if resident else side.values
        converted = Values.of(given, zero)
        self.offset = converted.offset
        if not resident:
            side.values = converted.values  # the side has the operand of the core from now on

    def sums(self):
        """Return the sums of the int8 values over K."""
        if self._side.resident:
            return self._side.resident.sums
        axis = -1 if self._side.name == "a" else -2
        return self._side.values.sum(axis, dtype=np.int64)


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


# Subclasses of `weft.host.product.Product`, by the name of the data type.
PRODUCTS = DTYPES.layer("driver", int8=IntegerProduct, bf16=FloatProduct)
