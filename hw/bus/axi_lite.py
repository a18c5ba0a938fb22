"""AXI4-Lite: a slave that turns the bus into accesses of the register port."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.bus.register_bus import RegisterBus

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
    """A few answers on their way out: room is kept for each when its access is taken.

    Parameters
    ----------
    width : int
        Bits of an answer.
    places : int
        A power of two. It is three cycles before the place of an answer that leaves at once is
        another's: so 4 are enough for an access a cycle, and 2 for two in three cycles.

    Attributes
    ----------
    keep : In
        An answer will come; only while ``room``.
    room : Out
    i : In
        ``valid`` and an answer: one that room was kept for.
    o : Out, stream of answers
    """

    def __init__(self, *, width, places):
        self.width = width
        self.places = places
        super().__init__({
            "keep": In(1),
            "room": Out(1, init=1),
            "i": In(stream.Signature(width, always_ready=True)),
            "o": Out(stream.Signature(width)),
        })

    def elaborate(self, platform):
        m = Module()
        kept = Signal(range(self.places + 1))
        there = Signal(self.places)  # of the places, the lowest ones
        places = [
            Signal(self.width, name=f"place_{n}", reset_less=True) for n in range(self.places)
        ]
        leaves = self.o.valid & self.o.ready
        m.d.comb += [
            self.room.eq(~kept[-1]),
            self.o.valid.eq(there[0]), self.o.payload.eq(places[0]),
        ]
        m.d.sync += kept.eq(kept + self.keep - leaves)
        with m.If(self.i.valid & ~leaves):
            m.d.sync += there.eq(Cat(1, there))
        with m.If(leaves & ~self.i.valid):
            m.d.sync += there.eq(there[1:])
        for n, place in enumerate(places):
            with m.If(leaves | ~there[n]):
                m.d.sync += place.eq(self.i.payload)
                if place is not places[-1]:
                    with m.If(there[n + 1]):
                        m.d.sync += place.eq(places[n + 1])
        return m


class AxiLite(wiring.Component):
    """Reads and writes of an AXI4-Lite bus, one access a cycle in all, in fair turns.

    Where there are only reads, two in three cycles.

    Address and data of a write may come in either order. Nothing on one channel waits for another,
    but for what it needs: a write waits for its two parts, and what a master leaves unanswered on
    R does not hold up B. Refused accesses are answered SLVERR. Protection bits and the lowest two
    of an address are not looked at. No output depends on an input in the same cycle.

    Attributes
    ----------
    awaddr, awprot, awvalid, wdata, wstrb, wvalid, bready, araddr, arprot, arvalid, rready : In
    awready, wready, bresp, bvalid, arready, rdata, rresp, rvalid : Out
    port : Out, `RegisterBus`

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: AXI4-Lite.
    """

    def __init__(self):
        super().__init__({**PINS, "port": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        access, answer = self.port.access, self.port.answer
        m.submodules.b = b = ResponseQueue(width=1, places=4)
        m.submodules.r = r = ResponseQueue(width=33, places=2)
        take_write = Signal()
        take_read = Signal()
        aw_full = Signal()
        w_full = Signal()
        ar_full = Signal()
        aw_word = Signal.like(access.p.address)
        ar_word = Signal.like(access.p.address)
        w_data = Signal(32)
        w_mask = Signal(4)
        for full, take, valid, ready, kept in (
            (aw_full, take_write, self.awvalid, self.awready, [aw_word.eq(self.awaddr[2:])]),
            (w_full, take_write, self.wvalid, self.wready,
             [w_data.eq(self.wdata), w_mask.eq(self.wstrb)]),
            (ar_full, take_read, self.arvalid, self.arready, [ar_word.eq(self.araddr[2:])]),
        ):
            m.d.comb += ready.eq(~full | take)
            with m.If(ready):
                m.d.sync += [full.eq(valid), *kept]

        # Whose turn it is, is known a cycle ahead, and stays so until an access may be taken.
        writes = Signal()
        m.d.comb += [
            access.valid.eq(Mux(writes, aw_full & w_full & b.room, ar_full & r.room)),
            access.p.address.eq(Mux(writes, aw_word, ar_word)),
            access.p.write.eq(writes),
            access.p.mask.eq(w_mask),
            access.p.data.eq(w_data),
            take_write.eq(access.valid & access.ready & writes),
            take_read.eq(access.valid & access.ready & ~writes),
            b.keep.eq(take_write),
            r.keep.eq(take_read),
        ]
        with m.If(access.ready):
            m.d.sync += writes.eq(Mux(writes, ~ar_full, aw_full & w_full))

        wrote = Signal()  # what is answered
        with m.If(access.valid & access.ready):
            m.d.sync += wrote.eq(writes)
        m.d.comb += [
            b.i.valid.eq(answer.valid & wrote),
            r.i.valid.eq(answer.valid & ~wrote),
            b.i.payload.eq(answer.p.refused),
            r.i.payload.eq(answer.payload),
            self.bvalid.eq(b.o.valid), b.o.ready.eq(self.bready),
            self.bresp.eq(Mux(b.o.payload, SLVERR, OKAY)),
            self.rvalid.eq(r.o.valid), r.o.ready.eq(self.rready),
            self.rdata.eq(r.o.payload[:32]),
            self.rresp.eq(Mux(r.o.payload[32], SLVERR, OKAY)),
        ]
        return m
