"""The BF16 MAC cell, a fused multiply-add of bfloat16 pairs in binary32, as in IEEE 754.

The unpackers are its decoders (`weft.hw.arith.mac.Mac`): components at the edge of the array that
split operands and start values into their fields, once for a whole row or column of PEs.
"""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.mac import Mac
from weft.hw.arith.multiplier import Multiplier, PlainMultiplier
from weft.latencies import UNPACKER
from weft.mac_cells import MAC_CELLS

__all__ = [
    "Bf16Mac", "Bf16Unpacker", "Ecp5Bf16Mac", "Ecp5FlushingBf16Mac", "FlushingBf16Mac",
    "FlushingBf16Unpacker", "FlushingFp32Unpacker", "Fp32Unpacker", "UnpackedBf16", "UnpackedFp32",
]


class UnpackedBf16(data.Struct):
    """``(-1)**sign * (128 + fraction) / 128 * 2**(exponent - 127)``, unless a flag is set.

    The exponent and the fraction of a zero, an infinity or a NaN are undefined.
    """

    fraction: 7
    exponent: signed(9)  # 1..254, and -6..0 for a subnormal number
    sign: 1
    zero: 1
    special: 1  # an infinity or a NaN
    nan: 1


class Bf16Unpacker(wiring.Component):
    """Unpacks a bfloat16 to an `UnpackedBf16`, LATENCY cycles later.

    It normalizes subnormal numbers: once at the array's edge, not in every PE.

    Attributes
    ----------
    i : In, 16 bits
        A bfloat16.
    o : Out, `UnpackedBf16`
        LATENCY cycles after ``i``.
    """

    LATENCY = UNPACKER
    FLUSH = False

    def __init__(self):
        super().__init__({"i": In(16), "o": Out(UnpackedBf16)})

    def elaborate(self, platform):
        m = Module()
        fraction, exponent, sign = self.i[:7], self.i[7:15], self.i[15]
        exponent_zero = exponent == 0
        exponent_ones = exponent.all()
        m.d.sync += [
            self.o.fraction.eq(fraction),
            self.o.exponent.eq(exponent),
            self.o.sign.eq(sign),
            self.o.zero.eq(exponent_zero if self.FLUSH else exponent_zero & ~fraction.any()),
            self.o.special.eq(exponent_ones),
            self.o.nan.eq(exponent_ones & fraction.any()),
        ]
        if not self.FLUSH:
            with m.If(exponent_zero):
                for bit in range(7):  # the highest bit that is set has priority
                    with m.If(fraction[bit]):
                        m.d.sync += [
                            self.o.fraction.eq(fraction << (7 - bit)),
                            self.o.exponent.eq(bit - 6),
                        ]
        return m


class FlushingBf16Unpacker(Bf16Unpacker):
    """A `Bf16Unpacker` that makes subnormal numbers zeros of the same sign."""

    FLUSH = True


class UnpackedFp32(data.Struct):
    """A binary32; the fraction and the exponent of an infinity or a NaN are undefined."""

    fraction: 23
    exponent: 8
    sign: 1
    special: 1  # an infinity or a NaN
    nan: 1


class Fp32Unpacker(wiring.Component):
    """Unpacks a binary32 to an `UnpackedFp32`, LATENCY cycles later.

    Attributes
    ----------
    i : In, 32 bits
        A binary32.
    o : Out, `UnpackedFp32`
        LATENCY cycles after ``i``.
    """

    LATENCY = UNPACKER
    FLUSH = False

    def __init__(self):
        super().__init__({"i": In(32), "o": Out(UnpackedFp32)})

    def elaborate(self, platform):
        m = Module()
        fraction, exponent, sign = self.i[:23], self.i[23:31], self.i[31]
        exponent_ones = exponent.all()
        m.d.sync += [
            self.o.fraction.eq(fraction),
            self.o.exponent.eq(exponent),
            self.o.sign.eq(sign),
            self.o.special.eq(exponent_ones),
            self.o.nan.eq(exponent_ones & fraction.any()),
        ]
        if self.FLUSH:
            with m.If(~exponent.any()):
                m.d.sync += self.o.fraction.eq(0)
        return m


class FlushingFp32Unpacker(Fp32Unpacker):
    """A `Fp32Unpacker` that makes subnormal numbers zeros of the same sign."""

    FLUSH = True


# Widths of significands; the first bit has the highest weight:
#   a sum or a product   24 bits; the first is the hidden bit, of weight 1
#   an addend            28 bits: these 24, 3 more, and a sticky bit for all bits below
#   a total              29 bits: a bit of weight 2, and these 28
_EXTRA = 4  # bits of an addend below a sum's last bit
_ADDEND = 24 + _EXTRA
_WINDOW = _ADDEND - 1  # an addend without its sticky bit
_TOTAL = _ADDEND + 1


