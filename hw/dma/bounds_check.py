"""The bounds check: compares the first and last byte of a transfer with the allowed addresses."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.descriptors import DescriptorWord

__all__ = ["AddressWindow", "BoundsCheck"]

BITS = 32  # bits of a word, and of an address
HALF = 16  # bits of N in its word, and index of the lowest bit of M in its word


class AddressWindow(wiring.Signature):
    """The addresses that the engine may access, in whole beats: the low bits are ignored.

    Attributes
    ----------
    base, limit : Out, 32 bits each
        The first address, and the last one.
    """

    def __init__(self):
        super().__init__({"base": Out(BITS), "limit": Out(BITS)})


class BoundsAdder(wiring.Component):
    """``total <= total + one + term``, and ``term <= word`` or ``2 * term``.

    Attributes
    ----------
    word : In
        32 bits; the next ``term``.
    half : In
        1 bit; only the low half of ``word`` is taken.
    take, double : In
        1 bit each; the term becomes ``word``; the term is doubled.
    backward : In
        1 bit; the term is negative.
    clear, add, one : In
        1 bit each; the total becomes -1; the term is added; with ``add``: 1 is added too.
    total : Out
        32 bits.
    carry : Out
        1 bit; carry out of the sum of this cycle.
    lost : Out
        1 bit; doubling moved significant bits of the term out of its 32 bits.
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
        total = Cat(1, self.total) + Cat(self.one, term)
        m.d.comb += self.carry.eq(total[BITS + 1])
        with m.If(self.clear):
            m.d.sync += self.total.eq(-1)
        with m.Elif(self.add):
            m.d.sync += self.total.eq(total[1 : BITS + 1])
        with m.If(self.take | self.double):
            high = self.word[HALF:] & ~self.half.replicate(HALF)
            m.d.sync += [
                term.eq(Mux(self.take, Cat(self.word[:HALF], high), term << 1)),
                self.lost.eq(~self.take & (self.lost | (term[-1] ^ self.backward))),
            ]
        return m


