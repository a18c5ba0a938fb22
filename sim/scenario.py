"""Commands for a core, with random operands and places; their results are compared."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from weft.commands import Job, JobFlag, Load, LoadFlag, Region, Status
from weft.config import Config
from weft.geometry import memories, operands
from weft.host.packing import pack, pack_entries, pack_table
from weft.sim.numbers import numbers

__all__ = [
    "A", "B", "C", "DONE", "PlacedOperand", "ResultWord", "Scenario", "Scoreboard", "result_words",
]


_DONE = Status(0)


class ResultWord(NamedTuple):
    """A word of the result stream."""

    data: int
    last: int
    status: int
    tag: int


def result_words(data: bytes, size: int, *, tag: int, status: int, last=True) -> list[ResultWord]:
    """The words, of ``size`` bytes each, of a packet; a packet may be the last one of its job."""
    starts = range(0, len(data), size)
    return [
        ResultWord(
            int.from_bytes(data[n : n + size], "little"), int(last and n == starts[-1]), status, tag
        )
        for n in starts
    ]


class Scoreboard:
    """The expected words of a job, in order, and the statuses it may end with.

    Parameters
    ----------
    tag : int
    results : array [M, N]
        Expected results; their bits are compared. Masked results may have any value. Empty if the
        job has no results.
    statuses : set of Status
        Allowed statuses. A job that ends early may have sent some of its words, which must be
        correct.
    config : Config
    name : str
        Name of the job for messages.

    Attributes
    ----------
    words : list of tuple
        Value, mask of the compared bits, and row and column of the first result, for each word.
    taken : int
        Result words so far.
    ended : Status or None
        Status of the job; None before it has ended.
    """

    def __init__(self, tag, results, statuses, config, name):
        self.tag = tag
        self.name = name
        self.statuses = statuses
        self.ended = None
        self.words = list(_words(results, config))
        self.taken = 0

    def check(self, words):
        """Compare all words of a run of the job. Raises AssertionError if one differs."""
        self.taken, self.ended = 0, None
        for word in words:
            assert self.ended is None, f"last of {self.name} must come with its last word"
            self.take(word)
        assert self.ended is not None, f"{self.name} must end with a word whose last is set"

    def take(self, word: ResultWord) -> bool:
        """Compare the next word; returns True for the last word of the job."""
        if word.tag != self.tag:
            raise AssertionError(f"tag of a result must be {self.tag}, not {word.tag}")
        status = Status(word.status) if word.last else _DONE
        if status == _DONE:
            self._compare(word)
        elif Status.REJECTED in status and self.taken:
            raise AssertionError(
                f"{self.name} must be rejected before its first result, not after {self.taken}"
            )
        if word.last:
            if status not in self.statuses:
                allowed = " or ".join(repr(s) for s in self.statuses)
                raise AssertionError(f"{self.name} must end with {allowed}, not {status!r}")
            self.ended = status
        return bool(word.last)

    def _compare(self, word):
        if self.taken == len(self.words):
            raise AssertionError(f"{self.name} must have {self.taken} result words, not more")
        value, mask, row, col = self.words[self.taken]
        if (word.data ^ value) & mask:
            raise AssertionError(
                f"{self.name}, word {self.taken} (row {row}, from column {col} on)"
                f" must be {value:#x}, not {word.data & mask:#x}"
            )
        self.taken += 1
        if word.last != (self.taken == len(self.words)):
            raise AssertionError(
                f"last of {self.name} must come with word {len(self.words) - 1},"
                f" and is {word.last} with word {self.taken - 1}"
            )


def _words(results, config):
    """Value, mask of the compared bits, and row and column of the first result, for each word."""
    size = results.dtype.itemsize
    bits = np.ma.getdata(results).view(f"u{size}")
    counts = ~np.ma.getmaskarray(results)
    data, mask, places = bytearray(), bytearray(), []
    m, n = results.shape
    for top in range(0, m, config.rows):
        for left in range(0, n, config.cols):
            right = min(left + config.cols, n)
            padding = bytes((left - right) % config.lanes * size)
            for row in range(top, min(top + config.rows, m)):
                data += b"".join(x.to_bytes(size, "little") for x in bits[row, left:right].tolist())
                mask += np.repeat(counts[row, left:right] * b"\xff"[0], size).astype("u1").tobytes()
                mask += padding
                data += padding
                places += [(row, col) for col in range(left, right + len(padding) // size)]
    for start in range(0, len(data), config.bytes_out):
        part = slice(start, start + config.bytes_out)
        value, care = (int.from_bytes(x[part], "little") for x in (data, mask))
        yield value, care, *places[start // size]


A, B, C = Region.A, Region.B, Region.C
DONE = frozenset({Status(0)})
NO_FLAGS = JobFlag(0)
NO_LOAD_FLAGS = LoadFlag(0)
NO_RESULTS = np.empty((0, 0), np.int32)
_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_FEED_CHOICES = ((), (A,), (B,), (A, B))


@dataclass(frozen=True)
class PlacedOperand:
    """An operand and its pages.

    ``matrix`` has the rows of A, or the columns of B, as [lines, K]. For C it has the columns as
    [N, M], or [N, 1] if all rows are equal.
    """

    side: int
    matrix: np.ndarray
    page: int
    pitch: int
    pages: int


class Scenario:
    """A sequence of commands, and the results that a core must send.

    A driver sends `words` and passes the result words to the `scoreboards`.

    Parameters
    ----------
    config : Config
    seed : int
        Seed of all random choices.

    Attributes
    ----------
    geometry : pair of weft.geometry.Operand
        Geometry of A and of B.
    numbers : an object of `weft.sim.numbers.NUMBERS`
    rng : numpy.random.Generator
        Source of all random choices.
    words : list of int
        Words of the command stream.
    scoreboards : list of Scoreboard
        One for each job that sends words, in order.
    label : str
        Text that failure messages add to the names of later jobs.
    jobs : int
        Jobs sent.
    """

    def __init__(self, config: Config, seed=1):
        self.config = config
        self.geometry = operands(config)
        self.numbers = numbers(config)
        self.rng = np.random.default_rng(seed)
        self.words, self.scoreboards = [], []
        self.label = ""
        self.jobs = 0
        self._memories = memories(config)
        self._tag = int(self.rng.integers(1 << 16))
        self._kept = None, 0  # the sums of the last job that kept them, and sums of its rows of A
        self._parameters, self._table = {}, None  # parameters by the page of B

    @property
    def data(self) -> bytes:
        """The command stream."""
        return b"".join(word.to_bytes(self.config.bytes_in, "little") for word in self.words)

    def random(self, lines, k) -> np.ndarray:
        """A random operand [lines, K]."""
        return self.numbers.random(self.rng, lines, k)

    def operands(self, m, n, k) -> tuple[np.ndarray, np.ndarray]:
        """Random A [M, K] and B [N, K], reduced to the size of the buffers."""
        m, n, k = self.fit(m, n, k)
        return self.random(m, k), self.random(n, k)

    def max_k(self, tiles=1) -> int:
        """The largest K for ``tiles`` panels in both buffers."""
        pages = min(g.pages for g in self.geometry) // tiles
        return pages * 16 * self.config.depth

    def fit(self, m, n, k) -> tuple[int, int, int]:
        """The shape (M, N, K), reduced to the size of the buffers of A and B."""
        pages = min(g.pages for g in self.geometry)
        m, n = min(m, pages * self.config.rows), min(n, pages * self.config.cols)
        tiles = max(g.panels(size) for g, size in zip(self.geometry, (m, n), strict=True))
        return m, n, min(k, self.max_k(tiles))

    def fits_c(self, m, n) -> bool:
        """Whether the buffer of C holds a C of M x N."""
        return C in self._memories and m * self.geometry[B].panels(n) <= self.config.c_words

    def place(self, side, matrix, page=None, gap=None) -> PlacedOperand:
        """Place a matrix at ``page`` with ``gap`` pages between panels; None: at random."""
        g = self._memories[side]
        lines, k = matrix.shape
        panels, pitch = g.panels(lines), g.panel_pages(k)
        spare = (g.pages - panels * pitch) // panels
        assert spare >= 0, f"{panels} panels of K={k} must fit {g.pages} pages"
        pitch += int(self.rng.integers(min(spare, 2) + 1)) if gap is None else gap
        if page is None:
            page = int(self.rng.integers(g.pages - panels * pitch + 1))
        return PlacedOperand(side, matrix, page, pitch, panels * pitch)

    def part(self, placed, lines) -> PlacedOperand:
        """The first ``lines`` of a placed operand, as an operand."""
        return replace(placed, matrix=placed.matrix[:lines])

    def load(self, *operands, first=0, count=None, flags=NO_LOAD_FLAGS):
        """Send ``count`` panels of operands from ``first`` on; all panels if it is None."""
        for placed in operands:
            g = self._memories[placed.side]
            lines, k = placed.matrix.shape
            last = g.panels(lines) if count is None else first + count
            page = placed.page + first * placed.pitch
            load = Load(placed.side, page, placed.pitch, last - first, g.panel_words(k), flags)
            self.load_lines(load, placed.matrix[first * g.edge : last * g.edge])

    def load_parameters(self, b, entries):
        """Load the epilogue parameters of a placed B: ``entries``, one for each column."""
        g, cols = self._memories[Region.PARAMETERS], self.config.cols
        entries = np.array(entries, self.numbers.ENTRY)
        self._parameters[b.page] = entries
        load = Load(
            Region.PARAMETERS, b.page, b.pitch, self.geometry[B].panels(len(entries)),
            -(-cols // g.edge),
        )
        self.load_payload(load, pack_entries(entries, g, cols))

    def load_table(self, entries):
        """Load the activation table, 256 entries of 8 bits."""
        self._table = np.array(entries, np.uint8)
        load = Load(Region.TABLE, 0, 1, 1, len(entries))
        self.load_payload(load, pack_table(self._table, self._memories[Region.TABLE]))

    def job(
        self, a, b, c=None, *, flags=NO_FLAGS, feed=(), tag=None, statuses=DONE, results=None
    ) -> Scoreboard | None:
        """Send a job on placed operands, and expect its results.

        Its sums start from ``c`` if there is one, or from kept sums. ``results`` replaces the
        results of the golden models. A job that keeps its sums has none, and sends a word only if
        it must end with another status.
        """
        (m, k), n = a.matrix.shape, b.matrix.shape[0]
        for side in feed:
            flags |= _FEEDS[side]
        fields = [field for x in (a, b) for field in (x.page, x.pitch, x.pages)]
        start, rows = self._kept if JobFlag.ACCUMULATE in flags else (None, 0)
        if c is not None:
            height = c.matrix.shape[1]
            fields += [c.page, c.pitch, c.pages]
            flags |= JobFlag.PRELOAD
            # With one row, BROADCAST makes no difference.
            if height < m or m == 1 and self.rng.random() < 0.5:
                flags |= JobFlag.BROADCAST
            start = c.matrix[:n, :m].T
        self.submit(Job(m, n, k, *fields, tag=self.tag(tag), flags=flags))
        if results is None:
            sums = self.numbers.product(a.matrix, b.matrix, start)
            rows = rows + self.numbers.row_sums(a.matrix)
            if JobFlag.KEEP in flags:
                self._kept = sums, rows
            else:
                entries = self._parameters.get(b.page)
                if entries is not None:
                    entries = entries[: len(b.matrix)]
                results = self.numbers.results(
                    self.config, flags, sums, rows, entries, self._table
                )
        if JobFlag.KEEP in flags:
            return None if Status(0) in statuses else self.expect(NO_RESULTS, statuses)
        return self.expect(results, statuses)

    def reject(self, *, tag=None, **fields):
        """Send a job of one result that the core must reject because of its ``fields``."""
        spans = {"a_page": 0, "a_pitch": 1, "a_pages": 1, "b_page": 0, "b_pitch": 1, "b_pages": 1}
        self.submit(Job(**{"m": 1, "n": 1, "k": 1, **spans, **fields}, tag=self.tag(tag)))
        self.expect(NO_RESULTS, {Status.REJECTED})

    def multiply(self, a, b, c=None, *, parameters=None, feed=None, **options):
        """Send operands, at random pages, and a job; returns the placed A and B.

        ``c`` is [M, N] or [1, N]. Operands in ``feed`` follow the job in random order; if it is
        None, any of them do. The operands of a job that accumulates continue the operands sent
        before. ``parameters`` are the epilogue parameters of the columns.
        """
        a, b = self.place(A, a), self.place(B, b)
        if c is not None:
            c = self.place(C, c.T)
            self.load(c)
        if parameters is not None:
            self.load_parameters(b, parameters)
        flag = JobFlag.ACCUMULATE in options.get("flags", NO_FLAGS)
        flag = LoadFlag.CONTINUE if flag else NO_LOAD_FLAGS
        if feed is None:
            feed = _FEED_CHOICES[self.rng.integers(len(_FEED_CHOICES))]
        for side in (a, b):
            if side.side not in feed:
                self.load(side, flags=flag)
        self.job(a, b, c, feed=feed, **options)
        remaining = {side.side: [side, 0] for side in (a, b) if side.side in feed}
        while remaining:
            # The panels of both operands are interleaved; each operand's stay in order.
            region = int(self.rng.choice(list(remaining)))
            side, first = remaining[region]
            panels = self.geometry[region].panels(len(side.matrix))
            count = int(self.rng.integers(1, panels - first + 1))
            self.load(side, first=first, count=count, flags=flag | LoadFlag.FEED)
            remaining[region][1] += count
            if first + count == panels:
                del remaining[region]
        return a, b

    def expect(self, results, statuses) -> Scoreboard:
        """Expect ``results`` of the job with the latest `tag`; returns its scoreboard."""
        name = f"job {self._tag}{self.label}"
        self.scoreboards.append(Scoreboard(self._tag, results, statuses, self.config, name))
        return self.scoreboards[-1]

    def tag(self, tag=None) -> int:
        """The tag of the next job, by default the tag after the latest; counts the job as sent."""
        self.jobs += 1
        self._tag = (self._tag + 1) % (1 << 16) if tag is None else tag
        return self._tag

    def submit(self, job: Job):
        """Send a job."""
        self.send(job.pack())

    def load_lines(self, load: Load, matrix):
        """Send a load of operand lines."""
        self.load_payload(load, pack(matrix, self._memories[load.operand]))

    def load_payload(self, load: Load, payload: bytes):
        """Send the header of a load, and its payload."""
        self.send(load.pack())
        self.send(payload)

    def send(self, data: bytes):
        """Send any bytes, padded with zeros to whole words."""
        width = self.config.bytes_in
        for start in range(0, len(data), width):
            self.words.append(int.from_bytes(data[start : start + width], "little"))
