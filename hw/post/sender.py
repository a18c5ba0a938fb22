"""The sender: the last station, where chunks become words of the result stream and jobs end."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Result", "Sender"]


class Result(data.StructLayout):
    """A word of the result stream."""

    def __init__(self, *, bytes_out):
        super().__init__({"data": 8 * bytes_out, "last": 1, "status": 8, "tag": 16})


class Sender(wiring.Component):
    """Packs chunks into words of ``bytes_out`` bytes, or cuts them, low bytes first.

    A chunk is ``lanes`` results, of 4 bytes each or of ``narrow``. Where a chunk is wider than
    a word it leaves in several words, one a cycle; where it is narrower a word waits until it is
    full, or the job ends: what is left of it is undefined. Silent chunks are swallowed.
    Combinational from ``chunks`` to ``results``.

    Parameters
    ----------
    chunk : shape
    bytes_out : int
    narrow : int
        Bytes of a narrow result, the low ones of its lane; 0 where there are none. A chunk is
        narrow by the first bit of its ``finish``.

    Attributes
    ----------
    chunks : In, stream of `weft.hw.post.collector.Chunk`
    results : Out, stream of `Result`
    retire : Out
        Pulse: a job has ended; its last word is taken.
    """

    def __init__(self, *, chunk, bytes_out, narrow):
        self.bytes_out = bytes_out
        self.narrow = narrow
        super().__init__({
            "chunks": In(stream.Signature(chunk)),
            "results": Out(stream.Signature(Result(bytes_out=bytes_out))),
            "retire": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        chunk = self.chunks.payload
        word = self.results.payload
        wide, wide_end, wide_full = self._packed(m, chunk.sums.as_value(), "wide")
        m.d.comb += word.data.eq(wide)
        end, full = wide_end, wide_full
        if self.narrow:
            bits, is_narrow = 8 * self.narrow, chunk.finish.as_value()[0]
            lanes = chunk.sums.shape().length
            low = Cat(chunk.sums[lane][:bits] for lane in range(lanes))
            narrow, narrow_end, narrow_full = self._packed(m, low, "narrow")
            end = Mux(is_narrow, narrow_end, end)
            full = Mux(is_narrow, narrow_full, full)
            with m.If(is_narrow):
                m.d.comb += word.data.eq(narrow)
        end |= chunk.status != 0
        show = ~chunk.silent & (full | (chunk.last & end))
        m.d.comb += [
            word.last.eq(chunk.last & end),
            word.status.eq(chunk.status),
            word.tag.eq(chunk.tag),
            self.results.valid.eq(self.chunks.valid & show),
            self.chunks.ready.eq(Mux(show, self.results.ready & end, 1)),
            self.retire.eq(self.chunks.valid & self.chunks.ready & chunk.last),
        ]
        return m

    def _packed(self, m, value, name):
        """``value`` of a chunk as words: (word, it is the chunk's last one, it is full)."""
        bits = 8 * self.bytes_out
        moves = self.chunks.valid & (self.chunks.ready | (self.results.valid & self.results.ready))
        done = self.chunks.valid & self.chunks.ready
        if len(value) >= bits:  # cut it
            words = len(value) // bits
            index = Signal(range(words), name=f"{name}_index")
            with m.If(done):
                m.d.sync += index.eq(0)
            with m.Elif(moves):
                m.d.sync += index.eq(index + 1)
            return value.word_select(index, bits), index == words - 1, 1
        parts = bits // len(value)  # gather them
        kept = Signal(bits - len(value), name=f"{name}_kept")
        index = Signal(range(parts), name=f"{name}_index")
        gathered = Signal(bits, name=f"{name}_word")
        m.d.comb += gathered.eq(kept)
        m.d.comb += gathered.word_select(index, len(value)).eq(value)
        with m.If(done):
            m.d.sync += [kept.eq(gathered), index.eq(index + 1)]
            with m.If(self.chunks.payload.last | (index == parts - 1)):
                m.d.sync += index.eq(0)
        return gathered, 1, index == parts - 1
