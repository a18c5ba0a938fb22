"""The USB device at a PHY of high speed: the handshake of the speed, and packets of 512 bytes."""

import random

import pytest
from luna.gateware.usb.usb2.reset import USBResetSequencer
from usb_bench import Application, run
from usb_wires import Phy, ulpi_pins

from verif.usb_host import ACK, NAK, OUT, PING, UsbHost, token
from weft.hw.usb.device import HIGH_SPEED_PACKET, UsbPort

ENDPOINT = 1
FUNCTION_CONTROL = 4


@pytest.fixture(autouse=True)
def short_chirps(monkeypatch):
    """Milliseconds take minutes in this simulator."""
    monkeypatch.setattr(USBResetSequencer, "_CYCLES_2_MILLISECONDS", 600)


def at_phy(bench, *, seconds=4e-4, **application):
    """Run ``bench(ctx, host, application)`` with a device at high speed."""
    pins = ulpi_pins()
    dut = UsbPort(pins, packet=HIGH_SPEED_PACKET, serial="left")
    behind, phys = Application(dut, **application), []

    async def serve(ctx):
        phys.append(Phy(ctx, pins))
        await phys[0].serve(ctx)

    async def attached(ctx):
        ctx.set(dut.connect, 1)
        await ctx.tick("usb").repeat(100)
        phys[0].ctx = ctx
        host = UsbHost(phys[0])
        await host.attach()
        await bench(ctx, host, behind)

    run(dut, attached, serve, behind.take, behind.give, seconds=seconds, usb=60e6, sync=60e6)


@pytest.mark.slow
def test_the_device_takes_high_speed_and_packets_of_512_bytes():
    data, answers = random.Random(4).randbytes(700), random.Random(5).randbytes(600)

    async def bench(ctx, host, application):
        assert host.wire.registers[FUNCTION_CONTROL] & 0b111 == 0  # high speed, its termination
        configuration = await host.descriptor(2, length=75)
        endpoints = [configuration[-14:-7], configuration[-7:]]
        assert [(e[2], int.from_bytes(e[4:6], "little")) for e in endpoints] == [
            (ENDPOINT, 512), (0x80 | ENDPOINT, 512)
        ]
        await host.out(ENDPOINT, data[:512])
        await host.out(ENDPOINT, data[512:], lose=1)
        application.answers += answers
        await ctx.tick("usb").repeat(1800)
        assert application.received == data
        assert [await host.in_(ENDPOINT), await host.in_(ENDPOINT)] == [
            answers[:512], answers[512:]
        ]

    at_phy(bench)


@pytest.mark.slow
def test_a_full_device_answers_nak_and_loses_no_byte():
    """After NAK, a host of high speed asks with PING until there is space."""
    data = random.Random(6).randbytes(512 * 4)

    async def bench(ctx, host, application):
        application.stopped = True
        taken = 0
        for start in range(0, len(data), 512):
            answer = await host.try_out(ENDPOINT, data[start : start + 512])
            if answer != ACK:
                break
            host.flip(ENDPOINT, OUT)
            taken = start + 512
        assert answer == NAK and 512 <= taken < len(data)
        await host.wire.send(token(PING, host.address, ENDPOINT))
        assert await host.receive() == (NAK, b"")
        application.stopped = False
        await ctx.tick("usb").repeat(1200)
        await host.wire.send(token(PING, host.address, ENDPOINT))
        assert await host.receive() == (ACK, b"")
        await host.out(ENDPOINT, data[taken : taken + 512])
        await ctx.tick("usb").repeat(1300)
        assert application.received == data[: taken + 512]

    at_phy(bench)
