"""The walker: a load's operand in memory as stretches, in the order in which they are packed."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import DescriptorWord, ElementOrder
from weft.hw.dma.axi import BURST
from weft.hw.dma.layout import ROWS
from weft.hw.dma.reader import ReadRequest

__all__ = ["AddressGenerator", "PackTask"]

BLOCK = ceil_log2(BURST)


class PackTask(data.StructLayout):
    """What is to be made of a stretch, or of none where it is not ``real``.

    ``most`` is its bytes less one, ``granules`` what it fills, less one, zeros included. ``end``
    marks the last one of a half of the packing memory, whose last row ends with the stream word
    ``place``; ``final`` the last one of a load.
    """

    def __init__(self, *, data_bytes, layouts):
        longest = max(max(x.chunk, x.edge) * x.size for x in layouts)
        fills = max(
            *(ROWS * x.line_granules for x in layouts), *(x.k_granules for x in layouts[:2])
        )
        super().__init__({
            "raw": 1, "b": 1, "transposed": 1, "real": 1, "end": 1, "final": 1,
            "place": range(max(x.places for x in layouts)),
            "offset": ceil_log2(data_bytes),
            "most": range(longest),
            "granules": range(fills),
        })


class AddressGenerator(wiring.Component):
    """Walks one load: ``for panel: for chunk of k: for line, or k, of it``: a stretch each.

    A stretch takes two cycles, what is not real one. A chunk of k is what a half of the packing
    memory holds. Lines that are not there, and ks past K up to the end of a row, are pieces that
    are not real. Of a raw panel each segment counts as a panel of a line: they follow each other.

    Parameters
    ----------
    data_bytes : int
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    layouts : as of `weft.hw.dma.layout.layouts`

    Attributes
    ----------
    word, index, take : In
        Word ``index`` of a descriptor, in the order of
        `weft.hw.dma.descriptor_fetcher.LOOKED_AT`. Taken while ``idle``.
    start : In
        Pulse: walk.
    idle : Out
    pieces : Out, stream of `PackTask`
    stretches : Out, stream of `weft.hw.dma.reader.ReadRequest`
    """

    def __init__(self, *, data_bytes, geometries, layouts):
        self.data_bytes = data_bytes
        self.geometries = geometries
        self.layouts = layouts
        self.Piece = PackTask(data_bytes=data_bytes, layouts=layouts)
        self.beats = (1 << Shape.cast(self.Piece["most"].shape).width) // data_bytes + 1
        self.most = max(max(x.edge, x.chunk) for x in layouts)  # pieces of a chunk
        super().__init__({
            "word": In(32),
            "index": In(4),
            "take": In(1),
            "start": In(1),
            "idle": Out(1),
            "pieces": Out(stream.Signature(self.Piece)),
            "stretches": Out(stream.Signature(ReadRequest(beats=self.beats))),
        })

    def elaborate(self, platform):
        m = Module()
        there = self.geometries.values()
        most_k = max(g.words for g in there) * self.layouts[0].operand.depth
        # Of the load; of k the last one, of a raw load the last word of a panel.
        self.operand, order = Signal(range(max(self.geometries) + 1)), Signal(ElementOrder)
        self.raw = raw = order == ElementOrder.PACKED
        self.turned = turned = order == ElementOrder.K_MINOR
        k, lines = Signal(range(most_k), reset_less=True), Signal(16, reset_less=True)
        panels = Signal(range(max(g.pages for g in there) + 1), reset_less=True)
        segments = Signal(range(max(g.segments for g in there) + 1))  # from this one on
        # Of the panel: lines that are there; chunks before this one; ks from it on, less one.
        self.few = Signal(range(max(x.edge for x in self.layouts) + 1))
        chunks = Signal(range(-(-most_k // min(x.chunk for x in self.layouts[:2])) + 1))
        self.left = left = Signal.like(k)
        self.big = Signal()  # a chunk is behind this one
        last = (panels == 1) & ~segments[1:].any()  # panel
        begins, goes = Signal(), Signal()
        returns, undoes = Signal(), Signal()  # as the states BACK, UNDO: not decoded for each bit
        with m.If(self.take):
            with m.Switch(self.index):
                for index, field in (
                    (0, self.operand.eq(self.word[16:])), (2, panels.eq(self.word)),
                    (DescriptorWord.ORDER, order.eq(self.word)),
                    (DescriptorWord.LINES, lines.eq(self.word)),
                ):
                    with m.Case(index):
                        m.d.sync += field
            with m.If((self.index == 3) | ((self.index == DescriptorWord.K) & ~raw)):
                m.d.sync += k.eq(self.word - 1)
        self._chunk(m, begins, last)
        self._address(m, goes, returns, undoes)
        self._pieces(m)
        with m.If(begins & ~(turned & (chunks != 0))):  # of what is turned, the panel's
            m.d.sync += self.base.eq(self.cur)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [segments.eq(0), self.walks.eq(1)]
                with m.If(self.start):
                    m.next = "PANEL"
            with m.State("PANEL"):
                m.d.sync += [left.eq(k), chunks.eq(0)]
                for x in self._by_layout(m):
                    m.d.sync += self.few.eq(Mux(lines < x.edge, lines, x.edge))
                with m.If(segments == 0):
                    m.d.sync += segments.eq(1)
                with m.If(raw):
                    with m.Switch(self.operand):
                        for region, g in self.geometries.items():
                            with m.Case(region):
                                m.d.sync += left.eq(k >> ceil_log2(g.group))
                                with m.If(segments == 0):
                                    m.d.sync += segments.eq(g.segments)
                m.next = "CHUNK"
            with m.State("CHUNK"):
                m.d.comb += begins.eq(1)
                m.next = "PIECES"
            with m.State("PIECES"):
                m.d.comb += self.pieces.valid.eq(~self.stretches.valid | ~self.real)
                with m.If(self.pieces.valid & self.pieces.ready):
                    m.d.comb += goes.eq(1)
                    with m.If(self.count == 0):
                        m.d.sync += self.walks.eq(0)
                        m.next = "NEXT"
            with m.State("NEXT"):
                m.next = "END"
                with m.If(self.big):
                    for x in self._by_layout(m):
                        m.d.sync += left.eq(left - x.chunk)
                    m.d.sync += chunks.eq(chunks + 1)
                    m.next = "CHUNK"
                with m.If(~raw & (self.big != turned)):
                    m.d.sync += returns.eq(1)
                    m.next = "BACK"
            with m.State("BACK"):  # to the base, and on from there
                m.d.comb += goes.eq(1)
                m.d.sync += returns.eq(0)
                m.next = "ON"
            with m.State("ON"):
                m.d.comb += goes.eq(1)
                m.next = "END"
                with m.If(self.big):
                    m.next = "CHUNK"
            with m.State("END"):
                with m.If(~raw & ~turned & (chunks != 0)):
                    m.d.sync += [chunks.eq(chunks - 1), undoes.eq(1)]
                    m.next = "UNDO"
                with m.Else():
                    for x in self._by_layout(m, slice(2)):
                        m.d.sync += lines.eq(Mux(lines < x.edge, 0, lines - x.edge))
                    m.d.sync += segments.eq(segments - 1)
                    with m.If(~segments[1:].any()):
                        m.d.sync += panels.eq(panels - 1)
                    m.next = "PANEL"
                    with m.If(last):
                        m.next = "IDLE"
            with m.State("UNDO"):  # to where the panel's first chunk ended
                m.d.comb += goes.eq(1)
                m.d.sync += undoes.eq(0)
                m.next = "END"
        return m

    def _by_layout(self, m, which=slice(None)):
        """The layouts, each in the case of its operand."""
        cases = zip(self.layouts, ("00", "10", "-1"), strict=True)
        with m.Switch(Cat(self.raw, self.operand[0])):
            for layout, case in [*cases][which]:
                with m.Case(case):
                    yield layout

    def _chunk(self, m, begins, last):
        """What all pieces of a chunk have in common, and how many there are."""
        self.common = Signal(self.Piece, reset_less=True)
        self.count = Signal(range(self.most))  # less one
        self.pads = Signal(range(  # of them, the last ones that are not real
            1 + max(max(x.edge for x in self.layouts), max(x.ks - 1 for x in self.layouts))
        ))
        self.real = Signal()  # the one that is due
        self.walks = Signal(init=1)  # they lie a stride apart
        piece = self.common
        with m.If(begins):
            m.d.sync += [
                piece.raw.eq(self.raw), piece.b.eq(self.operand[0]),
                piece.transposed.eq(self.turned), self.real.eq(self.raw | self.few.any()),
                self.walks.eq(~self.raw),
            ]
            for x in self._by_layout(m):
                over, ks = self.left >= x.chunk, Signal(ceil_log2(x.chunk), name="ks")
                most = Cat(Const(x.size - 1, ceil_log2(x.size)), ks)
                m.d.comb += ks.eq(self.left | over.replicate(len(ks)))  # less one
                m.d.sync += [
                    self.big.eq(over), piece.final.eq(last & ~over),
                    piece.most.eq(most), piece.place.eq(_place(x, ks)),
                    piece.granules.eq(most >> ceil_log2(x.granule) | (x.line_granules - 1)),
                    self.count.eq(x.edge - 1), self.pads.eq(x.edge - self.few),
                ]
                if x is self.layouts[-1]:
                    m.d.sync += self.pads.eq(0)
                    continue
                with m.If(self.turned):
                    m.d.sync += [
                        piece.most.eq(self.few * x.size - 1), piece.granules.eq(x.k_granules - 1),
                        self.count.eq(ks | (x.ks - 1)), self.pads.eq(~ks[: ceil_log2(x.ks)]),
                    ]

    def _pieces(self, m):
        """Pieces and stretches of a chunk, one by one."""
        piece, stretch, low = self.pieces.payload, self.stretches, ceil_log2(self.data_bytes)
        m.d.comb += [
            piece.eq(self.common), piece.real.eq(self.real), piece.offset.eq(self.cur),
            piece.end.eq(self.count == 0), piece.final.eq(self.common.final & (self.count == 0)),
        ]
        with m.If(stretch.ready):
            m.d.sync += stretch.valid.eq(0)
        with m.If(self.pieces.valid & self.pieces.ready):
            m.d.sync += self.count.eq(self.count - 1)
            with m.If(self.count == self.pads):
                m.d.sync += self.real.eq(0)
            with m.If(self.real):
                m.d.sync += [
                    stretch.valid.eq(1), stretch.payload.addr.eq(self.cur),
                    stretch.payload.last.eq(
                        (self.cur[:low + BLOCK] + self.common.most) >> low
                    ),
                ]

    def _address(self, m, goes, returns, undoes):
        """Where a stretch lies: a stride on, or the bytes of one; or a chunk back."""
        self.cur, self.base, stride = (
            Signal(32, name=name, reset_less=True) for name in ("cur", "base", "stride")
        )
        chunk, begins = Signal(32), self.take & (self.index == DescriptorWord.STRIDE)
        for x in self._by_layout(m, slice(2)):
            m.d.comb += chunk.eq(-x.chunk * x.size)
        step = Mux(self.walks, stride, Mux(undoes, chunk, self.common.most))
        after = (Cat(1, self.cur) + Cat(~self.walks & ~undoes, step))[1:]
        with m.If(self.take & (self.index == DescriptorWord.ADDRESS)):
            m.d.sync += [stride.eq(self.word), self.cur.eq(0)]
        with m.If(begins):  # the address, that the stride follows
            m.d.sync += stride.eq(self.word)
        with m.If(begins | goes):
            m.d.sync += self.cur.eq(Mux(returns, self.base, after))


def _place(layout, ks):
    """The stream word with which the last row of a chunk ends."""
    if layout.places == 1:
        return Const(0)
    o = layout.operand
    group = ks[ceil_log2(o.depth * o.group) : ceil_log2(layout.ks)]
    return group * o.segments + (o.segments - 1)
