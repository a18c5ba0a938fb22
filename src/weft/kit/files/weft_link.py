"""A Weft core in a cocotb simulation: access to its registers, commands and results on any bus."""

import itertools
import logging
import random

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from weft_packing import DESIGN, FLOATS, A, B, job, load, pack, unpack

BUS, REGISTERS = DESIGN["bus"], DESIGN["registers"]
POLL_LIMIT = 2_000  # reads of a register before a wait fails
MEMORY = 1 << 20  # bytes of the memory on the AXI4 master


def pauses(seed, probability):
    """For each cycle, whether a channel pauses."""
    rng = random.Random(seed)
    return (rng.random() < probability for _ in itertools.count())


class SimulatedCore:
    """The core under test with its clocks and reset, and a bus model on each interface."""

    def __init__(self, dut, seed):
        self.dut, self.seed, self.tag = dut, seed, 0
        self.rng = random.Random(seed)
        self.clock = dut.wb_clk_i if BUS == "wishbone" else dut.aclk

    @classmethod
    async def start(cls, dut, seed, pause=0.0):
        """Reset the core; ``pause`` is the probability that a channel pauses in a cycle."""
        core = cls(dut, seed)
        cocotb.start_soon(Clock(core.clock, 10, "ns").start())
        if DESIGN["clocks"] == 2:
            cocotb.start_soon(Clock(dut.core_clk, 7300, "ps").start())
        core._reset(True)
        await ClockCycles(core.clock, 2)  # Icarus loses values that are set at time 0
        core._connect(pause)
        await ClockCycles(core.clock, 5)
        core._reset(False)
        await ClockCycles(core.clock, 2)
        await core.until("status", "reset_busy", 0)
        return core

    def _reset(self, active):
        if BUS == "wishbone":
            self.dut.wb_rst_i.value = int(active)
        else:
            self.dut.aresetn.value = int(not active)

    def _connect(self, pause):
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
            self.pause = pause
            return
        from cocotbext import axi

        reset = {"reset": self.dut.aresetn, "reset_active_level": False}
        bus = axi.AxiLiteBus.from_prefix(self.dut, "s_axil")
        self.master = axi.AxiLiteMaster(bus, self.clock, **reset)
        write, read = self.master.write_if, self.master.read_if
        channels = [
            write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
        ]
        if BUS == "stream":
            streams = (axi.AxiStreamBus.from_prefix(self.dut, n) for n in ("s_axis", "m_axis"))
            kinds = axi.AxiStreamSource, axi.AxiStreamSink
            self.source, self.sink = (
                kind(bus, self.clock, **reset) for kind, bus in zip(kinds, streams, strict=True)
            )
            channels += [self.source, self.sink]
        if BUS == "dma":
            bus = axi.AxiBus.from_prefix(self.dut, "m_axi")
            self.memory = axi.AxiRam(
                bus, self.clock, size=MEMORY, mem=bytearray(MEMORY), **reset
            )
            write, read = self.memory.write_if, self.memory.read_if
            channels += [
                write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel
            ]
        for n, channel in enumerate(channels):
            if pause:
                channel.set_pause_generator(pauses(self.seed + n, pause))

    async def access(self, address, value=None):
        """Read a register, or write ``value`` to it: the value read (or None), and no bus error."""
        if BUS == "wishbone":
            from cocotbext.wishbone.driver import WBOp

            idle = self.rng.randrange(4) if self.pause else 0
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
        (m, k), n = a.shape, b.shape[1]
        self.tag = (self.tag + 1) & 0xFFFF
        if BUS == "dma":
            return await self._multiply_dma(a, b, m, n, k)
        loads = load(A, m, k) + pack(a, A) + load(B, n, k)
        await self.send(loads + pack(np.ascontiguousarray(b.T), B) + job(m, n, k, self.tag))
        data, tag, status = await self.receive()
        assert (tag, status) == (self.tag, 0)
        return unpack(data, m, n)

    async def reject(self):
        """Send a job with M, K and N of 0, which the core rejects: its tag and status."""
        self.tag = (self.tag + 1) & 0xFFFF
        if BUS == "dma":
            await self._descriptor(job(0, 0, 0, self.tag), 0)
            await self.until("last_job", "tag", self.tag)
            return self.tag, await self.read("last_job", "status")
        await self.send(job(0, 0, 0, self.tag))
        return (await self.receive())[1:]

    async def send(self, data):
        """Send bytes on the command stream."""
        if BUS == "stream":
            from cocotbext.axi import AxiStreamFrame

            await self.source.send(AxiStreamFrame(data))
            return
        words, free = np.frombuffer(data, "<u4").tolist(), 0
        for word in words:
            while not free:
                free = await self.read("cmd_fifo_free")
            assert (await self.access(DESIGN["fifo_ports"]["cmd_fifo"], word))[1]
            free -= 1

    async def receive(self):
        """The result bytes of the next job, its tag and its status."""
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
            value, ok = await self.access(DESIGN["fifo_ports"]["result_fifo"])
            assert ok
            data += value.to_bytes(4, "little")
        return data, tag, status

    async def _multiply_dma(self, a, b, m, n, k):
        """The product from memory. B is in row-major order; the core transposes it."""
        size = a.itemsize
        a_address, b_address, c_address = 0x1003 & -size, 0x8001 & -size, 0x20000
        stride = -(-n // 16) * 64
        self.memory.write(a_address, a.tobytes())
        self.memory.write(b_address, np.ascontiguousarray(b).tobytes())
        self.memory.write(c_address, bytes(m * stride))
        await self._descriptor(load(A, m, k), a_address, size * k, m, k, 0)
        await self._descriptor(load(B, n, k), b_address, size * n, n, k, 1)
        await self._descriptor(job(m, n, k, self.tag), c_address, stride)
        await self.until("last_job", "tag", self.tag)
        assert await self.read("last_job", "status") == 0
        data = np.frombuffer(self.memory.read(c_address, m * stride), np.uint8).reshape(m, stride)
        return np.ascontiguousarray(data[:, : 4 * n]).view("<f4" if FLOATS else "<i4")

    async def _descriptor(self, header, *tail):
        """Submit a descriptor: a header, then up to 8 words."""
        while not await self.read("desc_free"):
            pass
        words = [*np.frombuffer(header[:32], "<u4").tolist(), *tail, *[0] * (8 - len(tail))]
        for number, word in enumerate(words):
            await self.write(f"descriptor_{number}", word)
        await self.write("doorbell", submit=1)
