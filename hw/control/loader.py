"""The loader: puts the words of a load where they belong in the operand buffers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import LoadFlag
from weft.hw.control.headers import LoadHeader

__all__ = ["BufferWrite", "Loader"]


class BufferWrite(data.StructLayout):
    """One stream word on its way into a buffer."""

    def __init__(self, *, address, segments, pages, bytes_in):
        super().__init__({
            "line": address,  # word address over the words a line holds
            "segment": range(segments),
            "data": 8 * bytes_in,
            "begin": 1,  # first word of a panel that does not carry on another
            "end": 1,  # last word of a panel
            "page": range(pages),
        })


class Loader(wiring.Component):
    """Counts through panels, words and segments of a load; takes a stream word every cycle.

    The write leaves in the cycle after the one in which the word is taken. What ends with a word is
    known a word ahead.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    bytes_in : int

    Attributes
    ----------
    load : In, stream of `LoadHeader`
        There for a cycle before it is handed over.
    words : In, stream of ``bytes_in`` bytes
    last : Out
        The word that is due is the load's last.
    feed : Out
        The load feeds the latest job.
    a, b, parameters, table, c : Out
        ``valid`` and `BufferWrite` for the buffer of each that there is.
    """

    def __init__(self, *, geometries, bytes_in):
        self.geometries = geometries
        self.names = {region: region.name.lower() for region in geometries}
        super().__init__({
            "load": In(stream.Signature(LoadHeader)),
            "words": In(stream.Signature(8 * bytes_in)),
            "last": Out(1),
            "feed": Out(1),
            **{
                self.names[region]: Out(data.StructLayout({
                    "valid": 1,
                    "write": BufferWrite(
                        address=ceil_log2(g.words // g.group), segments=g.segments,
                        pages=g.pages, bytes_in=bytes_in,
                    ),
                }))
                for region, g in geometries.items()
            },
        })

    def elaborate(self, platform):
        m = Module()
        there = self.geometries.values()
        pages = max(g.pages for g in there)
        lines = max(g.words for g in there)
        operand = Signal(range(max(self.geometries) + 1))
        page = Signal(range(pages))
        pitch = Signal(range(pages + 1))
        panels = Signal(range(pages + 1))
        words = Signal(range(lines + 1))
        done = Signal(range(lines + 1))  # words of the panel that are in the buffer
        ahead = Signal(range(2 * lines + 1))  # those and two groups more
        last_line = Signal()  # the group that is due is the panel's last
        short = Signal()  # so is the first of every panel
        last_panel = Signal()
        segment = Signal(range(max(g.segments for g in there)))
        word_end = Signal()  # the segment that is due is a word's last
        one_segment = Signal()  # so is every one of the load on offer
        carries_on = Signal()
        single = Signal()  # a panel of the load on offer is one group

        new = self.load.payload
        group, first_group = (
            Signal(range(max(g.group for g in there) + 1), name=n) for n in ("group", "first_group")
        )
        last_segment = Signal.like(segment)
        offered = new.words[: len(words)]  # there is room for them
        with m.Switch(new.operand):
            for region, g in self.geometries.items():
                with m.Case(region):
                    m.d.comb += [first_group.eq(g.group), one_segment.eq(g.segments == 1)]
                    m.d.sync += single.eq((offered - 1)[ceil_log2(g.group) : len(words)] == 0)
        with m.Switch(operand):
            for region, g in self.geometries.items():
                with m.Case(region):
                    m.d.comb += [group.eq(g.group), last_segment.eq(g.segments - 1)]
        following = Mux(word_end, 0, segment + 1)[: len(segment)]
        panel_end = word_end & last_line
        m.d.comb += [
            self.load.ready.eq(1),
            self.words.ready.eq(1),
            self.last.eq(panel_end & last_panel),
        ]
        with m.If(self.words.valid):
            m.d.sync += [segment.eq(following), word_end.eq(following == last_segment)]
            with m.If(word_end):
                m.d.sync += [
                    done.eq(done + group), ahead.eq(ahead + group), last_line.eq(ahead >= words),
                ]
            with m.If(panel_end):
                m.d.sync += [
                    done.eq(0), ahead.eq(group << 1), last_line.eq(short),
                    panels.eq(panels - 1), last_panel.eq(panels == 2), page.eq(page + pitch),
                ]
        with m.If(self.load.valid):
            m.d.sync += [
                operand.eq(new.operand),
                word_end.eq(one_segment),
                self.feed.eq((new.flags & LoadFlag.FEED).any()),
                carries_on.eq((new.flags & LoadFlag.CONTINUE).any()),
                page.eq(new.page),
                pitch.eq(new.pitch),
                panels.eq(new.panels),
                last_panel.eq(new.panels == 1),
                words.eq(new.words),
                short.eq(single),
                last_line.eq(single),
                ahead.eq(first_group << 1),
            ]
        for region, g in self.geometries.items():
            port = getattr(self, self.names[region])
            m.d.sync += [
                port.valid.eq(self.words.valid & (operand == region)),
                port.write.line.eq((page * g.page + done) >> ceil_log2(g.group)),
                port.write.segment.eq(segment),
                port.write.data.eq(self.words.payload),
                port.write.begin.eq((done == 0) & (segment == 0) & ~carries_on),
                port.write.end.eq(panel_end),
                port.write.page.eq(page + (done >> ceil_log2(g.page))),
            ]
        return m
