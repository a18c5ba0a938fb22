"""Tests of the CRC against zlib."""

import random
import zlib

from verif.amaranth_bench import pulse, simulate, ticks
from weft.hw.serial.crc import Crc32


def test_equals_zlib():
    dut = Crc32()
    rng = random.Random(1)

    async def write(ctx, byte, include=1):
        ctx.set(dut.data, byte)
        ctx.set(dut.include, include)
        await pulse(ctx, dut.valid)
        assert not ctx.get(dut.idle)
        await ticks(ctx, 8)
        assert ctx.get(dut.idle)

    async def bench(ctx):
        for length in (0, 1, 4, 30):
            await pulse(ctx, dut.start)
            data = rng.randbytes(length)
            for byte in data:
                await write(ctx, rng.getrandbits(8), include=0)
                await write(ctx, byte)
            crc = zlib.crc32(data)
            assert ctx.get(dut.crc) == crc
            for n, byte in enumerate(crc.to_bytes(4, "little")):
                assert not ctx.get(dut.match)
                await write(ctx, byte)
                await ctx.tick()
                assert ctx.get(dut.match) == (n == 3)

    simulate(dut, bench)


def test_bytes_of_the_crc_move_down():
    dut, data = Crc32(), b"123456789"

    async def write(ctx, byte, include):
        ctx.set(dut.data, byte)
        ctx.set(dut.include, include)
        ctx.set(dut.emit, not include)
        await pulse(ctx, dut.valid)
        await ticks(ctx, 8)

    async def bench(ctx):
        for _ in range(2):
            await pulse(ctx, dut.start)
            for byte in data:
                await write(ctx, byte, 1)
            for byte in zlib.crc32(data).to_bytes(4, "little"):
                assert ctx.get(dut.crc) & 0xFF == byte
                await write(ctx, byte, 0)

    simulate(dut, bench)
