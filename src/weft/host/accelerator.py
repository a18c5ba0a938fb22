"""The driver: matrix products of numpy arrays on a core behind any transport."""

import contextlib
import functools
import threading

import numpy as np

from weft.commands import TABLE_ENTRIES, Load, Region, Status
from weft.config import PAGE_WORDS, Config
from weft.geometry import memories
from weft.host.core_session import AcceleratorError, CoreSession
from weft.host.floats import FloatProduct
from weft.host.integers import IntegerProduct
from weft.host.opening import open_transport
from weft.host.packing import cut, pack, pack_entries, pack_table, unpack
from weft.host.pages import Pages
from weft.host.planner import Planner
from weft.host.residency import ResidencyCache
from weft.host.resident import Resident
from weft.host.stats import Stats
from weft.host.transport import Transport

__all__ = ["Accelerator", "AcceleratorError"]

_MOST_JOBS = 1 << 14  # sent at once: far fewer than tags, so that a tag tells old results from new
_PRODUCTS = {"int8": IntegerProduct, "bf16": FloatProduct}


class Accelerator:
    """A core and the numbers it multiplies. It has the core to itself until it is closed.

    Also a context manager that closes the transport.

    Threads may share an accelerator: its methods, and `Resident.free`, wait for each other, so that
    each product is whole before the next one starts. One transport belongs to one accelerator.

    Parameters
    ----------
    transport : Transport or str
        The way to the core, or the name of one: see `weft.host.opening.open_transport`.
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
    TransportError
        Where a transport that is named cannot be opened.
    """

    def __init__(self, transport: Transport | str, config: Config | None = None, *, timeout=60.0):
        self._core = _exchange(transport, config, timeout)
        self.config = self._core.config
        self._memories = memories(self.config)
        self._pages = [Pages(self._memories[side].pages) for side in (Region.A, Region.B)]
        self._shelf = ResidencyCache(self._memories)
        self._product = _PRODUCTS[self.config.dtype]
        self._lock = threading.RLock()  # all that is sent for one call, and what is known of it

    def __enter__(self) -> "Accelerator":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the transport, once the product under way has ended."""
        with self._lock:
            self._core.close()

    def counters(self) -> dict[str, int]:
        """The hardware's counters as they stand, by the names of `weft.registers.COUNTERS`."""
        with self._lock:
            return self._core.counters()

    def load(self, matrix, side: str = "b", *, cast: bool = False) -> Resident:
        """Load B [K, N] (or, with ``side="a"``, A [M, K]) to stay until freed.

        Raises TypeError or ValueError for what is no matrix of the types that `matmul` takes, and
        ValueError where it does not fit in the free pages in a row.
        """
        if side not in ("a", "b"):
            raise ValueError(f"side must be 'a' or 'b', not {side!r}")
        values, dtype = self._product.stored(side, matrix, **self._known(cast=cast or None))
        if values.ndim != 2 or 0 in values.shape:
            rule = "a matrix of 1 x 1 or more"
            raise ValueError(f"{side} must be {rule} to be loaded, not of shape {values.shape}")
        lines = values if side == "a" else values.T
        index = Region[side.upper()]
        operand, pages = self._memories[index], self._pages[index]
        with self._lock:
            load = self._hold(index, lines)
            if load is None:
                size = f"{values.shape[0]} x {values.shape[1]}"
                room = f"{pages.free()[1]} pages of {PAGE_WORDS} words that are free in a row"
                need = operand.panels(lines.shape[0]) * operand.panel_pages(lines.shape[1])
                raise ValueError(f"{side} of {size} must fit in the {room}, not need {need}")
            try:
                self._put(load, pack(lines, operand))
            except BaseException:
                pages.release(load.page)
                raise
        sums = self._product.sums(lines)
        return Resident(side, values.shape, dtype, sums, load.page, self, pages.release, self._lock)

    def matmul(
        self, a, b, *, a_zero_point=None, b_zero_point=None, bias=None,
        scale=None, multiplier=None, shift=None, zero_point=None, low=None, high=None,
        activation=None, c=None, cast: bool = False, out_dtype=None, record: bool = False,
    ):
        """``a @ b`` with what comes before and after, exactly as the core's numerics say.

        Shapes are those of `numpy.matmul`: vectors, matrices, batches that broadcast. So are those
        of parameters: of shape () or [N] they are for the whole batch; those with axes in front,
        [batch..., N], broadcast against the batch of the result, a set for each product.

        On an int8 core, ``(a - a_zero_point) @ (b - b_zero_point) + bias``: exact, as int32, or
        scaled to 8 bits. With a scale the core finishes the sums, to the bit as the mode in
        ``Config.requantize`` says::

            activation[clamp(round(sum * scale) + zero_point, low, high)]

        Then sums with their bias wrap at 32 bits, as in the runtimes' accumulators.

        On a bf16 core, ``clamp(sum, low, high)``, each sum a chain of fused multiply-adds in
        float32, k ascending, from ``c`` or ``bias`` or +0 on. A ReLU has ``low=0``.

        Parameters
        ----------
        a, b : array of int8 or uint8 (bf16: of bfloat16), or Resident
        a_zero_point : int or array, optional
            In the range of a's type; [batch..., M], one for each row of a; with a scale
            [batch..., 1], one for each product.
        b_zero_point : int or array [batch..., N], optional
            In the range of b's type. With a scale, anything but 0 of int8 and 128 of uint8 needs
            ``Config.b_zero_point``.
        bias : int or array [batch..., N], optional
            Of int32 (bf16: of float32).
        scale : float or array [batch..., N], optional
            In modes ``tflite`` and ``single`` it becomes multiplier and shift by
            `weft.quantize.quantize_multiplier`; in ``onnx`` a float32.
        multiplier, shift : int or array [batch..., N], optional
            In place of a scale, ``multiplier * 2**(shift - 31)``, in modes ``tflite`` and
            ``single``: multipliers 0 or in 2**30..2**31-1, shifts in -31..31.
        zero_point, low, high : int or array [batch..., N], optional
            In the range of ``out_dtype``, all of which is the clamp's where it is absent. A fused
            ReLU has ``low=zero_point``. (bf16: low and high of float32, not NaN.)
        activation : int8 or uint8 [batch..., 256], optional
            Results by their bytes, as from `weft.quantize.activation_table`; of ``out_dtype``.
        c : float32 array, optional
            bf16 alone: what the sums start from, of a shape that broadcasts to the result's.
        cast : bool
            bf16 alone: ``a`` and ``b`` may be float32 too, and are rounded to nearest even.
        out_dtype : int8 or uint8 (bf16: float32 or bfloat16), optional
            Of scaled results; where absent that of ``activation``, else int8. (bf16: of all
            results; float32 where absent.)
        record : bool
            Give ``(array, Record)`` rather than the array.

        Raises
        ------
        TypeError, ValueError
            For what cannot be multiplied without a wrong sum, breaks a rule, is not in the
            Config, or not for a core of its dtype, before anything is sent; and where int32 sums
            with their bias leave int32.
        AcceleratorError, TransportError
            Where the core or the way to it failed; the result is lost, the next call is sound.
        """
        given = self._known(
            a_zero_point=a_zero_point, b_zero_point=b_zero_point, bias=bias, scale=scale,
            multiplier=multiplier, shift=shift, zero_point=zero_point, low=low, high=high,
            activation=activation, c=c, cast=cast or None, out_dtype=out_dtype,
        )
        with self._lock:  # before the checks: another thread may free a resident operand
            product = self._product(a, b, self, **given)
            if product.k:
                raw = np.zeros(product.raw_shape, product.dtype)
                spent = self._run(product, raw, record) if raw.size else None
            else:
                raw, spent = product.nothing(), None
        result = product.result(raw)
        if not record:
            return result
        return result, spent or Stats(0, 0, self.config.peak, 0, 0, 0, 0, 0, 0)

    def _known(self, **arguments):
        """The arguments that were given; TypeError where some are not for a core of this dtype."""
        given = {name: value for name, value in arguments.items() if value is not None}
        alien = [name for name in given if name not in self._product.ARGUMENTS]
        if alien:
            rule = f"absent where Config.dtype is {self.config.dtype}"
            raise TypeError(f"{', '.join(alien)} must be {rule}, not given")
        return given

    def _hold(self, region, lines):
        """The load of all ``lines`` [R, K] into pages that are now held; None where none fit."""
        operand = self._memories[region]
        panels, pitch = operand.panels(lines.shape[0]), operand.panel_pages(lines.shape[1])
        page = self._pages[region].hold(panels * pitch)
        if page is None:
            return None
        return Load(region, page, pitch, panels, operand.panel_words(lines.shape[1]))

    def _put(self, load, data):
        """Send a load, and wait until the core has taken all of it."""
        core = self._core
        with core.opened(self._shelf):
            barrier = core.barrier()  # an empty job, answered in its turn
            core.send(core.header(load) + data + core.header(barrier))
            core.collect(barrier, Status.REJECTED)

    def _run(self, product, raw, record):
        """Fill ``raw`` [batch, M, N]; the Record if asked for."""
        core = self._core
        with contextlib.ExitStack() as undo:
            first = self._share(product, undo)
            steps = self._plan(product)
            undo.enter_context(core.opened(self._shelf))
            before = core.counters() if record else None
            for start in range(0, len(steps), _MOST_JOBS):
                part = steps[start : start + _MOST_JOBS]
                core.send(b"".join([*first, *self._commands(product, part)]))
                first = []
                for index, step in part:
                    if step.has_results:
                        job = step.job
                        tile = unpack(core.collect(job), job.m, job.n, self.config, raw.dtype)
                        raw[index, step.rows, step.cols] = tile
            if record:
                return core.record(before, macs=product.macs, jobs=len(steps))

    def _share(self, product, undo):
        """The bytes that load once what many products share, where it fits; ``undo`` frees it."""
        sent = []
        for region in (Region.A, Region.B):
            lines = product.lines(region, 0) if product.shares(region) else None
            load = None if lines is None else self._hold(region, lines)
            if load is not None:
                undo.callback(self._pages[region].release, load.page)
                product.pages[region] = load.page
                sent += [self._core.header(load), pack(lines, self._memories[region])]
        return sent

    def _plan(self, product):
        """The steps of all products of the batch, each with its index."""
        planner = Planner(self.config, [pages.free() for pages in self._pages], self._core.tags)
        _, m, n = product.raw_shape
        places = dict(zip(("a_page", "b_page"), product.pages, strict=True))
        return [
            (index, step)
            for index in range(product.raw_shape[0])
            for step in planner.plan(m, n, product.k, **places, flags=product.flags)
        ]

    def _table(self, table):
        """The bytes that load an activation table, where there is one and the core lacks it."""
        if table is None:
            return []
        load = Load(Region.TABLE, 0, 1, 1, TABLE_ENTRIES)
        data = pack_table(table, self._memories[Region.TABLE])
        return [self._core.header(load), data] if self._shelf.needs(load, data) else []

    def _commands(self, product, steps):
        """The bytes of some steps: what a job needs, its header, then the loads that feed it."""

        @functools.lru_cache(maxsize=4)
        def packed(region, index):
            """All panels of an operand, and their values of k."""
            operand = self._memories[region]
            if region == Region.PARAMETERS:
                data = pack_entries(product.entries(index), operand, self.config.cols)
                return memoryview(data), operand.depth * -(-self.config.cols // operand.edge)
            # To a panel of C, rows are what values of k are to one of B.
            lines = product.start(index).T if region == Region.C else product.lines(region, index)
            return memoryview(pack(lines, operand)), lines.shape[1]

        def carried(feed, index):
            load = feed.load
            panels, k = packed(load.operand, index)
            operand = self._memories[load.operand]
            return cut(panels, operand, k, feed.panel, load.panels, feed.word, load.words)

        header, last = self._core.header, None
        for index, step in steps:
            if index != last:
                yield from self._table(product.table(index))
                last = index
            for feed in step.before:
                load, data = feed.load, carried(feed, index)
                if self._shelf.needs(load, data):
                    yield from (header(load), data)
            yield header(step.job)
            for feed in step.feeds:
                yield from (header(feed.load), carried(feed, index))


def _exchange(transport, config, timeout):
    """The exchange over a transport; one that was opened here is closed where there is none."""
    if not isinstance(transport, str):
        return CoreSession(transport, config, timeout)
    with contextlib.ExitStack() as undo:
        opened = open_transport(transport, config)
        undo.callback(opened.close)
        exchange = CoreSession(opened, config, timeout)
        undo.pop_all()
        return exchange
