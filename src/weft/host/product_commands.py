"""The commands of a product of any size, made while they are sent."""

import functools
from collections.abc import Iterable, Iterator

from weft.commands import Region
from weft.config import Config
from weft.host.packing import Packers, cut, pack_entries
from weft.host.planner import PlanStep
from weft.host.product import Product
from weft.host.product_stream import table_load
from weft.host.residency import ResidencyCache
from weft.host.wire import Command

__all__ = ["product_commands"]


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
