"""A rig: an IP core with its clocks, masters at its buses, and an eye on what it gives."""

import itertools
import json
import logging
import os
import random
from dataclasses import asdict

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from weft.config import Config
from weft.ip import Ip
from weft.register_map import fifo_ports, registers
from weft.sim.bench import PERIOD_NS
from weft.sim.ip.masters import AxiRegisters, WishboneRegisters, pauses

__all__ = ["IpTestbench", "env", "the_ip"]

CORE_PERIODS_PS = itertools.cycle([7_300, 31_700])  # of a core's own clock, test by test


def env(ip: Ip) -> dict:
    """What benches of ``ip`` are told in their environment."""
    return {"WEFT_IP": json.dumps(asdict(ip))}


def the_ip() -> Ip:
    """The Ip under test."""
    fields = json.loads(os.environ["WEFT_IP"])
    return Ip(**fields | {"config": Config.from_dict(fields["config"])})


class IpTestbench:
    """Drives one IP core.

    Attributes
    ----------
    ip : Ip
    master : weft.sim.ip.masters.Axi or Wishbone
    rng : random.Random
        All that a test draws; the run's seed decides it.
    fields : dict
        Of registers by name: of fields by name.
    """

    def __init__(self, dut, ip=None):
        self.dut, self.ip = dut, ip or the_ip()
        self.config = self.ip.config
        self.rng = random.Random(cocotb.RANDOM_SEED)
        self.wishbone = self.ip.bus == "wishbone"
        self.clock = dut.wb_clk_i if self.wishbone else dut.aclk
        self.fields = {r.name: {f.name: f for f in r.fields} for r in registers(self.ip)}
        self.addresses = {r.name: r.address for r in registers(self.ip)}
        self.addresses |= {w.name: w.address for w in fifo_ports(self.ip)}

    @classmethod
    async def start(cls, dut, pause=0):
        """A rig after a reset, its masters at work."""
        rig = cls(dut)
        cocotb.start_soon(Clock(rig.clock, PERIOD_NS, "ns").start())
        if rig.ip.clocks == 2:
            cocotb.start_soon(Clock(dut.core_clk, next(CORE_PERIODS_PS), "ps").start())
        rig.set_reset(True)
        await ClockCycles(rig.clock, 2)  # masters look at pins, and set some at once
        rig.master = (
            WishboneRegisters(dut, pipelined=rig.ip.pipelined) if rig.wishbone
            else AxiRegisters(dut)
        )
        if rig.ip.bus == "stream":
            reset = {"reset": dut.aresetn, "reset_active_level": False}
            source, sink = (AxiStreamBus.from_prefix(dut, name) for name in ("s_axis", "m_axis"))
            rig.source = AxiStreamSource(source, dut.aclk, **reset)
            rig.sink = AxiStreamSink(sink, dut.aclk, **reset)
        logging.getLogger("cocotb").setLevel(logging.WARNING)  # not each access
        rig.pause(pause)
        await ClockCycles(rig.clock, 4)
        rig.set_reset(False)
        await ClockCycles(rig.clock, 2)
        cocotb.start_soon(rig.watch())
        await rig.restarted()
        return rig

    async def reset(self, cycles=1):
        """A reset of so many cycles, in whatever there is; the masters forget what they did."""
        self.set_reset(True)
        if self.wishbone:
            self.master.forget()
        await ClockCycles(self.clock, cycles)
        self.set_reset(False)
        await ClockCycles(self.clock, 2)
        if self.ip.bus == "stream":
            self.source.clear()
            self.sink.clear()
        await self.restarted()

    def set_reset(self, on):
        if self.wishbone:
            self.dut.wb_rst_i.value = int(on)
        else:
            self.dut.aresetn.value = int(not on)

    def pause(self, odds):
        """Let all channels pause, each cycle with these odds."""
        self.master.pause(self.rng.getrandbits(32), odds)
        if self.ip.bus == "stream":
            for end in (self.source, self.sink):
                end.set_pause_generator(pauses(self.rng.getrandbits(32), odds) if odds else None)
                end.pause = False

    async def watch(self):
        """What is on offer is known in all its bits, and stays as it is until it is taken."""
        dut, held = self.dut, {}
        answers = {
            "axi": [("s_axil_bvalid", "s_axil_bready", ["s_axil_bresp"]),
                    ("s_axil_rvalid", "s_axil_rready", ["s_axil_rdata", "s_axil_rresp"])],
            "wishbone": [("wb_ack_o", None, ["wb_dat_o"]), ("wb_err_o", None, ["wb_dat_o"])],
        }["wishbone" if self.wishbone else "axi"]
        if self.ip.bus == "stream":
            answers.append(("m_axis_tvalid", "m_axis_tready", [
                "m_axis_tdata", "m_axis_tlast", "m_axis_tid", "m_axis_tuser"
            ]))
        while True:
            await RisingEdge(self.clock)
            assert dut.irq.value.is_resolvable, "irq must be known"
            for valid, ready, payload in answers:
                offered = getattr(dut, valid).value
                assert offered.is_resolvable, f"{valid} must be known"
                if not int(offered):
                    assert valid not in held, f"{valid} must stay until {ready}"
                    continue
                values = [str(getattr(dut, name).value) for name in payload]
                for name, value in zip(payload, values, strict=True):
                    assert set(value) <= {"0", "1"}, f"{name} must be known, not {value}"
                assert held.get(valid, values) == values, f"{payload} must stay until {ready}"
                held.pop(valid, None)
                in_reset = not self.wishbone and not int(dut.aresetn.value)
                if ready and not in_reset and not int(getattr(dut, ready).value):
                    held[valid] = values

    async def read(self, name, field=None):
        """A register, or a field of it."""
        value, right = await self.master.read(self.addresses[name])
        assert right, f"a read of {name} must not be refused"
        if field is None:
            return value
        field = self.fields[name][field]
        return value >> field.low & (1 << field.width) - 1

    async def write(self, name, **fields):
        """A register, by the values of its fields, others 0."""
        value = sum(v << self.fields[name][f].low for f, v in fields.items())
        right = await self.master.write(self.addresses[name], value)
        assert right, f"a write to {name} must not be refused"

    async def level(self):
        """All fields of RESULT_LEVEL, of one read."""
        value = await self.read("result_level")
        return {
            name: value >> f.low & (1 << f.width) - 1
            for name, f in self.fields["result_level"].items()
        }

    async def restarted(self):
        """Wait for the end of a reset."""
        while await self.read("status", "reset_busy"):
            pass

    def parts(self, words):
        """Words of the command stream as those of its window."""
        bits = 8 * self.config.bytes_in
        return [word >> n & 0xFFFFFFFF for word in words for n in range(0, bits, 32)]

    async def send(self, words):
        """Give words to the command stream, by whatever way there is."""
        size = self.config.bytes_in
        if self.ip.bus == "stream":
            data = b"".join(word.to_bytes(size, "little") for word in words)
            await self.source.send(AxiStreamFrame(data))
            return
        parts = self.parts(words)
        address = self.addresses["cmd_fifo"]
        while parts:
            room = min(await self.read("cmd_fifo_free"), 64)
            if room:
                assert await self.master.write_all(address, parts[:room])
                parts = parts[room:]

    async def take(self):
        """All words of the next job, as `weft.sim.scenario.ExpectedResults.check` wants them."""
        size = self.config.bytes_out
        if self.ip.bus == "stream":
            frame = await self.sink.recv()
            frame.normalize()
            data, tags, users = bytes(frame.tdata), set(frame.tid), frame.tuser
            assert len(tags) == 1 and len(data) % size == 0
            tag, status = tags.pop(), users[-1]
        else:
            parts = []
            while True:
                level = await self.level()
                if level["words"] and level["complete"]:
                    tag, status = await self.read("result_tag", "tag"), level["status"]
                if level["words"]:
                    count = min(level["words"], 64)
                    parts += await self.master.read_all(self.addresses["result_fifo"], count)
                if level["complete"] and count == level["words"]:
                    break
            data = b"".join(part.to_bytes(4, "little") for part in parts)
        words = [
            {"data": int.from_bytes(data[n : n + size], "little"), "last": 0, "status": 0,
             "tag": tag}
            for n in range(0, len(data), size)
        ]
        words[-1].update(last=1, status=status)
        return words

    async def run(self, program, *, statuses=None):
        """Send a program and check all that it answers; both at the same time."""
        sending = cocotb.start_soon(self.send(program.words))
        for answer in program.expected_results:
            answer.check(await self.take(), statuses=statuses)
        await sending

    def operands(self, m, n, k):
        """Random A and B."""
        rng = np.random.default_rng(self.rng.getrandbits(32))
        if self.config.dtype == "int8":
            return [rng.integers(-128, 128, (lines, k)).astype(np.int8) for lines in (m, n)]
        import ml_dtypes

        return [rng.standard_normal((lines, k)).astype(ml_dtypes.bfloat16) for lines in (m, n)]
