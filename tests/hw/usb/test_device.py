"""The USB device against a host that follows the specification, at the UTMI port."""

import random
import struct

import pytest
from luna.gateware.usb.usb2.reset import USBResetSequencer
from tiers import quick
from usb_bench import UtmiPort, run

from verif.usb_host import ACK, DATA0, NAK, OUT, SETUP, UsbError, crc5, crc16, data_packet, token
from weft.hw.usb.device import BurstEnd
from weft.usb_ids import MANUFACTURER, PRODUCT, PRODUCT_ID, VENDOR_ID

ENDPOINT = 1


def noise(count, seed=3):
    return random.Random(seed).randbytes(count)


async def read(host, count):
    """At least ``count`` bytes of the device."""
    data = b""
    while len(data) < count:
        data += await host.in_(ENDPOINT)
    return data


def test_the_host_of_the_tests_computes_the_crcs_of_the_specification():
    """The examples of "CRC in USB" of the USB Implementers Forum, and packets of a capture."""
    def sent(crc, width):  # in the order of the wire
        return f"{crc:0{width}b}"[::-1]

    assert sent(crc5(0x15 | 0xE << 7), 5) == "10111"
    assert sent(crc5(0x3A | 0xA << 7), 5) == "11100"
    assert sent(crc16(bytes([0, 1, 2, 3])), 16) == "1111011101011110"
    assert sent(crc16(bytes([0x23, 0x45, 0x67, 0x89])), 16) == "0111000000111000"
    assert token(SETUP, 0).hex() == "2d0010"
    request = bytes([0x80, 6, 0, 1, 0, 0, 0x40, 0])
    assert data_packet(DATA0, request).hex() == "c38006000100004000dd94"


def test_enumeration_finds_a_serial_port_with_the_identity_of_weft():
    dut = UtmiPort()

    async def bench(ctx, host):
        device, configuration = await host.enumerate()
        assert device[:4] == bytes([18, 1, 0, 2]) and device[17] == 1  # USB 2.0, a configuration
        assert device[4:8] == bytes([0xEF, 2, 1, 64])  # of associated interfaces
        assert device[8:14] == struct.pack("<HHH", VENDOR_ID, PRODUCT_ID, 0x0100)
        strings = [await host.string(index) for index in device[14:17]]
        assert strings == [MANUFACTURER, PRODUCT, "left board"]
        parts, rest = [], configuration
        while rest:
            parts.append(rest[: rest[0]])
            rest = rest[rest[0] :]
        assert [tuple(part[5:8]) for part in parts if part[1] == 4] == [(2, 2, 0), (10, 0, 0)]
        endpoints = [(part[2], part[3], part[4] | part[5] << 8) for part in parts if part[1] == 5]
        assert endpoints == [(0x82, 3, 8), (0x01, 2, 64), (0x81, 2, 64)]
        assert [part[2] for part in parts if part[1] == 0x24] == [0, 1, 2, 6]  # of CDC

    dut.run(bench)


def test_a_system_can_open_it_as_a_serial_port():
    """What Linux, macOS, Windows and pyserial ask for when they open a port."""
    dut = UtmiPort()

    async def bench(ctx, host):
        await host.enumerate()
        coding = await host.control(0xA1, 0x21, length=7)
        assert coding == struct.pack("<IBBB", 115_200, 0, 0, 8)
        await host.control(0x21, 0x20, data=struct.pack("<IBBB", 3_000_000, 0, 0, 8))
        await host.control(0x21, 0x22, value=3)  # DTR and RTS
        assert await host.try_in(2) == NAK  # no notification
        with pytest.raises(UsbError, match="endpoint 0 stalled"):
            await host.control(0x21, 0x23)  # a break: not offered
        with pytest.raises(UsbError, match="endpoint 0 stalled"):
            await host.control(0xC0, 1, length=4)  # of a vendor
        assert await host.control(0x80, 8, length=1) == b"\1"  # the configuration

    dut.run(bench)


@pytest.mark.slow
@pytest.mark.parametrize("pace", [1, pytest.param(8, marks=pytest.mark.long)])
def test_no_byte_is_lost_while_both_sides_wait_and_packets_are_lost(pace):
    answers, data = noise(300), noise(400, 5)
    dut = UtmiPort(stall=0.9, idle=0.3)

    async def bench(ctx, host):
        await host.attach()
        dut.application.answers += answers
        rng, received = random.Random(9), bytearray()
        for start in range(0, len(data), 64):
            packet = data[start : start + 64]
            if rng.random() < 0.3:  # the CRC is wrong: no answer, and no byte is taken
                assert await host.try_out(ENDPOINT, packet, damage=True) is None
            await host.out(ENDPOINT, packet, lose=rng.random() < 0.3)
            if rng.random() < 0.3:
                await host.try_in(ENDPOINT, lose=True)
            part = await host.try_in(ENDPOINT)
            received += part if isinstance(part, bytes) else b""
        assert host.retries > 2 and NAK in host.log
        received += await read(host, len(answers) - len(received))
        assert received == answers
        await ctx.tick().repeat(2000)
        assert dut.application.received == data
        assert await host.try_in(ENDPOINT) == NAK

    dut.run(bench, pace=pace, seconds=5e-3)


