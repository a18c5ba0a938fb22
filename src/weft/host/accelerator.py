"""The driver: matrix products of numpy arrays on a core behind any transport."""

import functools

import numpy as np

from weft.commands import TABLE_ENTRIES, Load, Status
from weft.config import PAGE_WORDS, Config
from weft.geometry import memories
from weft.host.exchange import AcceleratorError, Exchange
from weft.host.packing import (
    ENTRY_BYTES,
    pack,
    pack_entries,
    pack_table,
    panel_slice,
    unpack,
)
from weft.host.pages import Pages
from weft.host.planner import PARAMETERS, Planner
from weft.host.product import Product
from weft.host.record import Record
from weft.host.resident import Resident
from weft.host.shelf import Shelf
from weft.host.transport import Transport
from weft.host.values import Values, check_type

__all__ = ["Accelerator", "AcceleratorError"]

_MOST_JOBS = 1 << 14  # sent at once: far fewer than tags, so that a tag tells old results from new
_TABLE = 3


class Accelerator:
    """A core and the numbers it multiplies. It has the core to itself until it is closed.

    Also a context manager that closes the transport.

    Parameters
    ----------
    transport : Transport
    config : Config, optional
        What the core must be; taken from its registers where absent.
    timeout : float
        Seconds of silence, at most, wherever something is awaited.

    Attributes
    ----------
    config : Config

    Raises
    ------
    AcceleratorError
        Where the core's description is none, or not ``config``.
    """

    def __init__(self, transport: Transport, config: Config | None = None, *, timeout=60.0):
        self._core = Exchange(transport, config, timeout)
        self.config = self._core.config
        self._memories = memories(self.config)
        self._pages = [Pages(operand.pages) for operand in self._memories[:2]]
        self._shelf = Shelf()

    def __enter__(self) -> "Accelerator":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the transport."""
        self._core.close()

    def counters(self) -> dict[str, int]:
        """The hardware's counters as they stand, by the names of `weft.registers.COUNTERS`."""
        return self._core.counters()

    def load(self, matrix, side: str = "b") -> Resident:
        """Load B [K, N] (or, with ``side="a"``, A [M, K]) to stay until freed.

        Raises TypeError or ValueError for what is no matrix of int8 or uint8, and ValueError where
        it does not fit in the free pages in a row.
        """
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        matrix = check_type(side, matrix)
        if matrix.ndim != 2 or 0 in matrix.shape:
            rule = "a matrix of 1 x 1 or more"
            raise ValueError(f"{side} must be {rule} to be loaded, not of shape {matrix.shape}")
        values = Values.of(matrix, 0).values
        lines = values if side == "a" else values.T
        index = "ab".index(side)
        operand, pages = self._memories[index], self._pages[index]
        panels, pitch = operand.panels(lines.shape[0]), operand.panel_pages(lines.shape[1])
        page = pages.hold(panels * pitch)
        if page is None:
            size = f"{matrix.shape[0]} x {matrix.shape[1]}"
            room = f"{pages.free()[1]} pages of {PAGE_WORDS} words that are free in a row"
            raise ValueError(f"{side} of {size} must fit in the {room}, not need {panels * pitch}")
        load = Load(index, page, pitch, panels, operand.panel_words(lines.shape[1]))
        try:
            with self._core.opened(self._shelf):
                # The core answers the empty job once it has taken all of the load.
                barrier = self._core.barrier()
                header = self._core.header
                self._core.send(header(load) + pack(lines, operand) + header(barrier))
                self._core.collect(barrier, Status.REJECTED)
        except BaseException:
            pages.release(page)
            raise
        sums = lines.sum(-1, dtype=np.int64)
        return Resident(side, matrix.shape, matrix.dtype, sums, page, self, pages.release)

    def matmul(
        self, a, b, *, a_zero_point=None, b_zero_point=None, bias=None,
        scale=None, multiplier=None, shift=None, zero_point=0, low=None, high=None,
        activation=None, out_dtype=None, record: bool = False,
    ):
        """``(a - a_zero_point) @ (b - b_zero_point) + bias``: exact, as int32, or scaled to 8 bits.

        Shapes are those of `numpy.matmul`: vectors, matrices, batches that broadcast. With a scale
        the core finishes the sums, to the bit as the mode in ``Config.requantize`` says::

            activation[clamp(round(sum * scale) + zero_point, low, high)]

        Then sums with their bias wrap at 32 bits, as in the runtimes' accumulators.

        Parameters
        ----------
        a, b : array of int8 or uint8, or Resident
        a_zero_point : int or array, optional
            In the range of a's type; one number, or, without a scale, one for each row of a.
        b_zero_point : int or array, optional
            In the range of b's type; one number, or one for each column of b. With a scale,
            anything but 0 of int8 and 128 of uint8 needs ``Config.b_zero_point``.
        bias : int or array, optional
            Of int32; one number, or one for each column of b.
        scale : float or array, optional
            One number, or one for each column of b. In modes ``tflite`` and ``single`` it becomes
            multiplier and shift by `weft.quantize.quantize_multiplier`; in ``onnx`` a float32.
        multiplier, shift : int or array, optional
            In place of a scale, ``multiplier * 2**(shift - 31)``, in modes ``tflite`` and
            ``single``: multipliers 0 or in 2**30..2**31-1, shifts in -31..31.
        zero_point, low, high : int, optional
            In the range of ``out_dtype``, all of which is the clamp's where it is absent. A fused
            ReLU has ``low=zero_point``.
        activation : int8 or uint8 [256], optional
            Results by their bytes, as from `weft.quantize.activation_table`; of ``out_dtype``.
        out_dtype : int8 or uint8, optional
            Of scaled results; where absent that of ``activation``, else int8.
        record : bool
            Give ``(array, Record)`` rather than the array.

        Raises
        ------
        TypeError, ValueError
            For what cannot be multiplied without a wrong sum, breaks a rule, or is not in the
            Config, before anything is sent; and where int32 sums with their bias leave int32.
        AcceleratorError, TransportError
            Where the core or the way to it failed; the result is lost, the next call is sound.
        """
        product = Product(
            a, b, a_zero_point, b_zero_point, self, bias=bias, scale=scale, multiplier=multiplier,
            shift=shift, zero_point=zero_point, low=low, high=high, activation=activation,
            out_dtype=out_dtype,
        )
        raw = np.zeros(product.raw_shape, product.finish.dtype)
        spent = self._run(product, raw, record) if raw.size and product.k else None
        result = product.result(raw)
        if not record:
            return result
        return result, spent or Record(0, 0, self.config.peak, 0, 0, 0, 0, 0, 0)

    def _run(self, product, raw, record):
        """Fill ``raw`` [batch, M, N]; the Record if asked for."""
        steps = self._plan(product)
        core = self._core
        with core.opened(self._shelf):
            before = core.counters() if record else None
            table = self._table(product.finish.table)
            for start in range(0, len(steps), _MOST_JOBS):
                part = steps[start : start + _MOST_JOBS]
                core.send(b"".join([*table, *self._commands(product, part)]))
                table = []
                for index, step in part:
                    if step.answers:
                        job = step.job
                        tile = unpack(core.collect(job), job.m, job.n, self.config, raw.dtype)
                        raw[index, step.rows, step.cols] = tile
            if record:
                return core.record(before, macs=raw.size * product.k, jobs=len(steps))

    def _plan(self, product):
        """The steps of all products of the batch, each with its index."""
        planner = Planner(self.config, [pages.free() for pages in self._pages], self._core.tags)
        _, m, n = product.raw_shape
        places = {"a_page": product.a_page, "b_page": product.b_page}
        return [
            (index, step)
            for index in range(product.raw_shape[0])
            for step in planner.plan(m, n, product.k, **places, flags=product.finish.flags)
        ]

    def _table(self, table):
        """The bytes that load an activation table, where there is one and the core lacks it."""
        if table is None:
            return []
        load, data = Load(_TABLE, 0, 1, 1, TABLE_ENTRIES), pack_table(table, self._memories[_TABLE])
        return [self._core.header(load), data] if self._shelf.lacks(load, data) else []

    def _commands(self, product, steps):
        """The bytes of some steps: parameters, each job's header, then the loads that feed it."""

        @functools.lru_cache(maxsize=3)
        def packed(side, index):
            operand = self._memories[side]
            if side == PARAMETERS:
                return memoryview(pack_entries(product.entries(index), operand, self.config.cols))
            return memoryview(pack(product.lines(side, index), operand))

        def carried(feed, index):
            load = feed.load
            k = load.words * ENTRY_BYTES if load.operand == PARAMETERS else product.k
            operand = self._memories[load.operand]
            where = panel_slice(operand, k, feed.panel, load.panels, feed.word, load.words)
            return packed(load.operand, index)[where]

        header = self._core.header
        for index, step in steps:
            if step.parameters:
                load, data = step.parameters.load, carried(step.parameters, index)
                if self._shelf.lacks(load, data):
                    yield from (header(load), data)
            yield header(step.job)
            for feed in step.feeds:
                yield from (header(feed.load), carried(feed, index))
