"""A session with the core: its clock, jobs sent, answers awaited, nothing awaited in vain."""

import json
import os
import random
from collections import deque
from dataclasses import dataclass, replace

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from weft.commands import Job, JobFlag, Load, LoadFlag, Region, Status
from weft.config import Config
from weft.geometry import memories, operands
from weft.host.packing import pack
from weft.registers import LATENCY
from weft.sim.bench import PERIOD_NS
from weft.sim.bench.numbers import numbers
from weft.sim.bench.scoreboard import Scoreboard
from weft.sim.bench.streams import CommandDriver, ResultMonitor, number, on_icarus
from weft.timing import SLOTS

__all__ = [
    "PARAMETERS", "TABLE", "A", "B", "C", "CoreTestbench", "PlacedOperand", "is_slow", "the_config",
]

A, B, C = Region.A, Region.B, Region.C
PARAMETERS, TABLE = Region.PARAMETERS, Region.TABLE
BUSY = 1 << 5  # in `activity`
_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_PLAIN = JobFlag(0)
_UNFED = LoadFlag(0)
_DONE = frozenset({Status(0)})
_WAYS = ((), (A,), (B,), (A, B))


def the_config() -> Config:
    """The Config of the core under test."""
    return Config.from_dict(json.loads(os.environ["WEFT_CONFIG"]))


def is_slow() -> bool:
    """Whether every cycle is dear, so that a test had better do with few of them."""
    return on_icarus() and the_config().dtype != "int8"


@dataclass(frozen=True)
class PlacedOperand:
    """Rows of A, or columns of B, as a matrix [lines, K] and the pages where they are.

    Of C: its columns, as a matrix [N, M], or [N, 1] for every row.
    """

    side: int
    matrix: np.ndarray
    page: int
    pitch: int
    pages: int


