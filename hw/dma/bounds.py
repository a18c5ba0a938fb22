"""The bounds check: the first and the last byte of a walk, against the space that it may touch."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import Word

__all__ = ["Bounds"]

HALF = 16  # where M lies in its word, and bits that count of the word of N


class Bounds(wiring.Component):
    """``outside`` where a walk leaves the addresses of 32 bits, or the window.

    A walk is ``count`` runs of ``width`` bytes, ``stride`` bytes apart, the first one at
    ``address``. Its last byte is ``address + (count - 1) * stride + width - 1`` where the stride is
    not negative; otherwise that is of the first run, and ``address + (count - 1) * stride`` the
    first byte of all. Both are summed up exactly, the product bit by bit, the lowest first: a sum
    that leaves 32 bits can never come back. A walk of no byte touches nothing, wherever it is.

    ======  ===========  ===================  ======
    walk    count        width                stride
    ======  ===========  ===================  ======
    K       lines        K values             word 9
    LINES   K            values of all lines  word 9
    RAW     stream words of a panel, each of so many bytes as there are panels of a beat
    job     M            N results            word 9
    ======  ===========  ===================  ======

    Latency: 32 cycles and some more; of a raw panel whose words take several beats so many times as
    the odd factor of their number says.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    size : int
        Bytes of a value of A and B.
    sizes : list of int
        Bytes of a sum, and of a narrow result if there are any.
    data_bytes : int
    window : bool
        There is one, rather than the whole space.

    Attributes
    ----------
    start : In
        Pulse: check the walk that the four inputs below describe; they stay until ``done``.
    load, raw, turned : In
        It is of a load, RAW, in the order LINES.
    region : In
        Of a raw load.
    narrow : In
        Results are.
    index : Out
        The word of the descriptor that is wanted.
    word, there : In
        That one is on offer.
    done, outside : Out
        Pulse: the walk is checked; and must not be made.
    base, limit : In
        The first and the last address of the window, in whole beats.
    """

    def __init__(self, *, geometries, size, sizes, data_bytes, window):
        self.geometries = geometries
        self.size = size
        self.sizes = sizes
        self.data_bytes = data_bytes
        self.window = window
        most = max(g.words * g.depth for g in geometries.values())
        self.bits = max(most.bit_length(), HALF)  # of a count
        limits = {"base": In(32), "limit": In(32)} if window else {}
        super().__init__({
            "start": In(1),
            "load": In(1), "raw": In(1), "turned": In(1), "narrow": In(1),
            "region": In(range(max(geometries) + 1)),
            "index": Out(4), "word": In(32), "there": In(1),
            "done": Out(1), "outside": Out(1),
            **limits,
        })

    def elaborate(self, platform):
        m = Module()
        # What is added next, and the sum: one less than the end of what was added up.
        term, total = Signal(32), Signal(32, init=-1)
        adds, doubles, one = Signal(), Signal(), Signal()
        first = Signal()  # the first byte is summed up, not the last one
        backward = Signal()
        lost = Signal()  # a bit of the term that counts
        wrong, none = Signal(), Signal()
        bit = Signal(range(2 * HALF))  # of the count; or doublings so far
        some = Signal()  # of the count's lower bits one is 1, so the count less one has the others
        rounds = Signal(range(max(self._rounds().values()) + 1))
        after = Cat(1, total) + Cat(one, term)
        carry = after[33]
        shift, skip, turns = self._scale(m)
        with m.If(adds):
            m.d.sync += total.eq(after[1:33])
        with m.If(doubles):
            m.d.sync += [term.eq(term << 1), lost.eq(lost | (term[-1] ^ backward))]

        def takes(index, mask=None):
            """A state that takes a word as the term: whether it is there."""
            m.d.comb += self.index.eq(index)
            with m.If(self.there):
                value = self.word if mask is None else Cat(self.word[:HALF], self.word[HALF:] & mask)
                m.d.sync += [term.eq(value), lost.eq(0), bit.eq(0)]
            return m.If(self.there)

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    total.eq(-1), first.eq(0), backward.eq(0), wrong.eq(0), none.eq(0),
                    rounds.eq(turns),
                ]
                with m.If(self.start):
                    m.next = "WIDTH"
            with m.State("WIDTH"):
                width = Mux(self.load, Mux(self.raw, 2, Mux(self.turned, Word.LINES, Word.K)), 3)
                with takes(width, mask=self.load.replicate(HALF)):
                    m.next = "SCALE"
            with m.State("SCALE"):
                m.d.comb += [doubles.eq(bit != shift), adds.eq(~doubles)]
                m.d.sync += bit.eq(bit + 1)
                with m.If(adds):
                    m.d.sync += [
                        bit.eq(Mux(self.load, 0, HALF)), some.eq(0),
                        none.eq(none | ~(carry | self.raw)),  # 0 was added to all ones
                        wrong.eq(wrong | (carry & (rounds != turns))),
                    ]
                    m.next = "ADDRESS"
                    with m.If(self.raw):
                        m.next = "COUNT"
            with m.State("ADDRESS"):
                with takes(Word.ADDRESS):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [adds.eq(1), one.eq(first)]
                m.d.sync += wrong.eq(wrong | (carry & ~first))
                m.next = "STRIDE"
                with m.If(self.raw):
                    m.next = "CHECK"
            with m.State("STRIDE"):
                with takes(Word.STRIDE):
                    m.d.sync += [
                        backward.eq(self.word[-1]), bit.eq(Mux(self.load, 0, HALF)), some.eq(0),
                    ]
                    m.next = "CHECK"
                    with m.If(self.word[-1] == first):
                        m.next = "COUNT"
            with m.State("COUNT"):
                count = Mux(self.load, Mux(self.raw, 3, Mux(self.turned, Word.K, Word.LINES)), 1)
                m.d.comb += self.index.eq(count)
                one_here = self.word.bit_select(bit, 1)
                skips = self.raw & (bit < skip)
                with m.If(self.there):
                    m.d.comb += [adds.eq((one_here == some) & ~skips), doubles.eq(~skips)]
                    m.d.sync += [
                        bit.eq(bit + 1), some.eq(some | one_here),
                        wrong.eq(wrong | (adds & (lost | (carry ^ backward)))),
                    ]
                    with m.If(bit == Mux(self.load, self.bits - 1, 2 * HALF - 1)):
                        m.d.sync += [none.eq(none | ~(some | one_here)), rounds.eq(rounds - 1)]
                        m.next = "CHECK"
                        with m.If(self.raw):
                            m.next = "ADDRESS"
                            with m.If(rounds != 1):
                                m.next = "WIDTH"
            with m.State("CHECK"):
                m.d.sync += [total.eq(-1), first.eq(1)]
                m.next = "ADDRESS"
                with m.If(first | ~(backward | int(self.window))):
                    m.next = "DONE"
                if self.window:
                    beat = ceil_log2(self.data_bytes)
                    m.d.sync += wrong.eq(wrong | Mux(
                        first, total[beat:] < self.base[beat:], total[beat:] > self.limit[beat:]
                    ))
            with m.State("DONE"):
                m.d.comb += [self.done.eq(1), self.outside.eq(wrong & ~none)]
                m.next = "IDLE"
        return m

    def _rounds(self):
        """Of each raw operand, how often the bytes of its panels are to be added."""
        return {region: _odd(g.segments) for region, g in self.geometries.items()}

    def _scale(self, m):
        """How often the width is doubled; bits of a raw count that are of one beat; rounds."""
        beat, value = ceil_log2(self.data_bytes), ceil_log2(self.size)
        shift, skip = Signal(range(2 * HALF)), Signal(range(HALF))
        turns = Signal(range(max(self._rounds().values()) + 1))
        m.d.comb += turns.eq(1)
        with m.If(~self.load):
            m.d.comb += shift.eq(Mux(
                self.narrow, ceil_log2(self.sizes[-1]), ceil_log2(self.sizes[0])
            ))
        with m.Elif(~self.raw):
            m.d.comb += shift.eq(value)
        with m.Else():
            with m.Switch(self.region):
                for region, g in self.geometries.items():
                    odd = _odd(g.segments)
                    with m.Case(region):
                        m.d.comb += [
                            shift.eq(beat + ceil_log2(g.segments // odd)),
                            skip.eq(ceil_log2(g.group)), turns.eq(odd),
                        ]
        return shift, skip, turns


def _odd(number):
    """The odd factor of a number."""
    return number // (number & -number)
