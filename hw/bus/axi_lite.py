"""AXI4-Lite: a slave that turns bus transfers into requests of the register bus."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.bus.register_bank import RegisterBus

__all__ = ["OKAY", "PINS", "SLVERR", "AxiLite", "ResponseQueue"]

OKAY, SLVERR = 0b00, 0b10
PINS = {
    "awaddr": In(12), "awprot": In(3), "awvalid": In(1), "awready": Out(1),
    "wdata": In(32), "wstrb": In(4), "wvalid": In(1), "wready": Out(1),
    "bresp": Out(2), "bvalid": Out(1), "bready": In(1),
    "araddr": In(12), "arprot": In(3), "arvalid": In(1), "arready": Out(1),
    "rdata": Out(32), "rresp": Out(2), "rvalid": Out(1), "rready": In(1),
}  # fmt: skip


class ResponseQueue(wiring.Component):
    """Holds responses until the master takes them; a slot is reserved with each request.

    Parameters
    ----------
    width : int
        Bits of a response.
    depth : int
        Number of slots: a power of two. A slot is occupied for three cycles or more: 4 slots
        suffice for one request a cycle, 2 for two requests in three cycles.

    Attributes
    ----------
    reserve : In, 1 bit
        Pulse: reserves a slot; only while ``free``.
    free : Out, 1 bit
        A slot is free.
    i : In, stream of ``width`` bits; always ready
        One response for each reserved slot.
    o : Out, stream of ``width`` bits
    """

    def __init__(self, *, width, depth):
        self.width = width
        self.depth = depth
        super().__init__({
            "reserve": In(1),
            "free": Out(1, init=1),
            "i": In(stream.Signature(width, always_ready=True)),
            "o": Out(stream.Signature(width)),
        })

    def elaborate(self, platform):
        m = Module()
        reserved = Signal(range(self.depth + 1))
        filled = Signal(self.depth)  # a bit a slot; the filled slots are the lowest ones
        slots = [Signal(self.width, name=f"slot_{n}", reset_less=True) for n in range(self.depth)]
        o_fire = self.o.valid & self.o.ready
        m.d.comb += [
            self.free.eq(~reserved[-1]),
            self.o.valid.eq(filled[0]), self.o.payload.eq(slots[0]),
        ]
        m.d.sync += reserved.eq(reserved + self.reserve - o_fire)
        with m.If(self.i.valid & ~o_fire):
            m.d.sync += filled.eq(Cat(1, filled))
        with m.If(o_fire & ~self.i.valid):
            m.d.sync += filled.eq(filled[1:])
        for n, slot in enumerate(slots):
            with m.If(o_fire | ~filled[n]):
                m.d.sync += slot.eq(self.i.payload)
                if slot is not slots[-1]:
                    with m.If(filled[n + 1]):
                        m.d.sync += slot.eq(slots[n + 1])
        return m


class AxiLite(wiring.Component):
    """One access a cycle in total; reads and writes take turns.

    Reads alone reach two accesses in three cycles. Address and data of a write may arrive in
    either order. A write waits for both of them; otherwise no channel waits for another: an
    untaken R response does not block B. An access with an error is answered SLVERR: an address that
    is no multiple of 4 is one. Protection bits are ignored. No output depends on an input in the
    same cycle.

    Attributes
    ----------
    awaddr, awprot, awvalid, wdata, wstrb, wvalid, bready, araddr, arprot, arvalid, rready : In
    awready, wready, bresp, bvalid, arready, rdata, rresp, rvalid : Out
    bus : Out, `RegisterBus`

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: AXI4-Lite.
    """

    def __init__(self):
        super().__init__({**PINS, "bus": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        request, response = self.bus.request, self.bus.response
        m.submodules.b = b = ResponseQueue(width=1, depth=4)
        m.submodules.r = r = ResponseQueue(width=33, depth=2)
        take_write, take_read = Signal(), Signal()
        aw_full, w_full, ar_full = Signal(), Signal(), Signal()
        aw_addr, ar_addr = Signal(12), Signal(12)
        w_data, w_mask = Signal(32), Signal(4)
        for full, take, valid, ready, captures in (
            (aw_full, take_write, self.awvalid, self.awready, [aw_addr.eq(self.awaddr)]),
            (w_full, take_write, self.wvalid, self.wready,
             [w_data.eq(self.wdata), w_mask.eq(self.wstrb)]),
            (ar_full, take_read, self.arvalid, self.arready, [ar_addr.eq(self.araddr)]),
        ):
            m.d.comb += ready.eq(~full | take)
            with m.If(ready):
                m.d.sync += [full.eq(valid), *captures]

        # The turn is decided one cycle ahead, and stays until the register bus is ready.
        write_turn = Signal()
        address = Mux(write_turn, aw_addr, ar_addr)
        m.d.comb += [
            request.valid.eq(Mux(write_turn, aw_full & w_full & b.free, ar_full & r.free)),
            request.p.addr.eq(address[2:]),
            request.p.aligned.eq(~address[:2].any()),
            request.p.write.eq(write_turn),
            request.p.mask.eq(w_mask),
            request.p.data.eq(w_data),
            take_write.eq(request.valid & request.ready & write_turn),
            take_read.eq(request.valid & request.ready & ~write_turn),
            b.reserve.eq(take_write),
            r.reserve.eq(take_read),
        ]
        with m.If(request.ready):
            m.d.sync += write_turn.eq(Mux(write_turn, ~ar_full, aw_full & w_full))

        was_write = Signal()  # the pending request
        with m.If(request.valid & request.ready):
            m.d.sync += was_write.eq(write_turn)
        m.d.comb += [
            b.i.valid.eq(response.valid & was_write),
            r.i.valid.eq(response.valid & ~was_write),
            b.i.payload.eq(response.p.error),
            r.i.payload.eq(response.payload),
            self.bvalid.eq(b.o.valid), b.o.ready.eq(self.bready),
            self.bresp.eq(Mux(b.o.payload, SLVERR, OKAY)),
            self.rvalid.eq(r.o.valid), r.o.ready.eq(self.rready),
            self.rdata.eq(r.o.payload[:32]),
            self.rresp.eq(Mux(r.o.payload[32], SLVERR, OKAY)),
        ]
        return m
