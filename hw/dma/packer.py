"""The packer: granules gathered into panels, a half of the memory filled while one is sent."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.layout import ROWS

__all__ = ["Packer"]


class Packer(wiring.Component):
    """A memory of two halves of `ROWS` rows: written a granule at a time, read a row at a time.

    Parameters
    ----------
    granule : shape
        `weft.hw.dma.aligner.Granule`.
    layouts : `weft.hw.dma.layout.Layout` of A and of B

    Attributes
    ----------
    granules : In, ``valid`` and a ``granule``
    begin : In
        Pulse: a half is asked for.
    room : Out
        There is one.
    filled : Out
        There is one to read.
    release : In
        Pulse: it was read; or what is read of it in this cycle is the last.
    row : In
        Of the half that is due.
    en : In
        The read moves on.
    word : Out
        The row, two steps later: all of its stream words, side by side.
    """

    def __init__(self, *, granule, layouts):
        self.layouts = layouts
        self.width = max(x.bytes for x in layouts)
        super().__init__({
            "granules": In(data.StructLayout({"valid": 1, "granule": granule})),
            "begin": In(1),
            "room": Out(1),
            "filled": Out(1),
            "release": In(1),
            "row": In(range(ROWS)),
            "en": In(1),
            "word": Out(8 * self.width),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=8 * self.width, depth=2 * ROWS, init=[], attrs={"no_rw_check": 1}
        )
        write, read = memory.write_port(granularity=8), memory.read_port()
        writes, reads = Signal(), Signal()  # the half that is written, and read
        claimed, ready = Signal(range(3)), Signal(range(3))
        with m.If(self.release):
            m.d.sync += reads.eq(~reads)
        ended = Signal()
        m.d.sync += [
            claimed.eq(claimed + self.begin - self.release),
            ready.eq(ready + ended - self.release),
        ]
        m.d.comb += [
            self.room.eq(~claimed[1]), self.filled.eq(ready != 0),
            read.addr.eq(Cat(self.row, reads)), read.en.eq(self.en),
        ]
        with m.If(self.en):
            m.d.sync += self.word.eq(read.data)

        here = self.granules.granule
        held, row, enables = Signal.like(here), Signal(range(ROWS)), Signal(self.width)
        sub, within = self._place(m, row)
        m.d.sync += [
            held.eq(here), ended.eq(self.granules.valid & here.end),
            enables.eq(self._enables(sub, within) & self.granules.valid.replicate(self.width)),
        ]
        with m.If(ended):
            m.d.sync += writes.eq(~writes)
        m.d.comb += [
            write.addr.eq(Cat(row, writes)), write.en.eq(enables),
            write.data.eq(self._route(held)),
        ]
        return m

    def _place(self, m, row):
        """The row that the granule goes into; which of a line, or k, it is; which k of the row."""
        here = self.granules.granule
        sub = Signal(max(len(here.index), 1))
        within = Signal(range(max(max(x.ks for x in self.layouts), 2)))
        with m.Switch(Cat(here.b, here.transposed)):
            for n, x in enumerate(self.layouts):
                share, ks = ceil_log2(x.line_granules), ceil_log2(x.ks)
                with m.Case(n):
                    m.d.sync += row.eq(here.index >> share)
                    m.d.comb += sub.eq(here.index[:share])
                with m.Case(n + 2):
                    m.d.sync += row.eq(here.number >> ks)
                    m.d.comb += [sub.eq(here.index), within.eq(here.number[:ks])]
        return sub, within

    def _lanes(self):
        """``(case, byte of the row, byte of the piece, line, k)``; a case is an operand's order."""
        for n, x in enumerate(self.layouts):
            size = x.operand.size
            for byte, line, k, s in x.lanes():
                yield n, byte, k * size + s, line, k
                yield n + 2, byte, line * size + s, line, k

    def _enables(self, sub, within):
        """Which bytes of the row a granule fills."""
        here = self.granules.granule
        granule = len(here.bytes)
        case = Cat(here.b, here.transposed)
        hits = [[Const(0)] * self.width for _ in range(4)]
        for n, byte, place, line, k in self._lanes():
            mine = here.number == line if n < 2 else within == k
            hits[n][byte] = mine & (sub == place // granule)
        a, b, a_t, b_t = hits
        return Cat(
            Mux(case[1], Mux(case[0], b_t[i], a_t[i]), Mux(case[0], b[i], a[i]))
            for i in range(self.width)
        )

    def _route(self, held):
        """The bytes of the granule, where those of the row may take them from."""
        granule = len(held.bytes)
        sources = [[None] * 4 for _ in range(self.width)]
        for n, byte, place, _, _ in self._lanes():
            sources[byte][n] = place % granule
        lanes = []
        for of in sources:
            known = [source for source in of if source is not None]
            a, b, a_t, b_t = (
                source if source is not None else (known or [0])[0] for source in of
            )
            plain = held.bytes[a] if a == b else Mux(held.b, held.bytes[b], held.bytes[a])
            turned = held.bytes[a_t] if a_t == b_t else Mux(
                held.b, held.bytes[b_t], held.bytes[a_t]
            )
            same = a == b == a_t == b_t
            lanes.append(plain if same else Mux(held.transposed, turned, plain))
        return Cat(lanes)
