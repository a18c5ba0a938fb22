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
