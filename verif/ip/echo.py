"""A responder on the register bus, without a core behind it, for tests of a bus alone."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

__all__ = ["FIRST_ERROR", "Echo", "RequestLog"]

FIRST_ERROR = 0x300  # this word address and all above it are answered with an error


class Echo(wiring.Component):
    """Answers with three times the word address; an odd address takes ``cycles`` cycles."""

    def __init__(self, bus, cycles):
        self.bus, self.cycles = bus, cycles
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.bus = self.bus
        request, response = self.bus.bus.request, self.bus.bus.response
        remaining, addr, aligned = Signal(8), Signal(10), Signal()
        done = remaining == 1
        m.d.comb += [
            request.ready.eq((remaining == 0) | done), response.valid.eq(done),
            response.p.data.eq(addr * 3), response.p.error.eq((addr >= FIRST_ERROR) | ~aligned),
        ]
        with m.If(remaining != 0):
            m.d.sync += remaining.eq(remaining - 1)
        with m.If(request.valid & request.ready):
            m.d.sync += [
                remaining.eq(1), addr.eq(request.p.addr), aligned.eq(request.p.aligned),
            ]
            with m.If(request.p.addr[0]):
                m.d.sync += remaining.eq(self.cycles)
        return m


class RequestLog:
    """Records the requests that a bus slave makes; add `watch` as a background bench.

    Attributes
    ----------
    requests : list of tuple
        Word address, write, mask and data of each request.
    """

    def __init__(self, bus):
        self.bus = bus
        self.requests = []

    async def watch(self, ctx):
        request = self.bus.bus.request
        while True:
            _, _, valid, ready, p = await ctx.tick().sample(
                request.valid, request.ready, request.payload
            )
            if valid and ready:
                self.requests.append((p.addr, p.write, p.mask, p.data))
