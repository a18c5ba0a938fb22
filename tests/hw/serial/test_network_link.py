"""The link of a network core: order, repeats and damage of frames, at its byte streams."""

import functools

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from linked_core import Host
from network_cores import small_network_core

from verif.amaranth_bench import checker, simulate, ticks
from weft.frames import MAX_WRITE, FrameType
from weft.host.link import Frame
from weft.hw.network_core.host.host_port import HostPort
from weft.hw.serial.link import NetworkLink
from weft.network_core.descriptors import split
from weft.network_core.register_map import REGISTERS, describe

CHIP = small_network_core(2, 4, 8, words=64)


class LinkedMemory(wiring.Component):
    """A host port behind its link, with a memory that a bench reads, and no lists."""

    def __init__(self, fast):
        self.memory, self.fast = {}, fast
        super().__init__({
            "rx_bytes": In(stream.Signature(8)), "tx_bytes": Out(stream.Signature(8)),
            "rx_error": In(1), "ready": In(1, init=1), "valid": Out(1),
            "write": Out(data.StructLayout({"bank": 2, "word": 7, "data": 64})),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.link = link = NetworkLink(target="generic", fast=self.fast)
        m.submodules.port = port = HostPort(CHIP)
        connect(m, flipped(self.rx_bytes), link.rx_bytes)
        connect(m, link.tx_bytes, flipped(self.tx_bytes))
        connect(m, link.frames, port.frames)
        write = port.core.writes
        m.d.comb += [
            link.rx_error.eq(self.rx_error), write.ready.eq(self.ready),
            self.valid.eq(write.valid & write.ready), self.write.data.eq(write.payload.data),
            self.write.bank.eq(write.payload.address.bank),
            self.write.word.eq(write.payload.address.word),
        ]
        return m


linked = functools.cache(LinkedMemory)  # elaborated once for all tests of a kind of link


@pytest.fixture(params=[False, True], ids=["serial", "usb"])
def fast(request):
    """Both kinds of link."""
    return request.param


def run(bench, fast, limit=150_000):
    dut = linked(fast)
    dut.memory.clear()
    host = Host(dut)

    async def memory(ctx):
        while True:
            _, _, valid, write = await ctx.tick().sample(dut.valid, dut.write)
            if valid:
                number = write.word * CHIP.banks + write.bank
                dut.memory[number] = write.data.to_bytes(8, "little")

    async def body(ctx):
        await bench(ctx, host)

    background = [checker(dut.tx_bytes, "tx_bytes"), host.listen, memory]
    simulate(dut, body, background=background, limit=limit)
    assert host.inbox == []
    return dut.memory


def write(number, payload, sequence):
    fields = split(number, CHIP.banks).to_bytes(4, "little") + bytes(8)
    return Frame(FrameType.WRITE, sequence, fields + payload)


async def ask(ctx, host, frame):
    await host.raw(ctx, frame.encode())
    return await host.answer(ctx, set(FrameType))


def test_frames_are_executed_once_and_in_order(fast):
    ack = FrameType.ACK

    async def bench(ctx, host):
        assert await ask(ctx, host, write(5, b"a" * 8, 1)) == Frame(ack, 1)
        assert await ask(ctx, host, write(5, b"b" * 8, 1)) == Frame(ack, 1)  # repeated
        assert await ask(ctx, host, write(6, b"c" * 8, 3)) == Frame(ack, 1)  # too early
        damaged = bytearray(write(7, b"d" * 8, 2).encode())
        damaged[20] ^= 4
        await host.raw(ctx, damaged)
        assert (await host.answer(ctx, {FrameType.ERROR})).payload == b"CRC "
        assert await ask(ctx, host, write(5, b"e" * 12, 2)) == Frame(ack, 2)
        assert await host.read(ctx, 0, 3) == describe(CHIP)[:3]
        await ticks(ctx, 200)

    assert run(bench, fast) == {5: b"e" * 8, 6: b"e" * 4 + bytes(4)}


@pytest.mark.slow
def test_rejects_invalid_frames(fast):
    invalid = [
        (FrameType.COMMANDS, b"", b"type"), (FrameType.DONE, b"", b"type"),
        (FrameType.WRITE, bytes(MAX_WRITE + 1), b"size"), (FrameType.START, bytes(9), b"size"),
        (FrameType.READ_MEMORY, bytes(4), b"size"),
    ]

    async def bench(ctx, host):
        for kind, payload, text in invalid:
            answer = await ask(ctx, host, Frame(kind, 1, payload))
            assert (answer.type, answer.payload) == (FrameType.ERROR, text), kind
        assert await ask(ctx, host, write(5, b"a" * 8, 1)) == Frame(FrameType.ACK, 1)

    assert run(bench, fast) == {5: b"a" * 8}


@pytest.mark.long
def test_two_frames_of_the_maximum_size_wait_in_the_link(fast):
    payload = bytes(range(250)) * 4

    async def bench(ctx, host):
        ctx.set(host.dut.ready, 0)
        assert await ask(ctx, host, write(0, payload, 1)) == Frame(FrameType.ACK, 1)
        await host.raw(ctx, write(0, payload[::-1], 2).encode())
        await ticks(ctx, 100)
        assert host.inbox == []  # accepted, but there is no space for another frame
        answer = await ask(ctx, host, write(0, b"", 3))
        assert (answer.type, answer.payload) == (FrameType.ERROR, b"room")
        ctx.set(host.dut.ready, 1)
        assert await host.answer(ctx, {FrameType.ACK}) == Frame(FrameType.ACK, 2)
        status = REGISTERS.index("net_status")
        assert await host.read(ctx, status, 1) == [0]  # answered after all writes

    memory = run(bench, fast)
    assert b"".join(memory[n] for n in range(125)) == payload[::-1]
