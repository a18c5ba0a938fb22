"""The correction terms of a fast inner product: gathered as operands load, taken off at the end."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Corrector", "PairSums"]


class PairSums(wiring.Component):
    """For each row (column) of a panel ``sum(x[k] * x[k+1])`` over even k, kept an entry a page.

    ``bytes_in / 2`` multipliers, one a pair of neighbouring bytes of a stream word. The entry of a
    page is the sum from the panel's begin to the page's end, and that of a panel that carries on
    another goes on from its sum: the entry of the last page that a job, or a chain of them, reads
    is what it needs. It is there LATENCY cycles after the page's last word. Padding is zero, so
    that it adds nothing. The sums are modulo 2^32.

    Parameters
    ----------
    geometry : `weft.geometry.Operand`
        With an even depth.
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

    def __init__(self, *, geometry, write):
        self.geometry = geometry
        super().__init__({
            "write": In(write),
            "read": In(1),
            "page": In(write["write"].shape["page"].shape),
            "sums": Out(data.ArrayLayout(self.SUM, geometry.edge)),
        })

    def elaborate(self, platform):
        m = Module()
        g = self.geometry
        lanes = data.ArrayLayout(signed(8), g.stream)(self.write.write.data)
        p_write = Signal.like(self.write)
        p_products = [Signal(signed(16), name=f"p_product_{n}") for n in range(g.stream // 2)]
        m.d.sync += p_write.eq(self.write)
        m.d.sync += [p.eq(lanes[2 * n] * lanes[2 * n + 1]) for n, p in enumerate(p_products)]

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
                        Mux(p_write.write.segment == segment, p_products[n], 0)
                        for segment, n in self._pairs(e)
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

    def _pairs(self, row):
        """(segment, pair of the stream word) of every pair of bytes that belongs to a row."""
        g = self.geometry
        for segment in range(g.segments):
            for n in range(g.stream // 2):
                byte = segment * g.stream + 2 * n
                padding = byte >= g.group * g.word_bytes
                if not padding and byte % g.word_bytes // g.depth == row:
                    yield segment, n


class Corrector(wiring.Component):
    """``C[i, j] = S[i, j] - pairs(A, i) - pairs(B, j)``: two stages, each a cycle.

    Parameters
    ----------
    geometries : pair of `weft.geometry.Operand`
    chunk : shape
        `weft.hw.post.collector.Chunk`.
    writes : pair of shapes
        Of ``a`` and ``b``.

    Attributes
    ----------
    a, b : In
        What is loaded.
    i, o : In, Out, stream of chunks
    """

    LATENCY = 2

    def __init__(self, *, geometries, chunk, writes):
        self.geometries = geometries
        self.lanes = chunk["sums"].shape.length
        super().__init__({
            "a": In(writes[0]),
            "b": In(writes[1]),
            "i": In(stream.Signature(chunk)),
            "o": Out(stream.Signature(chunk)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.a = a = PairSums(geometry=self.geometries[0], write=self.a.shape())
        m.submodules.b = b = PairSums(geometry=self.geometries[1], write=self.b.shape())
        free = ~self.o.valid | self.o.ready
        r_valid = Signal()
        r_chunk = Signal.like(self.i.payload)
        out = self.o.payload
        m.d.comb += [
            self.i.ready.eq(free),
            a.write.eq(self.a),
            b.write.eq(self.b),
            a.read.eq(free),
            b.read.eq(free),
            a.page.eq(self.i.payload.a_page),
            b.page.eq(self.i.payload.b_page),
        ]
        with m.If(free):
            m.d.sync += [
                r_valid.eq(self.i.valid),
                r_chunk.eq(self.i.payload),
                self.o.valid.eq(r_valid),
                out.eq(r_chunk),
            ]
            row = Array(a.sums[e] for e in range(self.geometries[0].edge))[r_chunk.row]
            edge = self.geometries[1].edge
            for lane in range(min(self.lanes, edge)):
                column = Array(b.sums[c] for c in range(lane, edge, self.lanes))[r_chunk.chunk]
                m.d.sync += out.sums[lane].eq(r_chunk.sums[lane] - row - column)
        return m
