"""A core behind its serial link, and a host at its byte streams, in Amaranth's simulator."""

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from verif.amaranth_bench import send
from weft.frames import MAX_PAYLOAD, FrameType
from weft.host.link import Frame, FrameDecoder
from weft.hw.core import Core
from weft.hw.serial.link import Link

__all__ = ["Host", "LinkedCore"]


class LinkedCore(wiring.Component):
    """A core and its link; ``fast`` is as of the link."""

    def __init__(self, config, fast=False):
        self.config = config
        self.fast = fast
        super().__init__({
            "rx_bytes": In(stream.Signature(8)), "tx_bytes": Out(stream.Signature(8)),
            "rx_error": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = Core(self.config)
        m.submodules.link = link = Link(self.config, fast=self.fast)
        connect(m, flipped(self.rx_bytes), link.rx_bytes)
        connect(m, link.tx_bytes, flipped(self.tx_bytes))
        connect(m, link.core, core)
        m.d.comb += link.rx_error.eq(self.rx_error)
        return m


class Host:
    """A host that sends one request at a time and collects the frames from the link."""

    def __init__(self, dut, *, idle=0, stall=0):
        self.dut, self.idle, self.stall = dut, idle, stall
        self.inbox, self.sequence, self.command_sequence = [], 0, 0

    async def listen(self, ctx):
        decoder, rng = FrameDecoder(), np.random.default_rng(7)
        tx_bytes = self.dut.tx_bytes
        while True:
            ctx.set(tx_bytes.ready, ready := int(rng.random() >= self.stall))
            _, _, valid, byte = await ctx.tick().sample(tx_bytes.valid, tx_bytes.payload)
            if valid and ready:
                self.inbox += decoder.feed(bytes([byte]))

    async def post(self, ctx, kind, payload=b""):
        """Send a frame; COMMANDS have sequence numbers of their own."""
        if kind == FrameType.COMMANDS:
            number = self.command_sequence = (self.command_sequence + 1) % 256
        else:
            number = self.sequence = (self.sequence + 1) % 256
        await self.raw(ctx, Frame(kind, number, payload).encode())
        return number

    async def raw(self, ctx, data):
        await send(ctx, self.dut.rx_bytes, data, idle=self.idle, seed=len(data))

    async def answer(self, ctx, kinds):
        """The next frame of one of the types ``kinds``; other frames stay in the inbox."""
        while True:
            for n, frame in enumerate(self.inbox):
                assert isinstance(frame, Frame), frame
                if frame.type in kinds:
                    return self.inbox.pop(n)
            await ctx.tick()

    async def request(self, ctx, kind, payload=b""):
        """Send a frame; its answer or ERROR."""
        number = await self.post(ctx, kind, payload)
        frame = await self.answer(ctx, {
            FrameType.ACK, FrameType.REGISTERS, FrameType.ABORTED, FrameType.ERROR,
        })
        assert frame.sequence == number
        if kind == FrameType.COMMANDS and frame.type == FrameType.ERROR:
            self.command_sequence -= 1
        return frame

    async def read(self, ctx, address, count):
        payload = address.to_bytes(2, "little") + count.to_bytes(2, "little")
        frame = await self.request(ctx, FrameType.READ, payload)
        assert frame.type == FrameType.REGISTERS and len(frame.payload) == 4 * count
        return np.frombuffer(frame.payload, "<u4").tolist()

    async def feed(self, ctx, commands, size=MAX_PAYLOAD):
        for start in range(0, len(commands), size):
            frame = await self.request(ctx, FrameType.COMMANDS, commands[start : start + size])
            assert frame.type == FrameType.ACK
