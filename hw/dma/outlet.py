"""The outlet: headers, panels that were packed and raw beats become the command stream."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import HEADER_BYTES
from weft.descriptors import Order, Word
from weft.hw.dma.layout import ROWS
from weft.hw.memory.pick import pick

__all__ = ["Outlet"]


class Outlet(wiring.Component):
    """Sends a header as its words come by, and then the payload of a load.

    Three registers, each of them zero where it is not its turn, make the stream: of headers, of
    packed words, of raw ones.

    Parameters
    ----------
    bytes_in : int
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    layouts : `weft.hw.dma.layout.Layout` of A and of B

    Attributes
    ----------
    word, index, take : In
        Word ``index`` of the header of a descriptor. They wait while ``full``.
    full : Out
    start : In
        Pulse: the header was the load's; its payload follows.
    idle : Out
        Nothing is under way.
    row, en, release : Out, filled, rows : In
        As of `weft.hw.dma.packer.Packer`; ``rows`` is its ``word``.
    beats : In, stream of ``bytes_in`` bytes
    raw : In
        They are a raw panel's.
    raw_end : Out
        Pulse: the last of it is taken.
    commands : Out, stream of ``bytes_in`` bytes
    """

    def __init__(self, *, bytes_in, geometries, layouts):
        self.bytes_in = bytes_in
        self.geometries = geometries
        self.layouts = layouts
        width = max(x.bytes for x in layouts)
        super().__init__({
            "word": In(32),
            "index": In(4),
            "take": In(1),
            "full": Out(1),
            "start": In(1),
            "idle": Out(1),
            "row": Out(range(ROWS)),
            "en": Out(1),
            "release": Out(1),
            "filled": In(1),
            "rows": In(8 * width),
            "beats": In(stream.Signature(8 * bytes_in)),
            "raw": In(1),
            "raw_end": Out(1),
            "commands": Out(stream.Signature(8 * bytes_in)),
        })

    def elaborate(self, platform):
        m = Module()
        geometries, width = self.geometries, 8 * self.bytes_in
        operand = Signal(range(max(geometries) + 1))
        order = Signal(Order)
        panels = Signal(range(max(g.pages for g in geometries.values()) + 1))
        words = Signal(range(max(g.words for g in geometries.values()) + 1))
        header = self._header(m, operand, order, panels, words)

        group = Signal.like(words)  # of the panel
        groups = Signal.like(words)  # of every panel, but one
        segment = Signal(range(max(g.segments for g in geometries.values())))
        segments = Signal.like(segment)  # but one
        place = Signal(range(max(x.places for x in self.layouts)))
        places = Signal.like(place)
        with m.Switch(operand):
            for region, g in geometries.items():
                with m.Case(region):
                    m.d.sync += groups.eq((words - 1) >> ceil_log2(g.group))
                    m.d.comb += segments.eq(g.segments - 1)
        with m.Switch(operand[0]):
            for n, x in enumerate(self.layouts):
                with m.Case(n):
                    m.d.comb += places.eq(x.places - 1)

        packed, raw = (Signal(width, reset_less=True, name=n) for n in ("packed", "raw"))
        steps = Signal.like(place), Signal.like(place)  # of the rows on their way
        on_way = Signal(2)
        valid, asks, takes, moves = Signal(), Signal(), Signal(), Signal()
        go = Signal()
        panel_end = (group == groups) & (segment == segments)
        last = panel_end & (panels == 1)
        m.d.comb += [
            self.commands.valid.eq(valid | self.full),
            self.commands.payload.eq(header | packed | raw),
            go.eq(~valid | self.commands.ready),
            self.en.eq(go),
            moves.eq(asks | takes),
            self.beats.ready.eq(takes),
            self.raw_end.eq(takes & panel_end),
        ]
        with m.If(go):
            m.d.sync += [
                valid.eq(on_way[1] | takes),
                on_way.eq(Cat(asks, on_way)),
                steps[0].eq(place), steps[1].eq(steps[0]),
                packed.eq(Mux(on_way[1], pick(self.rows, steps[1], width), 0)),
                raw.eq(Mux(takes, self.beats.payload, 0)),
            ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~on_way.any() & ~valid & ~self.full)
                m.d.sync += [segment.eq(0), place.eq(0), self.row.eq(0)]
                with m.If(self.start):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.sync += group.eq(0)
                with m.If(~self.full):
                    m.next = "SEND"
                    with m.If(order == Order.RAW):
                        m.next = "PASS"
            with m.State("SEND"):
                m.d.comb += asks.eq(go & self.filled)
                chunk_end = (self.row == ROWS - 1) & (place == places)
                m.d.comb += self.release.eq(asks & (panel_end | chunk_end))
                with m.If(asks):
                    m.d.sync += place.eq(place + 1)
                    with m.If(place == places):
                        m.d.sync += [place.eq(0), self.row.eq(self.row + 1)]
                    with m.If(panel_end):
                        m.d.sync += [place.eq(0), self.row.eq(0)]
                with m.If(asks & last):
                    m.next = "IDLE"
            with m.State("PASS"):
                m.d.comb += takes.eq(go & self.raw & self.beats.valid)
                with m.If(takes & last):
                    m.next = "IDLE"
        with m.If(moves):
            m.d.sync += segment.eq(segment + 1)
            with m.If(segment == segments):
                m.d.sync += [segment.eq(0), group.eq(group + 1)]
            with m.If(panel_end):
                m.d.sync += [group.eq(0), panels.eq(panels - 1)]
        return m

    def _header(self, m, operand, order, panels, words):
        """The stream word that headers go by, and the fields that their payload has."""
        size = min(self.bytes_in, HEADER_BYTES)
        header, count = Signal(8 * size), Signal(range(size // 4))
        with m.If(self.full & self.commands.ready):
            m.d.sync += [header.eq(0), self.full.eq(0)]
        with m.Elif(self.take & (self.index < HEADER_BYTES // 4)):
            m.d.sync += [
                header.eq(Cat(header, self.word)[32:]),
                count.eq(count + 1), self.full.eq(count == size // 4 - 1),
            ]
        with m.If(self.take):
            with m.Switch(self.index):
                for index, field, value in (
                    (0, operand, self.word[16:]), (2, panels, self.word), (3, words, self.word),
                    (Word.ORDER, order, self.word),
                ):
                    with m.Case(index):
                        m.d.sync += field.eq(value)
        return header