class CoreTestbench:
    """Drives one core, checks whatever it answers, and fails when nothing moves any more.

    Attributes
    ----------
    config : Config
    geometry : pair of weft.geometry.Operand
        Of A and of B.
    numbers : weft.sim.bench.numbers.Integers or Floats
    slots : int
        Tiles of a pass: cycles that a word of its K takes.
    rng : numpy.random.Generator
        All that a test draws; the run's seed and the test's name decide it.
    label : str
        What failures say of the jobs sent from now on.
    commands : CommandDriver
    results : ResultMonitor
    jobs : int
        Jobs sent since the last reset.
    """

    def __init__(self, dut, *, idle, stall):
        self.dut = dut
        self.config = the_config()
        self.geometry = operands(self.config)
        self.numbers = numbers(self.config)
        self.slots = SLOTS[self.config.dtype]
        self.rng = np.random.default_rng(cocotb.RANDOM_SEED)
        self.commands = CommandDriver(dut, random.Random(self.rng.bytes(8)), idle)
        self.results = ResultMonitor(dut, random.Random(self.rng.bytes(8)), stall, self._take)
        self.label = ""
        self.jobs = 0
        self._memories = memories(self.config)
        self._tag = int(self.rng.integers(1 << 16))
        self._expected = deque()
        self._steps = 0  # of the longest job so far

    @classmethod
    async def start(cls, dut, *, idle=0, stall=0) -> "CoreTestbench":
        """A session whose core is reset and whose streams run at these percentages."""
        self = cls(dut, idle=idle, stall=stall)
        dut._log.info("seed %d, idle %d %%, stall %d %%", cocotb.RANDOM_SEED, idle, stall)
        dut.cmd_abort.value = 0
        dut.reg_address.value = 0
        dut.rst.value = 1
        Clock(dut.clk, PERIOD_NS, unit="ns").start()
        cocotb.start_soon(self.commands.run())
        cocotb.start_soon(self.results.run())
        await self.reset()
        cocotb.start_soon(self._watch())
        return self

    async def cycles(self, count):
        """Let ``count`` cycles pass."""
        await ClockCycles(self.dut.clk, count)

    async def reset(self):
        """Reset the core; what was sent or expected is forgotten."""
        self.dut.rst.value = 1
        self.commands.drop()
        await self.cycles(1)  # a word may still have been taken in the last cycle before it
        self.results.drop()
        self._expected.clear()
        self.jobs = self.commands.taken = self.results.taken = 0
        await self.cycles(1)
        self.dut.rst.value = 0

    async def abort(self):
        """Pulse ``cmd_abort`` for a cycle."""
        await RisingEdge(self.dut.clk)
        self.dut.cmd_abort.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.cmd_abort.value = 0

    def random(self, lines, k) -> np.ndarray:
        """An operand [lines, K]."""
        return self.numbers.random(self.rng, lines, k)

    def operands(self, m, n, k) -> tuple[np.ndarray, np.ndarray]:
        """A [M, K] and B [N, K] of this shape, or the largest within it that the buffers hold."""
        m, n, k = self.fit(m, n, k)
        return self.random(m, k), self.random(n, k)

    def most_k(self, tiles=1) -> int:
        """The largest K of which both buffers hold ``tiles`` panels."""
        pages = min(g.pages for g in self.geometry) // tiles
        return pages * 16 * self.config.depth

    def fit(self, m, n, k) -> tuple[int, int, int]:
        """The shape, or the largest within it that the buffers of A and B hold."""
        pages = min(g.pages for g in self.geometry)
        m, n = min(m, pages * self.config.rows), min(n, pages * self.config.cols)
        tiles = max(g.panels(size) for g, size in zip(self.geometry, (m, n), strict=True))
        return m, n, min(k, self.most_k(tiles))

    def fits_start(self, m, n) -> bool:
        """Whether the buffer of C holds M rows of it."""
        return C in self._memories and m * self.geometry[B].panels(n) <= self.config.c_words

    def place(self, side, matrix, page=None, gap=None) -> PlacedOperand:
        """Where to put a matrix: at ``page``, panels ``gap`` pages apart; at random where None."""
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
        """The first ``lines`` of what is placed, as an operand of its own."""
        return replace(placed, matrix=placed.matrix[:lines])

    def load(self, placed, *, first=0, count=None, flags=_UNFED):
        """Send ``count`` panels from the ``first`` on, all where absent."""
        g = self._memories[placed.side]
        lines, k = placed.matrix.shape
        last = g.panels(lines) if count is None else first + count
        part = placed.matrix[first * g.edge : last * g.edge]
        page = placed.page + first * placed.pitch
        self.load_words(
            Load(placed.side, page, placed.pitch, last - first, g.panel_words(k), flags), part
        )

    def load_words(self, header, matrix):
        """Send a load of whatever operand, and the panels of ``matrix`` behind it."""
        self.send(header.pack())
        self.commands.send(pack(matrix, self._memories[header.operand]))

    def send(self, header: bytes):
        """Send a header as it is."""
        self.commands.send(header.ljust(self.config.bytes_in, b"\0"))

    def load_parameters(self, b, entries):
        """Load what finishes the columns of a placed B: ``entries``, one for each."""
        g, cols = self._memories[PARAMETERS], self.config.cols
        chunks, panels = -(-cols // g.edge), self.geometry[B].panels(len(entries))
        cells = np.zeros((panels, cols), entries.dtype)
        cells.reshape(-1)[: len(entries)] = entries
        padded = np.zeros((panels, chunks * g.edge), entries.dtype)
        padded[:, :cols] = cells
        # A word holds an entry a lane, as one of an operand holds its values of k a row.
        lanes = padded.reshape(panels, chunks, g.edge).transpose(0, 2, 1)
        matrix = np.ascontiguousarray(lanes).view(np.int8).reshape(panels * g.edge, -1)
        self.load_words(Load(PARAMETERS, b.page, b.pitch, panels, chunks), matrix)

    def job(
        self, a, b, c=None, *, flags=_PLAIN, feed=(), start=None, finish=None, statuses=_DONE
    ) -> Scoreboard | None:
        """Send a job on placed operands and expect its answer; its sums start from ``start``.

        That is ``c``, where one is placed. The answer is the sums, or what ``finish`` makes of
        them. A job that keeps its sums answers only where it has to end otherwise.
        """
        (m, k), n = a.matrix.shape, b.matrix.shape[0]
        self._steps = max(self._steps, -(-k // self.config.depth))
        for side in feed:
            flags |= _FEEDS[side]
        places = [place for x in (a, b) for place in (x.page, x.pitch, x.pages)]
        if c is not None:
            rows = c.matrix.shape[1]
            places += [c.page, c.pitch, c.pages]
            flags |= JobFlag.PRELOAD
            if rows < m or m == 1 and self.rng.random() < 0.5:  # one row is the same either way
                flags |= JobFlag.BROADCAST
            start = c.matrix[:n, :m].T
        self.send(Job(m, n, k, *places, tag=self.tag(), flags=flags).pack())
        if JobFlag.KEEP in flags:
            if Status(0) in statuses:
                return None
            return self.expect(np.empty((0, 0)), statuses)
        sums = self.numbers.product(a.matrix, b.matrix, start)
        return self.expect(sums if finish is None else finish(sums), statuses)

    def expect(self, results, statuses) -> Scoreboard:
        """Expect an answer to the job of the latest `tag`."""
        name = f"job {self._tag}{self.label}"
        self._expected.append(Scoreboard(self._tag, results, statuses, self.config, name))
        return self._expected[-1]

    def tag(self) -> int:
        """The tag of the next job, which is counted as sent."""
        self.jobs += 1
        self._tag = (self._tag + 1) % (1 << 16)
        return self._tag

    def multiply(self, a, b, c=None, *, parameters=None, **options):
        """Send operands, somewhere and in some order, and a job on them; ``c`` is [M, N] or [1, N].

        Operands of a job that accumulates carry on those sent before. ``parameters`` are those of
        the columns.
        """
        a, b = self.place(A, a), self.place(B, b)
        if c is not None:
            c = self.place(C, c.T)
            self.load(c)
        if parameters is not None:
            self.load_parameters(b, parameters)
        carry = JobFlag.ACCUMULATE in options.get("flags", _PLAIN)
        carry = LoadFlag.CONTINUE if carry else _UNFED
        feed = _WAYS[self.rng.integers(len(_WAYS))]
        for side in (a, b):
            if side.side not in feed:
                self.load(side, flags=carry)
        self.job(a, b, c, feed=feed, **options)
        left = {side.side: [side, 0] for side in (a, b) if side.side in feed}
        while left:
            # Panels of both sides, mixed; those of one side stay in order.
            chosen = int(self.rng.choice(list(left)))
            side, first = left[chosen]
            panels = self.geometry[chosen].panels(len(side.matrix))
            count = int(self.rng.integers(1, panels - first + 1))
            self.load(side, first=first, count=count, flags=carry | LoadFlag.FEED)
            left[chosen][1] += count
            if first + count == panels:
                del left[chosen]

    async def sent(self):
        """Wait until the core has taken all words."""
        while self.commands.pending:
            await RisingEdge(self.dut.clk)

    async def finish(self):
        """Wait for every answer; then nothing more comes, and nothing is under way."""
        await self.sent()
        while self._expected:
            await RisingEdge(self.dut.clk)
        # Jobs that keep their sums end in silence.
        while number(self.dut.activity) & BUSY:
            await RisingEdge(self.dut.clk)
        quiet = self.results.taken
        await self.cycles(2 * (self.config.rows + self.config.cols) + 20)
        assert self.results.taken == quiet, "no result word may follow the last one expected"
        activity = number(self.dut.activity)
        assert activity == 0, f"activity must be 0 when all is done, not {activity:#08b}"

    async def register(self, address) -> int:
        """The value of a register."""
        self.dut.reg_address.value = address
        await self.cycles(LATENCY + 1)
        return number(self.dut.reg_data)

    def _take(self, word):
        assert self._expected, f"no result is due, and there is {word}"
        if self._expected[0].take(word):
            self._expected.popleft()

    async def _watch(self):
        """Fail where no word moves for too long although some should."""
        seen = None
        while True:
            patience = self._patience()
            await self.cycles(patience)
            moved = self.commands.taken, self.results.taken
            owed = self.commands.pending or self._expected or number(self.dut.activity) & BUSY
            if owed and moved == seen:
                tags = ", ".join(str(e.tag) for e in self._expected) or "none"
                raise AssertionError(
                    f"a word must move every {patience} cycles, and none did:"
                    f" {self.commands.pending} command words wait, jobs without an answer: {tags},"
                    f" activity {self.dut.activity.value}, cmd_ready {self.dut.cmd_ready.value},"
                    f" res_valid {self.dut.res_valid.value}"
                )
            seen = moved

    def _patience(self):
        """The longest that nothing may move: K of a pass, its results at the slowest."""
        edges = self.config.rows + self.config.cols
        return self.slots * (2 * self._steps + 40 * edges) + 2000
