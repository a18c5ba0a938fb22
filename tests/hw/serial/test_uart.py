"""The serial port at its pin, bit by bit."""

import gc
import re
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable

from weft.hw.serial.uart import UartReceiver, UartTransmitter
from weft.sim.amaranth_bench import checker, receive, send, simulate, ticks

DIVISORS = [4, 5, 7, 16]
BYTES = [0x00, 0xFF, 0x55, 0xA7, 0x80, 0x01]
divisors = pytest.mark.parametrize("divisor", DIVISORS)


def wave(byte, stop=1):
    """The bits of a byte on the wire."""
    return [0, *(byte >> n & 1 for n in range(8)), stop]


async def drive(ctx, dut, bits, divisor):
    for bit in bits:
        ctx.set(dut.rx, bit)
        await ticks(ctx, divisor)


def heard(dut, bits, divisor, *, pauses=()):
    """What a receiver makes of ``bits``: bytes, and how often something was broken."""
    taken, broken = [], []

    async def wire(ctx):
        await ticks(ctx, 3)
        await drive(ctx, dut, bits, divisor)
        await drive(ctx, dut, [1, 1], divisor)

    async def listen(ctx):
        ctx.set(dut.bytes.ready, 1)
        while True:
            _, _, valid, byte, bad = await ctx.tick().sample(
                dut.bytes.valid, dut.bytes.payload, dut.broken
            )
            if valid:
                taken.append(byte)
            if bad:
                broken.append(True)

    simulate(dut, wire, background=[listen])
    return taken, len(broken)


@divisors
def test_receives_bytes_back_to_back(divisor):
    bits = [bit for byte in BYTES for bit in wave(byte)]
    assert heard(UartReceiver(divisor=divisor), bits, divisor) == (BYTES, 0)


@pytest.mark.parametrize("off", [-0.03, 0.03])
def test_receives_from_a_clock_of_its_own(off):
    # Three bytes of 10 bits: so far off, an edge moves by 0.3 bits within a byte.
    divisor = 32
    bits = [bit for byte in BYTES for bit in wave(byte)]
    dut = UartReceiver(divisor=divisor)
    fine = []  # the wire, a cycle each
    for cycle in range(int(len(bits) * divisor * (1 + off))):
        fine.append(bits[min(len(bits) - 1, int(cycle / (divisor * (1 + off))))])
    assert heard(dut, [1] * 9 + fine + [1] * 40, 1) == (BYTES, 0)


@divisors
def test_a_low_stop_bit_is_no_byte(divisor):
    bits = [*wave(0x5A, stop=0), 1, 1, *wave(0xC3)]
    taken, broken = heard(UartReceiver(divisor=divisor), bits, divisor)
    assert taken == [0xC3] and broken >= 1


def test_a_short_low_is_no_start():
    bits = [0] * 5 + [1] * 40 + [bit for bit in wave(0x42) for _ in range(16)]
    assert heard(UartReceiver(divisor=16), bits, 1) == ([0x42], 0)


def test_a_byte_nobody_takes_stays_and_the_next_one_is_lost():
    dut = UartReceiver(divisor=4)
    lost = []

    async def wire(ctx):
        await drive(ctx, dut, [1, *wave(0x12), *wave(0x34), 1, 1], 4)
        assert await receive(ctx, dut.bytes, 1) == [0x12]

    async def watch(ctx):
        while True:
            if (await ctx.tick().sample(dut.broken))[-1]:
                lost.append(True)

    simulate(dut, wire, background=[watch, checker(dut.bytes, "bytes")])
    assert lost == [True]


@divisors
@pytest.mark.parametrize("idle", [0, 0.9])
def test_transmits(divisor, idle):
    dut = UartTransmitter(divisor=divisor)

    async def source(ctx):
        await send(ctx, dut.bytes, BYTES, idle=idle)

    async def wire(ctx):
        for byte in BYTES:
            while (await ctx.tick().sample(dut.tx))[-1]:
                pass
            bits = []
            for _ in range(10 * divisor - 1):
                bits.append((await ctx.tick().sample(dut.tx))[-1])
            assert [0, *bits] == [bit for bit in wave(byte) for _ in range(divisor)]

    simulate(dut, source, wire)


@pytest.mark.parametrize("kind", [UartReceiver, UartTransmitter])
@pytest.mark.parametrize(("divisor", "error", "text"), [
    (3, ValueError, "divisor must be in 4..65535, not 3"),
    (65536, ValueError, "divisor must be in 4..65535, not 65536"),
    (8.0, TypeError, "divisor must be an integer, not 8.0"),
])
def test_rejects_what_is_no_divisor(kind, divisor, error, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)  # half of one, that nobody can use
        with pytest.raises(error, match=f"^{re.escape(text)}$"):
            kind(divisor=divisor)
        gc.collect()
