"""The product of a sum and its scale: in four multipliers, or in one small one, digit by digit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.multiplier import Multiplier
from weft.hw.delay import pipeline

__all__ = ["PlainMultiplier", "ScaleProduct", "multiplier"]


class PlainMultiplier(Multiplier):
    """A `Multiplier` that is what a tool makes of ``*``, on any device."""

    def elaborate(self, platform):
        m = Module()
        self._twin(m)
        return m


def multiplier(target):
    """The `Multiplier` of a Config's ``target``."""
    return Multiplier if target == "ecp5" else PlainMultiplier


class ScaleProduct(wiring.Component):
    """``product = a * b + constant``, `latency` cycles later, each ``cycles`` cycles.

    In one cycle: four products of 16 x 16 bits, and their sum. In more: ``32 / cycles`` bits of
    ``b`` a cycle, from the lowest on, times ``a``, and a cycle later added to the upper half of a
    sum that moves down. Digits of 4 or 8 bits are multiplied by halves, a cycle before.

    Parameters
    ----------
    a : shape
        Of 32 bits.
    constant : int
        Below 2^32.
    fact : shape
        Of what is to come out with the product.
    cycles : int
        A power of two, up to 32.
    target : str
        That of a Config.

    Attributes
    ----------
    start : In
        With the factors; ``cycles`` cycles apart, or more.
    a, b, fact : In
    product, late : Out
        ``late`` is there for `lasts` cycles.
    """

    HALVED = 4, 8  # cycles

    @classmethod
    def latency(cls, cycles):
        return Multiplier.LATENCY + 2 if cycles == 1 else cycles + 2 + (cycles in cls.HALVED)

    @classmethod
    def lasts(cls, cycles):
        """How many ``late`` is there."""
        return max(1, cycles - 1 - (cycles in cls.HALVED))

    def __init__(self, *, a, constant, fact, cycles, target):
        self.constant = constant
        self.cycles = cycles
        self.target = target
        self.shape = signed(64) if signed(32) == a else unsigned(64)
        super().__init__({
            "start": In(1), "a": In(a), "b": In(32), "fact": In(fact),
            "product": Out(self.shape), "late": Out(fact),
        })

    def elaborate(self, platform):
        m = Module()
        if self.cycles == 1:
            self._at_once(m)
        else:
            self._by_digits(m)
        return m

    def _at_once(self, m):
        high = self.a[16:].as_signed() if self.shape.signed else self.a[16:]
        a, b = (self.a[:16], high), (self.b[:16], self.b[16:])
        parts = {}
        for x in range(2):
            for y in range(2):
                part = multiplier(self.target)(a=a[x].shape(), b=b[y].shape())
                m.submodules[f"part_{x}{y}"] = part
                m.d.comb += [part.a.eq(a[x]), part.b.eq(b[y])]
                parts[x, y] = part.product
        outer = Cat(parts[0, 0], parts[1, 1])
        if self.constant:
            zeros = (self.constant & -self.constant).bit_length() - 1
            outer = Cat(outer[:zeros], (outer[zeros:] + (self.constant >> zeros))[: 64 - zeros])
        o_outer = pipeline(m, outer, 1, "outer")
        o_middle = pipeline(m, parts[0, 1] + parts[1, 0], 1, "middle")
        m.d.sync += self.product.eq(Cat(o_outer[:16], o_outer[16:] + o_middle))
        m.d.comb += self.late.eq(pipeline(m, self.fact, self.latency(1), "fact"))

    def _by_digits(self, m):
        bits = 32 // self.cycles
        left = Signal(range(self.cycles + 1))
        a = Signal.like(self.a, reset_less=True)
        # Digits leave b at its low end; those of the product come in at the high end of its own.
        b, low = Signal(32, reset_less=True), Signal(32, reset_less=True)
        high = Signal(signed(33) if self.shape.signed else 33, reset_less=True)
        fact = Signal.like(self.fact, reset_less=True)
        first, term = left == self.cycles, a * b[:bits]
        if self.cycles in self.HALVED:
            half = bits // 2
            h_terms = [pipeline(m, a * b[n : n + half], 1, f"half_{n}") for n in (0, half)]
            first, term = pipeline(m, first, 1, "first"), h_terms[0] + (h_terms[1] << half)
        p_first = Signal()
        p_term = Signal(term.shape(), reset_less=True)
        total = Mux(p_first, Const(self.constant, high.shape()), high) + p_term
        m.d.sync += [
            left.eq(left - left.any()),
            b.eq(b >> bits),
            p_first.eq(first), p_term.eq(term),
            high.eq(total >> bits),
            low.eq(Cat(low[bits:], total[:bits])),
        ]
        with m.If(left == 1):
            m.d.sync += self.late.eq(fact)
        with m.If(self.start):
            m.d.sync += [left.eq(self.cycles), a.eq(self.a), b.eq(self.b), fact.eq(self.fact)]
        m.d.comb += self.product.eq(Cat(low, high))
