"""One matrix product of any size as jobs and loads that fit the buffers."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.commands import Job, JobFlag, Load, LoadFlag, Region
from weft.config import PAGE_WORDS, Config
from weft.geometry import operands
from weft.host.pages import Ring
from weft.host.plan import Blocks, Plan
from weft.timing import SLOTS

__all__ = ["Feed", "PlanStep", "Planner", "tags"]

A, B = Region.A, Region.B
_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_PLAIN = JobFlag(0)
_START = JobFlag.PRELOAD | JobFlag.BROADCAST  # of jobs whose sums do not carry on others
_BY_COLUMN = JobFlag.REQUANTIZE | JobFlag.CLAMP  # what takes parameters
_MOST = 0xFFFF  # M, N and words of C that a header holds


@dataclass(frozen=True)
class Feed:
    """A load for a job, of what starts at word ``word`` of panel ``panel`` of the operand.

    A panel of parameters, or of C, is that of the panel of B; a word of C is a row of it.
    """

    load: Load
    panel: int
    word: int


@dataclass(frozen=True)
class PlanStep:
    """A job and, in their order on the stream, the loads that feed it.

    What else it needs, C and parameters, goes ``before`` it, where it is not there already. Its
    results, if it ``answers``, are the ``rows`` x ``cols`` of C.
    """

    job: Job
    feeds: tuple[Feed, ...]
    rows: slice
    cols: slice
    before: tuple[Feed, ...] = ()

    @property
    def has_results(self) -> bool:
        return JobFlag.KEEP not in self.job.flags

    @property
    def commands(self) -> list[Job | Load]:
        loads = ([feed.load for feed in feeds] for feeds in (self.before, self.feeds))
        before, behind = loads
        return [*before, self.job, *behind]


def tags(first: int = 0) -> Iterator[int]:
    """The tags of jobs, one after another: they wrap at 16 bits."""
    return (tag % (1 << 16) for tag in itertools.count(first))


class Planner:
    """Splits products into blocks of panels, each block one job.

    A block of one operand (the outer one) stays for all blocks of the other; that operand is outer
    which makes the loads smaller. The outer one is one block where it fits; else its blocks, and
    always those of the inner one, take at most half of the free pages, so that one loads while
    another is at work; so do several blocks of a C that the sums start from. Where not even one
    panel fits, or blocks are so small that most places of a pass stay empty, K is split too: pass
    by pass, in chains of jobs that hand on their sums.

    Parameters
    ----------
    config : Config
    free : pair of (first page, pages), optional
        The stretch of each buffer to use; all of it where absent.
    tag : iterable of int, optional
        The tags of the jobs; from 0 on where absent.
    """

    def __init__(self, config: Config, free=None, tag: Iterable[int] | None = None):
        self._operands = operands(config)
        self._slots = SLOTS[config.dtype]
        self._jobs = config.jobs
        self._parameter_words = -(-config.cols // config.lanes)
        free = free or [(0, operand.pages) for operand in self._operands]
        self._rings = [Ring(*gap) for gap in free]
        self._starts = Ring(0, min(config.c_words, _MOST))  # words of C
        self._tags = iter(tags() if tag is None else tag)

    def plan(
        self, m: int, n: int, k: int, *, a_page=None, b_page=None, flags: JobFlag = _PLAIN
    ) -> Plan:
        """The steps of ``C[m, n] = A[m, k] x B[k, n]``, each of 1 or more.

        With ``a_page`` or ``b_page`` that operand is resident: whole, from that page on. Jobs that
        answer finish their results as ``flags`` say; parameters, where those ask for them, are
        loaded once for each place of a panel of B. Sums start from C where ``flags`` have PRELOAD;
        with BROADCAST it is loaded once, if it fits.

        Raises ValueError where no page is free for an operand that must be loaded.
        """
        product = _Product(self._operands, (m, n), k, (a_page, b_page), flags)
        loaded = [side for side in (A, B) if product.pages[side] is None]
        for side in loaded:
            if not self._rings[side].size:
                raise ValueError(f"pages free for {'ab'[side]} must be 1 or more, not 0")
        groups = self._groups(product, loaded)
        if all(self._rings[side].size >= product.panel_pages for side in loaded):
            blocks, outer = self._cut(product)
            loads = [1 if side == outer else len(blocks[outer]) for side in (A, B)]
            again = [len(groups[B]), len(groups[A])]
            if self._cycles(product, blocks, loads) <= self._cycles(product, groups, again):
                return self._blocks(product, blocks, outer)
        return self._chains(product, loaded, groups)

    @property
    def positions(self) -> tuple[int, ...]:
        """Where the next regions of A, of B and of C are looked for."""
        return tuple(ring.position for ring in (*self._rings, self._starts))

    @positions.setter
    def positions(self, positions):
        for ring, position in zip((*self._rings, self._starts), positions, strict=True):
            ring.position = position

    def _cut(self, product):
        """The blocks of both operands; which operand is the outer one."""
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
        """The panels of A one by one, those of B by as many as a chain takes at once."""
        limits = [1, self._slots]
        if B in loaded:
            limits[B] = min(limits[B], max(1, self._rings[B].size // 2))
        self._bound(product, limits, A, B)
        return [_split(product.panels[side], limits[side]) for side in (A, B)]

    def _cycles(self, product, blocks, loads):
        """What blocks take, roughly: to load so many times each, or to compute, pass by pass."""
        passes = sum(
            -(-p * q // self._slots) * of_p * of_q
            for (p, of_p), (q, of_q) in itertools.product(*(of.sizes for of in blocks))
        )
        words = sum(product.bytes(s) * loads[s] // self._operands[s].stream for s in (A, B))
        return max(passes * self._slots * product.panel_words, words)

    def _blocks(self, product, blocks, outer):
        inner = B if outer == A else A
        whole = range(product.panel_words)
        place = [None, None]

        def step(o, i):
            fresh = {inner} if i else {outer, inner}
            chosen = {outer: blocks[outer][o], inner: blocks[inner][i]}
            panels = (chosen[A], chosen[B])
            for side in fresh:
                place[side] = self._place(product, side, panels[side], whole)
            return self._step(product, panels, whole, place, fresh)

        self._find_nonblocking(product, [len(of[0]) * product.panel_pages for of in blocks])
        return Plan((blocks[outer], blocks[inner]), (outer, inner), step, self, product)

    def _chains(self, product, loaded, groups):
        # Half of the pages for a chunk of a panel of A, and of as many of B as a group has.
        pages = (self._rings[side].size // 2 // len(groups[side][0]) for side in loaded)
        pages = max(1, min(pages, default=product.panel_pages))
        chunks = Blocks(product.panel_words, pages * PAGE_WORDS)

        def step(a, b, c):
            panels, chunk = (groups[A][a], groups[B][b]), chunks[c]
            flags = _PLAIN
            if c > 0:
                flags |= JobFlag.ACCUMULATE
            if c < len(chunks) - 1:
                flags |= JobFlag.KEEP
            place = [self._place(product, side, panels[side], chunk) for side in (A, B)]
            return self._step(product, panels, chunk, place, {A, B}, flags)

        self._find_nonblocking(product, [len(of[0]) * pages for of in groups])
        return Plan((*groups, chunks), (A, B, None), step, self, product)

    def _limit(self, product, side, halve=False):
        """The most panels of one operand in a block; ``halve`` leaves room for the next block."""
        limit = product.panels[side]
        if product.pages[side] is None:
            fit = self._rings[side].size // product.panel_pages
            if limit > fit or halve:
                limit = max(1, fit // 2)
        return min(limit, _MOST // self._operands[side].edge)

    def _bound(self, product, limits, outer, inner):
        """Lower the limits to blocks whose C fits: in half of its buffer, where it is not one."""
        size, half = self._starts.size, max(1, self._starts.size // 2)
        if product.row:
            if product.panels[B] > size:
                limits[B] = min(limits[B], half)
        elif product.starts and product.size[A] * product.panels[B] > size:
            # Blocks of the inner operand first: the outer one's are loaded but once.
            tiles = max(1, half // min(self._operands[A].edge, product.size[A]))
            limits[inner] = max(1, min(limits[inner], tiles // limits[outer]))
            limits[outer] = min(limits[outer], tiles // limits[inner])

    def _find_nonblocking(self, product, pages):
        """Note which operands are loaded, so many pages each time, to where no job is under way."""
        # Between two loads of a page are all others that fit, but for one at each end of the ring;
        # and a region is used until the next one is loaded.
        product.nonblocking = frozenset(
            side for side in (A, B)
            if product.pages[side] is None
            and self._rings[side].size >= (self._jobs + 3) * pages[side]
        )

    def _place(self, product, side, panels, words):
        """First page of some words of some panels: where they are, or will be loaded to."""
        page = product.pages[side]
        if page is None:
            if side == B and B in product.nonblocking:
                product.finished.clear()
            return self._rings[side].take(len(panels) * _pages(words))
        return page + panels.start * product.panel_pages + words.start // PAGE_WORDS

    def _step(self, product, panels, words, place, fresh, flags=_PLAIN):
        feed = [side for side in (A, B) if side in fresh and product.pages[side] is None]
        for side in feed:
            flags |= _FEEDS[side]
        if JobFlag.KEEP not in flags:
            flags |= product.flags & ~_START
        if JobFlag.ACCUMULATE not in flags:
            flags |= product.flags & _START
        rows, cols = (product.span(side, panels[side]) for side in (A, B))
        # A resident operand keeps the pitch it was loaded with, of which a chunk is a part.
        pitch = [
            _pages(words) if page is None else product.panel_pages for page in product.pages
        ]
        span = [
            (len(p) - 1) * step + _pages(words) for p, step in zip(panels, pitch, strict=True)
        ]
        start, places = self._start(product, flags, panels[B], rows)
        job = Job(
            rows.stop - rows.start, cols.stop - cols.start, product.depth_of(words),
            place[A], pitch[A], span[A], place[B], pitch[B], span[B], *places,
            tag=next(self._tags), flags=flags,
        )
        # The first panel of A and then B let the array start; the rest of A follows as it works.
        parts = [(side, panels[side]) for side in feed]
        if len(feed) == 2 and len(panels[A]) > 1:
            parts = [(A, panels[A][:1]), (B, panels[B]), (A, panels[A][1:])]
        feeds = tuple(self._feed(*part, panels, words, place) for part in parts)
        parameters = self._parameters(product, job, panels[B])
        before = tuple(feed for feed in (start, parameters) if feed)
        return PlanStep(job, feeds, rows, cols, before)

    def _start(self, product, flags, panels, rows):
        """What loads the C of a job, None where it is there or not asked for; its three c_ fields.

        A row that fits whole is loaded piece by piece to one place, anything else to a new place.
        """
        if JobFlag.PRELOAD not in flags:
            return None, ()
        height = 1 if product.row else rows.stop - rows.start
        pages = len(panels) * height
        there = False
        if product.row and product.panels[B] <= self._starts.size:
            if product.row_page is None:
                product.row_page = self._starts.take(product.panels[B])
            page = product.row_page + panels.start
            there = product.started >= set(panels)
            product.started |= set(panels)
        else:
            page = self._starts.take(pages)
        load = Load(Region.C, page, height, len(panels), height)
        feed = Feed(load, panels.start, 0 if product.row else rows.start)
        return None if there else feed, (page, height, pages)

    def _parameters(self, product, job, panels):
        """What loads the parameters of a job; None where it needs none, or they are there."""
        if not job.flags & _BY_COLUMN:
            return None
        places = {job.b_page + n * job.b_pitch: panel for n, panel in enumerate(panels)}
        if places.items() <= product.finished.items():
            return None
        product.finished |= places
        # One panel has no pitch; that of the operand it is a part of may reach past the buffer.
        pitch = job.b_pitch if len(panels) > 1 else 1
        load = Load(Region.PARAMETERS, job.b_page, pitch, len(panels), self._parameter_words)
        return Feed(load, panels.start, 0)

    @staticmethod
    def _feed(side, part, panels, words, place):
        pitch = _pages(words)
        page = place[side] + (part.start - panels[side].start) * pitch
        # A later chunk of a chain carries on the panel of the chunk before.
        flags = LoadFlag.FEED | LoadFlag.CONTINUE if words.start else LoadFlag.FEED
        load = Load(side, page, pitch, len(part), len(words), flags)
        return Feed(load, part.start, words.start)


class _Product:
    """One product in panels and words; ``pages`` are where resident operands are, else None.

    ``starts`` from a C, which may be a ``row`` for all. ``finished`` has the panels of B whose
    parameters were loaded, by their pages; ``started`` those whose part of the row was, where it
    fits whole, from word ``row_page`` on. Loads of ``nonblocking`` operands never wait for a job; B
    comes back to a page so late then that its parameters there are not remembered.
    """

    def __init__(self, geometry, size, k, pages, flags):
        self._geometry = geometry
        self.size = size
        self._k = k
        self.pages = pages
        self.flags = flags
        self.finishes = bool(flags & _BY_COLUMN)
        self.starts = JobFlag.PRELOAD in flags
        self.row = self.starts and JobFlag.BROADCAST in flags
        self.row_page = None
        self.nonblocking = frozenset()
        self.started = set()
        self.finished = {}
        self.panels = [o.panels(extent) for o, extent in zip(geometry, size, strict=True)]
        self.panel_words = geometry[A].panel_words(k)
        self.panel_pages = geometry[A].panel_pages(k)

    def bytes(self, side):
        """Bytes on the stream that loading the operand once takes."""
        if self.pages[side] is not None:
            return 0
        operand = self._geometry[side]
        return self.panels[side] * operand.panel_stream_words(self._k) * operand.stream

    def span(self, side, panels):
        """The rows of A, or columns of B, of some panels."""
        edge = self._geometry[side].edge
        return slice(panels.start * edge, min(panels.stop * edge, self.size[side]))

    def depth_of(self, words):
        """Values of k that some words of a panel hold."""
        depth = self._geometry[A].depth
        return min(words.stop * depth, self._k) - words.start * depth


def _split(total, limit):
    """So many panels in blocks of at most ``limit``, as even as can be."""
    return Blocks(total, -(-total // -(-total // limit)))


def _pages(words):
    return -(-len(words) // PAGE_WORDS)
