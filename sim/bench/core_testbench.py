"""The cocotb testbench of the core: clock, commands, expected results and a watchdog."""

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

__all__ = [
    "PARAMETERS", "TABLE", "A", "B", "C", "CoreTestbench", "PlacedOperand", "core_config",
    "is_slow",
]

A, B, C = Region.A, Region.B, Region.C
PARAMETERS, TABLE = Region.PARAMETERS, Region.TABLE
BUSY = 1 << 5  # in `activity`
_FEEDS = (JobFlag.FEED_A, JobFlag.FEED_B)
_NO_FLAGS = JobFlag(0)
_NO_LOAD_FLAGS = LoadFlag(0)
_OK = frozenset({Status(0)})
_FEED_CHOICES = ((), (A,), (B,), (A, B))


def core_config() -> Config:
    """The Config of the core under test."""
    return Config.from_dict(json.loads(os.environ["WEFT_CONFIG"]))


def is_slow() -> bool:
    """Whether simulation is slow, so that tests should use few cycles."""
    return on_icarus() and core_config().dtype != "int8"


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


class CoreTestbench:
    """Drives a core, checks its results, and fails if the core hangs.

    Attributes
    ----------
    config : Config
    geometry : pair of weft.geometry.Operand
        Geometry of A and of B.
    numbers : weft.sim.bench.numbers.Integers or Floats
    slots : int
        Tiles of a pass; a word of K takes so many cycles.
    rng : numpy.random.Generator
        Source of all random choices; its seed depends on the run's seed and the test's name.
    label : str
        Text that failure messages add to the names of later jobs.
    commands : CommandDriver
    results : ResultMonitor
    jobs : int
        Jobs sent since the last reset.
    """

    def __init__(self, dut, *, idle, stall):
        self.dut = dut
        self.config = core_config()
        self.geometry = operands(self.config)
        self.numbers = numbers(self.config)
        self.slots = self.config.cell.slots
        self.rng = np.random.default_rng(cocotb.RANDOM_SEED)
        self.commands = CommandDriver(dut, random.Random(self.rng.bytes(8)), idle)
        self.results = ResultMonitor(dut, random.Random(self.rng.bytes(8)), stall, self._check)
        self.label = ""
        self.jobs = 0
        self._memories = memories(self.config)
        self._tag = int(self.rng.integers(1 << 16))
        self._scoreboards = deque()
        self._steps = 0  # of the longest job so far

    @classmethod
    async def start(cls, dut, *, idle=0, stall=0) -> "CoreTestbench":
        """A testbench with the core reset. ``idle`` and ``stall`` are percentages of cycles."""
        self = cls(dut, idle=idle, stall=stall)
        dut._log.info("seed %d, idle %d %%, stall %d %%", cocotb.RANDOM_SEED, idle, stall)
        dut.cmd_abort.value = 0
        dut.reg_address.value = 0
        dut.rst.value = 1
        Clock(dut.clk, PERIOD_NS, unit="ns").start()
        cocotb.start_soon(self.commands.run())
        cocotb.start_soon(self.results.run())
        await self.reset()
        cocotb.start_soon(self._watchdog())
        return self

    async def cycles(self, count):
        """Let ``count`` cycles pass."""
        await ClockCycles(self.dut.clk, count)

    async def reset(self):
        """Reset the core; discard queued words and expected results."""
        self.dut.rst.value = 1
        self.commands.clear()
        await self.cycles(1)  # a word may have been taken in the last cycle before the reset
        self.results.clear()
        self._scoreboards.clear()
        self.jobs = self.commands.taken = self.results.taken = 0
        await self.cycles(1)
        self.dut.rst.value = 0

    async def abort(self):
        """Pulse ``cmd_abort`` for one cycle."""
        await RisingEdge(self.dut.clk)
        self.dut.cmd_abort.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.cmd_abort.value = 0

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

    def load(self, placed, *, first=0, count=None, flags=_NO_LOAD_FLAGS):
        """Send ``count`` panels from ``first`` on; all panels if ``count`` is None."""
        g = self._memories[placed.side]
        lines, k = placed.matrix.shape
        last = g.panels(lines) if count is None else first + count
        part = placed.matrix[first * g.edge : last * g.edge]
        page = placed.page + first * placed.pitch
        self.load_words(
            Load(placed.side, page, placed.pitch, last - first, g.panel_words(k), flags), part
        )

    def load_words(self, header, matrix):
        """Send the header of a load, followed by the panels of ``matrix``."""
        self.send(header.pack())
        self.commands.send(pack(matrix, self._memories[header.operand]))

    def send(self, header: bytes):
        """Send a header."""
        self.commands.send(header.ljust(self.config.bytes_in, b"\0"))

    def load_parameters(self, b, entries):
        """Load the epilogue parameters of a placed B: ``entries``, one for each column."""
        g, cols = self._memories[PARAMETERS], self.config.cols
        chunks, panels = -(-cols // g.edge), self.geometry[B].panels(len(entries))
        cells = np.zeros((panels, cols), entries.dtype)
        cells.reshape(-1)[: len(entries)] = entries
        padded = np.zeros((panels, chunks * g.edge), entries.dtype)
        padded[:, :cols] = cells
        # A word has an entry for each lane, as a word of an operand has values of k for each row.
        lanes = padded.reshape(panels, chunks, g.edge).transpose(0, 2, 1)
        matrix = np.ascontiguousarray(lanes).view(np.int8).reshape(panels * g.edge, -1)
        self.load_words(Load(PARAMETERS, b.page, b.pitch, panels, chunks), matrix)

    def job(
        self, a, b, c=None, *, flags=_NO_FLAGS, feed=(), start=None, epilogue=None, statuses=_OK
    ) -> Scoreboard | None:
        """Send a job on placed operands and expect its answer; its sums start from ``start``.

        If a ``c`` is placed, the sums start from it. The answer is the sums, or the results of
        ``epilogue``. A job that keeps its sums has an answer only if it ends with an error.
        """
        (m, k), n = a.matrix.shape, b.matrix.shape[0]
        self._steps = max(self._steps, -(-k // self.config.depth))
        for side in feed:
            flags |= _FEEDS[side]
        fields = [field for x in (a, b) for field in (x.page, x.pitch, x.pages)]
        if c is not None:
            rows = c.matrix.shape[1]
            fields += [c.page, c.pitch, c.pages]
            flags |= JobFlag.PRELOAD
            # With one row, BROADCAST makes no difference.
            if rows < m or m == 1 and self.rng.random() < 0.5:
                flags |= JobFlag.BROADCAST
            start = c.matrix[:n, :m].T
        self.send(Job(m, n, k, *fields, tag=self.tag(), flags=flags).pack())
        if JobFlag.KEEP in flags:
            if Status(0) in statuses:
                return None
            return self.expect(np.empty((0, 0)), statuses)
        sums = self.numbers.product(a.matrix, b.matrix, start)
        return self.expect(sums if epilogue is None else epilogue(sums), statuses)

    def expect(self, results, statuses) -> Scoreboard:
        """Expect ``results`` of the job with the latest `tag`; returns its scoreboard."""
        name = f"job {self._tag}{self.label}"
        self._scoreboards.append(Scoreboard(self._tag, results, statuses, self.config, name))
        return self._scoreboards[-1]

    def tag(self) -> int:
        """The tag of the next job; counts the job as sent."""
        self.jobs += 1
        self._tag = (self._tag + 1) % (1 << 16)
        return self._tag

    def multiply(self, a, b, c=None, *, parameters=None, **options):
        """Send operands, at random pages and in random order, and a job; ``c`` is [M, N] or [1, N].

        The operands of a job that accumulates continue the operands sent before. ``parameters``
        are the epilogue parameters of the columns.
        """
        a, b = self.place(A, a), self.place(B, b)
        if c is not None:
            c = self.place(C, c.T)
            self.load(c)
        if parameters is not None:
            self.load_parameters(b, parameters)
        flag = JobFlag.ACCUMULATE in options.get("flags", _NO_FLAGS)
        flag = LoadFlag.CONTINUE if flag else _NO_LOAD_FLAGS
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

    async def wait_sent(self):
        """Wait until the core has taken all command words."""
        while self.commands.pending:
            await RisingEdge(self.dut.clk)

    async def wait_done(self):
        """Wait for all results; then check that no more words come and the core is idle."""
        await self.wait_sent()
        while self._scoreboards:
            await RisingEdge(self.dut.clk)
        # Jobs that keep their sums end without a word.
        while number(self.dut.activity) & BUSY:
            await RisingEdge(self.dut.clk)
        taken = self.results.taken
        await self.cycles(2 * (self.config.rows + self.config.cols) + 20)
        assert self.results.taken == taken, "no result word may follow the last expected one"
        activity = number(self.dut.activity)
        assert activity == 0, f"activity must be 0 when all jobs have ended, not {activity:#08b}"

    async def register(self, address) -> int:
        """The value of a register."""
        self.dut.reg_address.value = address
        await self.cycles(LATENCY + 1)
        return number(self.dut.reg_data)

    def _check(self, word):
        assert self._scoreboards, f"unexpected result word {word}"
        if self._scoreboards[0].take(word):
            self._scoreboards.popleft()

    async def _watchdog(self):
        """Fail if no word is transferred for too long while work is outstanding."""
        previous = None
        while True:
            timeout = self._timeout()
            await self.cycles(timeout)
            current = self.commands.taken, self.results.taken
            busy = number(self.dut.activity) & BUSY
            outstanding = self.commands.pending or self._scoreboards or busy
            if outstanding and current == previous:
                tags = ", ".join(str(e.tag) for e in self._scoreboards) or "none"
                raise AssertionError(
                    f"no word was transferred for {timeout} cycles:"
                    f" {self.commands.pending} command words pending, jobs without results: {tags},"
                    f" activity {self.dut.activity.value}, cmd_ready {self.dut.cmd_ready.value},"
                    f" res_valid {self.dut.res_valid.value}"
                )
            previous = current

    def _timeout(self):
        """Upper bound of the cycles without a transfer: the K of a pass, and slow results."""
        edges = self.config.rows + self.config.cols
        return self.slots * (2 * self._steps + 40 * edges) + 2000
