"""The product of a sum and its scale, in four multipliers at once or in one small multiplier."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.fabrics import FABRICS
from weft.latencies import HALVED_CYCLES, scale_product

__all__ = ["ScaleProduct"]


class ScaleProduct(wiring.Component):
    """``product = a * b + constant``, `latency` cycles later, one every ``cycles`` cycles.

    With ``cycles`` of 1: four products of 16 x 16 bits, and their sum. Otherwise: a digit of
    ``32 / cycles`` bits of ``b`` a cycle, from the lowest on, is multiplied by ``a``. A cycle later
    the product is added to the upper half of a sum that shifts right. Digits of 4 or 8 bits are
    multiplied in two halves, which takes one cycle more.

    Parameters
    ----------
    a : shape
        32 bits.
    constant : int
        Below 2^32.
    extra : shape
        A value that accompanies the factors.
    cycles : int
        A power of two, up to 32.
    target : str
        The target of the Config.

    Attributes
    ----------
    start : In, 1 bit
        The inputs are valid. Starts are at least ``cycles`` cycles apart.
    a : In, 32 bits
        First factor; valid with ``start``.
    b : In, 32 bits
        Second factor; valid with ``start``.
    extra : In, ``extra``
        Valid with ``start``.
    product : Out, 64 bits
        Valid `latency` cycles after ``start``, for one cycle.
    o_extra : Out, ``extra``
        Valid `latency` cycles after ``start``, for `stable` cycles.
    """

    @classmethod
    def latency(cls, cycles):
        """Cycles from ``start`` to ``product``."""
        return scale_product(cycles)

    @classmethod
    def stable(cls, cycles):
        """Cycles for which ``o_extra`` is valid."""
        return max(1, cycles - 1 - (cycles in HALVED_CYCLES))

    def __init__(self, *, a, constant, extra, cycles, target):
        self.constant = constant
        self.cycles = cycles
        self.target = target
        self.shape = signed(64) if signed(32) == a else unsigned(64)
        super().__init__({
            "start": In(1), "a": In(a), "b": In(32), "extra": In(extra),
            "product": Out(self.shape), "o_extra": Out(extra),
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
                part = FABRICS[self.target].multiplier(a=a[x].shape(), b=b[y].shape())
                m.submodules[f"part_{x}{y}"] = part
                m.d.comb += [part.a.eq(a[x]), part.b.eq(b[y])]
                parts[x, y] = part.product
        outer = Cat(parts[0, 0], parts[1, 1])
        if self.constant:
            zeros = (self.constant & -self.constant).bit_length() - 1
            outer = Cat(outer[:zeros], (outer[zeros:] + (self.constant >> zeros))[: 64 - zeros])
        s_outer = pipeline(m, outer, 1, "outer")
        s_middle = pipeline(m, parts[0, 1] + parts[1, 0], 1, "middle")
        m.d.sync += self.product.eq(Cat(s_outer[:16], s_outer[16:] + s_middle))
        m.d.comb += self.o_extra.eq(pipeline(m, self.extra, self.latency(1), "extra"))

    def _by_digits(self, m):
        bits = 32 // self.cycles
        remaining = Signal(range(self.cycles + 1))  # digits
        a = Signal.like(self.a, reset_less=True)
        # Digits leave b at its low end. Digits of the product enter ``low`` at its high end.
        b, low = Signal(32, reset_less=True), Signal(32, reset_less=True)
        high = Signal(signed(33) if self.shape.signed else 33, reset_less=True)
        extra = Signal.like(self.extra, reset_less=True)
        first, term = remaining == self.cycles, a * b[:bits]
        if self.cycles in HALVED_CYCLES:
            half = bits // 2
            h_terms = [pipeline(m, a * b[n : n + half], 1, f"half_{n}") for n in (0, half)]
            first, term = pipeline(m, first, 1, "first"), h_terms[0] + (h_terms[1] << half)
        p_first = Signal()
        p_term = Signal(term.shape(), reset_less=True)
        total = Mux(p_first, Const(self.constant, high.shape()), high) + p_term
        m.d.sync += [
            remaining.eq(remaining - remaining.any()),
            b.eq(b >> bits),
            p_first.eq(first), p_term.eq(term),
            high.eq(total >> bits),
            low.eq(Cat(low[bits:], total[:bits])),
        ]
        with m.If(remaining == 1):
            m.d.sync += self.o_extra.eq(extra)
        with m.If(self.start):
            m.d.sync += [
                remaining.eq(self.cycles), a.eq(self.a), b.eq(self.b), extra.eq(self.extra),
            ]
        m.d.comb += self.product.eq(Cat(low, high))
