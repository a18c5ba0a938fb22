"""One ``a @ b`` as the caller means it: checked, folded into few products, put together again."""

import math

import numpy as np

from weft.host.finish import Finish
from weft.host.resident import Resident
from weft.host.values import Values, check_depth, check_type, correct, zero_point

__all__ = ["Product"]


class Product:
    """The checked arguments of one `Accelerator.matmul`.

    A batch of A over one B is one product with all rows of the batch, and so for B: one load, one
    job. Only where both have a batch is there a product for each of it.

    Attributes
    ----------
    raw_shape : tuple of int
        (batch, M, N) of the int8 products that the core does.
    k : int
    a_page, b_page : int or None
        Where an operand is that is resident.
    finish : `Finish`
    """

    def __init__(self, a, b, a_zero_point, b_zero_point, owner, **finish):
        self._a = _Operand("a", a, owner)
        self._b = _Operand("b", b, owner)
        self._lead = self._check_shapes()
        self.k = self._a.shape[-1]
        self._a.centre(a_zero_point, "rows", self._a.shape[-2])
        self._b.centre(b_zero_point, "columns", self._b.shape[-1])
        check_depth(self.k, not np.any(self._a.offset) and not np.any(self._b.offset))
        self.a_page, self.b_page = self._a.page, self._b.page
        self.finish = Finish.of(owner.config, self._b.shape[-1], **finish)
        if self.finish.requantizes:
            self._check_scaled(owner.config)

        batch, m, n = math.prod(self._lead), self._a.shape[-2], self._b.shape[-1]
        if math.prod(self._b.shape[:-2]) == 1:
            self._fold, self.raw_shape = "a", (1, batch * m, n)
        elif math.prod(self._a.shape[:-2]) == 1:
            self._fold, self.raw_shape = "b", (1, m, batch * n)
        else:
            self._fold, self.raw_shape = None, (batch, m, n)

    def lines(self, side: int, index: int) -> np.ndarray:
        """The rows of A (side 0), or the columns of B, of one product: [R, K] of int8."""
        values = self._b.values.swapaxes(-1, -2) if side else self._a.values
        if self._fold:
            return values.reshape(-1, self.k)
        where = np.unravel_index(index, self._lead)
        return np.broadcast_to(values, self._lead + values.shape[-2:])[where]

    def entries(self, index: int) -> np.ndarray:
        """The parameters of the columns of one product.

        ``sum((a - p) * (b - q)) = sum(a * b) - p * sum(b) - q * sum(a) + K * p * q``, of which the
        core takes off ``q * sum(a)``; the rest is the bias.
        """
        p, q = self._a.offset, self._b.offset
        shape = (*self._b.shape[:-2], self._b.shape[-1])
        bias = np.zeros(shape, np.int64) + self.finish.bias
        if p:
            bias += self.k * p * q - p * self._b.sums()
        entries = self.finish.entries(bias, q)
        if self._fold:
            return entries.reshape(-1)
        where = np.unravel_index(index, self._lead)
        return np.broadcast_to(entries, (*self._lead, shape[-1]))[where]

    def result(self, raw: np.ndarray) -> np.ndarray:
        """The result, from what the core's products gave."""
        m, n = self._a.shape[-2], self._b.shape[-1]
        if self._fold == "b":
            raw = raw.reshape(m, -1, n).swapaxes(0, 1) if n else raw
        result = raw.reshape(*self._lead, m, n)
        if not self.finish.requantizes:
            result = self.finish.add_bias(correct(
                result, self.k, self._a.offset, self._b.offset, self._a.sums, self._b.sums
            ))
        # As numpy.matmul: the axis that a vector was given for the product's sake goes again.
        if self._b.vector:
            result = result[..., 0]
        if self._a.vector:
            result = result[..., 0] if self._b.vector else result[..., 0, :]
        return result

    def _check_scaled(self, config):
        """Refuses what the core can't finish."""
        if not self.k:
            raise ValueError("K must be 1 or more for scaled results, not 0")
        if np.ndim(self._a.offset):
            text = f"not of shape {self._a.offset.shape}"
            raise ValueError(f"a_zero_point must be one number for scaled results, {text}")
        if np.any(self._b.offset) and config.b_zero_point == "none":
            plain = 0 if self._b.dtype == np.int8 else 128
            raise ValueError(
                f"Config.b_zero_point must be column for scaled results where b is"
                f" {self._b.dtype} and b_zero_point not {plain}, not none"
            )

    def _check_shapes(self):
        """The shape of the batch."""
        a, b = self._a.shape, self._b.shape
        if a[-1] != b[-2]:
            raise ValueError(f"a and b must have the same K, not {a[-1]} and {b[-2]}")
        try:
            return np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            raise ValueError(
                f"batches of a and b must broadcast, not be {a[:-2]} and {b[:-2]}"
            ) from None


class _Operand:
    """A or B: its shape with both axes of a matrix, and its values where they are to be loaded."""

    def __init__(self, name, given, owner):
        self._name = name
        self.vector = False
        self.page = self.values = None
        if isinstance(given, Resident):
            _check_resident(name, given, owner)
            self.page, self.shape, self.dtype = given.page, given.shape, given.dtype
            self._array, self._sums = None, given.sums
            return
        array = check_type(name, given)
        if array.ndim == 0:
            raise ValueError(f"{name} must have 1 dimension or more, not 0")
        self.vector = array.ndim == 1
        if self.vector:
            array = array[None, :] if name == "a" else array[:, None]
        self._array, self.shape, self.dtype = array, array.shape, array.dtype

    def centre(self, zero, lines, count):
        """Take the zero point in, and the values to int8."""
        name, lines = f"{self._name}_zero_point", f"{lines} of {self._name}"
        zero = zero_point(name, zero, self.dtype, lines, count)
        centred = Values.of(np.empty(0, self.dtype) if self._array is None else self._array, zero)
        self.offset = centred.offset
        if self._array is not None:
            self.values = centred.values

    def sums(self):
        """The int8 values summed over K."""
        if self.values is None:
            return self._sums
        return self.values.sum(-1 if self._name == "a" else -2, dtype=np.int64)


def _check_resident(name, given, owner):
    if given.owner is not owner:
        raise ValueError(f"{name} must be loaded into this accelerator, not into another")
    if given.side != name:
        raise ValueError(f"{name} must be loaded with side={name!r}, not side={given.side!r}")
    if given.page is None:
        raise ValueError(f"{name} must be loaded, not freed")
