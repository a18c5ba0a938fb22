"""The bounds check: the first and the last byte of a walk, against the space that it may touch."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import DescriptorWord

__all__ = ["BoundsCheck"]

BITS = 32  # of a word, and of an address
HALF = 16  # bits of N within its word, and the lowest bit of M within its own


class BoundsAdder(wiring.Component):
    """``total + 1 <= total + 1 + term``, and ``term <= word`` or ``2 * term``.

    Attributes
    ----------
    word, half : In
        What is taken; the low half of it alone.
    take, double : In
        The term becomes the word, or twice what it is.
    backward : In
        The term is less than 0.
    clear, add, one : In
        The total becomes -1; the term is added; and one more.
    total : Out
    carry, lost : Out
        What is added now leaves 32 bits; the term has left them.
    """

    def __init__(self):
        super().__init__({
            "word": In(BITS), "half": In(1), "take": In(1), "double": In(1), "backward": In(1),
            "clear": In(1), "add": In(1), "one": In(1),
            "total": Out(BITS, init=-1), "carry": Out(1), "lost": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        term = Signal(BITS)
        after = Cat(1, self.total) + Cat(self.one, term)
        m.d.comb += self.carry.eq(after[BITS + 1])
        with m.If(self.clear):
            m.d.sync += self.total.eq(-1)
        with m.Elif(self.add):
            m.d.sync += self.total.eq(after[1 : BITS + 1])
        with m.If(self.take | self.double):
            high = self.word[HALF:] & ~self.half.replicate(HALF)
            m.d.sync += [
                term.eq(Mux(self.take, Cat(self.word[:HALF], high), term << 1)),
                self.lost.eq(~self.take & (self.lost | (term[-1] ^ self.backward))),
            ]
        return m


class BoundsCheck(wiring.Component):
    """``outside`` where a walk leaves the addresses of 32 bits, or the window.

    A walk is ``count`` runs of ``width`` bytes, ``stride`` bytes apart, the first at ``address``.
    Where the stride is not negative, the first byte of all is at ``address`` and the last one at
    ``address + (count - 1) * stride + width - 1``; otherwise the first one is at
    ``address + (count - 1) * stride``, and the last one ends the first run. The product is summed
    up bit by bit, the lowest first: what has left 32 bits can never come back. A walk of no byte
    touches nothing, wherever it is.

    ===== =============== =========================== ====== ==========
    walk  count           width                       stride address
    ===== =============== =========================== ====== ==========
    K     lines           K values                    word 9 word 8
    LINES K               as many values as lines     word 9 word 8
    RAW   beats a panel   as many beats as panels     width  word 8
    job   M               N results                   word 9 word 8
    ===== =============== =========================== ====== ==========

    Latency: some 20 cycles and one for each bit of the count; for a raw load whose words take
    ``2**n * odd`` beats, ``odd`` times as many.

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
        Pulse: check the walk that the five inputs below describe; they stay until ``done``.
    load, raw, turned : In
        It is that of a load, which is RAW, which is in the order LINES.
    narrow : In
        The results of the job are narrow.
    region : In
        Operand of the load.
    index : Out
        Word of the descriptor that is wanted.
    word, there : In
        That word; it is on offer.
    done, outside : Out
        Pulses: the walk is checked; it must not be made.
    base, limit : In
        First and last address of the window, in whole beats.
    """

    def __init__(self, *, geometries, size, sizes, data_bytes, window):
        self.geometries = geometries
        self.size = size
        self.sizes = sizes
        self.data_bytes = data_bytes
        self.window = window
        self.most = max(g.words * g.depth for g in geometries.values())  # of any count but M
        super().__init__({
            "start": In(1),
            "load": In(1), "raw": In(1), "turned": In(1), "narrow": In(1),
            "region": In(range(max(geometries) + 1)),
            "index": Out(4), "word": In(BITS), "there": In(1),
            "done": Out(1), "outside": Out(1),
            **({"base": In(BITS), "limit": In(BITS)} if window else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.sum = sum_ = BoundsAdder()
        first = Signal()  # the first byte is summed up, rather than the last one
        wrong, none = Signal(), Signal()
        left = Signal(max(self.most.bit_length(), HALF))  # bits of the count, or of the scale
        operand = _, _, turns = self._operand(m)
        rounds = Signal.like(turns)
        m.d.comb += sum_.word.eq(self.word)
        m.d.sync += left.eq(left >> 1)
        with m.If(sum_.take):
            m.d.sync += sum_.backward.eq(self.word[-1] & (self.index == DescriptorWord.STRIDE))
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += sum_.clear.eq(1)
                m.d.sync += [first.eq(0), wrong.eq(0), none.eq(0), rounds.eq(turns)]
                with m.If(self.start):
                    m.next = "WIDTH"
            self._count(m, sum_, left, wrong, none, rounds, operand)
            with m.State("ADDRESS"):
                m.d.comb += [self.index.eq(DescriptorWord.ADDRESS), sum_.take.eq(self.there)]
                with m.If(self.there):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [sum_.add.eq(1), sum_.one.eq(first)]
                m.d.sync += wrong.eq(wrong | (sum_.carry & ~first))
                m.next = "STRIDE"
                with m.If(self.raw):
                    m.next = "CHECK"
            with m.State("STRIDE"):
                m.d.comb += [self.index.eq(DescriptorWord.STRIDE), sum_.take.eq(self.there)]
                with m.If(self.there):
                    m.next = "CHECK"
                    with m.If(self.word[-1] == first):
                        m.next = "COUNT"
            with m.State("CHECK"):
                m.d.comb += sum_.clear.eq(1)
                m.d.sync += [first.eq(1), wrong.eq(wrong | self._beyond(first, sum_.total))]
                m.next = "ADDRESS"
                with m.If(first | ~(sum_.backward | int(self.window))):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [self.done.eq(1), self.outside.eq(wrong & ~none)]
                m.next = "IDLE"
        return m

    def _operand(self, m):
        """What depends on the operand.

        Bytes, a power of two, that a width of 1 is; of a raw load, ones for the bits of the count
        that choose a word of a beat, and how often its panels are to be added, less one.
        """
        odds = {region: _odd(g.segments) for region, g in self.geometries.items()}
        scale = Signal(range(
            1 + max(self.data_bytes * g.segments for g in self.geometries.values())
        ))
        shared = Signal(max(ceil_log2(g.group) for g in self.geometries.values()))
        turns = Signal(range(max(odds.values())))
        m.d.comb += scale.eq(Mux(
            self.load, self.size, Mux(self.narrow, self.sizes[-1], self.sizes[0])
        ))
        with m.If(self.raw):
            with m.Switch(self.region):
                for region, g in self.geometries.items():
                    with m.Case(region):
                        m.d.comb += [
                            scale.eq(self.data_bytes * g.segments // odds[region]),
                            shared.eq(g.group - 1), turns.eq(odds[region] - 1),
                        ]
        return scale, shared, turns

    def _count(self, m, sum_, left, wrong, none, rounds, operand):
        """The states that add the width, and then the term as often as the count less one says."""
        scale, shared, turns = operand
        some = Signal()  # of the count's lower bits one is 1, so the count less one has the others
        skips = Signal.like(shared)  # bits that choose a word of a beat
        with m.State("WIDTH"):
            edge = Mux(self.turned, DescriptorWord.LINES, DescriptorWord.K)
            width = Mux(self.load, Mux(self.raw, 2, edge), 3)
            m.d.comb += [
                self.index.eq(width), sum_.take.eq(self.there), sum_.half.eq(~self.load),
            ]
            m.d.sync += [left.eq(scale), some.eq(0), skips.eq(shared)]
            with m.If(self.there):
                m.next = "SCALE"
        with m.State("SCALE"):
            m.d.comb += [sum_.add.eq(left[0]), sum_.double.eq(~left[0])]
            with m.If(sum_.add):  # the first time to all ones: with a carry, if it is not 0
                m.d.sync += [
                    none.eq(~sum_.carry & ~self.raw),
                    wrong.eq(wrong | (sum_.carry & (rounds != turns))),
                ]
                m.next = "ADDRESS"
                with m.If(self.raw):
                    m.next = "COUNT"
        with m.State("COUNT"):
            runs = Mux(self.turned, DescriptorWord.K, DescriptorWord.LINES)
            count = Mux(self.load, Mux(self.raw, 3, runs), 1)
            m.d.comb += self.index.eq(count)
            m.d.sync += left.eq(Mux(self.load, self.word, self.word[HALF:]))
            with m.If(self.there):
                m.next = "BITS"
        with m.State("BITS"):
            m.d.sync += [some.eq(some | left[0]), skips.eq(skips >> 1)]
            with m.If(left == 0):
                m.d.sync += [none.eq(none | ~some), rounds.eq(rounds - 1)]
                m.next = "CHECK"
                with m.If(self.raw):
                    m.next = "ADDRESS"
                    with m.If(rounds != 0):
                        m.next = "WIDTH"
            with m.Elif(~skips[:1].any()):
                m.d.comb += [sum_.add.eq(left[0] == some), sum_.double.eq(1)]
                with m.If(sum_.add & (sum_.lost | (sum_.carry ^ sum_.backward))):
                    m.d.sync += wrong.eq(1)

    def _beyond(self, first, total):
        """Whether the byte that was summed up lies beyond the window's end."""
        if not self.window:
            return Const(0)
        beat = ceil_log2(self.data_bytes)
        return Mux(first, total[beat:] < self.base[beat:], total[beat:] > self.limit[beat:])


def _odd(number):
    """The odd factor of a number."""
    return number // (number & -number)
