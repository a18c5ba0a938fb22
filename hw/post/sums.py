"""Sums over the rows of what is loaded, gathered as it loads and kept for when results leave."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["PairSums", "PanelSums", "RowSums"]


class PanelSums(wiring.Component):
    """For each row (column) of a panel the sum of a term over its bytes, kept an entry a page.

    The entry of a page is the sum from the panel's begin to the page's end, and that of a panel
    that carries on another goes on from its sum: the entry of the last page that a job, or a chain
    of them, reads is what it needs. It is there LATENCY cycles after the page's last word. Padding
    is zero, so that it adds nothing. The sums are modulo 2^32.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
    write : shape
        ``valid`` and `weft.hw.control.loader.Write`.

    Attributes
    ----------
    write : In
    read : In, page : In
        Give the sums up to the end of this page.
    sums : Out, ``edge`` of them
        In the cycle after; they stay until the next read.
    """

    LATENCY = 3
    SUM = signed(32)
    BYTES = 1  # that a term takes

    def __init__(self, *, geometry, write):
        self.geometry = geometry
        super().__init__({
            "write": In(write),
            "read": In(1),
            "page": In(write["write"].shape["page"].shape),
            "sums": Out(data.ArrayLayout(self.SUM, geometry.edge)),
        })

    def term(self, *values):
        """What neighbouring bytes add."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        lanes = data.ArrayLayout(signed(8), g.stream)(self.write.write.data)
        p_write = Signal.like(self.write)
        m.d.sync += p_write.eq(self.write)
        p_terms = []
        for n in range(0, g.stream, self.BYTES):
            term = self.term(*(lanes[n + offset] for offset in range(self.BYTES)))
            p_terms.append(Signal(term.shape(), name=f"p_term_{n}"))
            m.d.sync += p_terms[-1].eq(term)

        s_end = Signal()
        s_page = Signal.like(self.page)
        s_sums = [Signal(self.SUM, name=f"s_sum_{e}") for e in range(g.edge)]
        m.d.sync += s_end.eq(p_write.valid & p_write.write.page_end)
        m.d.sync += s_page.eq(p_write.write.page)
        with m.If(p_write.valid):
            for e, total in enumerate(s_sums):
                m.d.sync += total.eq(
                    Mux(p_write.write.begin, 0, total)
                    + sum(
                        Mux(p_write.write.segment == segment, p_terms[n], 0)
                        for segment, n in self._terms(e)
                    )
                )

        m.submodules.memory = memory = Memory(shape=32 * g.edge, depth=g.pages, init=[])
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [
            write.en.eq(s_end),
            write.addr.eq(s_page),
            write.data.eq(Cat(s_sums)),
            read.en.eq(self.read),
            read.addr.eq(self.page),
            self.sums.as_value().eq(read.data),
        ]
        return m

    def _terms(self, row):
        """(segment, term of the stream word) of every term that belongs to a row."""
        g = self.geometry
        for segment in range(g.segments):
            for n in range(g.stream // self.BYTES):
                byte = segment * g.stream + n * self.BYTES
                padding = byte >= g.group * g.word_bytes
                if not padding and byte % g.word_bytes // g.depth == row:
                    yield segment, n


class RowSums(PanelSums):
    """``sum(x[k])``: what a zero point of the other operand is multiplied by."""

    def term(self, value):
        return value


class PairSums(PanelSums):
    """``sum(x[k] * x[k+1])`` over even k: what a fast inner product has too much.

    ``depth`` is even. ``bytes_in / 2`` multipliers, one a pair of neighbouring bytes.
    """

    BYTES = 2

    def term(self, first, second):
        return first * second