class BoundsCheck(wiring.Component):
    """``outside`` if a transfer touches a byte beyond 32-bit addresses, or outside the window.

    A transfer is ``count`` runs of ``width`` bytes, whose starts are ``stride`` bytes apart; the
    first run starts at ``address``. A transfer of no bytes is never outside.

    ======== ================ ======================== ========= =======
    transfer count            width                    stride    address
    ======== ================ ======================== ========= =======
    K_MAJOR  lines            K values                 word 9    word 8
    K_MINOR  K                one value for each line  word 9    word 8
    PACKED   beats of a panel one beat for each panel  the width word 8
    job      M                N results                word 9    word 8
    ======== ================ ======================== ========= =======

    The check compares two addresses::

        stride   first byte                        last byte
        >= 0     address                           address + (count - 1) * stride + width - 1
        < 0      address + (count - 1) * stride    address + width - 1

    One adder computes these sums, the last byte first: ``-1``, plus the width (times its scale in
    bytes), plus the address, plus the stride for each bit of ``count - 1``, lowest bit first,
    doubling the stride after each bit. A sum that has left 32 bits cannot come back, so each
    carry is an error. For a PACKED transfer the address is added last.

    Latency: about 20 cycles and one for each bit of the count. For a PACKED load whose words take
    ``2**n * odd`` beats: ``odd`` times as many.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        By `weft.commands.Region`.
    size : int
        Bytes of a value of A and B.
    sizes : list of int
        Bytes of a sum, and of a narrow result, if there are any.
    data_bytes : int
        Bytes of a beat.
    window : bool
        The engine has a window of addresses; otherwise all addresses are allowed.

    Attributes
    ----------
    start : In
        1 bit; pulse: check the transfer. The five inputs below must stay until ``done``.
    load, packed, k_minor : In
        1 bit each; it is a load; its order is PACKED; its order is K_MINOR.
    narrow : In
        1 bit; the results of the job are narrow.
    region : In
        Operand number of the load.
    index : Out
        Index of the requested descriptor word.
    word, word_valid : In
        A word, 32 bits; it is the requested one.
    done : Out
        1 bit; pulse: the check is complete.
    outside : Out
        1 bit; valid with ``done``: the transfer must not be made.
    allowed : In, `AddressWindow`; only with a window
    """

    def __init__(self, *, geometries, size, sizes, data_bytes, window):
        self.geometries = geometries
        self.size = size
        self.sizes = sizes
        self.data_bytes = data_bytes
        self.window = window
        self.max_count = max(g.words * g.depth for g in geometries.values())  # M aside
        super().__init__({
            "start": In(1),
            "load": In(1), "packed": In(1), "k_minor": In(1), "narrow": In(1),
            "region": In(range(max(geometries) + 1)),
            "index": Out(4), "word": In(BITS), "word_valid": In(1),
            "done": Out(1), "outside": Out(1),
            **({"allowed": In(AddressWindow())} if window else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.adder = adder = BoundsAdder()
        first = Signal()  # the sum is the first byte; otherwise the last byte
        bad, empty = Signal(), Signal()  # a byte is outside; the transfer has no bytes
        bits = Signal(max(self.max_count.bit_length(), HALF))  # remaining bits: count or scale
        operand = _, _, extra_rounds = self._operand(m)
        rounds = Signal.like(extra_rounds)  # remaining, less one
        m.d.comb += adder.word.eq(self.word)
        m.d.sync += bits.eq(bits >> 1)
        with m.If(adder.take):
            m.d.sync += adder.backward.eq(self.word[-1] & (self.index == DescriptorWord.STRIDE))
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += adder.clear.eq(1)
                m.d.sync += [first.eq(0), bad.eq(0), empty.eq(0), rounds.eq(extra_rounds)]
                with m.If(self.start):
                    m.next = "WIDTH"
            self._multiply(m, adder, bits, bad, empty, rounds, operand)
            with m.State("ADDRESS"):
                m.d.comb += [
                    self.index.eq(DescriptorWord.ADDRESS), adder.take.eq(self.word_valid)
                ]
                with m.If(self.word_valid):
                    m.next = "ADD_ADDRESS"
            with m.State("ADD_ADDRESS"):
                m.d.comb += [adder.add.eq(1), adder.one.eq(first)]
                m.d.sync += bad.eq(bad | (adder.carry & ~first))
                m.next = "STRIDE"
                with m.If(self.packed):
                    m.next = "CHECK"
            with m.State("STRIDE"):
                m.d.comb += [
                    self.index.eq(DescriptorWord.STRIDE), adder.take.eq(self.word_valid)
                ]
                with m.If(self.word_valid):
                    m.next = "CHECK"
                    with m.If(self.word[-1] == first):
                        m.next = "COUNT"
            with m.State("CHECK"):
                m.d.comb += adder.clear.eq(1)
                m.d.sync += [first.eq(1), bad.eq(bad | self._beyond(first, adder.total))]
                m.next = "ADDRESS"
                with m.If(first | ~(adder.backward | int(self.window))):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += [self.done.eq(1), self.outside.eq(bad & ~empty)]
                m.next = "IDLE"
        return m

    def _operand(self, m):
        """Constants of the operand.

        Returns ``scale``, the bytes of a width of 1, a power of two; for a PACKED load also
        ``shared``, with a 1 for each bit of the count that only selects a word within a beat, and
        ``extra_rounds``, how often its panels are added, less one.
        """
        odds = {region: _odd(g.segments) for region, g in self.geometries.items()}
        scale = Signal(range(
            1 + max(self.data_bytes * g.segments for g in self.geometries.values())
        ))
        shared = Signal(max(ceil_log2(g.group) for g in self.geometries.values()))
        extra_rounds = Signal(range(max(odds.values())))
        m.d.comb += scale.eq(Mux(
            self.load, self.size, Mux(self.narrow, self.sizes[-1], self.sizes[0])
        ))
        with m.If(self.packed):
            with m.Switch(self.region):
                for region, g in self.geometries.items():
                    with m.Case(region):
                        m.d.comb += [
                            scale.eq(self.data_bytes * g.segments // odds[region]),
                            shared.eq(g.group - 1), extra_rounds.eq(odds[region] - 1),
                        ]
        return scale, shared, extra_rounds

    def _multiply(self, m, adder, bits, bad, empty, rounds, operand):
        """The states that add the width, and then ``count - 1`` times the term, bit by bit."""
        scale, shared, extra_rounds = operand
        # A lower bit of the count is 1. So the bits from here on are the same in ``count - 1``;
        # before, they are inverted.
        found_one = Signal()
        skip = Signal.like(shared)  # remaining bits that select a word within a beat
        with m.State("WIDTH"):
            edge = Mux(self.k_minor, DescriptorWord.LINES, DescriptorWord.K)
            width = Mux(self.load, Mux(self.packed, 2, edge), 3)
            m.d.comb += [
                self.index.eq(width), adder.take.eq(self.word_valid), adder.half.eq(~self.load),
            ]
            m.d.sync += [bits.eq(scale), found_one.eq(0), skip.eq(shared)]
            with m.If(self.word_valid):
                m.next = "SCALE"
        with m.State("SCALE"):
            m.d.comb += [adder.add.eq(bits[0]), adder.double.eq(~bits[0])]
            with m.If(adder.add):  # the first sum is -1 plus the width: a carry if it is not 0
                m.d.sync += [
                    empty.eq(~adder.carry & ~self.packed),
                    bad.eq(bad | (adder.carry & (rounds != extra_rounds))),
                ]
                m.next = "ADDRESS"
                with m.If(self.packed):
                    m.next = "COUNT"
        with m.State("COUNT"):
            runs = Mux(self.k_minor, DescriptorWord.K, DescriptorWord.LINES)
            count = Mux(self.load, Mux(self.packed, 3, runs), 1)
            m.d.comb += self.index.eq(count)
            m.d.sync += bits.eq(Mux(self.load, self.word, self.word[HALF:]))
            with m.If(self.word_valid):
                m.next = "BITS"
        with m.State("BITS"):
            m.d.sync += [found_one.eq(found_one | bits[0]), skip.eq(skip >> 1)]
            with m.If(bits == 0):
                m.d.sync += [empty.eq(empty | ~found_one), rounds.eq(rounds - 1)]
                m.next = "CHECK"
                with m.If(self.packed):
                    m.next = "ADDRESS"
                    with m.If(rounds != 0):
                        m.next = "WIDTH"
            with m.Elif(~skip[:1].any()):
                m.d.comb += [adder.add.eq(bits[0] == found_one), adder.double.eq(1)]
                with m.If(adder.add & (adder.lost | (adder.carry ^ adder.backward))):
                    m.d.sync += bad.eq(1)

    def _beyond(self, first, total):
        """Whether the summed byte is beyond its end of the window."""
        if not self.window:
            return Const(0)
        allowed, beat = self.allowed, ceil_log2(self.data_bytes)
        return Mux(first, total[beat:] < allowed.base[beat:], allowed.limit[beat:] < total[beat:])


def _odd(number):
    """The odd factor of a number."""
    return number // (number & -number)
