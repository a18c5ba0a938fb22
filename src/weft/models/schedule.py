"""Decides how weights reach the core: once, under the step before, or with their step."""

import dataclasses
import functools
from collections.abc import Sequence

from weft.commands import Job
from weft.config import Config
from weft.geometry import memories, operands
from weft.host.planner import Planner
from weft.models.lowering import PairRows
from weft.models.work import CoreWork

__all__ = ["commands_of", "schedule"]


def commands_of(config: Config, shape, flags, *, free=None):
    """Return the headers of products of one ``shape``, (count, m, k, n), with streamed weights.

    ``free`` is the range of pages of B to use.
    """
    count, m, k, n = shape
    a, b = operands(config)
    planner = Planner(config, [(0, a.pages), free or (0, b.pages)])
    return [
        command
        for _ in range(count)
        for step in planner.plan(m, n, k, flags=flags)
        for command in step.commands
    ]


def schedule(
    works: Sequence[CoreWork], config: Config, times: Sequence[int],
) -> tuple[list[CoreWork], list[str]]:
    """Return the works in their order with pages for their weights, and how each gets them.

    Weights stay in the core if they fit, those first that save most bytes per inference. The pages
    that remain are for all others. How many remain is tried: the fewest bytes on the command stream
    win. Weights that are not resident load under the step before, if the pages allow that.

    ``times`` has a number for each work. 0: an inference computes it once. Another number: it is
    a product of a recurrent layer, which an inference computes so often. Its weights stay, or they
    are sent each time.
    """
    if not works:
        return [], []
    total = operands(config)[1].pages
    pages = [_pages(work) for work in works]
    fixed = [n for n, work in enumerate(works) if not isinstance(work.rows, PairRows)]
    saved = {
        n: (len(works[n].packed.b) + len(works[n].packed.parameters)) * max(1, times[n])
        for n in fixed
    }
    order = sorted(fixed, key=lambda n: (-saved[n], n))

    def streamed_bytes(number, free):
        once = _streamed_bytes(config, works[number].shape(), works[number].flags, free)
        return once * max(1, times[number])

    best, seen = None, set()
    for reserve in _reserves(pages, total, all_fixed=len(fixed) == len(works)):
        resident, used = set(), 0
        for n in order:
            if used + pages[n] <= total - reserve:
                resident.add(n)
                used += pages[n]
        rest = [n for n in range(len(works)) if n not in resident]
        if rest and used == total or frozenset(resident) in seen:
            continue
        seen.add(frozenset(resident))
        cost = sum(streamed_bytes(n, total - used) for n in rest)
        cost += sum(streamed_bytes(n, total) - saved[n] for n in resident)
        if best is None or (cost, -used) < best[0]:
            best = (cost, -used), resident, total - used
    _, resident, free = best
    return _place(works, pages, resident, free, total, times)


def _reserves(pages, total, all_fixed):
    """Return numbers of pages to try for weights that are not resident."""
    if all_fixed and sum(pages) <= total:
        return [0]
    tried = {total, total // 2, total // 4, total // 8, *pages, *(2 * p for p in pages)}
    return sorted(reserve for reserve in tried if 0 < reserve <= total)


def _place(works, pages, resident, free, total, times):
    """Return the works with the pages of their weights, and how each gets them."""
    placed: list[CoreWork] = []
    kinds: list[str] = []
    top = total
    region = range(0)  # pages that the step before uses
    for number, work in enumerate(works):
        if number in resident:
            top -= pages[number]
            placed.append(dataclasses.replace(
                work, b_pages=_first_pages(work, pages[number], top), free=(0, free)
            ))
            kinds.append("resident")
            region = range(0)
            continue
        start, pair = None, isinstance(work.rows, PairRows)
        if number and not pair and not times[number - 1] and not times[number]:
            start = _early_region(pages[number], region, free, placed, kinds, pages)
        if start is None:
            placed.append(dataclasses.replace(work, free=(0, free)))
            kinds.append("activation" if pair else "streamed")
            region = range(free)
        else:
            placed[-1] = dataclasses.replace(placed[-1], early=number)
            placed.append(dataclasses.replace(
                work, b_pages=_first_pages(work, pages[number], start), free=(0, free)
            ))
            kinds.append("early")
            region = range(start, start + pages[number])
    return placed, kinds


def _early_region(size, region, free, placed, kinds, pages):
    """Return the first page for weights that load under the step before, or None.

    A step with streamed weights before gives up pages if its own weights fit without them.
    """
    if size <= region.start:
        return 0
    if region.stop + size <= free:
        return free - size if region.stop <= free - size else None
    if kinds[-1] == "streamed" and pages[len(placed) - 1] + size <= free:
        placed[-1] = dataclasses.replace(placed[-1], free=(0, free - size))
        return free - size
    return None


def _pages(work):
    """Return the pages of all weights of a step."""
    b = operands(work.config)[1]
    count, _, k, n = work.shape()
    return count * b.panels(n) * b.panel_pages(k)


def _first_pages(work, pages, start):
    count = work.rows.count
    return tuple(start + index * (pages // count) for index in range(count))


@functools.lru_cache(maxsize=4096)
def _streamed_bytes(config, shape, flags, free):
    """Return the bytes on the command stream of products with ``free`` pages for their B."""
    count, *size = shape
    return count * _bytes(commands_of(config, (1, *size), flags, free=(0, free)), config)


def _bytes(commands, config):
    """Return the bytes on the command stream of headers and of the data that they load."""
    geometry = memories(config)
    header = max(32, config.bytes_in)
    total = 0
    for command in commands:
        total += header
        if not isinstance(command, Job):
            operand = geometry[command.operand]
            lines = -(-command.words // operand.group) * operand.segments
            total += command.panels * lines * operand.stream
    return total
