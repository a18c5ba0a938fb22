"""The planner: splits one matrix product of any size into jobs and loads that fit the buffers."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.commands import Job, JobFlag, Load, LoadFlag, Region
from weft.config import PAGE_WORDS, Config
from weft.geometry import operands
from weft.host.plan import Blocks, Plan, Ring

__all__ = ["Feed", "PlanStep", "Planner", "tags"]

A, B = Region.A, Region.B
_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_NO_FLAGS = JobFlag(0)
_START = JobFlag.PRELOAD | JobFlag.BROADCAST  # for jobs without ACCUMULATE
_NEEDS_PARAMETERS = JobFlag.REQUANTIZE | JobFlag.CLAMP
_MAX_FIELD = 0xFFFF  # maximum M, N and words of C in a header


@dataclass(frozen=True)
class Feed:
    """A load, and the part of the operand that it loads.

    Attributes
    ----------
    load : Load
    panel : int
        First panel of the operand. Panels of parameters and of C correspond to panels of B.
    word : int
        First word of the panel; for C: first row.
    """

    load: Load
    panel: int
    word: int


@dataclass(frozen=True)
class PlanStep:
    """A job and its loads.

    Attributes
    ----------
    job : Job
    feeds : tuple of Feed
        Loads of A and B after the job's header, in stream order.
    rows, cols : slice
        Part of the result matrix that the job computes.
    before : tuple of Feed
        Loads of C and parameters before the job's header.
    """

    job: Job
    feeds: tuple[Feed, ...]
    rows: slice
    cols: slice
    before: tuple[Feed, ...] = ()

    @property
    def has_results(self) -> bool:
        """Whether the job sends results: it does not keep its sums for the next job."""
        return JobFlag.KEEP not in self.job.flags

    @property
    def commands(self) -> list[Job | Load]:
        """The headers in stream order."""
        loads = ([feed.load for feed in feeds] for feeds in (self.before, self.feeds))
        before, after = loads
        return [*before, self.job, *after]


def tags(first: int = 0) -> Iterator[int]:
    """Yield consecutive tags, which wrap at 16 bits."""
    return (tag % (1 << 16) for tag in itertools.count(first))


class Planner:
    """Splits products into blocks of panels; each pair of blocks is one job.

    A block of one operand (the outer one) stays in its buffer for all blocks of the other (the
    inner one). The outer operand is the one that gives fewer bytes to load. It is one block if it
    fits. Otherwise its blocks take at most half of the free pages, so that one block loads while
    another is in use; blocks of the inner operand always do, and so do several blocks of C.

    If not even one panel fits, or if blocks are so small that most tiles of a pass stay empty, K is
    split too. Then each pass is a chain of jobs that hand on their sums.

    Parameters
    ----------
    config : Config
    free : pair of (first page, pages), optional
        The pages of A's and of B's buffer to use; by default all.
    tag : iterable of int, optional
        Tags of the jobs; by default 0, 1, 2 ...
    """

    def __init__(self, config: Config, free=None, tag: Iterable[int] | None = None):
        self._operands = operands(config)
        self._slots = config.cell.slots
        self._jobs = config.jobs
        self._parameter_words = -(-config.cols // config.lanes)
        free = free or [(0, operand.pages) for operand in self._operands]
        self._rings = [Ring(*gap) for gap in free]
        self._c_ring = Ring(0, min(config.c_words, _MAX_FIELD))  # words of C
        self._tags = iter(tags() if tag is None else tag)

    def plan(
        self, m: int, n: int, k: int, *, a_page=None, b_page=None, flags: JobFlag = _NO_FLAGS
    ) -> Plan:
        """Return the steps of ``C[m, n] = A[m, k] x B[k, n]``; m, n and k are 1 or more.

        With ``a_page`` or ``b_page`` that operand is resident: complete, from that page on. Jobs
        with results have ``flags``. Parameters that the flags need are loaded once for each page
        at which a panel of B lies. With PRELOAD the sums start from C; with BROADCAST as well, C is
        loaded once if it fits.

        Raises ValueError if no page is free for an operand that must be loaded.
        """
        product = _Product(self._operands, (m, n), k, (a_page, b_page), flags)
        loaded = [side for side in (A, B) if product.pages[side] is None]
        for side in loaded:
            if not self._rings[side].size:
                raise ValueError(f"pages free for {'ab'[side]} must be 1 or more, not 0")
        groups = self._groups(product, loaded)
        if all(self._rings[side].size >= product.panel_pages for side in loaded):
            blocks, outer = self._split_blocks(product)
            loads = [1 if side == outer else len(blocks[outer]) for side in (A, B)]
            again = [len(groups[B]), len(groups[A])]
            if self._cycles(product, blocks, loads) <= self._cycles(product, groups, again):
                return self._blocks(product, blocks, outer)
        return self._chains(product, loaded, groups)

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the rings of A, B and C: where their next regions start."""
        return tuple(ring.position for ring in (*self._rings, self._c_ring))

    @positions.setter
    def positions(self, positions):
        for ring, position in zip((*self._rings, self._c_ring), positions, strict=True):
            ring.position = position

    def _split_blocks(self, product):
        """Return the blocks of both operands, and which operand is the outer one."""
        limits = [self._limit(product, side) for side in (A, B)]
        counts = [len(_split(product.panels[side], limits[side])) for side in (A, B)]
        weight = [product.bytes(side) for side in (A, B)]
        # The outer operand is loaded once, the inner one once for each outer block.
        cost_a = weight[A] + counts[A] * weight[B]
        cost_b = weight[B] + counts[B] * weight[A]
        outer, inner = (A, B) if cost_a < cost_b else (B, A)
        limits[inner] = self._limit(product, inner, halve=True)
        self._bound(product, limits, outer, inner)
        return [_split(product.panels[side], limits[side]) for side in (A, B)], outer

    def _groups(self, product, loaded):
        """Return blocks for chains: single panels of A, and as many panels of B as a pass has."""
        limits = [1, self._slots]
        if B in loaded:
            limits[B] = min(limits[B], max(1, self._rings[B].size // 2))
        self._bound(product, limits, A, B)
        return [_split(product.panels[side], limits[side]) for side in (A, B)]

    def _cycles(self, product, blocks, loads):
        """Estimate the cycles of blocks: of ``loads`` loads of each operand, or of the passes."""
        passes = sum(
            -(-p * q // self._slots) * of_p * of_q
            for (p, of_p), (q, of_q) in itertools.product(*(of.sizes for of in blocks))
        )
        words = sum(product.bytes(s) * loads[s] // self._operands[s].stream for s in (A, B))
        return max(passes * self._slots * product.panel_words, words)

    def _blocks(self, product, blocks, outer):
        inner = B if outer == A else A
        whole = range(product.panel_words)
        first_pages = [None, None]
        slots = [self._slot(product, side, blocks[side]) for side in (A, B)]

        def step(o, i):
            new_sides = {inner} if i else {outer, inner}
            block = {outer: blocks[outer][o], inner: blocks[inner][i]}
            panels = (block[A], block[B])
            for side in new_sides:
                first_pages[side] = self._page(
                    product, side, panels[side], whole, slots[side] * product.panel_pages
                )
            return self._step(product, panels, whole, first_pages, new_sides)

        self._find_nonblocking(product, [len(of[0]) * product.panel_pages for of in blocks])
        return Plan((blocks[outer], blocks[inner]), (outer, inner), step, self, product)

    def _chains(self, product, loaded, groups):
        # Half of the pages hold a chunk of one panel of A, or of each panel of a group of B.
        pages = (self._rings[side].size // 2 // len(groups[side][0]) for side in loaded)
        pages = max(1, min(pages, default=product.panel_pages))
        chunks = Blocks(product.panel_words, pages * PAGE_WORDS)

        def step(a, b, c):
            panels, chunk = (groups[A][a], groups[B][b]), chunks[c]
            flags = _NO_FLAGS
            if c > 0:
                flags |= JobFlag.ACCUMULATE
            if c < len(chunks) - 1:
                flags |= JobFlag.KEEP
            first_pages = [self._page(product, side, panels[side], chunk) for side in (A, B)]
            return self._step(product, panels, chunk, first_pages, {A, B}, flags)

        self._find_nonblocking(product, [len(of[0]) * pages for of in groups])
        return Plan((*groups, chunks), (A, B, None), step, self, product)

    def _limit(self, product, side, halve=False):
        """Return the maximum panels in a block; ``halve`` leaves space for the next block."""
        limit = product.panels[side]
        if product.pages[side] is None:
            fit = self._rings[side].size // product.panel_pages
            if limit > fit or halve:
                limit = max(1, fit // 2)
        return min(limit, _MAX_FIELD // self._operands[side].edge)

    def _bound(self, product, limits, outer, inner):
        """Reduce the limits so that C fits: as one block, or each block in half of its buffer."""
        size, half = self._c_ring.size, max(1, self._c_ring.size // 2)
        if product.one_row:
            if product.panels[B] > size:
                limits[B] = min(limits[B], half)
        elif product.has_c and product.size[A] * product.panels[B] > size:
            # Reduce the inner blocks first: outer blocks are loaded only once.
            tiles = max(1, half // min(self._operands[A].edge, product.size[A]))
            limits[inner] = max(1, min(limits[inner], tiles // limits[outer]))
            limits[outer] = min(limits[outer], tiles // limits[inner])

    def _find_nonblocking(self, product, pages):
        """Set ``product.nonblocking``; each load of an operand takes ``pages[side]`` pages."""
        # Between two loads of a page are loads of all other regions that fit, except one at each
        # end of the ring. A region is in use until the next one is loaded.
        product.nonblocking = frozenset(
            side for side in (A, B)
            if product.pages[side] is None
            and self._rings[side].size >= (self._jobs + 3) * pages[side]
        )

    def _slot(self, product, side, blocks):
        """Return the panels for which each block reserves pages; 0: for the ones that it has.

        Where the ring holds two blocks, a short one would move the next one over both.
        """
        fit = self._rings[side].size // product.panel_pages
        return len(blocks[0]) if fit // len(blocks[len(blocks) - 1]) == 2 else 0

    def _page(self, product, side, panels, words, reserved=0):
        """Return the first page of some words of some panels, resident or to be loaded."""
        page = product.pages[side]
        if page is None:
            if side == B and B in product.nonblocking:
                product.parameter_panels.clear()
            return self._rings[side].next_region(max(len(panels) * _pages(words), reserved))
        return page + panels.start * product.panel_pages + words.start // PAGE_WORDS

    def _step(self, product, panels, words, first_pages, new_sides, flags=_NO_FLAGS):
        feed = [side for side in (A, B) if side in new_sides and product.pages[side] is None]
        for side in feed:
            flags |= _FEEDS[side]
        if JobFlag.KEEP not in flags:
            flags |= product.flags & ~_START
        if JobFlag.ACCUMULATE not in flags:
            flags |= product.flags & _START
        rows, cols = (product.span(side, panels[side]) for side in (A, B))
        # A resident operand keeps the pitch with which it was loaded, also for a chunk of it.
        pitch = [
            _pages(words) if page is None else product.panel_pages for page in product.pages
        ]
        span = [
            (len(p) - 1) * step + _pages(words) for p, step in zip(panels, pitch, strict=True)
        ]
        start, c_fields = self._start(product, flags, panels[B], rows)
        job = Job(
            rows.stop - rows.start, cols.stop - cols.start, product.depth_of(words),
            first_pages[A], pitch[A], span[A], first_pages[B], pitch[B], span[B], *c_fields,
            tag=next(self._tags), flags=flags,
        )
        # The array starts after the first panel of A and of B; the rest of A loads meanwhile.
        parts = [(side, panels[side]) for side in feed]
        if len(feed) == 2 and len(panels[A]) > 1:
            parts = [(A, panels[A][:1]), (B, panels[B]), (A, panels[A][1:])]
        feeds = tuple(self._feed(*part, panels, words, first_pages) for part in parts)
        parameters = self._parameters(product, job, panels[B])
        before = tuple(feed for feed in (start, parameters) if feed)
        return PlanStep(job, feeds, rows, cols, before)

    def _start(self, product, flags, panels, rows):
        """Return the load of the C of a job, or None if not needed; and the job's three C fields.

        If C is one row that fits, each part of it is loaded once; anything else gets a new region.
        """
        if JobFlag.PRELOAD not in flags:
            return None, ()
        height = 1 if product.one_row else rows.stop - rows.start
        pages = len(panels) * height
        loaded = False
        if product.one_row and product.panels[B] <= self._c_ring.size:
            if product.row_page is None:
                product.row_page = self._c_ring.next_region(product.panels[B])
            page = product.row_page + panels.start
            loaded = product.row_panels >= set(panels)
            product.row_panels |= set(panels)
        else:
            page = self._c_ring.next_region(pages)
        load = Load(Region.C, page, height, len(panels), height)
        feed = Feed(load, panels.start, 0 if product.one_row else rows.start)
        return None if loaded else feed, (page, height, pages)

    def _parameters(self, product, job, panels):
        """Return the load of the parameters of a job; None if not needed or already loaded."""
        if not job.flags & _NEEDS_PARAMETERS:
            return None
        panel_at = {job.b_page + n * job.b_pitch: panel for n, panel in enumerate(panels)}
        if panel_at.items() <= product.parameter_panels.items():
            return None
        product.parameter_panels |= panel_at
        # For one panel the pitch is unused; the pitch of its operand could exceed the buffer.
        pitch = job.b_pitch if len(panels) > 1 else 1
        load = Load(Region.PARAMETERS, job.b_page, pitch, len(panels), self._parameter_words)
        return Feed(load, panels.start, 0)

    @staticmethod
    def _feed(side, part, panels, words, first_pages):
        pitch = _pages(words)
        page = first_pages[side] + (part.start - panels[side].start) * pitch
        # A later chunk of a chain continues the panel of the previous chunk.
        flags = LoadFlag.FEED | LoadFlag.CONTINUE if words.start else LoadFlag.FEED
        load = Load(side, page, pitch, len(part), len(words), flags)
        return Feed(load, part.start, words.start)


class _Product:
    """One product in panels and words, and the panels that were loaded for it.

    Attributes
    ----------
    pages : pair of int or None
        First pages of resident operands.
    has_parameters, has_c, one_row : bool
        Whether jobs need parameters; whether sums start from a C; whether C is one row for all.
    parameter_panels : dict of int
        Panels of B whose parameters are loaded, by their first pages. Cleared at each load of B
        if B is nonblocking, since a page of B is then reused late.
    row_panels : set of int
        Panels of B whose part of the one row of C is loaded, if that row fits.
    row_page : int or None
        First word of that row.
    nonblocking : frozenset of Region
        Operands whose loads never wait for a job.
    """

    def __init__(self, geometry, size, k, pages, flags):
        self._geometry = geometry
        self.size = size
        self._k = k
        self.pages = pages
        self.flags = flags
        self.has_parameters = bool(flags & _NEEDS_PARAMETERS)
        self.has_c = JobFlag.PRELOAD in flags
        self.one_row = self.has_c and JobFlag.BROADCAST in flags
        self.row_page = None
        self.nonblocking = frozenset()
        self.row_panels = set()
        self.parameter_panels = {}
        self.panels = [o.panels(extent) for o, extent in zip(geometry, size, strict=True)]
        self.panel_words = geometry[A].panel_words(k)
        self.panel_pages = geometry[A].panel_pages(k)

    def bytes(self, side):
        """Return the bytes on the stream of one load of the whole operand; 0 if resident."""
        if self.pages[side] is not None:
            return 0
        operand = self._geometry[side]
        return self.panels[side] * operand.panel_stream_words(self._k) * operand.stream

    def span(self, side, panels):
        """Return the rows of A, or columns of B, of some panels."""
        edge = self._geometry[side].edge
        return slice(panels.start * edge, min(panels.stop * edge, self.size[side]))

    def depth_of(self, words):
        """Return the number of values of k in some words of a panel."""
        depth = self._geometry[A].depth
        return min(words.stop * depth, self._k) - words.start * depth


def _split(total, limit):
    """Split ``total`` panels into blocks of at most ``limit``, as even as possible."""
    return Blocks(total, -(-total // -(-total // limit)))


def _pages(words):
    return -(-len(words) // PAGE_WORDS)
