"""The packer: granules gathered into panels, a half of the memory filled while one is sent."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.dma.layout import ROWS

__all__ = ["Packer"]


class Packer(wiring.Component):
    """A memory of two halves of `ROWS` rows: written a granule at a time, read by stream words.

    What is raw lies in the first stream word of each row.

    Parameters
    ----------
    granule : shape
        `weft.hw.dma.aligner.PackWord`.
    layouts : as of `weft.hw.dma.layout.layouts`
    target : str
        That of a Config.

    Attributes
    ----------
    granules : In, ``valid`` and a ``granule``
    begin : In
        Pulse: a half is asked for.
    room : Out
        There is one.
    idle : Out
        Neither was asked for.
    filled : Out
        There is one to read.
    row, place, places : Out
        Of that one: its last row, the last stream word of that row, and of any other.
    release : In
        Pulse: it was read; or what is read of it in this cycle is the last.
    address : In
        Of a stream word of the half that is due, within the row first.
    en : In
        The read moves on.
    word : Out
        The stream word, two steps later.
    """

    def __init__(self, *, granule, layouts, target):
        self.layouts = layouts
        self.target = target
        self.stream = layouts[-1].size
        bits = ceil_log2(max(x.places for x in layouts))
        self.parts = 1 << bits
        self.width = self.parts * self.stream
        super().__init__({
            "granules": In(data.StructLayout({"valid": 1, "granule": granule})),
            "begin": In(1),
            "room": Out(1),
            "idle": Out(1),
            "filled": Out(1),
            "row": Out(range(ROWS)), "place": Out(bits), "places": Out(bits),
            "release": In(1),
            "address": In(bits + ceil_log2(ROWS)),
            "en": In(1),
            "word": Out(8 * self.stream),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(
            width=8 * self.width, depth=2 * ROWS, parts=self.parts, bytewise=True,
            target=self.target,
        )
        writes, reads = Signal(), Signal()  # the half that is written, and read
        claimed, ready = Signal(range(3)), Signal(range(3))
        ended = Signal()
        m.d.sync += [
            claimed.eq(claimed + self.begin - self.release),
            ready.eq(ready + ended - self.release),
            reads.eq(reads ^ self.release), writes.eq(writes ^ ended),
        ]
        m.d.comb += [
            self.room.eq(~claimed[1]), self.idle.eq(claimed == 0), self.filled.eq(ready != 0),
            bank.read_addr.eq(Cat(self.address, reads)), bank.read_en.eq(self.en),
            self.word.eq(bank.read_data),
        ]

        # The granule's row and its place in there; then where its bytes go to.
        here = self.granules.granule
        cases = [*self._cases()]
        held, valid = Signal.like(here, reset_less=True), Signal()
        row = Signal(range(ROWS), reset_less=True)
        codes = max(code for _, _, _, lanes in cases for _, code, _ in lanes) + 1
        hits = Signal(codes, reset_less=True)
        code = _choose(here, [code for _, code, _, _ in cases])
        m.d.sync += [
            valid.eq(self.granules.valid), held.eq(here),
            row.eq(_choose(here, [row for row, _, _, _ in cases])),
            hits.eq(Cat(code == n for n in range(codes))),
        ]
        found = [{byte: (hits[code], source) for byte, code, source in c[3]} for c in cases]
        enables, sources = [], []
        for byte in range(self.width):
            of = [case.get(byte, (Const(0), None)) for case in found]
            known = next((source for _, source in of if source is not None), 0)
            enables.append(_choose(held, [hit for hit, _ in of]))
            sources.append(_choose(held, [
                held.bytes[known if source is None else source] for _, source in of
            ]))
        m.d.sync += [
            bank.write_en.eq(Mux(valid, Cat(enables), 0)), bank.write_data.eq(Cat(sources)),
            bank.write_addr.eq(Cat(row, writes ^ ended)), ended.eq(valid & held.end),
        ]
        self._ends(m, cases, valid & held.end, held, row, writes ^ ended, reads)
        return m

    def _cases(self):
        """Of each kind of granule: its row, where in there it is, places, the bytes that it fills.

        A byte comes with where the granule has to be for that, and which of its bytes it is.
        """
        here = self.granules.granule
        granule = len(here.bytes)
        for x in self.layouts:
            cut, lines = ceil_log2(x.line_granules), ceil_log2(x.edge)
            yield here.index >> cut, Cat(here.index[:cut], here.number[:lines]), x.places, [
                (byte, at // granule | line << cut, at % granule)
                for byte, line, k, s in x.lanes() for at in [k * x.size + s]
            ]
        for x in self.layouts[:2]:
            cut, parts = ceil_log2(x.ks), ceil_log2(x.k_granules)
            yield here.number >> cut, Cat(here.number[:cut], here.index[:parts]), x.places, [
                (byte, k | at // granule << cut, at % granule)
                for byte, line, k, s in x.lanes() for at in [line * x.size + s]
            ]

    def _ends(self, m, cases, ends, held, row, writes, reads):
        """Where each half ends."""
        lasts = [
            [Signal.like(value) for value in (self.row, self.place, self.places)] for _ in range(2)
        ]
        full = _choose(held, [Const(places - 1, len(self.places)) for _, _, places, _ in cases])
        with m.If(ends):
            for half, last in enumerate(lasts):
                with m.If(writes == half):
                    m.d.sync += [
                        last[0].eq(row), last[1].eq(held.place), last[2].eq(full)
                    ]
        m.d.comb += [
            value.eq(Mux(reads, odd, even))
            for value, even, odd in zip((self.row, self.place, self.places), *lasts, strict=True)
        ]


def _choose(granule, values):
    """One of those of A, of B, of what is raw, of A and of B transposed."""
    a, b, raw, a_turned, b_turned = values
    return Mux(granule.raw, raw, Mux(
        granule.transposed, Mux(granule.b, b_turned, a_turned), Mux(granule.b, b, a)
    ))
