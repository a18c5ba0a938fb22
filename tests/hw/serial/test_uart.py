"""Tests of the serial port at its pins, bit by bit."""

import gc
import warnings

import pytest
from amaranth.hdl import UnusedElaboratable
from rejects import rejects

from verif.amaranth_bench import checker, receive, send, simulate, ticks
from weft.hw.serial.uart import UartReceiver, UartTransmitter

DIVISORS = [4, 5, 7, 16]
BYTES = [0x00, 0xFF, 0x55, 0xA7, 0x80, 0x01]
divisors = pytest.mark.parametrize("divisor", DIVISORS)


def frame_bits(byte, stop=1):
    """The bits of a byte on the wire."""
    return [0, *(byte >> n & 1 for n in range(8)), stop]


async def drive(ctx, dut, bits, divisor):
    for bit in bits:
        ctx.set(dut.rx, bit)
        await ticks(ctx, divisor)


def receive_bits(dut, bits, divisor):
    """Send ``bits`` to a receiver; its bytes, and how often it reported an error."""
    received, errors = [], []

    async def wire(ctx):
        await ticks(ctx, 3)
        await drive(ctx, dut, bits, divisor)
        await drive(ctx, dut, [1, 1], divisor)

    async def listen(ctx):
        ctx.set(dut.bytes.ready, 1)
        while True:
            _, _, valid, byte, error = await ctx.tick().sample(
                dut.bytes.valid, dut.bytes.payload, dut.error
            )
            if valid:
                received.append(byte)
            if error:
                errors.append(True)

    simulate(dut, wire, background=[listen])
    return received, len(errors)


@divisors
def test_receives_bytes_back_to_back(divisor):
    bits = [bit for byte in BYTES for bit in frame_bits(byte)]
    assert receive_bits(UartReceiver(divisor=divisor), bits, divisor) == (BYTES, 0)


@pytest.mark.parametrize("drift", [-0.03, 0.03])
def test_receives_at_a_baud_rate_that_differs_by_3_percent(drift):
    # An edge moves by up to 0.3 bits within the 10 bits of a byte.
    divisor = 32
    bits = [bit for byte in BYTES for bit in frame_bits(byte)]
    dut = UartReceiver(divisor=divisor)
    samples = []  # the wire, one entry per cycle
    for cycle in range(int(len(bits) * divisor * (1 + drift))):
        samples.append(bits[min(len(bits) - 1, int(cycle / (divisor * (1 + drift))))])
    assert receive_bits(dut, [1] * 9 + samples + [1] * 40, 1) == (BYTES, 0)


@divisors
def test_rejects_a_byte_with_a_low_stop_bit(divisor):
    bits = [*frame_bits(0x5A, stop=0), 1, 1, *frame_bits(0xC3)]
    received, errors = receive_bits(UartReceiver(divisor=divisor), bits, divisor)
    assert received == [0xC3] and errors >= 1


def test_ignores_a_short_start_bit():
    bits = [0] * 5 + [1] * 40 + [bit for bit in frame_bits(0x42) for _ in range(16)]
    assert receive_bits(UartReceiver(divisor=16), bits, 1) == ([0x42], 0)


def test_reports_an_overrun_and_keeps_the_first_byte():
    dut = UartReceiver(divisor=4)
    errors = []

    async def wire(ctx):
        await drive(ctx, dut, [1, *frame_bits(0x12), *frame_bits(0x34), 1, 1], 4)
        assert await receive(ctx, dut.bytes, 1) == [0x12]

    async def watch(ctx):
        while True:
            if (await ctx.tick().sample(dut.error))[-1]:
                errors.append(True)

    simulate(dut, wire, background=[watch, checker(dut.bytes, "bytes")])
    assert errors == [True]


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
            assert [0, *bits] == [bit for bit in frame_bits(byte) for _ in range(divisor)]

    simulate(dut, source, wire)


@pytest.mark.parametrize("kind", [UartReceiver, UartTransmitter])
@pytest.mark.parametrize(("divisor", "error", "text"), [
    (3, ValueError, "divisor must be in 4..65535, not 3"),
    (65536, ValueError, "divisor must be in 4..65535, not 65536"),
    (8.0, TypeError, "divisor must be an integer, not 8.0"),
])
def test_rejects_an_invalid_divisor(kind, divisor, error, text):
    with warnings.catch_warnings():  # the component is never elaborated
        warnings.simplefilter("ignore", UnusedElaboratable)
        with rejects(error, text):
            kind(divisor=divisor)
        gc.collect(1)  # not the objects of other tests
