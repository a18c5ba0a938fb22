"""The cocotb testbench of the core: a `Scenario` that drives the core, and a watchdog."""

import functools
import json
import os
import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from weft.config import Config
from weft.registers import LATENCY
from weft.sim.bench import PERIOD_NS
from weft.sim.bench.streams import CommandDriver, ResultMonitor, number, on_icarus
from weft.sim.scenario import Scenario

__all__ = ["CoreTestbench", "core_config", "core_test", "is_slow"]

BUSY = 1 << 5  # in `activity`


def core_config() -> Config:
    """The Config of the core under test."""
    return Config.from_dict(json.loads(os.environ["WEFT_CONFIG"]))


def is_slow() -> bool:
    """Whether simulation is slow, so that tests should use few cycles."""
    return on_icarus() and core_config().data_type.is_float


class CoreTestbench(Scenario):
    """Drives a core, checks its results, and fails if the core hangs.

    Commands are sent as soon as the core takes them. Scoreboards of jobs that have ended are
    removed.

    Attributes
    ----------
    slots : int
        Tiles of a pass; a word of K takes so many cycles.
    commands : CommandDriver
    results : ResultMonitor
    """

    def __init__(self, dut, *, idle, stall):
        super().__init__(core_config(), cocotb.RANDOM_SEED)
        self.dut = dut
        self.slots = self.config.cell.slots
        self.commands = CommandDriver(dut, random.Random(self.rng.bytes(8)), idle)
        self.results = ResultMonitor(dut, random.Random(self.rng.bytes(8)), stall, self._check)
        self.words, self.scoreboards = self.commands.words, deque()
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
        self.scoreboards.clear()
        self.jobs = self.commands.taken = self.results.taken = 0
        await self.cycles(1)
        self.dut.rst.value = 0

    async def abort(self):
        """Pulse ``cmd_abort`` for one cycle."""
        await RisingEdge(self.dut.clk)
        self.dut.cmd_abort.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.cmd_abort.value = 0

    def job(self, a, b, *more, **options):
        """As of `Scenario`."""
        self._steps = max(self._steps, -(-a.matrix.shape[1] // self.config.depth))
        return super().job(a, b, *more, **options)

    async def wait_sent(self):
        """Wait until the core has taken all command words."""
        while self.commands.pending:
            await RisingEdge(self.dut.clk)

    async def wait_done(self):
        """Wait for all results; then check that no more words come and the core is idle."""
        await self.wait_sent()
        while self.scoreboards:
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
        assert self.scoreboards, f"unexpected result word {word}"
        if self.scoreboards[0].take(word):
            self.scoreboards.popleft()

    async def _watchdog(self):
        """Fail if no word is transferred for too long while work is outstanding."""
        previous = None
        while True:
            timeout = self._timeout()
            await self.cycles(timeout)
            current = self.commands.taken, self.results.taken
            busy = number(self.dut.activity) & BUSY
            outstanding = self.commands.pending or self.scoreboards or busy
            if outstanding and current == previous:
                tags = ", ".join(str(e.tag) for e in self.scoreboards) or "none"
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


def core_test(*, skip: bool = False, idle: int = 0, stall: int = 0):
    """Make a cocotb test of ``async def test(tb, ...)``, with a started `CoreTestbench`.

    ``idle`` and ``stall`` are for its start, unless the test is parametrized with them. When the
    test returns, all results must come.
    """
    def decorate(function):
        @functools.wraps(function)
        async def test(dut, **given):
            flow = {"idle": idle, "stall": stall}
            flow |= {name: given.pop(name) for name in flow if name in given}
            tb = await CoreTestbench.start(dut, **flow)
            await function(tb, **given)
            await tb.wait_done()

        return cocotb.test(skip=skip)(test)

    return decorate
