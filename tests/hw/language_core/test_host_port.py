"""The host port of a language core, with frames of a host and a core that the test plays."""

import struct
import zlib

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from weft.frames import PROGRAM_BIT, FrameType
from weft.hw.language_core.host_port import LanguageHostPort
from weft.hw.serial.frame_receiver import RequestOp
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.language_core.host_memory import Memory, address
from weft.language_core.latencies import SELECTED
from weft.language_core.register_map import REGISTERS, STATE, describe

CONFIG = LanguageCoreConfig(words=768, groups=512, side_groups=64)
# The ports of a core, from the side of the host port.
_CORE = wiring.Signature({
    "write": Out(1), "table": Out(1), "group": Out(16), "write_data": Out(64), "read_data": In(64),
    "start": Out(1), "list": Out(12), "first_position": Out(12), "limit": Out(12),
    "stop_token": Out(16), "seed": Out(32), "run_abort": Out(1),
    "busy": In(1), "error": In(CoreError), "position": In(12), "cycles": In(32),
    "prompt_valid": Out(1), "prompt_ready": In(1), "prompt_token": Out(16), "prompt_last": Out(1),
    "token_valid": In(1), "token_ready": Out(1), "token": In(16),
})
PATIENCE = 4000  # cycles in which an answer must come


class _Port(wiring.Component):
    """The port beside the ports of a core, which the test drives."""

    def __init__(self):
        self.core = _CORE.create()
        self.port = LanguageHostPort(CONFIG, self.core)
        self.frames = self.port.frames
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.port = self.port
        return m


class Host:
    """Frames to the port and from it; ``main`` is the main memory of the core, by its groups."""

    def __init__(self, ctx, top):
        self.ctx, self.frames, self.core = ctx, top.frames, top.core
        self.sequence = 0

    async def send(self, kind, payload):
        """An accepted frame."""
        self.sequence += 1
        data = bytes([kind, self.sequence]) + len(payload).to_bytes(4, "little") + payload
        stream = self.frames.commands
        self.ctx.set(self.frames.pending, 1)
        for byte in data:
            self.ctx.set(stream.valid, 1)
            self.ctx.set(stream.payload, byte)
            await self._until(stream.ready)
        self.ctx.set(stream.valid, 0)
        self.ctx.set(self.frames.pending, 0)

    async def write(self, memory, place, data):
        await self.send(FrameType.WRITE, address(memory, place).to_bytes(4, "little") + data)

    async def start(self, first, last_prompt, limit, stop=0xFFFF, seed=1):
        fields = struct.pack("<4HI", first, last_prompt, limit, stop, seed)
        await self.send(FrameType.START, fields)

    async def request(self, op, payload=b""):
        """A request; type and payload of the frame that answers it."""
        request = self.frames.request
        operands = int.from_bytes(payload.rjust(8, b"\0"), "little")
        value = {"op": op, "nak": 0, "sequence": 7, "operands": operands}
        self.ctx.set(request.payload, value)
        self.ctx.set(request.valid, 1)
        await self._until(request.ready)
        self.ctx.set(request.valid, 0)
        return await self.frame()

    async def frame(self):
        """Type and payload of the next frame to the host."""
        frame, payload, found = self.frames.frame, self.frames.payload, bytearray()
        self.ctx.set(frame.ready, 1)
        await self._until(frame.valid)
        kind, length = self.ctx.get(frame.payload.type), self.ctx.get(frame.payload.length)
        self.ctx.set(frame.ready, 0)
        self.ctx.set(payload.ready, 1)
        while len(found) < length:
            byte = self.ctx.get(payload.payload)
            if self.ctx.get(payload.valid):
                found.append(byte)
            await self.ctx.tick()
        self.ctx.set(payload.ready, 0)
        return FrameType(kind), bytes(found)

    async def read(self, memory, place, count):
        kind, data = await self.request(
            RequestOp.READ_MEMORY, struct.pack("<II", address(memory, place), count)
        )
        assert kind == FrameType.DATA
        return data

    async def registers(self):
        first = REGISTERS.index(STATE[0])
        kind, data = await self.request(RequestOp.READ, struct.pack("<HH", first, len(STATE)))
        assert kind == FrameType.REGISTERS
        return struct.unpack("<3I", data)

    async def _until(self, condition):
        """The cycle in which a condition holds ends."""
        for _ in range(PATIENCE):
            _, _, held = await self.ctx.tick().sample(condition)
            if held:
                return
        raise AssertionError(f"{condition.name} must be 1 within {PATIENCE} cycles")


