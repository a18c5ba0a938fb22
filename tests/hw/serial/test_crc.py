"""Tests of the CRC against zlib."""

import random
import zlib

import pytest

from verif.amaranth_bench import pulse, simulate, ticks
from weft.hw.serial.crc import ByteCrc32, Crc32

KINDS = pytest.mark.parametrize(
    ("kind", "cycles"), [(Crc32, 8), (ByteCrc32, 1)], ids=["a bit a cycle", "a byte a cycle"]
)


@KINDS
def test_equals_zlib(kind, cycles):
    dut = kind()
    rng = random.Random(1)

    async def write(ctx, byte, include=1):
        ctx.set(dut.data, byte)
        ctx.set(dut.include, include)
        await pulse(ctx, dut.valid)
        assert not ctx.get(dut.idle)
        await ticks(ctx, cycles)
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


@KINDS
def test_bytes_of_the_crc_move_down(kind, cycles):
    dut, data = kind(), b"123456789"

    async def write(ctx, byte, include):
        ctx.set(dut.data, byte)
        ctx.set(dut.include, include)
        ctx.set(dut.emit, not include)
        await pulse(ctx, dut.valid)
        await ticks(ctx, cycles)

    async def bench(ctx):
        for _ in range(2):
            await pulse(ctx, dut.start)
            for byte in data:
                await write(ctx, byte, 1)
            for byte in zlib.crc32(data).to_bytes(4, "little"):
                assert ctx.get(dut.crc) & 0xFF == byte
                await write(ctx, byte, 0)

    simulate(dut, bench)


def test_takes_a_byte_in_each_cycle():
    """Every byte value, from many states; bytes that are not included change nothing."""
    dut, rng = ByteCrc32(), random.Random(2)
    data = bytes(rng.sample(range(256), 256)) * 2

    async def bench(ctx):
        ctx.set(dut.valid, 1)
        included = bytearray()
        for byte in data:
            include = rng.random() < 0.9
            ctx.set(dut.data, byte)
            ctx.set(dut.include, include)
            included += bytes([byte] * include)
            await ctx.tick()
            assert not ctx.get(dut.idle)
            assert ctx.get(dut.crc) == zlib.crc32(included)
        ctx.set(dut.valid, 0)
        await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, bench)
