"""A Weft core in a cocotb simulation: its registers and its products, on any bus.

``weft_master.py`` accesses the registers over the core's bus; ``weft_data.py`` moves commands and
results.
"""

import json
import logging
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from weft_data import DataPath
from weft_master import RegisterMaster

DESIGN = json.loads(Path(__file__).with_name("design.json").read_text(encoding="utf-8"))
REGISTERS = DESIGN["registers"]
POLL_LIMIT = 2_000  # reads of a register before a wait fails


class SimulatedCore:
    """The core under test with its clocks and reset, and a bus model on each interface."""

    def __init__(self, dut, seed):
        self.dut, self.seed, self.tag = dut, seed, 0
        self.clock, self.reset = (getattr(dut, DESIGN[name]) for name in ("clock", "reset"))

    @classmethod
    async def start(cls, dut, seed, pause=0.0):
        """Reset the core; ``pause`` is the probability that a channel pauses in a cycle."""
        core = cls(dut, seed)
        cocotb.start_soon(Clock(core.clock, 10, "ns").start())
        if DESIGN["clocks"] == 2:
            cocotb.start_soon(Clock(dut.core_clk, 7300, "ps").start())
        core.reset.value = DESIGN["reset_active"]
        await ClockCycles(core.clock, 2)  # Icarus loses values that are set at time 0
        logging.getLogger(f"cocotb.{DESIGN['name']}").setLevel(logging.WARNING)
        core.master = RegisterMaster(dut, core.clock, core.reset)
        core.data = DataPath(core)
        if pause:
            core.master.pause(seed, pause)
            core.data.pause(seed + 5, pause)
        await ClockCycles(core.clock, 5)
        core.reset.value = 1 - DESIGN["reset_active"]
        await ClockCycles(core.clock, 2)
        await core.until("status", "reset_busy", 0)
        return core

    async def access(self, address, value=None):
        """Read a register, or write ``value`` to it: the value read (or None), and no bus error."""
        return await self.master.access(address, value)

    async def read(self, name, field=None):
        """The value of a register, or of one of its fields."""
        value, ok = await self.access(REGISTERS[name]["address"])
        assert ok, f"a read of {name} ended in a bus error"
        if field is None:
            return value
        low, width = REGISTERS[name]["fields"][field]
        return value >> low & (1 << width) - 1

    async def write(self, name, value=0, **fields):
        """Write a register, as a number or by its fields."""
        value |= sum(v << REGISTERS[name]["fields"][field][0] for field, v in fields.items())
        ok = (await self.access(REGISTERS[name]["address"], value))[1]
        assert ok, f"a write of {name} ended in a bus error"

    async def until(self, name, field, value):
        """Wait until a field has a value."""
        for _ in range(POLL_LIMIT):
            if await self.read(name, field) == value:
                return
        raise AssertionError(f"{name}.{field} is not {value} after {POLL_LIMIT} reads")

    async def multiply(self, a, b):
        """The product of A[m, k] and B[k, n], computed by the core."""
        self.tag = (self.tag + 1) & 0xFFFF
        return await self.data.multiply(a, b, self.tag)

    async def reject(self):
        """Send a job with M, K and N of 0, which the core rejects: its tag and status."""
        self.tag = (self.tag + 1) & 0xFFFF
        return await self.data.reject(self.tag)
