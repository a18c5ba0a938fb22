"""An INT8 product: operands with zero points; exact sums or results scaled to 8 bits."""

import functools
import math

import numpy as np

from weft.checks import fits
from weft.host.epilogue import Epilogue
from weft.host.product import Product, Side
from weft.host.values import Values, check_depth, check_type, correct, has_any, zero_point

__all__ = ["IntegerProduct"]


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
            side.values = converted.values

    def sums(self):
        """Return the sums of the int8 values over K."""
        if self._side.resident:
            return self._side.resident.sums
        axis = -1 if self._side.name == "a" else -2
        return self._side.values.sum(axis, dtype=np.int64)