@pytest.mark.parametrize("size", quick(2, [1, 64, 65, 63, 128]))
def test_a_burst_ends_with_a_packet_that_is_not_full(size):
    """A host waits for such a packet: without it, an answer of 64 bytes would not arrive."""
    answers = noise(size)
    dut = UtmiPort()

    async def bench(ctx, host):
        await host.attach()
        dut.application.answers += answers
        await ctx.tick("usb").repeat(size * 2 + 100)
        packets = []
        while not packets or len(packets[-1]) == 64:
            packets.append(await host.in_(ENDPOINT))
        assert [len(packet) for packet in packets] == [64] * (size // 64) + [size % 64]
        assert b"".join(packets) == answers
        assert await host.try_in(ENDPOINT) == NAK

    dut.run(bench)


def test_a_full_device_takes_no_byte_until_there_is_space():
    """The answer to each packet is ACK with all bytes taken, or NAK with none."""
    data = noise(64 * 6, 7)
    dut = UtmiPort()

    async def bench(ctx, host):
        await host.attach()
        dut.application.stopped = True
        answers = []
        for start in range(0, len(data), 64):
            answers.append(await host.try_out(ENDPOINT, data[start : start + 64]))
            if answers[-1] == ACK:
                host.flip(ENDPOINT, OUT)
        count = answers.index(NAK)
        assert 1 <= count < 5 and answers == [ACK] * count + [NAK] * (6 - count)
        dut.application.stopped = False
        await host.out(ENDPOINT, data[64 * count : 64 * (count + 1)])
        await ctx.tick().repeat(2000)
        assert dut.application.received == data[: 64 * (count + 1)]

    dut.run(bench)


def test_a_bus_reset_starts_a_new_connection():
    """The toggles are DATA0 again, and the bytes of the old connection are gone."""
    dut = UtmiPort()

    async def bench(ctx, host):
        for round_ in range(2):
            await host.attach()
            dut.application.answers += noise(100)
            await host.out(ENDPOINT, b"one packet")  # an odd number of packets
            await ctx.tick("usb").repeat(400)
            assert dut.application.received == b"one packet"
            dut.application.received.clear()
            if not round_:
                assert await host.in_(ENDPOINT)
                await host.wire.send(token(OUT, host.address, ENDPOINT))
                cut = data_packet(host.toggle(ENDPOINT, OUT), noise(64))[:30]
                await host.wire.send(cut)  # unplugged in a packet
                assert await host.receive() is None
        await host.control(0, 9, 1)  # the same configuration again: USB 2.0, 9.1.1.5
        host.toggles = {}
        dut.application.answers += b"new"
        await host.out(ENDPOINT, b"again")
        assert (await read(host, 3))[-3:] == b"new"
        assert dut.application.received == b"again"

    dut.run(bench)


def test_it_works_after_the_bus_was_suspended(monkeypatch):
    monkeypatch.setattr(USBResetSequencer, "_CYCLES_3_MILLISECONDS", 1000)
    dut = UtmiPort()

    async def bench(ctx, host):
        await host.attach()
        await host.wire.idle(150e-6)
        await host.wire.resume()
        dut.application.answers += b"awake"
        assert await read(host, 5) == b"awake"
        await host.out(ENDPOINT, b"and here")
        await ctx.tick("usb").repeat(200)
        assert dut.application.received == b"and here"

    dut.run(bench)


def test_the_end_of_a_burst_is_marked_under_back_pressure():
    idle, taken = 4, []
    dut = BurstEnd(idle=idle)

    async def bench(ctx):
        for pause, byte in ((0, 1), (2, 2), (0, 3), (30, 4), (0, 5)):
            await ctx.tick("usb").repeat(pause + 1)
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, byte)
            await ctx.tick("usb").until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
        await ctx.tick("usb").repeat(30)

    async def take(ctx):
        rng, offered = random.Random(2), None
        while True:
            ready = rng.random() < 0.4
            ctx.set(dut.o.ready, ready)
            _, _, valid, byte, last = await ctx.tick("usb").sample(
                dut.o.valid, dut.o.payload, dut.last
            )
            if offered is not None:
                assert valid and (byte, last) == offered
            offered = (byte, last) if valid and not ready else None
            if valid and ready:
                taken.append((byte, last))

    run(dut, bench, take, seconds=1e-4)
    assert taken == [(1, 0), (2, 0), (3, 1), (4, 0), (5, 1)]
