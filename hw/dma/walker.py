"""The walker: a load's operand in memory as stretches, in the order in which they are packed."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import Order, Word
from weft.hw.dma.axi import BURST
from weft.hw.dma.layout import ROWS, bits
from weft.hw.dma.reader import Stretch

__all__ = ["Piece", "Walker"]

BLOCK = ceil_log2(BURST)


class Piece(data.StructLayout):
    """What is to be made of a stretch, or of none where it is not ``real``.

    ``most`` is its bytes less one, ``granules`` what it fills, less one, zeros included. ``end``
    marks the last one of a half of the packing memory. A ``raw`` one is a panel as it is to be.
    """

    def __init__(self, *, data_bytes, layouts):
        size = layouts[0].operand.size
        longest = max(max(x.chunk, x.operand.edge) for x in layouts) * size
        fills = max(max(ROWS * x.line_granules, x.k_granules) for x in layouts)
        super().__init__({
            "raw": 1, "b": 1, "transposed": 1, "real": 1, "end": 1,
            "offset": ceil_log2(data_bytes),
            "most": bits(longest - 1),
            "granules": bits(fills - 1),
        })


class Walker(wiring.Component):
    """Walks one load: ``for panel: for chunk of k: for line, or k, of it``: a stretch each.

    A stretch a cycle, six cycles between panels. A chunk of k is what a half of the packing memory
    holds. Lines that are not there, and ks past K up to the end of a row, are pieces that are not
    real. A raw panel is one stretch.

    Parameters
    ----------
    data_bytes : int
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    layouts : `weft.hw.dma.layout.Layout` of A and of B

    Attributes
    ----------
    word, index, take : In
        Word ``index`` of a descriptor; `Word.ORDER` comes before those behind it in memory. Taken
        while ``idle``.
    start : In
        Pulse: walk.
    idle : Out
    pieces : Out, stream of `Piece`
    stretches : Out, stream of `weft.hw.dma.reader.Stretch`
    """

    def __init__(self, *, data_bytes, geometries, layouts):
        self.data_bytes = data_bytes
        self.geometries = geometries
        self.layouts = layouts
        self.Piece = Piece(data_bytes=data_bytes, layouts=layouts)
        raw = max(-(-g.words // g.group) * g.segments for g in geometries.values())
        longest = 1 << Shape.cast(self.Piece["most"].shape).width
        self.beats = max(raw, longest // data_bytes + 1)
        # Of a chunk, at most.
        self.most = max(max(x.operand.edge, x.chunk) for x in layouts)
        super().__init__({
            "word": In(32),
            "index": In(4),
            "take": In(1),
            "start": In(1),
            "idle": Out(1),
            "pieces": Out(stream.Signature(self.Piece)),
            "stretches": Out(stream.Signature(Stretch(beats=self.beats))),
        })

    def elaborate(self, platform):
        m = Module()
        there, layouts = self.geometries.values(), self.layouts
        low, size = ceil_log2(self.data_bytes), layouts[0].operand.size
        pages = max(g.pages for g in there)
        most_k = max(g.words for g in there) * layouts[0].operand.depth
        # Of the load.
        operand = Signal(range(max(self.geometries) + 1))
        order = Signal(Order)
        k = Signal(range(most_k + 1))  # of a raw one, the words of a panel
        lines = Signal(16)  # from this panel on
        panels = Signal(range(pages + 1))
        stride = Signal(32)
        self._take(m, operand, order, k, lines, panels, stride)
        raw, transposed, b = order == Order.RAW, order == Order.LINES, operand[0]
        # Where it is.
        base, cur = Signal(32), Signal(32)  # of the chunk, of the stretch
        left = Signal(range(most_k))  # ks from this chunk on, less one
        first, big = Signal(), Signal()  # this chunk is its panel's first, is not its last
        rows = Signal(range(ROWS))  # of the chunk, less one
        most = Signal(max(Shape.cast(self.Piece["most"].shape).width, bits(self.beats) + low))
        granules = Signal(self.Piece["granules"].shape)
        count = Signal(range(max(pages, self.most)))  # stretches behind this one
        reals = Signal(signed(max(16, len(k)) + 1))  # of this one and those: real ones, less one

        step, after = Signal(32), Signal(32)
        m.d.comb += [step.eq(stride), after.eq(cur + step)]
        piece, stretch = self.pieces.payload, self.stretches
        real = raw | ~reals[-1]
        m.d.comb += [
            piece.raw.eq(raw), piece.b.eq(b), piece.transposed.eq(transposed),
            piece.real.eq(real), piece.end.eq(count == 0),
            piece.offset.eq(cur), piece.most.eq(most), piece.granules.eq(granules),
        ]
        with m.If(stretch.ready):
            m.d.sync += stretch.valid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                with m.If(self.start):
                    m.next = "PANEL"
                    with m.If(raw):
                        m.d.sync += left.eq(k - 1)
                        m.next = "WORDS"
            with m.State("WORDS"):  # a raw panel's stream words, but for `segments`
                m.d.sync += cur.eq(0)
                with m.Switch(operand):
                    for region, g in self.geometries.items():
                        with m.Case(region):
                            m.d.sync += [
                                left.eq((left >> ceil_log2(g.group)) + 1), count.eq(g.segments - 1)
                            ]
                m.next = "TIMES"
            with m.State("TIMES"):
                m.d.comb += step.eq(left << low)
                m.d.sync += [cur.eq(after), count.eq(count - 1)]
                with m.If(count == 0):
                    m.next = "RAW"
            with m.State("RAW"):
                m.d.sync += [
                    stride.eq(cur), most.eq(cur - 1), cur.eq(self.following),
                    count.eq(panels - 1), big.eq(0), panels.eq(1),
                ]
                m.next = "STRETCH"
            with m.State("PANEL"):
                m.d.sync += [
                    cur.eq(self.following), base.eq(self.following), left.eq(k - 1), first.eq(1)
                ]
                m.next = "CHUNK"
            with m.State("CHUNK"):
                with m.Switch(b):
                    for n, x in enumerate(layouts):
                        with m.Case(n):
                            m.d.sync += big.eq(left >= x.chunk)
                            m.d.sync += rows.eq(Mux(left >= x.chunk, ROWS - 1, left // x.ks))
                m.next = "SIZES"
            with m.State("SIZES"):
                with m.Switch(Cat(b, transposed)):
                    for n, x in enumerate(layouts):
                        edge = x.operand.edge
                        with m.Case(n):
                            m.d.sync += [
                                count.eq(edge - 1), reals.eq(lines - 1),
                                most.eq(Mux(big, x.chunk * size - 1, left * size + size - 1)),
                                granules.eq(rows * x.line_granules + x.line_granules - 1),
                            ]
                        with m.Case(n + 2):
                            m.d.comb += step.eq(edge * size)
                            m.d.sync += [
                                count.eq(rows * x.ks + x.ks - 1),
                                reals.eq(Mux(lines == 0, -1, left)),
                                most.eq(Mux(lines >= edge, edge * size, lines * size) - 1),
                                granules.eq(x.k_granules - 1),
                            ]
                with m.If(transposed & first):
                    m.d.sync += self.following.eq(after)
                m.next = "STRETCH"
            with m.State("STRETCH"):
                m.d.comb += self.pieces.valid.eq(~stretch.valid | stretch.ready | ~real)
                with m.If(self.pieces.valid & self.pieces.ready):
                    m.d.sync += [cur.eq(after), count.eq(count - 1), reals.eq(reals - 1)]
                    with m.If(real):
                        m.d.sync += [
                            stretch.valid.eq(1), stretch.payload.addr.eq(cur),
                            stretch.payload.last.eq((cur[:low + BLOCK] + most) >> low),
                        ]
                    with m.If(count == 0):
                        m.d.sync += first.eq(0)
                        with m.If(first & ~transposed & ~raw):
                            m.d.sync += self.following.eq(after)
                        m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += panels.eq(panels - ~big)
                with m.Switch(b):
                    for n, x in enumerate(layouts):
                        edge = x.operand.edge
                        with m.Case(n):
                            m.d.sync += left.eq(left - x.chunk)
                            with m.If(~big):
                                m.d.sync += lines.eq(Mux(lines >= edge, lines - edge, 0))
                with m.If(~transposed):
                    m.d.sync += cur.eq(base)
                with m.If(big):
                    m.next = "CARRY"
                with m.Elif(panels == 1):
                    m.next = "IDLE"
                with m.Else():
                    m.next = "PANEL"
            with m.State("CARRY"):  # on to the next chunk of the panel
                with m.Switch(b):
                    for n, x in enumerate(layouts):
                        with m.Case(n):
                            m.d.comb += step.eq(x.chunk * size)
                with m.If(~transposed):
                    m.d.sync += [cur.eq(after), base.eq(after)]
                m.next = "CHUNK"
        return m

    def _take(self, m, operand, order, k, lines, panels, stride):
        """The fields of a descriptor, as its words pass by."""
        self.following = Signal(32)  # where the next panel starts
        words = {
            0: (operand, self.word[16:]), 2: (panels, self.word), 3: (k, self.word),
            Word.ADDRESS: (self.following, self.word), Word.STRIDE: (stride, self.word),
            Word.LINES: (lines, self.word), Word.ORDER: (order, self.word),
        }
        with m.If(self.take):
            with m.Switch(self.index):
                for index, (field, value) in words.items():
                    with m.Case(index):
                        m.d.sync += field.eq(value)
                with m.Case(Word.K):
                    with m.If(order != Order.RAW):
                        m.d.sync += k.eq(self.word)
