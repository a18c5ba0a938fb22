"""The work of a step, which a session executes on the core or on the host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.commands import Job, JobFlag, Load
from weft.config import Config
from weft.geometry import operands
from weft.host.product_stream import Packed, ProductStream, resident_loads, table_load
from weft.models.arithmetic import FloatFinish, IntegerFinish
from weft.models.lowering import MatrixRows, PairRows, WindowRows

__all__ = [
    "CoreWork", "HostProduct", "HostWork", "ListProduct", "RecurrentWork", "core_works",
    "host_products", "list_products",
]


@dataclass(frozen=True, eq=False)
class HostWork:
    """A kernel of `weft.models.kernels`.

    Attributes
    ----------
    kernel : str
    attributes : mapping of str
        Numbers, strings, tuples of them, arrays, and bytes.
    """

    kernel: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class HostProduct:
    """A matrix product that the host computes.

    Attributes
    ----------
    x : int
        Tensor of the first operand.
    b : int or None
        Tensor of the second operand; None: `weights`.
    x_zero : int
        Value of x outside a feature map.
    rows : MatrixRows, PairRows or WindowRows
        How tensors become A and B.
    weights : array [count, k, n] of int8 or float32, or None
    finish : IntegerFinish or FloatFinish
        How sums become y.
    """

    x: int
    b: int | None
    x_zero: int
    rows: MatrixRows | PairRows | WindowRows
    weights: np.ndarray | None
    finish: IntegerFinish | FloatFinish


class ListProduct(HostProduct):
    """The same, but lists of a network core compute its sums; the host finishes them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreWork:
    """Matrix products on the core.

    Attributes
    ----------
    x, b, x_zero, rows
        As in `HostProduct`.
    x_shape : tuple of int
        Shape of x in one inference.
    config : Config
    flags : JobFlag
    results : numpy.dtype
        Type of the results of the core.
    packed : Packed
        B and parameters of all products as the command stream carries them; B is empty for two
        activations.
    table : array [256] or None
        Activation table.
    finish : IntegerFinish or FloatFinish
        How sums become y: IntegerFinish on the core if the flags have REQUANTIZE, else on the host;
        FloatFinish on the host, after the core.
    copies : int
        Products of the core for each product of the operator: 2 for int16, the high and the low
        bytes of x, which follow each other in the rows of one A.
    b_pages : tuple of int or None
        First page of B for each product, if the weights are loaded before the step.
    free : (int, int)
        First page and number of pages of B's buffer that the step may use for other weights.
    loads_table : bool
        Whether the core has another table before this step.
    early : int
        Step whose weights are loaded at the end of this step; -1: none.
    """

    x: int
    b: int | None
    x_zero: int
    rows: MatrixRows | PairRows | WindowRows
    x_shape: tuple[int, ...]
    config: Config
    flags: JobFlag
    results: np.dtype
    packed: Packed
    table: np.ndarray | None
    finish: IntegerFinish | FloatFinish
    copies: int = 1
    b_pages: tuple[int, ...] | None = None
    free: tuple[int, int] = (0, 0)
    loads_table: bool = False
    early: int = -1

    def shape(self, inferences: int = 1) -> tuple[int, int, int, int]:
        """Return count, m, k and n of the products of several inferences in one stream."""
        rows = self.rows
        m = rows.m(self.x_shape) * self.copies
        if isinstance(rows, PairRows):
            return rows.count * inferences, m, rows.k, rows.n
        return rows.count, m * inferences, rows.k, rows.n

    def stream(
        self, inferences: int = 1, after: list[tuple[Load, bytes]] | None = None
    ) -> ProductStream:
        """Return the commands for several inferences, and then the loads ``after``."""
        a_pages = operands(self.config)[0].pages
        pair = isinstance(self.rows, PairRows)
        return ProductStream(
            self.config, self.shape(inferences), self.flags, self.packed, self.results,
            b_pages=self.b_pages, has_parameters=self.b_pages is not None,
            free=[(0, a_pages), self.free], computed_b=pair,
            before=[table_load(self.table, self.config)] if self.loads_table else [],
            after=after or (),
        )

    def weight_loads(self) -> list[tuple[Load, bytes]]:
        """Return the loads of B and parameters to `b_pages`."""
        return resident_loads(self.config, self.shape(), self.packed, self.b_pages)

    def commands(self) -> list[Job | Load]:
        """Return the headers of the step's jobs and loads in stream order, for one inference.

        Loads of the weights of a later step are left out (`early`). The report finds from all of
        these headers what bounds the step (`weft.cycles.model`).
        """
        return self.stream().commands


@dataclass(frozen=True, eq=False, kw_only=True)
class RecurrentWork:
    """A kernel of `weft.models.kernels.RECURRENT`, and the products that it asks for.

    Attributes
    ----------
    kernel, attributes
        As in `HostWork`.
    products : tuple of CoreWork or HostProduct
        Without tables, with constant weights. ``x`` gives type and shape of the operand of one
        step.
    steps : int
        How often each product is computed in an inference.
    mode : str
        Rounding mode of the network.
    """

    kernel: str
    attributes: Mapping[str, Any]
    products: tuple[CoreWork | HostProduct, ...]
    steps: int
    mode: str


def core_works(work: CoreWork | HostProduct | HostWork | RecurrentWork) -> list[CoreWork]:
    """Return the products of a step on the core."""
    if isinstance(work, RecurrentWork):
        return [part for part in work.products if isinstance(part, CoreWork)]
    return [work] if isinstance(work, CoreWork) else []


def list_products(
    work: CoreWork | HostProduct | HostWork | RecurrentWork
) -> list[ListProduct]:
    """Return the products of a step whose sums lists of a network core compute."""
    return [part for part in host_products(work) if isinstance(part, ListProduct)]


def host_products(
    work: CoreWork | HostProduct | HostWork | RecurrentWork
) -> list[HostProduct]:
    """Return the products of a step that the host drives: it, or a list, computes their sums."""
    parts = work.products if isinstance(work, RecurrentWork) else (work,)
    return [part for part in parts if isinstance(part, HostProduct)]
