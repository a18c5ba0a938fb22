"""One matrix product of any size as jobs and loads that fit the buffers."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.commands import Job, JobFlag, Load, LoadFlag
from weft.config import PAGE_WORDS, Config
from weft.geometry import memories
from weft.host.pages import Ring

__all__ = ["Feed", "Planner", "Step", "tags"]

A, B, PARAMETERS = 0, 1, 2
_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_PLAIN = JobFlag(0)


@dataclass(frozen=True)
class Feed:
    """A load for a job, of what starts at word ``word`` of panel ``panel`` of the operand.

    A panel of parameters is that of the panel of B.
    """

    load: Load
    panel: int
    word: int


@dataclass(frozen=True)
class Step:
    """A job and, in their order on the stream, the loads that feed it.

    The ``parameters`` that it needs, if they are not there already, go before it. Its results, if
    it ``answers``, are the ``rows`` x ``cols`` of C.
    """

    job: Job
    feeds: tuple[Feed, ...]
    rows: slice
    cols: slice
    parameters: Feed | None = None

    @property
    def answers(self) -> bool:
        return JobFlag.KEEP not in self.job.flags

    @property
    def commands(self) -> list[Job | Load]:
        before = [self.parameters.load] if self.parameters else []
        return [*before, self.job, *(feed.load for feed in self.feeds)]


def tags() -> Iterator[int]:
    """The tags of jobs, one after another: they wrap at 16 bits."""
    return itertools.cycle(range(1 << 16))


class Planner:
    """Splits products into blocks of panels, each block one job.

    A block of one operand (the outer one) stays for all blocks of the other; that operand is outer
    which makes the loads smaller. The outer one is one block where it fits; else its blocks, and
    always those of the inner one, take at most half of the free pages, so that one loads while
    another is at work. Where not even one panel fits, K is split too: tile by tile, in chains of
    jobs that hand on their sums.

    Parameters
    ----------
    config : Config
    free : pair of (first page, pages), optional
        The stretch of each buffer to use; all of it where absent.
    tag : iterable of int, optional
        The tags of the jobs; from 0 on where absent.
    """

    def __init__(self, config: Config, free=None, tag: Iterable[int] | None = None):
        self._operands = memories(config)[:2]
        self._parameter_words = -(-config.cols // config.lanes)
        free = free or [(0, operand.pages) for operand in self._operands]
        self._rings = [Ring(*gap) for gap in free]
        self._tags = iter(tags() if tag is None else tag)

    def plan(
        self, m: int, n: int, k: int, *, a_page=None, b_page=None, flags: JobFlag = _PLAIN
    ) -> Iterator[Step]:
        """The steps of ``C[m, n] = A[m, k] x B[k, n]``, each of 1 or more.

        With ``a_page`` or ``b_page`` that operand is resident: whole, from that page on. Jobs that
        answer have ``flags``, REQUANTIZE and TABLE or none; with REQUANTIZE their parameters are
        loaded once for each place of a panel of B.

        Raises ValueError where no page is free for an operand that must be loaded.
        """
        product = _Product(self._operands, (m, n), k, (a_page, b_page), flags)
        loaded = [side for side in (A, B) if product.pages[side] is None]
        for side in loaded:
            if not self._rings[side].size:
                raise ValueError(f"pages free for {'ab'[side]} must be 1 or more, not 0")
        if all(self._rings[side].size >= product.panel_pages for side in loaded):
            return self._blocks(product)
        return self._chains(product, loaded)

    def _blocks(self, product):
        blocks = [self._split(product, side) for side in (A, B)]
        weight = [product.bytes(side) for side in (A, B)]
        # The outer operand is loaded once, the inner one once for each outer block.
        cost_a = weight[A] + len(blocks[A]) * weight[B]
        cost_b = weight[B] + len(blocks[B]) * weight[A]
        outer, inner = (A, B) if cost_a < cost_b else (B, A)
        blocks[inner] = self._split(product, inner, halve=True)
        whole = range(product.panel_words)
        place = [None, None]
        for o in blocks[outer]:
            fresh = {outer}
            for i in blocks[inner]:
                fresh.add(inner)
                panels = (o, i) if outer == A else (i, o)
                for side in fresh:
                    place[side] = self._place(product, side, panels[side], whole)
                yield self._step(product, panels, whole, place, fresh)
                fresh = set()

    def _chains(self, product, loaded):
        half = max(1, min(self._rings[side].size for side in loaded) // 2)
        edges = range(0, product.panel_words, half * PAGE_WORDS)
        chunks = [range(w, min(w + edges.step, product.panel_words)) for w in edges]
        for i, j in itertools.product(*(range(count) for count in product.panels)):
            panels = range(i, i + 1), range(j, j + 1)
            for chunk in chunks:
                flags = _PLAIN
                if chunk is not chunks[0]:
                    flags |= JobFlag.ACCUMULATE
                if chunk is not chunks[-1]:
                    flags |= JobFlag.KEEP
                place = [self._place(product, side, panels[side], chunk) for side in (A, B)]
                yield self._step(product, panels, chunk, place, {A, B}, flags)

    def _split(self, product, side, halve=False):
        """The blocks of one operand, as even as can be; ``halve`` leaves room for the next."""
        total = product.panels[side]
        if product.pages[side] is not None:
            return [range(total)]
        fit = self._rings[side].size // product.panel_pages
        limit = total if total <= fit and not halve else max(1, fit // 2)
        size = -(-total // -(-total // limit))
        return [range(p, min(p + size, total)) for p in range(0, total, size)]

    def _place(self, product, side, panels, words):
        """First page of some words of some panels: where they are, or will be loaded to."""
        page = product.pages[side]
        if page is None:
            return self._rings[side].take(len(panels) * _pages(words))
        return page + panels.start * product.panel_pages + words.start // PAGE_WORDS

    def _step(self, product, panels, words, place, fresh, flags=_PLAIN):
        feed = [side for side in (A, B) if side in fresh and product.pages[side] is None]
        for side in feed:
            flags |= _FEEDS[side]
        if JobFlag.KEEP not in flags:
            flags |= product.flags
        rows, cols = (product.span(side, panels[side]) for side in (A, B))
        # A resident operand keeps the pitch it was loaded with, of which a chunk is a part.
        pitch = [
            _pages(words) if page is None else product.panel_pages for page in product.pages
        ]
        span = [
            (len(p) - 1) * step + _pages(words) for p, step in zip(panels, pitch, strict=True)
        ]
        job = Job(
            rows.stop - rows.start, cols.stop - cols.start, product.depth_of(words),
            place[A], pitch[A], span[A], place[B], pitch[B], span[B], next(self._tags), flags,
        )
        # The first panel of A and then B let the array start; the rest of A follows as it works.
        parts = [(side, panels[side]) for side in feed]
        if len(feed) == 2 and len(panels[A]) > 1:
            parts = [(A, panels[A][:1]), (B, panels[B]), (A, panels[A][1:])]
        feeds = tuple(self._feed(*part, panels, words, place) for part in parts)
        return Step(job, feeds, rows, cols, self._parameters(product, job, panels[B]))

    def _parameters(self, product, job, panels):
        """What loads the parameters of a job; None where it needs none, or they are there."""
        if JobFlag.REQUANTIZE not in job.flags:
            return None
        places = {job.b_page + n * job.b_pitch: panel for n, panel in enumerate(panels)}
        if places.items() <= product.finished.items():
            return None
        product.finished |= places
        # One panel has no pitch; that of the operand it is a part of may reach past the buffer.
        pitch = job.b_pitch if len(panels) > 1 else 1
        load = Load(PARAMETERS, job.b_page, pitch, len(panels), self._parameter_words)
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

    ``finished`` has the panels of B whose parameters were loaded, by their pages.
    """

    def __init__(self, geometry, size, k, pages, flags):
        self._geometry = geometry
        self._size = size
        self._k = k
        self.pages = pages
        self.flags = flags
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
        return slice(panels.start * edge, min(panels.stop * edge, self._size[side]))

    def depth_of(self, words):
        """Values of k that some words of a panel hold."""
        depth = self._geometry[A].depth
        return min(words.stop * depth, self._k) - words.start * depth


def _pages(words):
    return -(-len(words) // PAGE_WORDS)
