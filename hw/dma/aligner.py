"""The aligner: beats become granules, the first byte of a stretch at byte 0, zeros behind it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.memory.pick import pick

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

    A piece takes a cycle more, and one more where its stretch starts within a unit.

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
        piece = self.pieces.payload  # on offer while it is at work
        begun = Signal()
        unit = Signal(range(self.data_bytes // self.granule))
        torn = Signal()  # of the beat on offer units were taken, and others are left
        primes = Signal()  # the unit that is due is not enough for a granule
        real = Signal()  # the granule that is due has bytes of the stretch
        fresh = Signal(init=1)  # the piece begins a chunk
        a_out, out = Signal(self.Granule), self.granules.granule
        index, number = Signal.like(a_out.index), Signal.like(a_out.number)
        begins = Signal()

        # Known a step ahead: whether a unit is to be taken, whether the granule is the last one
        # with bytes of the stretch, the last one of the piece. That one with bytes wants a unit
        # more where they reach into it.
        fetch, full, last = Signal(), Signal(), Signal()
        shift, tail = piece.offset[:cut], piece.most[:cut]
        reaches = (shift == 0) | (shift + tail)[cut] if cut else Const(1)
        following = Mux(primes, 0, index + 1)
        next_full = following == piece.most >> cut
        steps, emits, done, takes = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            steps.eq(begun & (~fetch | self.beats.valid)),
            emits.eq(steps & ~primes),
            done.eq(emits & last),
            takes.eq(steps & fetch),
            self.beats.ready.eq((takes & unit.all()) | (done & (takes | torn))),
            self.raw.eq(self.pieces.valid & piece.raw),
            self.pieces.ready.eq(done | self.raw_end),
            a_out.index.eq(index), a_out.b.eq(piece.b), a_out.transposed.eq(piece.transposed),
            a_out.end.eq(piece.end & done), a_out.number.eq(number),
            begins.eq(~begun & self.pieces.valid & ~piece.raw & (~fresh | self.room)),
            self.begin.eq(begins & fresh),
        ]
        with m.If(takes):
            m.d.sync += [unit.eq(unit + 1), torn.eq(~unit.all())]
        with m.If(steps):
            m.d.sync += [
                primes.eq(0), index.eq(following), full.eq(next_full),
                last.eq(following == piece.granules),
                real.eq(real & (primes | ~full)),
                fetch.eq(real & (primes | ~full) & (~next_full | reaches)),
            ]
        with m.If(done):
            m.d.sync += [begun.eq(0), fresh.eq(piece.end), number.eq(number + 1)]
            with m.If(piece.end):
                m.d.sync += number.eq(0)
        with m.If(begins):
            m.d.sync += [
                begun.eq(1), index.eq(0), torn.eq(0), unit.eq(piece.offset[cut:]),
                real.eq(piece.real), primes.eq(piece.real & shift.any()), fetch.eq(piece.real),
                full.eq(piece.most >> cut == 0), last.eq(piece.granules == 0),
            ]

        # A cycle on: the last two units, and which bytes of the granule count.
        b_out, b_shift = Signal.like(a_out, reset_less=True), Signal.like(shift, reset_less=True)
        b_valid, counts = Signal(), Signal(self.granule, reset_less=True)
        before, here = (Signal(8 * self.granule, reset_less=True) for _ in range(2))
        m.d.sync += [
            b_valid.eq(emits), b_out.eq(a_out), b_shift.eq(shift),
            counts.eq(Cat(real, *(real & (~full | (n <= tail)) for n in range(1, self.granule)))),
        ]
        with m.If(steps):
            m.d.sync += [
                before.eq(here), here.eq(pick(self.beats.payload, unit, 8 * self.granule))
            ]
        window = Signal.like(here)
        with m.Switch(b_shift):
            for n in range(self.granule):
                with m.Case(n):
                    start = 8 * (n or self.granule)
                    m.d.comb += window.eq(Cat(before, here)[start : start + 8 * self.granule])
        m.d.sync += [
            self.granules.valid.eq(b_valid), out.eq(b_out),
            out.bytes.eq(window & Cat(bit.replicate(8) for bit in counts)),
        ]
        return m
