"""`Int4Unpacker`: the weights of a stream of int4."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.int4 import CODE_BITS, weight_of
from weft.language_core.config import BEAT_BYTES, CODE_BEATS, DEPTH, SCALED_WORDS

__all__ = ["Int4Unpacker"]

_HALF = 8 * BEAT_BYTES // 2  # bits of the codes of a column


class Int4Unpacker(wiring.Component):
    """``weight = code * scale``: two beats of int8 for a beat of codes, or the beats as they are.

    `weft.language_core.descriptors.packed_beats` has the order of the beats. A beat of ``o`` is the
    16 weights of a column: of the lower codes of a beat, then of its upper ones. It leaves LATENCY
    cycles after the codes; while one half of a beat leaves, ``i`` has no need to wait.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: the next beat is the first one of a tile. What is inside is dropped.
    packed : In, 1 bit
        The beats are of int4. Stable from ``start`` on, as ``further``.
    further : In, 12 bits
        Words of a tile less 1.
    busy : Out, 1 bit
        A beat is inside.
    i : In, stream of 128 bits
    o : Out, stream of 128 bits
    """

    LATENCY = 1

    def __init__(self):
        beats = stream.Signature(8 * BEAT_BYTES)
        super().__init__({
            "start": In(1), "packed": In(1), "further": In(12), "busy": Out(1),
            "i": In(beats), "o": Out(beats),
        })

    def elaborate(self, platform):
        m = Module()
        i, o, packed = self.i, self.o, self.packed
        held, scales = (Signal(8 * BEAT_BYTES, name=name) for name in ("held", "scales"))
        wanted, upper, ends = Signal(), Signal(), Signal()  # scales; the upper codes; the beat
        beat, word = Signal(range(CODE_BEATS)), Signal(range(SCALED_WORDS))
        left = Signal(12)  # words of the tile behind this one
        m.d.comb += [
            o.valid.eq(self.busy & ~(packed & wanted)),
            ends.eq(self.busy & ((packed & wanted) | (o.ready & (upper | ~packed)))),
            i.ready.eq(~self.busy | ends),
        ]
        for n in range(DEPTH):
            weight = weight_of(held.word_select(n, CODE_BITS), scales[:CODE_BITS])
            m.d.comb += o.payload[8 * n : 8 * n + 8].eq(
                Mux(packed, weight, held[8 * n : 8 * n + 8])
            )
        with m.If(i.ready):
            m.d.sync += [self.busy.eq(i.valid), held.eq(i.payload)]
        with m.If(packed & wanted & self.busy):
            m.d.sync += [scales.eq(held), wanted.eq(0)]
        with m.Elif(packed & o.valid & o.ready):
            m.d.sync += [upper.eq(~upper), scales.eq(scales >> CODE_BITS)]
            with m.If(~upper):  # the upper codes come to the place of the lower ones
                m.d.sync += held.eq(held >> _HALF)
        with m.If(self.packed & upper & ends):
            m.d.sync += beat.eq(beat + 1)
            with m.If(beat == CODE_BEATS - 1):
                m.d.sync += [word.eq(word + 1), left.eq(Mux(left == 0, self.further, left - 1))]
                with m.If((left == 0) | (word == SCALED_WORDS - 1)):
                    m.d.sync += [word.eq(0), wanted.eq(1)]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(0), wanted.eq(1), upper.eq(0), beat.eq(0), word.eq(0),
                left.eq(self.further),
            ]
        return m
