"""The end of the output stage: results become words of the result stream."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Result", "ResultPipeline", "StreamPacker"]


class Result(data.StructLayout):
    """A word of the result stream.

    ========== ====================================================================================
    ``data``   ``bytes_out`` bytes of results
    ``last``   the word is the last one of its job
    ``status`` the status of the job; 0 in words with results
    ``tag``    the tag of the job; inside the core, its slot in the job table
    ========== ====================================================================================
    """

    def __init__(self, *, bytes_out):
        super().__init__({"data": 8 * bytes_out, "last": 1, "status": 8, "tag": 16})


class StreamPacker(wiring.Component):
    """Packs chunks into words of ``bytes_out`` bytes, or splits them, low bytes first.

    A chunk is ``lanes`` results of 4 bytes or of ``narrow`` bytes. A chunk that is at least as wide
    as a word becomes one word or several, one a cycle, without latency. Narrower chunks are
    collected in a word. That word is sent in the cycle after it is full or its job ends; at the end
    of a job, bytes without a result are undefined. Suppressed chunks are dropped.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.reorder_buffer.Completion`.
    bytes_out : int
    narrow : int
        Bytes of a narrow result, the low bytes of its lane; 0 without narrow results.

    Attributes
    ----------
    chunks : In, stream of ``chunk``
    results : Out, stream of `Result`
    retire : Out, 1 bit
        Pulse: a job has ended, and its last word is transferred.
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
        meta, sums = self.chunks.payload.meta, self.chunks.payload.sums
        # For each kind of results, wide and narrow: whether the chunk has it, and its bits.
        kinds = [(~meta.narrow if self.narrow else Const(1), sums.as_value())]
        if self.narrow:
            kinds.append((meta.narrow, Cat(value[: 8 * self.narrow] for value in sums)))
        bits = 8 * self.bytes_out
        split = [kind for kind in kinds if len(kind[1]) >= bits]
        packed = [kind for kind in kinds if len(kind[1]) < bits]
        full = self._pack(m, packed) if packed else Const(0)
        if split:
            with m.If(self.chunks.valid & ~full & Cat(select for select, _ in split).any()):
                self._split(m, split)
        return m

    def _split(self, m, kinds):
        """Send a chunk as one word or more, one a cycle."""
        meta, word, bits = self.chunks.payload.meta, self.results.payload, 8 * self.bytes_out
        index = Signal(range(max(len(value) for _, value in kinds) // bits))
        end = Signal()
        for select, value in kinds:
            with m.If(select):
                m.d.comb += [
                    word.data.eq(value.word_select(index, bits)),
                    end.eq(
                        (index == len(value) // bits - 1) | (meta.status != 0) | meta.suppress
                    ),
                ]
        fire = self.results.ready | meta.suppress
        m.d.comb += [
            word.last.eq(meta.last & end),
            word.status.eq(meta.status),
            word.tag.eq(meta.tag),
            self.results.valid.eq(~meta.suppress),
            self.chunks.ready.eq(fire & end),
            self.retire.eq(self.chunks.ready & meta.last),
        ]
        with m.If(fire):
            m.d.sync += index.eq(Mux(end, 0, index + 1))

    def _pack(self, m, kinds):
        """Collect chunks in a word; returns whether that word is full.

        The word has ``units`` units, each as wide as the narrowest kind of chunk.
        """
        meta, word = self.chunks.payload.meta, self.results.payload
        unit = min(len(value) for _, value in kinds)
        units = 8 * self.bytes_out // unit
        full, index = Signal(), Signal(range(units))
        p_meta = Signal.like(meta)
        p_word = Signal(data.ArrayLayout(unit, units))
        send = full & (self.results.ready | p_meta.suppress)
        with m.If(send):
            m.d.sync += full.eq(0)
        m.d.comb += [
            self.results.valid.eq(full & ~p_meta.suppress),
            word.data.eq(p_word),
            word.last.eq(p_meta.last),
            word.status.eq(p_meta.status),
            word.tag.eq(p_meta.tag),
            self.retire.eq(send & p_meta.last),
        ]
        free = ~full | send
        ready = Cat(select for select, _ in kinds).any() & free
        parts = [Const(0, unit)] * units
        hits = [Const(0, 1)] * units
        step, end = Signal(range(units + 1)), Signal()
        for select, value in kinds:
            size = len(value) // unit  # of the chunk, in units
            position = index[ceil_log2(size):]
            with m.If(select):
                m.d.comb += [step.eq(size), end.eq(position == units // size - 1)]
            for n in range(units):
                part = value.word_select(n % size, unit)
                parts[n] = Mux(select, part, parts[n])
                # A valid chunk has an aligned index; the places before another index are full.
                hits[n] = Mux(select, index == n - n % size, hits[n])
        with m.If(ready):
            m.d.comb += self.chunks.ready.eq(1)
        with m.If(ready & self.chunks.valid):
            m.d.sync += [full.eq(meta.last | end), index.eq(Mux(meta.last, 0, index + step))]
        # Until a chunk is valid, its place in the word may hold anything.
        with m.If(free):
            m.d.sync += p_meta.eq(meta)
        for n in range(units):
            with m.If(free & hits[n]):
                m.d.sync += p_word[n].eq(parts[n])
        return full


class ResultPipeline(wiring.Component):
    """Turns the sums of a chunk into results, LATENCY cycles after the request of the chunk.

    Parameters of the columns are read from their buffers while the sums are still being read.

    Parameters
    ----------
    chunk : shape
        `weft.hw.output.result_scheduler.Chunk`.
    acc : shape
    lanes : int
    sum_latency : int
        Cycles from a request to its sums.
    writes : dict of shapes
        The buffer writes that the pipeline uses, by name.

    Attributes
    ----------
    <name> : In, the shape from ``writes``
        Buffer write of the loader, for each name of ``writes``.
    request : In, ``valid`` and a ``chunk``
        The chunk that is requested in this cycle.
    sums : In, ``lanes`` values
        ``sum_latency`` cycles after the request.
    results : Out, ``lanes`` values
        LATENCY cycles after a request that uses the epilogue.
    """

    LATENCY: int

    def __init__(self, *, chunk, acc, lanes, sum_latency, writes):
        self.lanes = lanes
        self.sum_latency = sum_latency
        self.writes = list(writes)
        super().__init__({
            **{name: In(shape) for name, shape in writes.items()},
            "request": In(data.StructLayout({"valid": 1, "chunk": chunk})),
            "sums": In(data.ArrayLayout(acc, lanes)),
            "results": Out(data.ArrayLayout(acc, lanes)),
        })

    def stages(self, m, chunk):
        """Add all stages. ``chunk`` is the last requested chunk, registered one cycle after it."""
        raise NotImplementedError

    def elaborate(self, platform):
        m = Module()
        chunk = Signal.like(self.request.chunk, reset_less=True)
        with m.If(self.request.valid & self.request.chunk.uses_epilogue):
            m.d.sync += chunk.eq(self.request.chunk)
        self.stages(m, chunk)
        return m
