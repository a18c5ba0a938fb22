"""The commands of every matrix product, and a product that is prepared once for many A."""

import functools
from collections.abc import Callable, Iterable, Iterator

from weft.commands import Region
from weft.config import Config
from weft.geometry import memories
from weft.host.packing import Packers, cut, pack, pack_entries
from weft.host.plan import ResidencyCache
from weft.host.planner import PlanStep
from weft.host.product import Product
from weft.host.product_stream import Packed, ProductStream, table_load
from weft.host.transport import Command

__all__ = ["PreparedProduct", "product_commands"]


def product_commands(
    product: Product, steps: Iterable[tuple[int, PlanStep]], config: Config, cache: ResidencyCache,
    packers: Packers,
) -> Iterator[Command]:
    """Yield the commands of steps: loads before the job, its header, loads that feed it.

    Each step has the index of its product in the batch. Loads of data that ``cache`` contains are
    left out.
    """
    geometry = packers.memories

    @functools.lru_cache(maxsize=4)
    def packed(region, index):
        """Return all packed panels of an operand, and the values of k in each."""
        operand = geometry[region]
        if region == Region.PARAMETERS:
            data = pack_entries(product.entries(index), operand, config.cols)
            return memoryview(data), operand.depth * -(-config.cols // operand.edge)
        # A panel of C is packed like one of B, with rows of C in place of values of k.
        lines = product.start(index).T if region == Region.C else product.lines(region, index)
        return memoryview(packers.pack(region, lines)), lines.shape[1]

    def payload(feed, index):
        load = feed.load
        panels, k = packed(load.operand, index)
        operand = geometry[load.operand]
        return cut(panels, operand, k, feed.panel, load.panels, feed.word, load.words)

    last = None
    for index, step in steps:
        table = product.table(index)
        if index != last and table is not None:
            load, data = table_load(table, config)
            if cache.needs(load, data):
                yield load, data
        last = index
        for feed in step.before:
            load, data = feed.load, payload(feed, index)
            if cache.needs(load, data):
                yield load, data
        yield step.job, b""
        for feed in step.feeds:
            yield feed.load, payload(feed, index)


class PreparedProduct:
    """``y = prepared(a)``: `Accelerator.matmul` with all other arguments fixed.

    `Accelerator.prepare` makes it. A call checks only the type and the shape of ``a``; it packs
    ``a``, and sends it with commands that were built before. A B that is not resident is sent in
    each call. Threads may share it.

    Parameters
    ----------
    accelerator : Accelerator
    product : Product
        The checked arguments, with an A of zeros.
    free : callable
        Returns the free pages of the buffers of A and B, each as (first page, pages).
    """

    def __init__(self, accelerator, product: Product, free: Callable):
        self._accelerator = accelerator
        self._product = product
        self._free = free
        self._stream: ProductStream
        self._stream_free: list | None = None  # the free pages for which the stream was built
        config, count = accelerator.config, product.raw_shape[0]
        operands = memories(config)
        indices = range(count)
        b = parameters = start = b""
        if product.pages[Region.B] is None:
            b = b"".join(pack(product.lines(Region.B, i), operands[Region.B]) for i in indices)
        if product.has_parameters:
            operand = operands[Region.PARAMETERS]
            parameters = b"".join(
                pack_entries(product.entries(i), operand, config.cols) for i in indices
            )
        self._one_row = True  # the start is one row, for all rows of the product
        if product.has_start:
            starts = [product.start(i) for i in indices]
            self._one_row = len(starts[0]) == 1
            start = b"".join(pack(c.T, operands[Region.C]) for c in starts)
        self._packed = Packed(b, parameters, start, count)
        table = product.table(0)
        self._before = [] if table is None else [table_load(table, config)]

    def __call__(self, a, *, record: bool = False):
        """Return the product of ``a``, or ``(product, Stats)`` if ``record``.

        Raises
        ------
        TypeError, ValueError
            If the type or the shape of ``a`` is not as prepared, or a resident B was freed.
        AcceleratorError, TransportError
            If the core or the connection failed; the next call works again, as in `matmul`.
        """
        product, accelerator = self._product, self._accelerator
        with accelerator.lock:
            product.replace_a(a)
            stream = self._current()

            def write():
                for index, rows in enumerate(stream.rows):
                    rows[...] = product.lines(Region.A, index).view(rows.dtype)

            results, stats = accelerator.execute(stream, write, macs=product.macs, record=record)
            y = product.result(stream.read(results))
        return (y, stats) if record else y

    def _current(self) -> ProductStream:
        """Return the stream; it is built again after other operands were loaded or freed."""
        free = self._free()
        if self._stream_free != free:
            product = self._product
            count, m, n = product.raw_shape
            page = product.pages[Region.B]
            self._stream = ProductStream(
                self._accelerator.config, (count, m, product.k, n), product.flags, self._packed,
                product.dtype, b_pages=None if page is None else [page] * count, free=free,
                one_row=self._one_row, before=self._before,
            )
            self._stream_free = free
        return self._stream
