"""The aligner: units become granules, the first byte of a stretch at byte 0, zeros behind it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Aligner", "PackWord"]


class PackWord(data.StructLayout):
    """``bytes``, and where they go: the ``index``'th granule of the ``number``'th piece of a chunk.

    ``end`` marks the last one of the chunk, ``place`` where that ends within a row.
    """

    def __init__(self, *, granule, piece, pieces):
        super().__init__({
            "bytes": data.ArrayLayout(8, granule),
            "b": 1, "transposed": 1, "raw": 1, "end": 1,
            "place": piece["place"].shape,
            "index": piece["granules"].shape,
            "number": range(pieces),
        })


class Aligner(wiring.Component):
    """Takes a unit of ``granule`` bytes from the beat a cycle; a granule comes three cycles later.

    A piece takes a cycle more, and one more where its stretch starts within a unit.

    Parameters
    ----------
    data_bytes, granule : int
    piece : shape
        `weft.hw.dma.address_generator.PackTask`.
    pieces : int
        Of a chunk, at most.

    Attributes
    ----------
    pieces : In, stream of ``piece``
    there, unit : In; index, leaves : Out
        As of `weft.hw.dma.reader.Reader`.
    room : In
        A chunk may begin.
    begin : Out
        Pulse: one does.
    granules : Out, ``valid`` and a `PackWord`
        Zeros where there is none.
    final : Out
        Pulse: the last piece of a load is done.
    """

    def __init__(self, *, data_bytes, granule, piece, pieces):
        self.granule = granule
        self.Granule = PackWord(granule=granule, piece=piece, pieces=pieces)
        super().__init__({
            "pieces": In(stream.Signature(piece)),
            "there": In(1),
            "unit": In(8 * granule),
            "index": Out(range(data_bytes // granule)),
            "leaves": Out(1),
            "room": In(1),
            "begin": Out(1),
            "granules": Out(data.StructLayout({"valid": 1, "granule": self.Granule})),
            "final": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        cut = ceil_log2(self.granule)
        piece = self.pieces.payload  # on offer while it is at work
        begun = Signal()
        unit = self.index
        torn = Signal()  # of the beat on offer units were taken, and others are left
        primes = Signal()  # the unit that is due is not enough for a granule
        real = Signal()  # the granule that is due has bytes of the stretch
        fresh = Signal(init=1)  # the piece begins a chunk
        out = Signal(self.Granule)
        begins = Signal()

        # Known a step ahead: whether a unit is to be taken; whether the granule, or the next one,
        # is the last one with bytes of the stretch; whether it is the last one of the piece. That
        # one with bytes wants a unit more where they reach into it.
        fetch, full, soon, last = Signal(), Signal(), Signal(), Signal()
        shift, tail = piece.offset[:cut], piece.most[:cut]
        reaches = (shift == 0) | (shift + tail)[cut] if cut else Const(1)
        following, beyond = Signal.like(out.index), Signal.like(out.index)
        next_full = Mux(primes, full, soon)
        steps, emits, done, takes = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            steps.eq(begun & (~fetch | self.there)),
            emits.eq(steps & ~primes),
            done.eq(emits & last),
            takes.eq(steps & fetch),
            self.leaves.eq((takes & unit.all()) | (done & (takes | torn))),
            self.pieces.ready.eq(done), self.final.eq(done & piece.final),
            out.b.eq(piece.b), out.transposed.eq(piece.transposed), out.raw.eq(piece.raw),
            out.end.eq(piece.end & done), out.place.eq(piece.place),
            begins.eq(~begun & self.pieces.valid & (~fresh | self.room)),
            self.begin.eq(begins & fresh),
        ]
        with m.If(takes):
            m.d.sync += [unit.eq(unit + 1), torn.eq(~unit.all())]
        with m.If(steps):
            m.d.sync += [
                primes.eq(0), real.eq(real & (primes | ~full)),
                fetch.eq(real & (primes | ~full) & (~next_full | reaches)),
            ]
        with m.If(emits):
            m.d.sync += [
                out.index.eq(following), following.eq(beyond), beyond.eq(beyond + 1),
                last.eq(following == piece.granules), full.eq(soon),
                soon.eq(beyond == piece.most >> cut),
            ]
        with m.If(done):
            m.d.sync += [begun.eq(0), fresh.eq(piece.end), out.number.eq(out.number + 1)]
            with m.If(piece.end):
                m.d.sync += out.number.eq(0)
        with m.If(begins):
            m.d.sync += [
                begun.eq(1), out.index.eq(0), following.eq(1), beyond.eq(2),
                torn.eq(0), unit.eq(piece.offset[cut:]),
                real.eq(piece.real), primes.eq(piece.real & shift.any()), fetch.eq(piece.real),
                full.eq(piece.most >> cut == 0), soon.eq(piece.most >> cut == 1),
                last.eq(piece.granules == 0),
            ]
        counts = Cat(real, *(real & (~full | (n <= tail)) for n in range(1, self.granule)))
        self._cut(m, steps, emits, out, shift, counts)
        return m

    def _cut(self, m, steps, emits, out, shift, counts):
        """What follows when the unit is here: of it and the one before, the bytes that count."""
        for _ in range(2):
            before, (steps, emits) = (steps, emits), (Signal(), Signal())
            m.d.sync += [new.eq(old) for new, old in zip((steps, emits), before, strict=True)]
            before, (out, shift, counts) = (out, shift, counts), (
                Signal.like(value, reset_less=True) for value in (out, shift, counts)
            )
            m.d.sync += [
                new.eq(old) for new, old in zip((out, shift, counts), before, strict=True)
            ]
        kept, window = Signal.like(self.unit, reset_less=True), Signal.like(self.unit)
        with m.If(steps):
            m.d.sync += kept.eq(self.unit)
        with m.Switch(shift):
            for n in range(self.granule):
                with m.Case(n):
                    start = 8 * (n or self.granule)
                    m.d.comb += window.eq(Cat(kept, self.unit)[start : start + len(kept)])
        m.d.sync += [
            self.granules.valid.eq(emits), self.granules.granule.eq(out),
            self.granules.granule.bytes.eq(window & Cat(bit.replicate(8) for bit in counts)),
        ]
        with m.If(~emits):
            m.d.sync += self.granules.granule.eq(0)
