"""The memory port: words become vectors of the memory, and the reverse."""

import random

import numpy as np
import pytest
from network_cores import MICRO, small_network_core

from verif.amaranth_bench import receive, send, simulate, ticks
from weft.hw.network_core.host.memory_port import MemoryPort
from weft.network_core.descriptors import BANK_BITS, split

BITS = (1 << BANK_BITS) - 1


class PortBench:
    """A memory port, and a memory that is not always ready.

    Attributes
    ----------
    memory : array of uint8, one row a vector
    """

    def __init__(self, config, stall=0.5):
        self.config, self.port, self.stall = config, MemoryPort(config), stall
        self.memory = np.random.default_rng(3).integers(
            0, 256, (config.vectors, config.array.depth), np.uint8
        )

    def place(self, number):
        address = split(number, self.config.banks)
        word = address >> BANK_BITS
        return {"bank": address & BITS, "word": word % (2 * self.config.address_words)}

    def number(self, address):
        return address.word * self.config.banks + address.bank

    async def run(self, ctx):
        port, rng, reads, depth = self.port, random.Random(5), [None] * 3, self.config.array.depth
        while True:
            ready = rng.random() >= self.stall, rng.random() >= self.stall
            ctx.set(port.writes.ready, ready[0])
            ctx.set(port.reads.request.ready, ready[1])
            _, _, write_valid, write, read_valid, read = await ctx.tick().sample(
                port.writes.valid, port.writes.payload, port.reads.request.valid,
                port.reads.request.payload,
            )
            if write_valid and ready[0]:
                vector = self.memory[self.number(write.address)]
                for n, byte in enumerate(write.data.to_bytes(depth, "little")):
                    if write.enable >> n & 1:
                        vector[n] = byte
            reads.append(self.number(read) if read_valid and ready[1] else None)
            number = reads.pop(0)
            ctx.set(port.reads.data_valid, number is not None)
            if number is not None:
                data = self.memory[number].tobytes()
                ctx.set(port.reads.data[0], int.from_bytes(data, "little"))

    async def start(self, ctx, kind, number, count, *, run=0, pitch=0, pixels=0, row_step=0):
        port = self.port
        ctx.set(port.placement, {
            "address": self.place(number), "run": run, "pitch": pitch, "pixels": pixels,
            "row_step": self.place(row_step),
        })
        ctx.set(port.count, count)
        ctx.set(getattr(port, kind), 1)
        await ctx.tick()
        ctx.set(getattr(port, kind), 0)

    async def write(self, ctx, number, data, **layout):
        await self.start(ctx, "write", number, len(data), **layout)
        padded = data.ljust(-(-len(data) // 4) * 4, b"\xee")
        words = np.frombuffer(padded, "<u4").tolist()
        await send(ctx, self.port.written, words, idle=0.3 if self.stall else 0)
        await self.idle(ctx)

    async def read(self, ctx, number, count):
        await self.start(ctx, "read", number, count)
        words = await receive(ctx, self.port.found, -(-count // 4), stall=0.5)
        await self.idle(ctx)
        return np.array(words, "<u4").tobytes()

    async def idle(self, ctx):
        while not ctx.get(self.port.idle):
            await ctx.tick()


@pytest.mark.parametrize(
    "config", [*(small_network_core(2, 4, depth) for depth in (1, 2, 4, 8)), MICRO],
    ids=["1", "2", "4", "8", "micro"],
)
def test_transfers_of_whole_vectors(config):
    bench, depth = PortBench(config), config.array.depth
    data, before = bytes(range(100, 123)), bench.memory.tobytes()
    padded = data.ljust(-(-len(data) // depth) * depth, b"\0")
    first = 5 * depth
    after = before[:first] + padded + before[first + len(padded) :]

    async def body(ctx):
        await bench.write(ctx, 5, data)
        assert bench.memory.tobytes() == after
        for number, count in ((4, 9), (0, 1), (7, 8)):
            wanted = after[number * depth :][:count]
            found = await bench.read(ctx, number, count)
            assert found == wanted.ljust(len(found), b"\0")
        await bench.write(ctx, 1, b"")
        assert await bench.read(ctx, 1, 0) == b""

    simulate(bench.port, body, background=[bench.run])
    assert bench.memory.tobytes() == after


def test_the_memories_of_a_core_without_loads():
    """Each has an end; they are written, and read as 0."""
    config = small_network_core(1, 4, 4, resident=True, b_words=6, lines=5)
    bench, region = PortBench(config), config.region
    bench.memory = np.zeros((config.address_words, 4), np.uint8)
    wanted = bench.memory.copy()
    for number, size in enumerate(config.regions):
        wanted[number * region + size - 2 : number * region + size] = 1 + number

    async def body(ctx):
        for number, size in enumerate(config.regions):
            await bench.write(ctx, number * region + size - 2, bytes([1 + number]) * 16)
        await bench.write(ctx, 4 * region, bytes(8))
        await bench.write(ctx, -1, bytes(4))
        assert await bench.read(ctx, 15, 4) == bytes([1]) * 4
        assert await bench.read(ctx, region, 4) == bytes(4)

    simulate(bench.port, body, background=[bench.run])
    assert np.array_equal(bench.memory[:, 0], wanted[:, 0])


BANKS, PROGRAM = small_network_core(2, 4, 4), small_network_core(2, 4, 4, program_words=64)


@pytest.mark.parametrize("config, word", [
    (BANKS, -1), (BANKS, 16), (PROGRAM, -1), (PROGRAM, 16), (PROGRAM, 31), (PROGRAM, 40),
    (MICRO, -2), (MICRO, 4096),
])
def test_addresses_beyond_the_memory(config, word):
    """They are read as 0, and not written; a larger program memory changes nothing."""
    bench = PortBench(config)
    wanted, number = bench.memory.copy(), word * bench.config.banks

    async def body(ctx):
        await bench.write(ctx, number, bytes(range(1, 9)))
        assert await bench.read(ctx, number, 8) == bytes(8)

    simulate(bench.port, body, background=[bench.run])
    assert bench.memory.tolist() == wanted.tolist()


@pytest.mark.parametrize("stall", [0, 0.5])
@pytest.mark.parametrize("config", [BANKS, MICRO], ids=["banks", "micro"])
def test_pixels_of_rows(config, stall):
    """Two rows of two pixels of 5 bytes, 3 vectors apart; rows are 10 vectors apart."""
    bench = PortBench(config, stall)
    wanted, data = bench.memory.copy(), bytes(range(1, 21))
    for n, first in enumerate((2, 5, 12, 15)):
        pixel = data[5 * n : 5 * n + 5] + bytes(3)
        wanted[first : first + 2] = np.frombuffer(pixel, np.uint8).reshape(2, 4)

    async def body(ctx):
        await bench.write(ctx, 2, data, run=5, pitch=3, pixels=2, row_step=7)

    simulate(bench.port, body, background=[bench.run])
    assert bench.memory.tolist() == wanted.tolist()


def test_pixels_of_one_byte_without_a_pause():
    """Each pixel is a row, 3 vectors after the one before."""
    bench = PortBench(small_network_core(2, 4, 1), stall=0)
    wanted, data = bench.memory.copy(), bytes(range(1, 14))
    wanted[1 : 1 + 3 * 13 : 3, 0] = list(data)

    async def body(ctx):
        await bench.write(ctx, 1, data, run=1, pitch=1, pixels=1, row_step=3)

    simulate(bench.port, body, background=[bench.run])
    assert bench.memory.tolist() == wanted.tolist()


def test_drops_words_without_a_write():
    bench = PortBench(small_network_core(1, 4, 4))
    before = bench.memory.copy()

    async def body(ctx):
        await send(ctx, bench.port.written, [1, 2, 3])
        await ticks(ctx, 10)
        assert bench.memory.tolist() == before.tolist()
        await bench.write(ctx, 3, b"abcd")
        assert bench.memory[3].tobytes() == b"abcd"

    simulate(bench.port, body, background=[bench.run])