@pytest.fixture
def bench():
    """``bench(test)`` runs ``await test(host)`` beside a core with a memory and with writes."""
    def run(test):
        top = _Port()
        writes = []

        async def memory(ctx):
            """Each group has its number, twice; writes are recorded."""
            core, groups = top.core, [0] * SELECTED
            while True:
                *_, write, table, group, value = await ctx.tick().sample(
                    core.write, core.table, core.group, core.write_data
                )
                if write:
                    writes.append((bool(table), group, value))
                groups = [group, *groups[:-1]]
                ctx.set(core.read_data, groups[-1] << 32 | groups[-1])

        async def body(ctx):
            host = Host(ctx, top)
            host.writes = writes
            await test(host)

        simulator = Simulator(top)
        simulator.add_clock(1e-6)
        simulator.add_testbench(memory, background=True)
        simulator.add_testbench(body)
        simulator.run()

    return run


def test_writes_units_of_each_memory(bench):
    async def test(host):
        await host.write(Memory.MAIN, 0x2FFE, bytes(range(1, 17)))
        await host.write(Memory.TABLES, 1022, bytes(range(1, 9)))
        await host.write(Memory.MAIN, 3, bytes(range(1, 12)))  # the last unit is not whole
        await host.send(FrameType.WRITE, b"")  # as a link begins
        await host.write(Memory.TEXT, 1023, b"\x34\x12")
        assert await host.read(Memory.TEXT, 1023, 2) == b"\x34\x12"
        assert host.writes == [
            (False, 0x2FFE, 0x0807060504030201), (False, 0x2FFF, 0x100F0E0D0C0B0A09),
            (True, 1022, 0x04030201), (True, 1023, 0x08070605),
            (False, 3, 0x0807060504030201),
        ]

    bench(test)


def test_reads_the_main_memory_and_its_crc(bench):
    async def test(host):
        expected = b"".join(struct.pack("<II", n, n) for n in (700, 701, 702))
        assert await host.read(Memory.MAIN, 700, 20) == expected[:20]
        payload = struct.pack("<II", address(Memory.MAIN, 700), 24 | 1 << PROGRAM_BIT)
        kind, data = await host.request(RequestOp.READ_MEMORY, payload)
        assert (kind, data) == (FrameType.DATA, zlib.crc32(expected).to_bytes(4, "little"))

    bench(test)


def test_registers_describe_the_core(bench):
    async def test(host):
        count = len(REGISTERS) + 1
        _, data = await host.request(RequestOp.READ, struct.pack("<HH", 0, count))
        assert list(struct.unpack(f"<{count}I", data)) == [*describe(CONFIG), 0, 0, 0, 0]

    bench(test)


async def _begin(host, core, ctx):
    """A text of a prompt of two tokens at position 5, and the core takes the prompt."""
    await host.write(Memory.TEXT, 5, struct.pack("<2H", 300, 77))
    await host.start(5, 6, 40, stop=9, seed=0xFEDC_BA98)
    await host._until(core.start)
    assert ctx.get(core.first_position) == 5
    ctx.set(core.busy, 1)
    await ctx.tick()
    assert (ctx.get(core.limit), ctx.get(core.stop_token), ctx.get(core.list)) == (40, 9, 0)
    assert ctx.get(core.seed) == 0xFEDC_BA98


async def _prompt(host, core, ctx, position):
    """The token of the prompt that the core gets at a position."""
    ctx.set(core.position, position)
    ctx.set(core.prompt_ready, 1)
    await host._until(core.prompt_valid)
    ctx.set(core.prompt_ready, 0)
    return ctx.get(core.prompt_token), ctx.get(core.prompt_last)


async def _emit(core, ctx, position, token):
    ctx.set(core.position, position)
    ctx.set(core.token, token)
    ctx.set(core.token_valid, 1)
    assert ctx.get(core.token_ready)
    await ctx.tick()
    ctx.set(core.token_valid, 0)


