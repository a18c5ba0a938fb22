"""A Weft core in a simulation: its registers, its commands and its results, over whichever bus."""

import itertools
import logging
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from weft_packing import DESIGN, FLOATS, A, B, job, load, pack, unpack

BUS, REGISTERS = DESIGN["bus"], DESIGN["registers"]
LIMIT = 2_000  # reads of a register until what is waited for must have come
MEMORY = 1 << 20  # bytes behind an AXI4 master


def pauses(seed, odds):
    """Cycles in which a channel pauses."""
    draw = random.Random(seed)
    return (draw.random() < odds for _ in itertools.count())


class Core:
    """One core, its clocks and reset, and masters at its buses."""

    def __init__(self, dut, seed):
        self.dut, self.seed, self.tag = dut, seed, 0
        self.draw = random.Random(seed)
        self.clock = dut.wb_clk_i if BUS == "wishbone" else dut.aclk

    @classmethod
    async def start(cls, dut, seed, odds=0.0):
        """A core after a reset, whose channels pause in a cycle with these odds."""
        core = cls(dut, seed)
        cocotb.start_soon(Clock(core.clock, 10, "ns").start())
        if DESIGN["clocks"] == 2:
            cocotb.start_soon(Clock(dut.core_clk, 7300, "ps").start())
        core._reset(True)
        await ClockCycles(core.clock, 2)  # what is set at the very start, Icarus forgets
        core._connect(odds)
        await ClockCycles(core.clock, 5)
        core._reset(False)
        await ClockCycles(core.clock, 2)
        await core.until("status", "reset_busy", 0)
        return core

    def _reset(self, on):
        if BUS == "wishbone":
            self.dut.wb_rst_i.value = int(on)
        else:
            self.dut.aresetn.value = int(not on)

    def _connect(self, odds):
        logging.getLogger(f"cocotb.{DESIGN['name']}").setLevel(logging.WARNING)
        if BUS == "wishbone":
            from cocotbext.wishbone.driver import WishboneMaster

            names = {
                "cyc": "cyc_i", "stb": "stb_i", "we": "we_i", "adr": "adr_i", "datwr": "dat_i",
                "datrd": "dat_o", "ack": "ack_o", "sel": "sel_i", "err": "err_o",
            } | ({"stall": "stall_o"} if DESIGN["pipelined"] else {})
            self.master = WishboneMaster(
                self.dut, "wb", self.clock, signals_dict=names, timeout=1000
            )
            self.odds = odds
            return
        from cocotbext import axi

        reset = {"reset": self.dut.aresetn, "reset_active_level": False}
        bus = axi.AxiLiteBus.from_prefix(self.dut, "s_axil")
        self.master = axi.AxiLiteMaster(bus, self.clock, **reset)
        write, read = self.master.write_if, self.master.read_if
        ends = [write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel]
        if BUS == "stream":
            streams = (axi.AxiStreamBus.from_prefix(self.dut, n) for n in ("s_axis", "m_axis"))
            kinds = axi.AxiStreamSource, axi.AxiStreamSink
            self.source, self.sink = (
                kind(bus, self.clock, **reset) for kind, bus in zip(kinds, streams, strict=True)
            )
            ends += [self.source, self.sink]
        if BUS == "dma":
            bus = axi.AxiBus.from_prefix(self.dut, "m_axi")
            self.memory = axi.AxiRam(
                bus, self.clock, size=MEMORY, mem=bytearray(MEMORY), **reset
            )
            write, read = self.memory.write_if, self.memory.read_if
            ends += [
                write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
            ]
        for n, end in enumerate(ends):
            if odds:
                end.set_pause_generator(pauses(self.seed + n, odds))

    async def access(self, address, value=None):
        """A read, or the write of a value: what came, and whether it was not refused."""
        if BUS == "wishbone":
            from cocotbext.wishbone.driver import WBOp

            idle = self.draw.randrange(4) if self.odds else 0
            [answer] = await self.master.send_cycle(
                [WBOp(adr=address // 4, dat=value, idle=idle, sel=15)]
            )
            return (int(answer.datrd) if value is None else None), answer.ack == 1
        if value is None:
            answer = await self.master.read(address, 4)
            return int.from_bytes(answer.data, "little"), answer.resp == 0
        answer = await self.master.write(address, value.to_bytes(4, "little"))
        return None, answer.resp == 0

    async def read(self, name, field=None):
        """A register, or a field of it."""
        value, right = await self.access(REGISTERS[name]["address"])
        assert right, f"a read of {name} was refused"
        if field is None:
            return value
        low, width = REGISTERS[name]["fields"][field]
        return value >> low & (1 << width) - 1

    async def write(self, name, value=0, **fields):
        """A register, as a number or by its fields."""
        value |= sum(v << REGISTERS[name]["fields"][field][0] for field, v in fields.items())
        assert (await self.access(REGISTERS[name]["address"], value))[1], f"{name} was refused"

    async def until(self, name, field, value):
        """Wait for a field to have a value."""
        for _ in range(LIMIT):
            if await self.read(name, field) == value:
                return
        raise AssertionError(f"{name}.{field} must become {value}")

    async def multiply(self, a, b):
        """The product of [m, k] and [k, n], as the core computes it."""
        (m, k), n = a.shape, b.shape[1]
        self.tag = (self.tag + 1) & 0xFFFF
        if BUS == "dma":
            return await self._fetched(a, b, m, n, k)
        loads = load(A, m, k) + pack(a, A) + load(B, n, k)
        await self.send(loads + pack(np.ascontiguousarray(b.T), B) + job(m, n, k, self.tag))
        data, tag, status = await self.receive()
        assert (tag, status) == (self.tag, 0)
        return unpack(data, m, n)

    async def refuse(self):
        """A job of nothing: the core answers that it was rejected."""
        self.tag = (self.tag + 1) & 0xFFFF
        if BUS == "dma":
            await self._descriptor(job(0, 0, 0, self.tag), 0)
            await self.until("last_job", "tag", self.tag)
            return self.tag, await self.read("last_job", "status")
        await self.send(job(0, 0, 0, self.tag))
        return (await self.receive())[1:]

    async def send(self, data):
        """Give bytes to the command stream."""
        if BUS == "stream":
            from cocotbext.axi import AxiStreamFrame

            await self.source.send(AxiStreamFrame(data))
            return
        words, room = np.frombuffer(data, "<u4").tolist(), 0
        for word in words:
            while not room:
                room = await self.read("cmd_fifo_free")
            assert (await self.access(DESIGN["fifo_ports"]["cmd_fifo"], word))[1]
            room -= 1

    async def receive(self):
        """The words of the next job, its tag and its status."""
        if BUS == "stream":
            frame = await self.sink.recv()
            frame.normalize()
            return bytes(frame.tdata), frame.tid[-1], frame.tuser[-1]
        await self.until("result_level", "complete", 1)
        count, status, tag = [
            await self.read("result_level", "words"), await self.read("result_level", "status"),
            await self.read("result_tag", "tag"),
        ]
        data = b""
        for _ in range(count):
            value, right = await self.access(DESIGN["fifo_ports"]["result_fifo"])
            assert right
            data += value.to_bytes(4, "little")
        return data, tag, status

    async def _fetched(self, a, b, m, n, k):
        """A from its rows, B from the rows of [k, n]: transposed by the core."""
        size, places = a.itemsize, (0x1003 & -a.itemsize, 0x8001 & -a.itemsize, 0x20000)
        stride = -(-n // 16) * 64
        self.memory.write(places[0], a.tobytes())
        self.memory.write(places[1], np.ascontiguousarray(b).tobytes())
        self.memory.write(places[2], bytes(m * stride))
        await self._descriptor(load(A, m, k), places[0], size * k, m, k, 0)
        await self._descriptor(load(B, n, k), places[1], size * n, n, k, 1)
        await self._descriptor(job(m, n, k, self.tag), places[2], stride)
        await self.until("last_job", "tag", self.tag)
        assert await self.read("last_job", "status") == 0
        data = np.frombuffer(self.memory.read(places[2], m * stride), np.uint8).reshape(m, stride)
        return np.ascontiguousarray(data[:, : 4 * n]).view("<f4" if FLOATS else "<i4")

    async def _descriptor(self, header, *more):
        while not await self.read("desc_free"):
            pass
        words = [*np.frombuffer(header[:32], "<u4").tolist(), *more, *[0] * (8 - len(more))]
        for number, word in enumerate(words):
            await self.write(f"descriptor_{number}", word)
        await self.write("doorbell", submit=1)
