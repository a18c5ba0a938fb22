"""The CRC of frames against zlib's."""

import random
import zlib

from weft.hw.serial.crc import Crc32
from weft.sim.amaranth_bench import simulate, ticks


def test_is_that_of_zlib():
    dut = Crc32()
    rng = random.Random(1)

    async def take(ctx, byte, counts=1):
        ctx.set(dut.byte, byte)
        ctx.set(dut.counts, counts)
        ctx.set(dut.take, 1)
        await ctx.tick()
        ctx.set(dut.take, 0)
        assert not ctx.get(dut.idle)
        await ticks(ctx, 8)
        assert ctx.get(dut.idle)

    async def bench(ctx):
        for length in (0, 1, 4, 30):
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            data = rng.randbytes(length)
            for byte in data:
                await take(ctx, rng.getrandbits(8), counts=0)
                await take(ctx, byte)
            crc = zlib.crc32(data)
            assert ctx.get(dut.crc) == crc
            for n, byte in enumerate(crc.to_bytes(4, "little")):
                assert not ctx.get(dut.match)
                await take(ctx, byte)
                await ctx.tick()
                assert ctx.get(dut.match) == (n == 3)

    simulate(dut, bench)