def test_a_text(bench):
    async def test(host):
        core, ctx = host.core, host.ctx
        await _begin(host, core, ctx)
        assert await _prompt(host, core, ctx, 5) == (300, 0)
        assert await _prompt(host, core, ctx, 6) == (77, 1)
        await _emit(core, ctx, 6, 400)
        await _emit(core, ctx, 7, 401)
        ctx.set(core.position, 8)
        ctx.set(core.cycles, 1234)
        await ctx.tick().repeat(2)
        status, before, cycles = await host.registers()
        assert (status, cycles) == (8 << 16 | 3, 1234)
        assert struct.unpack("<2H", await host.read(Memory.TEXT, 6, 4)) == (400, 401)
        ctx.set(core.busy, 0)
        kind, data = await host.frame()
        assert kind == FrameType.DONE
        status, total = struct.unpack("<II", data)
        assert status == 8 << 16 | 2 and total > before
        assert (await host.registers())[1] == total  # it stays

    bench(test)


def test_the_main_memory_waits_for_the_core(bench):
    """A write and a read; the text can be read meanwhile."""
    async def test(host):
        core, ctx = host.core, host.ctx
        await _begin(host, core, ctx)
        assert struct.unpack("<H", await host.read(Memory.TEXT, 5, 2)) == (300,)
        request = host.frames.request
        operands = int.from_bytes(struct.pack("<II", 700, 8), "little")
        ctx.set(request.payload, {
            "op": RequestOp.READ_MEMORY, "nak": 0, "sequence": 7, "operands": operands,
        })
        ctx.set(request.valid, 1)
        await host._until(request.ready)
        ctx.set(request.valid, 0)
        ctx.set(host.frames.payload.ready, 1)
        ctx.set(host.frames.frame.ready, 1)
        for _ in range(100):
            await ctx.tick()
            assert not ctx.get(host.frames.payload.valid)
        ctx.set(host.frames.payload.ready, 0)
        ctx.set(core.busy, 0)
        await host._until(host.frames.payload.valid)
        assert ctx.get(host.frames.payload.payload) == 700 % 256

    bench(test)


def test_a_write_waits_for_the_core(bench):
    async def test(host):
        core, ctx, stream = host.core, host.ctx, host.frames.commands
        await _begin(host, core, ctx)
        where = address(Memory.MAIN, 3).to_bytes(4, "little")
        for byte in bytes([FrameType.WRITE, 9, 12, 0, 0, 0]) + where:
            ctx.set(stream.valid, 1)
            ctx.set(stream.payload, byte)
            await host._until(stream.ready)
        for _ in range(100):
            await ctx.tick()
            assert not ctx.get(stream.ready)
        ctx.set(core.busy, 0)
        for byte in range(1, 9):
            ctx.set(stream.payload, byte)
            await host._until(stream.ready)
        ctx.set(stream.valid, 0)
        await ctx.tick().repeat(6)
        assert host.writes == [(False, 3, 0x0807060504030201)]

    bench(test)


def test_an_abort_ends_a_text_without_done(bench):
    async def test(host):
        core, ctx = host.core, host.ctx
        await _begin(host, core, ctx)
        kind, _ = await host.request(RequestOp.ABORT)
        assert kind == FrameType.ABORTED
        # The core stops later; then the next text begins.
        ctx.set(core.error, CoreError.ABORTED)
        ctx.set(core.busy, 0)
        await ctx.tick().repeat(4)
        status, *_ = await host.registers()
        assert status & 0xFFFF == CoreError.ABORTED << 8 | 2
        await host.start(0, 0, 4)
        await host._until(core.start)

    bench(test)


def test_a_start_while_a_text_runs_is_refused(bench):
    async def test(host):
        await _begin(host, host.core, host.ctx)
        await host.start(0, 0, 4)
        assert await host.frame() == (FrameType.ERROR, b"busy")

    bench(test)


def test_a_prompt_that_an_aborted_core_does_not_take_is_dropped(bench):
    async def test(host):
        core, ctx = host.core, host.ctx
        await _begin(host, core, ctx)
        ctx.set(core.position, 5)
        ctx.set(core.prompt_ready, 1)
        await ctx.tick()
        ctx.set(core.prompt_ready, 0)
        await host._until(core.prompt_valid)
        ctx.set(core.busy, 0)
        await ctx.tick().repeat(2)
        assert not ctx.get(core.prompt_valid)

    bench(test)
