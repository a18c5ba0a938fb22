"""The loader: writes the words of a load into the operand buffers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.commands import LoadFlag
from weft.hw.control.headers import LoadHeader

__all__ = ["BufferWrite", "Loader"]


class BufferWrite(data.StructLayout):
    """The write of one stream word into a buffer.

    ``line`` is the address of a row of the buffer's memory. A row holds a *group*: the words that
    share one stream word. If a word is wider than a stream word, the group is one word, and it
    arrives in several stream words, its *segments* (`weft.geometry.Operand`).
    """

    def __init__(self, *, address, segments, pages, bytes_in):
        super().__init__({
            "line": address,
            "segment": range(segments),
            "data": 8 * bytes_in,
            "begin": 1,  # first stream word of a panel that does not continue another panel
            "end": 1,  # last stream word of a panel
            "page": range(pages),
        })


class Loader(wiring.Component):
    """Takes one stream word a cycle: for each panel, for each group of its words, each segment.

    The write leaves one cycle after its stream word arrives. Flags for the end of a word and of a
    panel are computed one word ahead.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    bytes_in : int

    Attributes
    ----------
    load : In, stream of `LoadHeader`
        The payload is valid from one cycle before ``valid`` on. A load may come only after the last
        word of the load before; ``ready`` is always 1.
    words : In, stream of ``bytes_in`` bytes
    last : Out, 1 bit
        The word on ``words`` is the last one of the load; valid with ``words.valid``.
    feed : Out, 1 bit
        The load has the flag FEED: its panels are for the latest job in the job table.
    a, b, parameters, table, c : Out, ``valid`` and `BufferWrite`
        Writes for each buffer that exists.
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
        geometries = self.geometries.values()
        max_pages = max(g.pages for g in geometries)
        max_words = max(g.words for g in geometries)
        # The load.
        operand = Signal(range(max(self.geometries) + 1))
        pitch = Signal(range(max_pages + 1))
        panel_words = Signal(range(max_words + 1))
        single_group = Signal()  # a panel is one group of words
        continues = Signal()  # the panels continue those loaded before
        # The position in the load, and the ends that it has reached.
        page = Signal(range(max_pages))
        panels_left = Signal(range(max_pages + 1))
        last_panel = Signal()
        word_index = Signal(range(max_words + 1))  # first word of the group, in its panel
        words_ahead = Signal(range(2 * max_words + 1))  # word_index and two groups more
        last_group = Signal()
        segment = Signal(range(max(g.segments for g in geometries)))
        last_segment = Signal()

        new = self.load.payload
        new_group, new_single_segment, new_single_group = self._new_geometry(m, len(panel_words))
        new_single_panel = Signal()  # follows the payload by one cycle, as new_single_group does
        m.d.sync += new_single_panel.eq(new.panels[: len(panels_left)] == 1)
        group = self._group("group")
        max_segment = self._max_segment(m, operand, segment.shape())
        next_segment = Mux(last_segment, 0, segment + 1)[: len(segment)]
        panel_end = last_segment & last_group
        m.d.comb += [
            self.load.ready.eq(1),
            self.words.ready.eq(1),
            self.last.eq(panel_end & last_panel),
        ]
        with m.If(self.words.valid):
            m.d.sync += [segment.eq(next_segment), last_segment.eq(next_segment == max_segment)]
            with m.If(last_segment):
                m.d.sync += [
                    word_index.eq(word_index + group), words_ahead.eq(words_ahead + group),
                    last_group.eq(words_ahead >= panel_words),
                ]
            with m.If(panel_end):
                m.d.sync += [
                    word_index.eq(0), words_ahead.eq(group << 1), last_group.eq(single_group),
                    panels_left.eq(panels_left - 1), last_panel.eq(panels_left == 2),
                    page.eq(page + pitch),
                ]
        with m.If(self.load.valid):
            m.d.sync += [
                operand.eq(new.operand),
                group.eq(new_group),
                last_segment.eq(new_single_segment),
                self.feed.eq((new.flags & LoadFlag.FEED).any()),
                continues.eq((new.flags & LoadFlag.CONTINUE).any()),
                page.eq(new.page),
                pitch.eq(new.pitch),
                panels_left.eq(new.panels),
                last_panel.eq(new_single_panel),
                panel_words.eq(new.words),
                single_group.eq(new_single_group),
                last_group.eq(new_single_group),
                words_ahead.eq(new_group << 1),
            ]
        for region, g in self.geometries.items():
            port = getattr(self, self.names[region])
            m.d.sync += [
                port.valid.eq(self.words.valid & (operand == region)),
                port.write.line.eq((page * g.page + word_index) >> ceil_log2(g.group)),
                port.write.segment.eq(segment),
                port.write.data.eq(self.words.payload),
                port.write.begin.eq((word_index == 0) & (segment == 0) & ~continues),
                port.write.end.eq(panel_end),
                port.write.page.eq(page + (word_index >> ceil_log2(g.page))),
            ]
        return m

    def _group(self, name):
        """A signal for the words of a group."""
        return Signal(range(max(g.group for g in self.geometries.values()) + 1), name=name)

    def _new_geometry(self, m, bits):
        """The geometry of the load at the input.

        Returns the words of a group, whether a word is one segment, and whether a panel is one
        group. The last one is registered: it follows the payload by one cycle.
        """
        group, single_segment, single_group = self._group("new_group"), Signal(), Signal()
        new = self.load.payload
        words = new.words[:bits]  # the decoder has checked the other bits
        with m.Switch(new.operand):
            for region, g in self.geometries.items():
                with m.Case(region):
                    m.d.comb += [group.eq(g.group), single_segment.eq(g.segments == 1)]
                    m.d.sync += single_group.eq((words - 1)[ceil_log2(g.group) : bits] == 0)
        return group, single_segment, single_group

    def _max_segment(self, m, operand, shape):
        """The last segment of a word of the running load."""
        max_segment = Signal(shape)
        with m.Switch(operand):
            for region, g in self.geometries.items():
                with m.Case(region):
                    m.d.comb += max_segment.eq(g.segments - 1)
        return max_segment