class Bf16Mac(Mac):
    """``sum <= round(start + a * b)``, with one rounding, to nearest even, in binary32.

    It follows IEEE 754, with subnormal numbers, infinities and signed zeros. Every NaN that it
    computes is 0x7fc00000. A cycle without ``en`` adds -0, which changes nothing.

    The eight sums rotate through the eight stages of one adder, whose last stage is the sum. A
    method makes one stage, ``_normalize`` three; the names of a stage's registers begin as listed:

    ============== ========== =====================================================================
    ``_multiply``  f, p       before the loop: the exact product and its exponent
    ``_start``     d          selects the rotating sum or another start; subtracts the exponents
    ``_swap``      s          ``big`` has the larger exponent; the other number shifts right by 16
    ``_align``     a          ... and by 8, 4 and 2
    ``_add``       t          ... and by 1; adds or subtracts; the total may be negative
    ``_normalize`` n, o, r    shifts the magnitude left until it starts with a 1: by 16; by 8 and 4;
                              by 2 and 1
    ``_round``     acc        adds the rounding increment, in one carry chain for fraction and
                              exponent
    ============== ========== =====================================================================

    A parameter with such a name holds the registers of that stage.

    A product has 16 bits, and the first may be 0. So the smaller number is shifted into a window
    with three bits more than a sum, and a sticky bit for all bits below. A negative difference has
    its bits inverted; that is its magnitude minus one unit of the last bit. The rounding adds this
    missing one. A left shift is limited by the smallest exponent, so a subnormal number needs no
    other path.

    Source: IEEE 754-2019, clauses 3.4, 4.3.1, 5.4.1 (fusedMultiplyAdd), 6 and 7.
    """

    LATENCY = MAC_CELLS["bf16"].latency
    SLOTS = MAC_CELLS["bf16"].slots
    A = UnpackedBf16
    B = UnpackedBf16
    ACC = 32
    START = UnpackedFp32
    OPERAND_DECODER = Bf16Unpacker
    START_DECODER = Fp32Unpacker
    FLUSH = False
    MULTIPLIER = PlainMultiplier

    def elaborate(self, platform):
        m = Module()
        acc = SimpleNamespace(**{
            name: Signal(width, name=f"acc_{name}") for name, width in (
                ("fraction", 23), ("exponent", 9), ("sign", 1), ("special", 1), ("nan", 1),
            )
        })
        product = self._multiply(m)
        stage = self._start(m, acc, product)
        for step in (self._swap, self._align, self._add, self._normalize):
            stage = step(m, stage)
        self._round(m, acc, stage)
        return m

    def _multiply(self, m):
        """The product and its exponent; two stages."""
        a, b = self.a[0], self.b[0]
        m.submodules.multiplier = multiplier = self.MULTIPLIER(
            a=unsigned(8), b=unsigned(8), pipelined=False
        )
        m.d.comb += [
            multiplier.a.eq(Cat(a.fraction, Const(1, 1))),
            multiplier.b.eq(Cat(b.fraction, Const(1, 1))),
        ]
        f = _stage(
            m, "f", exponent=a.exponent + b.exponent,
            sign=(a.sign ^ b.sign) | ~self.en,
            zero=a.zero | b.zero | ~self.en,
            special=(a.special | b.special) & self.en,
            # IEEE 754, 6.2 and 7.2: a NaN, or an infinity times zero
            nan=(a.nan | b.nan | (a.special & b.zero) | (a.zero & b.special)) & self.en,
        )
        p = _stage(
            m, "p",
            # Of the first of the product's 16 bits, whose weight is 2 * 1.0: both exponents, less
            # one bias of 127, plus 1.
            exponent=(f.exponent - 126)[:10].as_signed(),
            zero=f.zero & ~f.special, sign=f.sign, special=f.special, nan=f.nan,
        )
        p.product = multiplier.product
        return p

    def _start(self, m, acc, p):
        """Drives ``sum``; selects the start and computes the difference of the exponents."""
        special = Signal()
        m.d.comb += [
            special.eq(acc.special | acc.exponent[8] | acc.exponent[:8].all()),  # IEEE 754, 7.4
            self.sum.eq(Cat(
                acc.fraction[:22] & ~special.replicate(22),
                (acc.fraction[22] & ~special) | acc.nan,
                acc.exponent[:8] | special.replicate(8),
                acc.sign & ~acc.nan,
            )),
        ]
        rotating = {**vars(acc), "exponent": acc.exponent[:8], "special": special}
        start = SimpleNamespace(**{
            name: Mux(self.preload, self.init[name], Mux(self.clear, 0, value))
            for name, value in rotating.items()
        })
        normal = Signal()
        exponent = Signal(8)
        m.d.comb += [
            normal.eq(start.exponent.any()),
            # IEEE 754, 3.4: the field of a subnormal number is 0, its exponent is that of 1.
            exponent.eq(start.exponent | ~normal),
        ]
        return _stage(
            m, "d", difference=(exponent - p.exponent)[:10].as_signed(),
            sum=Cat(start.fraction, normal), sum_exponent=exponent, sum_sign=start.sign,
            sum_special=start.special,
            product=p.product, product_exponent=p.exponent[:9], product_sign=p.sign,
            product_special=p.special, zero=p.zero, nan=start.nan | p.nan,
        )

    def _swap(self, m, d):
        """Orders sum and product by exponent, and shifts the smaller one right by 16."""
        swap = Signal()
        m.d.comb += swap.eq((d.difference < 0) & ~d.zero)
        product = Cat(Const(0, 8), d.product)
        # The smaller number shifts right by the size of the difference. A sum lies one bit lower
        # in the window than a product, so it shifts by one less: -difference - 1 == ~difference.
        small = Mux(swap, d.sum, product << 1)
        shift = d.difference[:5] ^ swap.replicate(5)
        far = (d.difference[5:9] ^ d.difference[9].replicate(4)).any() | d.zero
        addend = Cat(Const(0, 2), small)[:_WINDOW]
        subtract = d.sum_sign ^ d.product_sign
        special = d.sum_special | d.product_special
        return _stage(
            m, "s", big=Mux(swap, product, d.sum), shift=shift[:4],
            small=Mux(shift[4], addend >> 16, addend)[:_WINDOW] & ~far.replicate(_WINDOW),
            sticky=~d.zero & (far | (shift[4] & addend[:16].any())),
            exponent=Mux(swap, d.product_exponent, d.sum_exponent),
            subtract=subtract,
            sign=Mux(Mux(special, d.sum_special, ~swap), d.sum_sign, d.product_sign),
            special=special,
            nan=d.nan | (d.sum_special & d.product_special & subtract),  # inf - inf
        )

    def _align(self, m, s):
        """Shifts the smaller number right by 8, 4 and 2."""
        small, sticky = s.small, s.sticky
        for level in (3, 2, 1):
            places = 1 << level
            sticky = sticky | (s.shift[level] & small[:places].any())
            shifted = Signal(_WINDOW, name=f"small_{places}")
            m.d.comb += shifted.eq(Mux(s.shift[level], small >> places, small))
            small = shifted
        return _stage(
            m, "a", small=small, sticky=sticky, shift=s.shift[0], big=s.big, subtract=s.subtract,
            exponent=s.exponent, sign=s.sign, special=s.special, nan=s.nan,
        )

    def _add(self, m, a):
        """Shifts the smaller number right by 1, then adds or subtracts it."""
        sticky = a.sticky | (a.shift & a.small[0])
        small = Cat(sticky, Mux(a.shift, a.small >> 1, a.small)[:_WINDOW])
        # The lowest bits of both operands make the carry in: 1 + subtract.
        total = Signal(_TOTAL + 1)
        m.d.comb += total.eq(
            Cat(Const(1, 1), Const(0, _EXTRA), a.big)
            + Cat(a.subtract, small ^ a.subtract.replicate(_ADDEND))
        )
        # A negative difference has no carry out; its first bit becomes 1.
        carry = total[-1]
        return _stage(
            m, "t", total=Cat(total[1:-1], carry ^ a.subtract), negative=a.subtract & ~carry,
            subtract=a.subtract, exponent=a.exponent, sign=a.sign, special=a.special, nan=a.nan,
        )

    def _normalize(self, m, t):
        """Shifts the magnitude left until it starts with a 1, or the exponent stops it."""
        def zeros(bits):  # whether these bits are 0 after a negative number is inverted
            return Mux(t.negative, bits.all(), ~bits.any())

        limited = ~t.exponent[5:].any()  # from 2^5 on the exponent allows any shift
        total = t.total
        value, limited, by16 = self._shift_left(m, 4, t, total, limited, zeros(total[13:]), 0)
        is_zero = ~total.any()
        n = _stage(
            m, "n", value=value, limited=limited, by16=by16,
            # For the shift by 8: computed here, because the next stage makes two shifts.
            zeros=Mux(by16, zeros(total[5:13]), zeros(total[21:])),
            is_zero=is_zero, negative=t.negative, exponent=t.exponent, special=t.special, nan=t.nan,
            # IEEE 754, 6.3: the difference of equal numbers is +0
            sign=Mux(t.special, t.sign, (t.sign ^ t.negative) & ~(is_zero & t.subtract)),
        )
        value, limited, by8 = self._shift_left(m, 3, n, n.value, n.limited, n.zeros, 0)
        inverted = value ^ n.negative.replicate(_TOTAL)
        value, limited, by4 = self._shift_left(m, 2, n, inverted, limited)
        n = _stage(
            m, "o", value=value, limited=limited, shift=Cat(by4, by8, n.by16), is_zero=n.is_zero,
            negative=n.negative, exponent=n.exponent, special=n.special, nan=n.nan, sign=n.sign,
        )
        value, limited, by2 = self._shift_left(m, 1, n, n.value, n.limited)
        value, limited, by1 = self._shift_left(m, 0, n, value, limited)
        rest = value[:_EXTRA]
        return _stage(
            m, "r", fraction=value[_EXTRA + 1 : _ADDEND], first=value[-1], guard=value[_EXTRA],
            rest=Mux(n.negative, ~rest.all(), rest.any()), negative=n.negative,
            exponent=(n.exponent - (n.shift << 2))[:10].as_signed(), shift=Cat(by1, by2),
            is_zero=n.is_zero, special=n.special, nan=n.nan, sign=n.sign,
        )

    def _shift_left(self, m, level, n, value, limited, zeros=None, fill=None):
        """``value << 2^level`` if its first 2^level bits are zeros and the exponent allows it.

        All shifts together may not exceed ``n.exponent``. While ``limited``, the shifts so far use
        up the higher bits of the exponent exactly, so this one needs a 1 in its bit ``level``. Once
        a shift was not made though that bit is 1, any further one is allowed. Returns value,
        limited, and whether it was shifted.
        """
        places = 1 << level
        before = Signal(_TOTAL, name=f"before_{places}")
        shift = Signal(name=f"shift_{places}")
        shifted = Signal(_TOTAL, name=f"shifted_{places}")
        zeros = ~before[-places:].any() if zeros is None else zeros
        # The bits shifted in are 0, inverted like the other bits.
        fill = n.negative.replicate(places) if fill is None else Const(fill, places)
        m.d.comb += [
            before.eq(value),
            shift.eq(zeros & (~limited | n.exponent[level])),
            shifted.eq(Mux(shift, Cat(fill, before), before)),
        ]
        return shifted, limited & (shift == n.exponent[level]), shift

    def _round(self, m, acc, r):
        """Rounds to nearest even, and writes the sum."""
        # IEEE 754, 4.3.1, to nearest even. Below ``fraction``, the bits of a negative number are
        # those of its magnitude minus one unit, which the increment adds.
        last = r.fraction[0]
        increment = Mux(r.negative, r.guard | (~r.rest & last), r.guard & (r.rest | last))
        change = Signal(signed(10))
        total = Signal(33)
        m.d.comb += [
            # ``first`` has the weight 2, so it adds 1 to the exponent. A number whose ``first`` is
            # 0 was shifted by its whole exponent: 0 is left, which says that it is subnormal.
            change.eq(r.first - r.shift),
            total.eq(Cat(r.fraction, r.exponent) + Cat(increment, Const(0, 22), change)),
        ]
        m.d.sync += [
            acc.fraction.eq(total[:23]),
            acc.exponent.eq(total[23:32]),
            Cat(acc.sign, acc.special, acc.nan).eq(Cat(r.sign, r.special, r.nan)),
        ]
        with m.If(r.is_zero):
            m.d.sync += [acc.fraction.eq(0), acc.exponent.eq(0)]
        if self.FLUSH:
            # Subnormal after the rounding too; its exponent is already 0.
            with m.If(~r.first & ~(increment & r.fraction.all())):
                m.d.sync += acc.fraction.eq(0)


class FlushingBf16Mac(Bf16Mac):
    """A `Bf16Mac` that flushes subnormal operands, starts and sums to zeros of the same sign.

    A sum is flushed after it is rounded: a sum that rounds to the least normal number is kept.
    """

    OPERAND_DECODER = FlushingBf16Unpacker
    START_DECODER = FlushingFp32Unpacker
    FLUSH = True


class Ecp5Bf16Mac(Bf16Mac):
    """A `Bf16Mac` that multiplies in a DSP block with registers at its operands and its product."""

    MULTIPLIER = Multiplier


class Ecp5FlushingBf16Mac(FlushingBf16Mac):
    """A `FlushingBf16Mac` that multiplies in a DSP block, as `Ecp5Bf16Mac` does."""

    MULTIPLIER = Multiplier


def _stage(m, name, **values):
    """``values``, one stage later: registers named ``<name>_<value>``, as attributes."""
    registers = {}
    for key, value in values.items():
        registers[key] = Signal(value.shape(), name=f"{name}_{key}")
        m.d.sync += registers[key].eq(value)
    return SimpleNamespace(**registers)
