"""The aligner: beats become granules, the first byte of a stretch at byte 0, zeros behind it."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Aligner", "Granule"]


class Granule(data.StructLayout):
    """``bytes``, and where they go: the ``index``'th granule of the ``number``'th piece of a chunk.

    ``end`` marks the last one of the chunk.
    """

    def __init__(self, *, granule, piece, pieces):
        super().__init__({
            "bytes": data.ArrayLayout(8, granule),
            "b": 1, "transposed": 1, "end": 1,
            "index": piece["granules"].shape,
            "number": range(pieces),
        })


class Aligner(wiring.Component):
    """Takes a unit of ``granule`` bytes from the beat a cycle; a granule comes two cycles later.

    A stretch that starts within a unit takes one cycle more.

    Parameters
    ----------
    data_bytes, granule : int
    piece : shape
        `weft.hw.dma.walker.Piece`.
    pieces : int
        Of a chunk, at most.

    Attributes
    ----------
    pieces : In, stream of ``piece``
    beats : In, stream of ``data_bytes`` bytes
    room : In
        A chunk may begin.
    begin : Out
        Pulse: one does.
    granules : Out, ``valid`` and a `Granule`
    raw : Out
        The beats that are due are a raw panel's, and somebody else's to take.
    raw_end : In
        Pulse: he has taken the last.
    """

    def __init__(self, *, data_bytes, granule, piece, pieces):
        self.data_bytes = data_bytes
        self.granule = granule
        self.Granule = Granule(granule=granule, piece=piece, pieces=pieces)
        super().__init__({
            "pieces": In(stream.Signature(piece)),
            "beats": In(stream.Signature(8 * data_bytes)),
            "room": In(1),
            "begin": Out(1),
            "granules": Out(data.StructLayout({"valid": 1, "granule": self.Granule})),
            "raw": Out(1),
            "raw_end": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        cut = ceil_log2(self.granule)
        new = self.pieces.payload
        busy = Signal()
        shift = Signal(cut)  # where the stretch starts in its first unit
        unit = Signal(range(self.data_bytes // self.granule))
        units = Signal(len(new.most) + 1 - cut)  # to come behind this one
        fetch = Signal()  # this one is to come
        primes = Signal()  # it is not enough for a granule
        granules = Signal.like(new.granules)  # behind this one
        real = Signal()  # this one has bytes of the stretch
        wholes = Signal(max(1, len(new.most) - cut))  # granules behind it that have some
        tail = Signal(cut)  # the last byte of the stretch in its last granule
        fresh = Signal(init=1)  # the piece on offer begins a chunk

        a_out, out = Signal(self.Granule), self.granules.granule
        steps, emits, done, load = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            steps.eq(busy & (~fetch | self.beats.valid)),
            emits.eq(steps & ~primes),
            done.eq(emits & (granules == 0)),
            load.eq((~busy | done) & self.pieces.valid & ~new.raw & (~fresh | self.room)),
            self.begin.eq(load & fresh),
            self.raw.eq(~busy & self.pieces.valid & new.raw),
            self.pieces.ready.eq(load | self.raw_end),
        ]
        with m.If(steps):
            m.d.sync += [primes.eq(0), unit.eq(unit + 1), units.eq(units - 1)]
            with m.If(units == 0):
                m.d.sync += fetch.eq(0)
            m.d.comb += self.beats.ready.eq(fetch & (unit.all() | (units == 0)))
        with m.If(emits):
            m.d.sync += [
                a_out.index.eq(a_out.index + 1), granules.eq(granules - 1), wholes.eq(wholes - 1)
            ]
            with m.If(wholes == 0):
                m.d.sync += real.eq(0)
            with m.If(granules == 0):
                m.d.sync += busy.eq(0)
        with m.If(load):
            m.d.sync += [
                busy.eq(1), fresh.eq(new.end),
                a_out.b.eq(new.b), a_out.transposed.eq(new.transposed), a_out.end.eq(new.end),
                a_out.index.eq(0), a_out.number.eq(a_out.number + 1),
                shift.eq(new.offset), unit.eq(new.offset[cut:]), fetch.eq(new.real),
                primes.eq(new.offset[:cut].any() & new.real),
                units.eq((new.offset[:cut] + new.most) >> cut),
                granules.eq(new.granules),
                real.eq(new.real), wholes.eq(new.most >> cut), tail.eq(new.most),
            ]
            with m.If(fresh):
                m.d.sync += a_out.number.eq(0)

        # A cycle on: the last two units, and which bytes of the granule count.
        b_out, b_valid, b_shift = Signal(self.Granule), Signal(), Signal.like(shift)
        before, here = Signal(8 * self.granule), Signal(8 * self.granule)
        counts = Signal(self.granule)
        m.d.sync += [b_valid.eq(emits), b_out.eq(a_out), b_shift.eq(shift)]
        m.d.sync += b_out.end.eq(a_out.end & done)
        m.d.sync += counts.eq(Cat(
            real & ((wholes != 0) | (n <= tail)) for n in range(self.granule)
        ))
        with m.If(steps):
            m.d.sync += [
                before.eq(here), here.eq(self.beats.payload.word_select(unit, 8 * self.granule))
            ]
        window = Signal.like(here)
        with m.Switch(b_shift):
            for n in range(self.granule):
                with m.Case(n):
                    both = Cat(before, here)
                    start = 8 * (n or self.granule)
                    m.d.comb += window.eq(both[start : start + 8 * self.granule])
        m.d.sync += [
            self.granules.valid.eq(b_valid), out.eq(b_out),
            out.bytes.eq(window & Cat(bit.replicate(8) for bit in counts)),
        ]
        return m
