"""The walker: a load's operand in memory as stretches, in the order in which they are packed."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import Order, Word
from weft.hw.dma.axi import BURST
from weft.hw.dma.layout import ROWS
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
            "most": range(longest),
            "granules": range(fills),
        })


class Walker(wiring.Component):
    """Walks one load: ``for panel: for chunk of k: for line, or k, of it``: a stretch each.

    A stretch a cycle, five cycles between panels. A chunk of k is what a half of the packing memory
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
        most_k = max(g.words for g in there) * layouts[0].operand.depth
        # Of the load.
        operand = Signal(range(max(self.geometries) + 1))
        order = Signal(Order)
        k = Signal(range(most_k + 1), reset_less=True)  # of a raw one, the words of a panel
        lines = Signal(16, reset_less=True)  # from this panel on
        panels = Signal(range(max(g.pages for g in there) + 1), reset_less=True)
        raw, transposed, b = order == Order.RAW, order == Order.LINES, operand[0]
        # Addresses: of the stretch, its chunk, the next panel; bytes to the next stretch.
        cur, base, following, stride = (
            Signal(32, name=name, reset_less=True)
            for name in ("cur", "base", "following", "stride")
        )
        left = Signal(signed(len(k) + 1), reset_less=True)  # ks behind: this k, or this chunk's
        first, big = Signal(), Signal()  # this chunk is its panel's first; is not its last
        rows = Signal(range(ROWS))  # of the chunk, less one
        few = Signal(range(max(x.operand.edge for x in layouts) + 1))  # lines of the panel
        reals = Signal.like(few)  # of them, those that are still to come
        some, widest = Signal(), Signal(range(max(x.operand.edge for x in layouts) * size))
        count = Signal(range(self.most))  # stretches behind this one

        # All sums of addresses, and all those of ks. What chooses is in registers of its own, so
        # that it is not decoded anew for each bit.
        rests, walks = Signal(init=1), Signal()  # as the states IDLE, STRETCH
        renews, returns = Signal(), Signal()  # PANEL, BACK
        fixed, after, goes = Signal(low + len(left)), Signal(32), Signal()
        less = Signal.like(left)
        step = Mux(rests, self.word, 0) | Mux(walks, stride, 0) | fixed
        m.d.comb += [after.eq(cur + step), less.eq(-1), goes.eq(renews | returns)]
        counted = left + less
        with m.If(rests):
            m.d.sync += cur.eq(0)
        with m.Elif(goes):
            m.d.sync += cur.eq(Mux(renews, following, Mux(returns, base, after)))
        with m.If(self.take):
            with m.Switch(self.index):
                for index, field in (
                    (0, operand.eq(self.word[16:])), (2, panels.eq(self.word)),
                    (3, k.eq(self.word)), (Word.ORDER, order.eq(self.word)),
                    (Word.ADDRESS, following.eq(after)), (Word.STRIDE, stride.eq(after)),
                    (Word.LINES, lines.eq(self.word)),
                ):
                    with m.Case(index):
                        m.d.sync += field
                with m.Case(Word.K):
                    with m.If(~raw):
                        m.d.sync += k.eq(self.word)
        piece, stretch, most = self.pieces.payload, self.stretches, Signal(
            max(Shape.cast(self.Piece["most"].shape).width, ceil_log2(self.beats) + low)
        )
        real = raw | Mux(transposed, ~left[-1] & some, reals.any())
        m.d.comb += [
            piece.raw.eq(raw), piece.b.eq(b), piece.transposed.eq(transposed),
            piece.real.eq(real), piece.end.eq(count == 0),
            piece.offset.eq(cur), piece.most.eq(most),
        ]
        with m.Switch(Cat(b, transposed)):
            for n, x in enumerate(layouts):
                with m.Case(n):
                    m.d.comb += [
                        most.eq(Mux(big, x.chunk * size - 1, left * size + size - 1)),
                        piece.granules.eq(rows * x.line_granules + x.line_granules - 1),
                    ]
                with m.Case(n + 2):
                    m.d.comb += [
                        most.eq(widest), piece.granules.eq(x.k_granules - 1)
                    ]
        with m.If(raw):
            m.d.comb += most.eq(stride - 1)
        with m.If(stretch.ready):
            m.d.sync += stretch.valid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += left.eq(k)
                with m.If(self.start):
                    m.d.sync += [rests.eq(0), renews.eq(~raw)]
                    m.next = "PANEL"
                    with m.If(raw):
                        m.next = "WORDS"
            # A raw panel's stream words: its groups, times the segments of a word.
            with m.State("WORDS"):
                m.d.sync += left.eq(counted)
                m.next = "GROUPS"
            with m.State("GROUPS"):
                with m.Switch(operand):
                    for region, g in self.geometries.items():
                        with m.Case(region):
                            m.d.sync += [
                                left.eq(left >> ceil_log2(g.group)), count.eq(g.segments - 1)
                            ]
                m.next = "LINES"
            with m.State("LINES"):
                m.d.comb += less.eq(1)
                m.d.sync += left.eq(counted)
                m.next = "TIMES"
            with m.State("TIMES"):
                m.d.comb += [fixed.eq(left << low), goes.eq(1)]
                m.d.sync += [stride.eq(after), count.eq(count - 1)]
                with m.If(count == 0):
                    m.d.sync += renews.eq(1)
                    m.next = "PANEL"
            with m.State("PANEL"):
                m.d.sync += [renews.eq(0), left.eq(k), first.eq(1)]
                with m.Switch(b):
                    for n, x in enumerate(layouts):
                        with m.Case(n):
                            m.d.sync += few.eq(Mux(lines >= x.operand.edge, x.operand.edge, lines))
                m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.sync += left.eq(counted)
                m.next = "CHUNK"
            with m.State("CHUNK"):
                m.d.sync += [
                    base.eq(cur), reals.eq(few), some.eq(few.any()), widest.eq(few * size - 1)
                ]
                with m.Switch(b):
                    for n, x in enumerate(layouts):
                        with m.Case(n):
                            over = left >= x.chunk
                            m.d.comb += fixed.eq(x.operand.edge * size)
                            m.d.sync += [
                                big.eq(over & ~raw), rows.eq(Mux(over, ROWS - 1, left // x.ks))
                            ]
                with m.If(transposed & first):
                    m.d.sync += following.eq(after)
                m.next = "SIZES"
            with m.State("SIZES"):
                with m.Switch(Cat(b, transposed)):
                    for n, x in enumerate(layouts):
                        with m.Case(n):
                            m.d.sync += count.eq(Mux(raw, 0, x.operand.edge - 1))
                        with m.Case(n + 2):
                            m.d.sync += count.eq(rows * x.ks + x.ks - 1)
                m.d.sync += walks.eq(1)
                m.next = "STRETCH"
            with m.State("STRETCH"):
                m.d.comb += self.pieces.valid.eq(~stretch.valid | stretch.ready | ~real)
                with m.If(self.pieces.valid & self.pieces.ready):
                    m.d.comb += goes.eq(1)
                    m.d.sync += count.eq(count - 1)
                    with m.If(reals.any()):
                        m.d.sync += reals.eq(reals - 1)
                    with m.If(transposed):
                        m.d.sync += left.eq(counted)
                    with m.If(real):
                        m.d.sync += [
                            stretch.valid.eq(1), stretch.payload.addr.eq(cur),
                            stretch.payload.last.eq((cur[:low + BLOCK] + most) >> low),
                        ]
                    with m.If(count == 0):
                        m.d.sync += walks.eq(0)
                        with m.If(first & ~transposed):
                            m.d.sync += following.eq(after)
                        m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += first.eq(0)
                with m.If(big):
                    m.next = "CHUNK"
                    with m.If(~transposed):
                        m.d.sync += returns.eq(1)
                        m.next = "BACK"
                with m.Else():
                    m.d.sync += panels.eq(panels - 1)
                    with m.Switch(b):
                        for n, x in enumerate(layouts):
                            with m.Case(n):
                                m.d.sync += lines.eq(lines - x.operand.edge)
                                with m.If(lines < x.operand.edge):
                                    m.d.sync += lines.eq(0)
                    m.d.sync += renews.eq(1)
                    m.next = "PANEL"
                    with m.If(panels == 1):
                        m.d.sync += [renews.eq(0), rests.eq(1)]
                        m.next = "IDLE"
            with m.State("BACK"):  # to the chunk's start, and on to the next one's
                m.d.sync += returns.eq(0)
                m.next = "CARRY"
            with m.State("CARRY"):
                with m.Switch(b):
                    for n, x in enumerate(layouts):
                        with m.Case(n):
                            m.d.comb += [fixed.eq(x.chunk * size), less.eq(-x.chunk)]
                m.d.comb += goes.eq(1)
                m.d.sync += left.eq(counted)
                m.next = "CHUNK"
        return m
