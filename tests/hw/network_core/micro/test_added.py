"""The vectors of the added map: their order, their bytes, and the limits."""

import random

import pytest

from verif.amaranth_bench import simulate
from weft.hw.network_core.micro.output import AddedVector

COLS = 4


def vector_of(address):
    """The 4 bytes of a vector."""
    return [(address * 7 + 31 * n) % 256 for n in range(4)]


class AddedBench:
    """Reads the vectors of tiles, whose bytes are taken after a while."""

    def __init__(self, *, idle=0.0, seed=0):
        self.dut = AddedVector(cols=COLS)
        self.rng, self.idle = random.Random(seed), idle
        self.reads, self.errors = [], 0

    async def cycle(self, ctx):
        """A cycle of the memory."""
        dut = self.dut
        ctx.set(dut.read_ready, 0)
        grant = self.rng.random() >= self.idle and ctx.get(dut.read.valid)
        ctx.set(dut.read_ready, int(grant))
        address, error = (await ctx.tick().sample(dut.read.address, dut.address_error))[2:]
        data = vector_of(address) if grant else [0xBA, 0xD0, 0xBA, 0xD0]
        ctx.set(dut.read_data, int.from_bytes(bytes(data), "little"))
        ctx.set(dut.read_ready, 0)
        if grant:
            self.reads.append(address)
        self.errors += error

    async def run(self, ctx, tiles, *, base=0, limit=0xFFFF):
        """Tiles are (columns, whether the first one of a pixel, first vector of the pixel)."""
        dut, values = self.dut, []
        ctx.set(dut.window.base, base)
        ctx.set(dut.window.limit, limit)
        for cols, first, start in tiles:
            ctx.set(dut.tile, 1)
            ctx.set(dut.cols, cols)
            ctx.set(dut.first, first)
            ctx.set(dut.start, start)
            await self.cycle(ctx)
            ctx.set(dut.tile, 0)
            ctx.set(dut.cols, 0)
            ctx.set(dut.first, 0)
            for _ in range(60):
                if not ctx.get(dut.pending) or self.errors:
                    break
                await self.cycle(ctx)
            if self.errors:
                return values
            assert not ctx.get(dut.pending)
            await self.cycle(ctx)  # the vector arrives
            for _ in range(cols):
                while self.rng.random() < self.idle:
                    await self.cycle(ctx)
                values.append(ctx.get(dut.value.as_unsigned()))
                ctx.set(dut.take, 1)
                await self.cycle(ctx)
                ctx.set(dut.take, 0)
        return values


@pytest.mark.parametrize("idle", [0, 0.6])
def test_bytes_of_pixels(idle):
    bench = AddedBench(idle=idle)
    pixels = [(40, [4, 4, 3]), (7, [1]), (900, [4]), (500, [4, 2])]
    tiles = [
        (cols, int(n == 0), start if n == 0 else 0xDEAD)
        for start, columns in pixels for n, cols in enumerate(columns)
    ]

    async def run(ctx):
        values = await bench.run(ctx, tiles)
        assert bench.reads == [40, 41, 42, 7, 900, 500, 501]
        assert values == [
            byte for start, columns in pixels
            for n, cols in enumerate(columns) for byte in vector_of(start + n)[:cols]
        ]

    simulate(bench.dut, run)


def test_the_next_vector_is_read_when_the_bytes_before_have_been_taken():
    bench = AddedBench()

    async def run(ctx):
        await bench.run(ctx, [(4, 1, 60)])
        dut = bench.dut
        ctx.set(dut.tile, 1)
        ctx.set(dut.cols, 2)
        ctx.set(dut.first, 1)
        ctx.set(dut.start, 70)
        await bench.cycle(ctx)
        ctx.set(dut.first, 0)
        ctx.set(dut.tile, 0)
        for _ in range(8):
            await bench.cycle(ctx)
        assert bench.reads == [60, 70]
        ctx.set(dut.tile, 1)
        await bench.cycle(ctx)
        ctx.set(dut.tile, 0)
        for taken in range(2):
            for _ in range(8):
                await bench.cycle(ctx)
            assert ctx.get(dut.pending) and bench.reads == [60, 70]
            assert ctx.get(dut.value.as_unsigned()) == vector_of(70)[taken]
            ctx.set(dut.take, 1)
            await bench.cycle(ctx)
            ctx.set(dut.take, 0)
        for _ in range(8):
            await bench.cycle(ctx)
        assert bench.reads == [60, 70, 71] and not ctx.get(dut.pending)

    simulate(bench.dut, run)


@pytest.mark.parametrize("first, reads, wrong", [
    (100, [100, 101], False), (99, [], True), (149, [149], True), (148, [148, 149], False),
])
def test_limits(first, reads, wrong):
    """The second vector of a pixel is checked, too."""
    bench = AddedBench()

    async def run(ctx):
        await bench.run(ctx, [(4, 1, first), (4, 0, 0)], base=100, limit=150)
        assert bool(bench.errors) == wrong
        assert bench.reads[: len(reads)] == reads

    simulate(bench.dut, run)
