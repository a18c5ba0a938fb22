"""The BF16 leaf: a fused multiply-add of bfloat16 pairs in binary32, exact to IEEE 754."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed

from weft.hw.arith.mac import Mac
from weft.hw.arith.unpacked_bf16 import Bf16Unpacker, FlushingBf16Unpacker, UnpackedBf16
from weft.hw.arith.unpacked_fp32 import FlushingFp32Unpacker, Fp32Unpacker, UnpackedFp32

__all__ = ["Bf16Mac", "FlushingBf16Mac"]

# A stage's numbers, from the most significant bit on, each bit half as much as the one before:
#   of a sum or a product   24 bits, the first of which is the hidden one (of weight 1)
#   of what is added        28 bits: those, 3 more, and one for all that is below them (sticky)
#   of a total              29 bits: one of weight 2, and those
_EXTRA = 4
_TOTAL = 24 + _EXTRA + 1


class Bf16Mac(Mac):
    """``sum <= round(start + a * b)``, once, to nearest even; ``sum`` and ``start`` are binary32.

    As IEEE 754 says, with subnormal numbers, infinities and signed zeros; every NaN that comes out
    is 0x7fc00000. A cycle without ``en`` adds -0, which changes nothing.

    The eight sums go round through the eight stages of one adder, the last of which is the sum:

    ============== ================================================================================
    ``_multiply``  the product, exact, and its exponent: two stages outside the loop
    ``_start``     the sum comes round, or another start does; how far the exponents are apart
    ``_swap``      the greater exponent's number is ``big``; the other moves right by 16
    ``_align``     ... and by 8, 4, 2
    ``_add``       ... and by 1; their sum or difference, perhaps negative
    ``_normalize`` its magnitude moves left until it starts with a 1: by 16, by 8 and 4, by 2 and 1
    ``_round``     one is added, or not, in one chain of fraction and exponent
    ============== ================================================================================

    A product has 16 bits, of which the first may be 0: the window that a smaller number is moved
    into has three bits more than a sum, and one that holds whether there was anything below them.
    Of a negative difference the bits are inverted, which is its magnitude less one in the last
    place; the one that lacks is added as the number is rounded. The number moves left no further
    than the smallest exponent allows: so a subnormal one comes out as any other.

    Source: IEEE 754-2019, clauses 3.4, 5.4.1 (fusedMultiplyAdd), 6 and 7.
    """

    LATENCY = 10
    SLOTS = 8
    A = UnpackedBf16
    B = UnpackedBf16
    ACC = 32
    START = UnpackedFp32
    OPERAND_DECODER = Bf16Unpacker
    START_DECODER = Fp32Unpacker
    FLUSH = False

    def elaborate(self, platform):
        m = Module()
        product = self._multiply(m)
        stage = self._start(m, product)
        for step in (self._swap, self._align, self._add):
            stage = step(m, stage)
        stage = self._normalize(m, stage)
        self._round(m, stage)
        return m

    def _multiply(self, m):
        a, b = self.a[0], self.b[0]
        f = _stage(
            m, "f", a=Cat(a.fraction, Const(1, 1)), b=Cat(b.fraction, Const(1, 1)),
            exponent=a.exponent + b.exponent,
            sign=(a.sign ^ b.sign) | ~self.en,
            zero=a.zero | b.zero | ~self.en,
            special=(a.special | b.special) & self.en,
            # 6.2, 7.2: a NaN, or an infinity times zero
            nan=(a.nan | b.nan | (a.special & b.zero) | (a.zero & b.special)) & self.en,
        )
        return _stage(
            m, "p", product=f.a * f.b,
            # that of the product's first bit, which has twice the weight of 1.0 * 1.0
            exponent=(f.exponent - 126)[:10].as_signed(),
            zero=f.zero & ~f.special, sign=f.sign, special=f.special, nan=f.nan,
        )

    def _start(self, m, p):
        acc = self._acc = SimpleNamespace(**{
            name: Signal(width, name=f"acc_{name}") for name, width in (
                ("fraction", 23), ("exponent", 9), ("sign", 1), ("special", 1), ("nan", 1),
            )
        })
        special = Signal()
        m.d.comb += [
            special.eq(acc.special | acc.exponent[8] | acc.exponent[:8].all()),  # 7.4: overflow
            self.sum.eq(Cat(
                acc.fraction[:22] & ~special.replicate(22),
                (acc.fraction[22] & ~special) | acc.nan,
                acc.exponent[:8] | special.replicate(8),
                acc.sign & ~acc.nan,
            )),
        ]
        now = {**vars(acc), "exponent": acc.exponent[:8], "special": special}
        start = SimpleNamespace(**{
            name: Mux(self.preload, self.init[name], Mux(self.clear, 0, value))
            for name, value in now.items()
        })
        normal = Signal()
        exponent = Signal(8)
        m.d.comb += [
            normal.eq(start.exponent.any()),
            exponent.eq(start.exponent | ~normal),  # 3.4: a subnormal number has the exponent 1
        ]
        return _stage(
            m, "d", apart=(exponent - p.exponent)[:10].as_signed(),
            sum=Cat(start.fraction, normal), sum_exponent=exponent, sum_sign=start.sign,
            sum_special=start.special,
            product=p.product, product_exponent=p.exponent[:9], product_sign=p.sign,
            product_special=p.special, zero=p.zero, nan=start.nan | p.nan,
        )

    def _swap(self, m, d):
        swap = Signal()
        m.d.comb += swap.eq((d.apart < 0) & ~d.zero)
        product = Cat(Const(0, 8), d.product)
        # The sum is moved one place at once, so that ~apart is how much further it has to go.
        small = Mux(swap, d.sum, product << 1)
        by = d.apart[:5] ^ swap.replicate(5)
        far = (d.apart[5:9] ^ d.apart[9].replicate(4)).any() | d.zero
        y = Cat(Const(0, 2), small)[:27]
        subtract = d.sum_sign ^ d.product_sign
        special = d.sum_special | d.product_special
        return _stage(
            m, "s", big=Mux(swap, product, d.sum), by=by[:4],
            small=Mux(by[4], y >> 16, y)[:27] & ~far.replicate(27),
            sticky=~d.zero & (far | (by[4] & y[:16].any())),
            exponent=Mux(swap, d.product_exponent, d.sum_exponent),
            subtract=subtract,
            sign=Mux(Mux(special, d.sum_special, ~swap), d.sum_sign, d.product_sign),
            special=special,
            nan=d.nan | (d.sum_special & d.product_special & subtract),  # 7.2: inf - inf
        )

    def _align(self, m, s):
        small, sticky = s.small, s.sticky
        for level in (3, 2, 1):
            places = 1 << level
            sticky = sticky | (s.by[level] & small[:places].any())
            moved = Signal(27, name=f"small_{places}")
            m.d.comb += moved.eq(Mux(s.by[level], small >> places, small))
            small = moved
        return _stage(
            m, "a", small=small, sticky=sticky, by=s.by[0], big=s.big, subtract=s.subtract,
            exponent=s.exponent, sign=s.sign, special=s.special, nan=s.nan,
        )

    def _add(self, m, a):
        sticky = a.sticky | (a.by & a.small[0])
        small = Cat(sticky, Mux(a.by, a.small >> 1, a.small)[:27])
        # The carry into the chain is the sum of its two last bits.
        total = Signal(_TOTAL + 1)
        m.d.comb += total.eq(
            Cat(Const(1, 1), Const(0, _EXTRA), a.big)
            + Cat(a.subtract, small ^ a.subtract.replicate(28))
        )
        # A difference that is negative has no carry, and is given the sign that it lacks.
        carry = total[-1]
        return _stage(
            m, "t", total=Cat(total[1:-1], carry ^ a.subtract), negative=a.subtract & ~carry,
            subtract=a.subtract, exponent=a.exponent, sign=a.sign, special=a.special, nan=a.nan,
        )

    def _normalize(self, m, t):
        def zeros(bits):  # in front, once a negative number is inverted
            return Mux(t.negative, bits.all(), ~bits.any())

        limited = ~t.exponent[5:].any()  # above 2^5 the exponent allows any move
        total = t.total
        value, left, by16 = self._move(m, 4, t, total, limited, zeros(total[13:]), 0)
        nothing = ~total.any()
        n = _stage(
            m, "n", value=value, limited=left, by16=by16,
            zeros=Mux(by16, zeros(total[5:13]), zeros(total[21:])),  # for the next move
            nothing=nothing, negative=t.negative, exponent=t.exponent, special=t.special, nan=t.nan,
            # 6.3: the difference of equal numbers is +0
            sign=Mux(t.special, t.sign, (t.sign ^ t.negative) & ~(nothing & t.subtract)),
        )
        value, left, by8 = self._move(m, 3, n, n.value, n.limited, n.zeros, 0)
        value, left, by4 = self._move(m, 2, n, value ^ n.negative.replicate(_TOTAL), left)
        n = _stage(
            m, "o", value=value, limited=left, moved=Cat(by4, by8, n.by16), nothing=n.nothing,
            negative=n.negative, exponent=n.exponent, special=n.special, nan=n.nan, sign=n.sign,
        )
        value, left, by2 = self._move(m, 1, n, n.value, n.limited)
        value, left, by1 = self._move(m, 0, n, value, left)
        rest = value[:_EXTRA]
        return _stage(
            m, "r", fraction=value[5:28], first=value[28], guard=value[4],
            rest=Mux(n.negative, ~rest.all(), rest.any()), negative=n.negative,
            exponent=(n.exponent - (n.moved << 2))[:10].as_signed(), moved=Cat(by1, by2),
            nothing=n.nothing, special=n.special, nan=n.nan, sign=n.sign,
        )

    def _move(self, m, level, n, value, limited, zeros=None, fill=None):
        """``value`` moved left by 2^level if that many bits in front are zeros, and may go.

        The moves so far may not exceed ``n.exponent``; ``limited`` says that they are equal to it
        as far as their bits go. Gives all three: value, limited, and whether it was moved.
        """
        places = 1 << level
        before = Signal(_TOTAL, name=f"before_{places}")
        move = Signal(name=f"move_{places}")
        moved = Signal(_TOTAL, name=f"moved_{places}")
        zeros = ~before[-places:].any() if zeros is None else zeros
        # What comes in from below is 0, inverted as the rest is.
        fill = n.negative.replicate(places) if fill is None else Const(fill, places)
        m.d.comb += [
            before.eq(value),
            move.eq(zeros & (~limited | n.exponent[level])),
            moved.eq(Mux(move, Cat(fill, before), before)),
        ]
        return moved, limited & (move == n.exponent[level]), move

    def _round(self, m, r):
        # 4.3.1, to nearest even; of a negative number what is cut off is inverted, less one.
        last = r.fraction[0]
        up = Mux(r.negative, r.guard | (~r.rest & last), r.guard & (r.rest | last))
        change = Signal(signed(10))
        total = Signal(33)
        m.d.comb += [
            # The exponent of a number that starts with a 0 is 0, of others one more.
            change.eq(r.first - r.moved),
            total.eq(Cat(r.fraction, r.exponent) + Cat(up, Const(0, 22), change)),
        ]
        acc = self._acc
        m.d.sync += [
            acc.fraction.eq(total[:23]),
            acc.exponent.eq(total[23:32]),
            Cat(acc.sign, acc.special, acc.nan).eq(Cat(r.sign, r.special, r.nan)),
        ]
        with m.If(r.nothing):
            m.d.sync += [acc.fraction.eq(0), acc.exponent.eq(0)]
        if self.FLUSH:
            # Still subnormal when rounded: it has the exponent 0 already.
            with m.If(~r.first & ~(up & r.fraction.all())):
                m.d.sync += acc.fraction.eq(0)


class FlushingBf16Mac(Bf16Mac):
    """A `Bf16Mac` to which subnormal operands are zeros, and what comes out subnormal is one.

    Each keeps its sign. A sum is rounded as if it were to stay: so one that rounds to the least
    normal number is that.
    """

    OPERAND_DECODER = FlushingBf16Unpacker
    START_DECODER = FlushingFp32Unpacker
    FLUSH = True


def _stage(m, name, **values):
    """``values`` a stage later: registers ``<name>_<value>``, as attributes."""
    registers = {}
    for key, value in values.items():
        registers[key] = Signal(value.shape(), name=f"{name}_{key}")
        m.d.sync += registers[key].eq(value)
    return SimpleNamespace(**registers)
