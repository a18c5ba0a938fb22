"""A Weft core in a simulation: its registers, its commands and its results, over whichever bus.

All that is particular to a core is in design.json, which lies beside this file.
"""

import itertools
import json
import logging
import random
import struct
from pathlib import Path

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

DESIGN = json.loads(Path(__file__).with_name("design.json").read_text(encoding="utf-8"))
CONFIG, BUS, REGISTERS = (DESIGN[name] for name in ("config", "bus", "registers"))
REGIONS, VERSION = DESIGN["regions"], DESIGN["commands_version"]
FLOATS = CONFIG["dtype"] == "bf16"
A, B = 0, 1
LIMIT = 2_000  # reads of a register until what is waited for must have come


def pauses(seed, odds):
    """Cycles in which a channel pauses."""
    draw = random.Random(seed)
    return (draw.random() < odds for _ in itertools.count())


def pack(lines, region):
    """The panels of an operand, [lines, k], as they follow a load."""
    g = REGIONS[region]
    words = -(-lines.shape[1] // g["depth"])
    panels, rows = -(-lines.shape[0] // g["edge"]), -(-words // g["group"])
    whole = np.zeros((panels * g["edge"], rows * g["group"] * g["depth"]), lines.dtype)
    whole[: lines.shape[0], : lines.shape[1]] = lines
    whole = whole.reshape(panels, g["edge"], rows * g["group"], g["depth"]).transpose(0, 2, 1, 3)
    moved = np.ascontiguousarray(whole).view(np.uint8).reshape(panels, rows, -1)
    stream = np.zeros((panels, rows, g["segments"] * CONFIG["bytes_in"]), np.uint8)
    stream[:, :, : moved.shape[2]] = moved
    return stream.tobytes()


def load(region, size, k):
    """The header of a load of a whole operand, to page 0."""
    g = REGIONS[region]
    words, panels = -(-k // g["depth"]), -(-size // g["edge"])
    pitch = -(-words // g["page"])
    return _padded(struct.pack(
        "<BBBBHHIII12x", 2, VERSION, region, 0, 0, pitch, panels, words, pitch * panels
    ))


def job(m, n, k, tag):
    """The header of the job of both operands."""
    a, b = REGIONS[A], REGIONS[B]
    words = -(-k // a["depth"])
    pitch = -(-words // a["page"])
    spans = (-(-m // a["edge"]) * pitch, -(-n // b["edge"]) * pitch)
    return _padded(struct.pack(
        "<BBHHHIHHHHHHHHHH", 1, VERSION, tag, 0, m, k, n, 0, pitch, spans[0], 0, pitch, spans[1],
        0, 0, 0,
    ))


def _padded(header):
    return header + bytes(max(0, CONFIG["bytes_in"] - len(header)))


def unpack(data, m, n):
    """The sums [m, n] of a job out of the words of its results."""
    rows, cols, lanes = (CONFIG[name] for name in ("rows", "cols", "lanes"))
    values, place = np.frombuffer(data, "<f4" if FLOATS else "<i4"), 0
    out = np.zeros((m, n), values.dtype)
    for i, j in itertools.product(range(0, m, rows), range(0, n, cols)):
        width = min(cols, n - j)
        for row in range(i, min(i + rows, m)):
            out[row, j : j + width] = values[place : place + width]
            place += -(-width // lanes) * lanes
    return out


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
        await core.until("status", "resetting", 0)
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
            self.memory = axi.AxiRam(bus, self.clock, size=1 << 20, **reset)
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
        await self._send(loads + pack(np.ascontiguousarray(b.T), B) + job(m, n, k, self.tag))
        data, tag, status = await self._receive()
        assert (tag, status) == (self.tag, 0)
        return unpack(data, m, n)

    async def refuse(self):
        """A job of nothing: the core answers that it was rejected."""
        self.tag = (self.tag + 1) & 0xFFFF
        if BUS == "dma":
            await self._descriptor(job(0, 0, 0, self.tag), 0)
            await self.until("last", "tag", self.tag)
            return self.tag, await self.read("last", "status")
        await self._send(job(0, 0, 0, self.tag))
        return (await self._receive())[1:]

    async def _send(self, data):
        if BUS == "stream":
            from cocotbext.axi import AxiStreamFrame

            await self.source.send(AxiStreamFrame(data))
            return
        words, room = np.frombuffer(data, "<u4").tolist(), 0
        for word in words:
            while not room:
                room = await self.read("command_room")
            assert (await self.access(DESIGN["windows"]["commands"], word))[1]
            room -= 1

    async def _receive(self):
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
            value, right = await self.access(DESIGN["windows"]["results"])
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
        await self.until("last", "tag", self.tag)
        assert await self.read("last", "status") == 0
        data = np.frombuffer(self.memory.read(places[2], m * stride), np.uint8).reshape(m, stride)
        return np.ascontiguousarray(data[:, : 4 * n]).view("<f4" if FLOATS else "<i4")

    async def _descriptor(self, header, *more):
        while not await self.read("descriptor_room"):
            pass
        words = [*np.frombuffer(header[:32], "<u4").tolist(), *more, *[0] * (8 - len(more))]
        for number, word in enumerate(words):
            await self.write(f"descriptor_{number}", word)
        await self.write("submit", go=1)
