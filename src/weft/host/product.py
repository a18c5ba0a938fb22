"""One ``a @ b`` as the caller means it: its shapes, folded into few products, and back."""

import math
from collections.abc import Callable

import numpy as np

from weft.host.resident import Resident

__all__ = ["Product", "Side"]


class Side:
    """A or B: its shape with both axes of a matrix, and its values where they are to be loaded.

    Parameters
    ----------
    name : str
        "a" or "b".
    given : array or Resident
    owner : Accelerator
    check : callable
        ``check(name, array)`` gives what the core takes, or refuses it.

    Attributes
    ----------
    shape : tuple of int
    vector : bool
        An axis was added.
    values : array or None
        None where it is resident: ``page`` says where.
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


class Product:
    """The shapes of one `Accelerator.matmul`, and which part of it each product of the core is.

    A batch of A over one B is one product with all rows of the batch, and so for B: one load, one
    job. There is a product for each of the batch only where both have one, or where the parameters
    of a column, or the activation table, differ from one to the next: `arrange` decides.

    A product of a dtype adds what its operands are and what the core is to do with the sums; the
    driver asks it for all that is named here, and knows no dtype itself.

    Parameters
    ----------
    a, b : Side

    Attributes
    ----------
    ARGUMENTS : frozenset of str
        Those of `Accelerator.matmul`, beside the operands, that it takes.
    lead : tuple of int
        The shape of the batch.
    columns : tuple of int
        ``(*lead, N)``: what parameters of columns broadcast to.
    raw_shape : tuple of int
        (batch, M, N) of the products that the core does.
    macs : int
        Products of two numbers in the result.
    k : int
        Of the products that the core does; 0 where it does none.
    pages : list of int or None
        The first page of A and of B where they are in the core; None of what is to be loaded.
    flags : JobFlag
        How sums start, and what becomes of them.
    dtype : numpy.dtype
        Of what the core gives.
    """

    ARGUMENTS: frozenset[str]

    def __init__(self, a: Side, b: Side):
        self.a, self.b = a, b
        self.lead = self._check_shapes()
        self.columns = (*self.lead, b.shape[-1])
        self.k = a.shape[-1]
        self.macs = math.prod(self.columns) * a.shape[-2] * self.k
        self.pages = [a.page, b.page]

    def arrange(self, *, columns_differ: bool = False, jobs_differ: bool = False) -> None:
        """Choose the products of the core: `fold` and `raw_shape`.

        Parameters
        ----------
        columns_differ : bool
            Parameters of a column differ within the batch: its rows are not of one product.
        jobs_differ : bool
            What a job has once differs within the batch: there is a product for each.
        """
        batch, m, n = math.prod(self.lead), self.a.shape[-2], self.b.shape[-1]
        if math.prod(self.b.shape[:-2]) == 1 and not (columns_differ or jobs_differ):
            self.fold, self.raw_shape = "a", (1, batch * m, n)
        elif math.prod(self.a.shape[:-2]) == 1 and not jobs_differ:
            self.fold, self.raw_shape = "b", (1, m, batch * n)
        else:
            self.fold, self.raw_shape = None, (batch, m, n)

    @staticmethod
    def stored(name: str, array) -> tuple[np.ndarray, np.dtype]:
        """What is to be resident as the core takes it, and its own dtype; or a refusal."""
        raise NotImplementedError

    @staticmethod
    def sums(lines: np.ndarray) -> np.ndarray | None:
        """What products ask of resident ``lines`` [R, K]: their sums over K, or nothing."""
        raise NotImplementedError

    def lines(self, side: int, index: int) -> np.ndarray:
        """The rows of A (side 0), or the columns of B, of one product: [R, K]."""
        values = self.b.values.swapaxes(-1, -2) if side else self.a.values
        return values.reshape(-1, self.k) if self.fold else self.part(values, index, 2)

    def shares(self, side: int) -> bool:
        """Whether several products have one and the same A (side 0), or B, that is to be loaded."""
        one = math.prod((self.a, self.b)[side].shape[:-2]) == 1
        return one and self.pages[side] is None and self.fold is None and self.raw_shape[0] > 1

    def entries(self, index: int) -> np.ndarray:
        """The parameters of the columns of one product: [N]."""
        raise NotImplementedError

    def table(self, index: int) -> np.ndarray | None:
        """The activation table of one product, if it has one."""
        return None

    def start(self, index: int) -> np.ndarray:
        """What the sums of one product start from: [M, N], or [1, N] for every row."""
        raise NotImplementedError

    def nothing(self) -> np.ndarray:
        """What the products are where K is 0: the core does no such job."""
        raise NotImplementedError

    def result(self, raw: np.ndarray) -> np.ndarray:
        """The result, from what the core's products gave."""
        return self.as_vectors(self.unfolded(raw))

    def part(self, array: np.ndarray, index: int, axes: int) -> np.ndarray:
        """Of an array with the batch in front of ``axes`` axes, what belongs to one product."""
        where = np.unravel_index(index, self.lead)
        return np.broadcast_to(array, (*self.lead, *array.shape[-axes:]))[where]

    def of_columns(self, array: np.ndarray, index: int) -> np.ndarray:
        """Of an array [batch..., N], what belongs to the columns of one product."""
        if self.fold == "b":
            return np.broadcast_to(array, self.columns).reshape(-1)
        return array.reshape(-1) if self.fold else self.part(array, index, 1)

    def unfolded(self, raw: np.ndarray) -> np.ndarray:
        """[batch..., M, N], from the products."""
        m, n = self.a.shape[-2], self.b.shape[-1]
        if self.fold == "b":
            raw = raw.reshape(m, math.prod(self.lead), n).swapaxes(0, 1)
        return raw.reshape(*self.lead, m, n)

    def as_vectors(self, result: np.ndarray) -> np.ndarray:
        """As numpy.matmul: the axis that a vector was given for the product's sake goes again.

        Without any axis left, the result is a scalar of numpy.
        """
        if self.b.vector:
            result = result[..., 0]
        if self.a.vector:
            result = result[..., 0] if self.b.vector else result[..., 0, :]
        return result[()]

    def _check_shapes(self):
        """The shape of the batch."""
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
