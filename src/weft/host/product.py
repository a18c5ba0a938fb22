"""The shapes of one ``a @ b``, and an operand that stays in the core's buffer."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.commands import JobFlag

__all__ = ["Product", "Resident", "Side"]


@dataclass(eq=False)
class Resident:
    """A loaded operand, from `Accelerator.load`; `Accelerator.matmul` accepts it as ``a`` or ``b``.

    It is also a context manager that frees the operand at its end.

    Attributes
    ----------
    side : str
        "a" or "b".
    shape : tuple of int
        (M, K) for A, (K, N) for B.
    dtype : numpy.dtype
        int8, uint8 or bfloat16.
    sums : array of int64 or None
        Sums of its int8 values over K, for zero points: [M] or [N]. None on a bf16 core.
    page : int or None
        First page in the buffer; None once freed.
    owner : Accelerator
        Accelerator into which it is loaded.
    release : callable
        ``release(page)`` frees the pages.
    lock : RLock
        Held by the accelerator while it uses the pages.
    """

    side: str
    shape: tuple[int, int]
    dtype: np.dtype
    sums: np.ndarray | None
    page: int | None
    owner: object
    release: Callable[[int], None]
    lock: threading.RLock

    def free(self) -> None:
        """Free the pages after the current product has ended. Freeing twice has no effect."""
        with self.lock:
            if self.page is not None:
                self.release(self.page)
                self.page = None

    def __enter__(self) -> "Resident":
        return self

    def __exit__(self, *exception) -> None:
        self.free()


class Side:
    """One operand: its shape as a matrix or batch of matrices, and its values.

    Parameters
    ----------
    name : str
        "a" or "b".
    given : array or Resident
        The operand as the caller gave it.
    owner : Accelerator
        Accelerator of the product; a Resident must belong to it.
    check : callable
        ``check(name, array)`` returns the array in a type for the core, or raises an error.

    Attributes
    ----------
    shape : tuple of int
        [..., M, K] or [..., K, N].
    vector : bool
        Whether the operand was a vector, to which an axis was added.
    values : array or None
        None if the operand is resident.
    page : int or None
        First page of a resident operand.
    resident : Resident or None
    """

    def __init__(self, name: str, given, owner, check: Callable):
        self.name = name
        self.vector = False
        self.values = self.page = self.resident = None
        if isinstance(given, Resident):
            _check_resident(name, given, owner)
            self.resident, self.page, self.shape = given, given.page, given.shape
            return
        values = check(name, given)
        if values.ndim == 0:
            raise ValueError(f"{name} must have 1 dimension or more, not 0")
        self.vector = values.ndim == 1
        if self.vector:
            values = values[None, :] if name == "a" else values[:, None]
        self.values, self.shape = values, values.shape

    def replace(self, values: np.ndarray) -> None:
        """Replace the values; ValueError for another shape."""
        shape: tuple[int, ...] = self.shape
        if self.vector:
            shape = shape[1:] if self.name == "a" else shape[:-1]
        if values.shape != shape:
            raise ValueError(f"{self.name} must be of shape {shape}, not {values.shape}")
        self.values = values.reshape(self.shape)

    def check_loaded(self) -> None:
        """Raise ValueError if the operand is resident and was freed."""
        if self.resident is not None and self.resident.page != self.page:
            raise ValueError(f"{self.name} must be loaded, not freed")


class Product:
    """One `Accelerator.matmul`: its shapes, and the products that the core computes for it.

    If only A has a batch, the core computes one product with all rows of the batch: one load and
    one job. The same holds for the columns of B. The core computes one product per batch index if
    both have a batch, or if parameters of a column, or activation tables, differ within the batch.
    `arrange` makes the choice.

    A subclass per dtype adds the types of the operands, and the conversion of the sums. The driver
    uses only this interface.

    Parameters
    ----------
    a, b : Side

    Attributes
    ----------
    ARGUMENTS : frozenset of str
        Arguments of `Accelerator.matmul`, besides the operands, that the dtype supports.
    lead : tuple of int
        Shape of the batch.
    columns : tuple of int
        ``(*lead, N)``: the shape to which parameters of columns broadcast.
    raw_shape : tuple of int
        (batch, M, N) of the products that the core computes.
    macs : int
        Multiply-accumulate operations.
    k : int
        K of the products that the core computes; 0 if it computes none.
    pages : list of int or None
        First pages of A and of B in the core; None for an operand to be loaded.
    flags : JobFlag
        Start of the sums, and conversion to results.
    dtype : numpy.dtype
        Type of the core's results.
    """

    ARGUMENTS: frozenset[str]
    flags: JobFlag
    dtype: np.dtype

    def __init__(self, a: Side, b: Side):
        self.a, self.b = a, b
        self.lead = self._check_shapes()
        self.columns = (*self.lead, b.shape[-1])
        self.k = a.shape[-1]
        self.macs = math.prod(self.columns) * a.shape[-2] * self.k
        self.pages = [a.page, b.page]

    def arrange(self, *, columns_differ: bool = False, jobs_differ: bool = False) -> None:
        """Choose the products that the core computes: set ``fold`` and ``raw_shape``.

        Parameters
        ----------
        columns_differ : bool
            Parameters of a column differ within the batch, so rows of A cannot be folded.
        jobs_differ : bool
            A property of a whole job differs within the batch, so nothing can be folded.
        """
        self.fold: str | None
        batch, m, n = math.prod(self.lead), self.a.shape[-2], self.b.shape[-1]
        if math.prod(self.b.shape[:-2]) == 1 and not (columns_differ or jobs_differ):
            self.fold, self.raw_shape = "a", (1, batch * m, n)
        elif math.prod(self.a.shape[:-2]) == 1 and not jobs_differ:
            self.fold, self.raw_shape = "b", (1, m, batch * n)
        else:
            self.fold, self.raw_shape = None, (batch, m, n)

    @property
    def has_parameters(self) -> bool:
        """Whether jobs need the parameters of `entries`."""
        return bool(self.flags & (JobFlag.REQUANTIZE | JobFlag.CLAMP))

    @property
    def has_start(self) -> bool:
        """Whether the sums start from `start`."""
        return JobFlag.PRELOAD in self.flags

    def check_prepared(self) -> None:
        """Raise ValueError if the product cannot be prepared for later values of A."""
        if not self.k or 0 in self.raw_shape:
            _, m, n = self.raw_shape
            raise ValueError(
                f"a prepared product must have M, K and N of 1 or more, not {m}, {self.k} and {n}"
            )
        if self.a.values is None:
            raise ValueError("a of a prepared product must be an array, not resident")

    def replace_a(self, array) -> None:
        """Replace the values of A; the type and the shape must stay.

        Raises TypeError or ValueError for another type or shape, or if a resident B was freed.
        """
        raise NotImplementedError

    @staticmethod
    def to_core_type(name: str, array) -> tuple[np.ndarray, np.dtype]:
        """Return an operand in the core's type, and its own dtype; TypeError for another type."""
        raise NotImplementedError

    @staticmethod
    def sums(lines: np.ndarray) -> np.ndarray | None:
        """Return the sums over K of resident ``lines`` [R, K], or None if the dtype needs none."""
        raise NotImplementedError

    def lines(self, side: int, index: int) -> np.ndarray:
        """Return the rows of A (side 0) or the columns of B of product ``index``: [R, K]."""
        values: Any = (self.a, self.b)[side].values
        if side:
            values = values.swapaxes(-1, -2)
        return values.reshape(-1, self.k) if self.fold else self.part(values, index, 2)

    def shares(self, side: int) -> bool:
        """Return whether several products share one A (side 0) or B (side 1) to be loaded."""
        several = self.raw_shape[0] > 1 and self.fold is None and self.pages[side] is None
        return several and math.prod((self.a, self.b)[side].shape[:-2]) == 1

    def entries(self, index: int) -> np.ndarray:
        """Return the parameters of the columns of product ``index``: [N]."""
        raise NotImplementedError

    def table(self, index: int) -> np.ndarray | None:
        """Return the activation table of product ``index``, or None."""
        return None

    def start(self, index: int) -> np.ndarray:
        """Return the start values of the sums: [M, N], or [1, N] for all rows."""
        raise NotImplementedError

    def empty_result(self) -> np.ndarray:
        """Return the products for K of 0, which the core does not support."""
        raise NotImplementedError

    def result(self, raw: np.ndarray) -> np.ndarray:
        """Return the final result from the products of the core."""
        return self.as_vectors(self.unfolded(raw))

    def part(self, array: np.ndarray, index: int, axes: int) -> np.ndarray:
        """Return the part of an array [batch..., ``axes`` axes] for product ``index``."""
        where = np.unravel_index(index, self.lead)
        return np.broadcast_to(array, (*self.lead, *array.shape[-axes:]))[where]

    def of_columns(self, array: np.ndarray, index: int) -> np.ndarray:
        """Return the part of an array [batch..., N] for the columns of product ``index``."""
        if self.fold == "b":
            return np.broadcast_to(array, self.columns).reshape(-1)
        return array.reshape(-1) if self.fold else self.part(array, index, 1)

    def unfolded(self, raw: np.ndarray) -> np.ndarray:
        """Return the products as [batch..., M, N]."""
        m, n = self.a.shape[-2], self.b.shape[-1]
        if self.fold == "b":
            raw = raw.reshape(m, math.prod(self.lead), n).swapaxes(0, 1)
        return raw.reshape(*self.lead, m, n)

    def as_vectors(self, result: np.ndarray) -> np.ndarray:
        """Remove the axes that were added to vectors, as numpy.matmul does.

        A result without axes is a numpy scalar.
        """
        if self.b.vector:
            result = result[..., 0]
        if self.a.vector:
            result = result[..., 0] if self.b.vector else result[..., 0, :]
        return result[()]

    def _check_shapes(self):
        """Return the shape of the batch; ValueError if the shapes of a and b do not match."""
        a, b = self.a.shape, self.b.shape
        if a[-1] != b[-2]:
            raise ValueError(f"a and b must have the same K, not {a[-1]} and {b[-2]}")
        try:
            return np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            raise ValueError(
                f"batches of a and b must broadcast, not be {a[:-2]} and {b[:-2]}"
            ) from None


def _check_resident(name, given, owner):
    if given.owner is not owner:
        raise ValueError(f"{name} must be loaded into this accelerator, not into another")
    if given.side != name:
        raise ValueError(f"{name} must be loaded with side={name!r}, not side={given.side!r}")
    if given.page is None:
        raise ValueError(f"{name} must be loaded, not freed")
