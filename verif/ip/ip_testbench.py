"""The testbench of an IP core: clocks, masters at its buses, and checks of its outputs."""

import itertools
import json
import logging
import os
import random
from dataclasses import asdict

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from verif.ip.masters import master_class
from verif.ip.pauses import pauses
from weft.commands import Status
from weft.config import Config
from weft.ip import Ip
from weft.register_map import fifo_ports, registers
from weft.sim.bench import PERIOD_NS
from weft.sim.scenario import A, B, Scenario, result_words

__all__ = ["IpTestbench", "env", "the_ip"]

CORE_PERIODS_PS = itertools.cycle([7_300, 31_700])  # of core_clk; each test takes the next one


def env(ip: Ip) -> dict:
    """The environment variables of a simulation of ``ip``."""
    return {"WEFT_IP": json.dumps(asdict(ip))}


def the_ip() -> Ip:
    """The `Ip` under test, from the environment."""
    fields = json.loads(os.environ["WEFT_IP"])
    return Ip(**fields | {"config": Config.from_dict(fields["config"])})


class IpTestbench:
    """Drives one IP core.

    Attributes
    ----------
    ip : Ip
    master : verif.ip.masters.RegisterMaster
    rng : random.Random
        The only source of random numbers; the seed of the run is its seed.
    addresses : dict
        Byte addresses of registers and FIFO ports, by name.
    fields : dict
        Fields by name, of each register by name.
    """

    def __init__(self, dut, ip=None):
        self.dut, self.ip = dut, ip or the_ip()
        self.config = self.ip.array
        self.rng = random.Random(cocotb.RANDOM_SEED)
        self.bus = self.ip.protocol
        self.clock, self.reset_pin = getattr(dut, self.bus.clock), getattr(dut, self.bus.reset)
        self.fields = {r.name: {f.name: f for f in r.fields} for r in registers(self.ip)}
        self.addresses = {r.name: r.address for r in registers(self.ip)}
        self.addresses |= {port.name: port.address for port in fifo_ports(self.ip)}

    @classmethod
    async def start(cls, dut, pause=0):
        """A testbench after a reset, with its masters running."""
        tb = cls(dut)
        cocotb.start_soon(Clock(tb.clock, PERIOD_NS, "ns").start())
        if tb.ip.clocks == 2:
            cocotb.start_soon(Clock(dut.core_clk, next(CORE_PERIODS_PS), "ps").start())
        tb.set_reset(True)
        await ClockCycles(tb.clock, 2)  # before the masters read and drive pins
        tb.master = master_class(tb.ip)(dut, tb.ip)
        if tb.ip.has_streams:
            reset = {"reset": dut.aresetn, "reset_active_level": False}
            source, sink = (AxiStreamBus.from_prefix(dut, name) for name in ("s_axis", "m_axis"))
            tb.source = AxiStreamSource(source, dut.aclk, **reset)
            tb.sink = AxiStreamSink(sink, dut.aclk, **reset)
        logging.getLogger("cocotb").setLevel(logging.WARNING)  # no line for each access
        tb.pause(pause)
        await ClockCycles(tb.clock, 4)
        tb.set_reset(False)
        await ClockCycles(tb.clock, 2)
        cocotb.start_soon(tb.check_outputs())
        await tb.wait_reset()
        return tb

    async def reset(self, cycles=1):
        """Reset the core for ``cycles`` cycles; the masters drop all accesses in progress."""
        self.set_reset(True)
        self.master.clear()
        await ClockCycles(self.clock, cycles)
        self.set_reset(False)
        await ClockCycles(self.clock, 2)
        if self.ip.has_streams:
            self.source.clear()
            self.sink.clear()
        await self.wait_reset()

    def set_reset(self, on):
        self.reset_pin.value = self.bus.reset_active if on else 1 - self.bus.reset_active

    def pause(self, odds):
        """Pause each channel in a cycle with probability ``odds``."""
        self.master.pause(self.rng.getrandbits(32), odds)
        if self.ip.has_streams:
            for end in (self.source, self.sink):
                end.set_pause_generator(pauses(self.rng.getrandbits(32), odds) if odds else None)
                end.pause = False

    async def check_outputs(self):
        """Check that outputs have no X or Z, and that an offered word stays until it is taken."""
        dut, stalled = self.dut, {}
        channels = [*self.master.OUTPUTS]
        if self.ip.has_streams:
            channels.append(("m_axis_tvalid", "m_axis_tready", [
                "m_axis_tdata", "m_axis_tlast", "m_axis_tid", "m_axis_tuser"
            ]))
        while True:
            await RisingEdge(self.clock)
            assert dut.irq.value.is_resolvable, "irq must be known"
            for valid, ready, payload in channels:
                offered = getattr(dut, valid).value
                assert offered.is_resolvable, f"{valid} must be known"
                if not int(offered):
                    assert valid not in stalled, f"{valid} must stay until {ready}"
                    continue
                values = [str(getattr(dut, name).value) for name in payload]
                for name, value in zip(payload, values, strict=True):
                    assert set(value) <= {"0", "1"}, f"{name} must be known, not {value}"
                assert stalled.get(valid, values) == values, f"{payload} must stay until {ready}"
                stalled.pop(valid, None)
                in_reset = int(self.reset_pin.value) == self.bus.reset_active
                if ready and not in_reset and not int(getattr(dut, ready).value):
                    stalled[valid] = values

    async def read(self, name, field=None):
        """The value of a register, or of a field of it."""
        value, okay = await self.master.read(self.addresses[name])
        assert okay, f"a read of {name} must not be an error"
        if field is None:
            return value
        field = self.fields[name][field]
        return value >> field.low & (1 << field.width) - 1

    async def write(self, name, **fields):
        """Write a register by its fields; fields without a value are 0."""
        value = sum(v << self.fields[name][f].low for f, v in fields.items())
        okay = await self.master.write(self.addresses[name], value)
        assert okay, f"a write of {name} must not be an error"

    async def result_level(self):
        """All fields of RESULT_LEVEL, from one read."""
        value = await self.read("result_level")
        return {
            name: value >> f.low & (1 << f.width) - 1
            for name, f in self.fields["result_level"].items()
        }

    async def wait_reset(self):
        """Wait for the end of a reset."""
        while await self.read("status", "reset_busy"):
            pass

    def parts(self, words):
        """Words of the command stream as 32-bit words for CMD_FIFO."""
        bits = 8 * self.config.bytes_in
        return [word >> n & 0xFFFFFFFF for word in words for n in range(0, bits, 32)]

    async def send(self, words):
        """Send words to the command stream, through the bus of the core."""
        size = self.config.bytes_in
        if self.ip.has_streams:
            data = b"".join(word.to_bytes(size, "little") for word in words)
            await self.source.send(AxiStreamFrame(data))
            return
        parts = self.parts(words)
        address = self.addresses["cmd_fifo"]
        while parts:
            count = min(await self.read("cmd_fifo_free"), 64)
            if count:
                assert await self.master.write_all(address, parts[:count])
                parts = parts[count:]

    async def receive(self):
        """All words of the next job, for `Scoreboard.check`."""
        size = self.config.bytes_out
        if self.ip.has_streams:
            frame = await self.sink.recv()
            frame.normalize()
            data, tags, users = bytes(frame.tdata), set(frame.tid), frame.tuser
            assert len(tags) == 1 and len(data) % size == 0
            tag, status = tags.pop(), users[-1]
        else:
            parts = []
            while True:
                level = await self.result_level()
                if level["words"] and level["complete"]:
                    tag, status = await self.read("result_tag", "tag"), level["status"]
                if level["words"]:
                    count = min(level["words"], 64)
                    parts += await self.master.read_all(self.addresses["result_fifo"], count)
                if level["complete"] and count == level["words"]:
                    break
            data = b"".join(part.to_bytes(4, "little") for part in parts)
        return result_words(data, size, tag=tag, status=status)

    async def run(self, scenario):
        """Send the words of a scenario, and check its results at the same time."""
        sending = cocotb.start_soon(self.send(scenario.words))
        for scoreboard in scenario.scoreboards:
            scoreboard.check(await self.receive())
        await sending

    def scenario(self) -> Scenario:
        """An empty scenario with a seed of its own."""
        return Scenario(self.config, self.rng.getrandbits(32))

    def unfed_job(self, *, tag) -> Scenario:
        """A scenario of a job whose operands never come; it must be aborted."""
        scenario = self.scenario()
        placed = map(scenario.place, (A, B), scenario.operands(1, 1, 1))
        scenario.job(*placed, feed=(A, B), tag=tag, statuses={Status.ABORTED})
        return scenario
