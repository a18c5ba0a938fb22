"""The sender: the last station, where chunks become words of the result stream and jobs end."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Result", "StreamPacker"]


class Result(data.StructLayout):
    """A word of the result stream; its job's ``tag``, or in the core what stands for it."""

    def __init__(self, *, bytes_out):
        super().__init__({"data": 8 * bytes_out, "last": 1, "status": 8, "tag": 16})


class StreamPacker(wiring.Component):
    """Packs chunks into words of ``bytes_out`` bytes, or cuts them, low bytes first.

    A chunk is ``lanes`` results, of 4 bytes each or of ``narrow``. Where a chunk is as wide as a
    word, or wider, it leaves in a word or several, one a cycle, as it comes. Where it is narrower,
    it is gathered: a word leaves in the cycle after that in which it is full, or the job ends:
    what is left of it is undefined. Silent chunks are swallowed.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.reorder_buffer.Completion`.
    bytes_out : int
    narrow : int
        Bytes of a narrow result, the low ones of its lane; 0 where there are none.

    Attributes
    ----------
    chunks : In, stream of ``chunk``
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
        mark, sums = self.chunks.payload.mark, self.chunks.payload.sums
        kinds = [(~mark.narrow if self.narrow else Const(1), sums.as_value())]
        if self.narrow:
            kinds.append((mark.narrow, Cat(value[: 8 * self.narrow] for value in sums)))
        bits = 8 * self.bytes_out
        cut = [kind for kind in kinds if len(kind[1]) >= bits]
        gathered = [kind for kind in kinds if len(kind[1]) < bits]
        full = self._gather(m, gathered) if gathered else Const(0)
        if cut:
            with m.If(self.chunks.valid & ~full & Cat(mine for mine, _ in cut).any()):
                self._cut(m, cut)
        return m

    def _cut(self, m, kinds):
        """A chunk in one word or more, one a cycle."""
        mark, word, bits = self.chunks.payload.mark, self.results.payload, 8 * self.bytes_out
        index = Signal(range(max(len(value) for _, value in kinds) // bits))
        end = Signal()
        for mine, value in kinds:
            with m.If(mine):
                m.d.comb += [
                    word.data.eq(value.word_select(index, bits)),
                    end.eq((index == len(value) // bits - 1) | (mark.status != 0) | mark.silent),
                ]
        taken = self.results.ready | mark.silent
        m.d.comb += [
            word.last.eq(mark.last & end),
            word.status.eq(mark.status),
            word.tag.eq(mark.tag),
            self.results.valid.eq(~mark.silent),
            self.chunks.ready.eq(taken & end),
            self.retire.eq(self.chunks.ready & mark.last),
        ]
        with m.If(taken):
            m.d.sync += index.eq(Mux(end, 0, index + 1))

    def _gather(self, m, kinds):
        """Chunks in a word; whether there is one that is full."""
        mark, word = self.chunks.payload.mark, self.results.payload
        unit = min(len(value) for _, value in kinds)
        places = 8 * self.bytes_out // unit
        full, index = Signal(), Signal(range(places))
        g_mark = Signal.like(mark)
        g_word = Signal(data.ArrayLayout(unit, places))
        leaves = full & (self.results.ready | g_mark.silent)
        with m.If(leaves):
            m.d.sync += full.eq(0)
        m.d.comb += [
            self.results.valid.eq(full & ~g_mark.silent),
            word.data.eq(g_word),
            word.last.eq(g_mark.last),
            word.status.eq(g_mark.status),
            word.tag.eq(g_mark.tag),
            self.retire.eq(leaves & g_mark.last),
        ]
        takes = Cat(mine for mine, _ in kinds).any() & (~full | leaves)
        parts = [Const(0, unit)] * places
        hits = [Const(0, 1)] * places
        step, end = Signal(range(places + 1)), Signal()
        for mine, value in kinds:
            share = len(value) // unit  # of the places
            here = index[ceil_log2(share):]
            with m.If(mine):
                m.d.comb += [step.eq(share), end.eq(here == places // share - 1)]
            for place in range(places):
                part = value.word_select(place % share, unit)
                parts[place] = Mux(mine, part, parts[place])
                hits[place] = Mux(mine, here == place // share, hits[place])
        with m.If(takes):
            m.d.comb += self.chunks.ready.eq(1)
        with m.If(takes & self.chunks.valid):
            m.d.sync += [
                g_mark.eq(mark),
                full.eq(mark.last | end),
                index.eq(Mux(mark.last, 0, index + step)),
            ]
        for place in range(places):
            with m.If(takes & self.chunks.valid & hits[place]):
                m.d.sync += g_word[place].eq(parts[place])
        return full
