"""A scaler in few logic cells: the product and its shift take several cycles."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.latencies import serial_digits, serial_fine_shift, serial_product, serial_scaler

__all__ = ["DigitSource", "SerialProduct", "SerialScaler", "SerialShifter"]


class DigitSource(wiring.Component):
    """Digit ``n`` of ``acc << left``, modulo 2^32, `LATENCY` + n cycles after ``start``.

    The shift by whole digits delays the digits: zeros come first. The shift by the rest takes each
    digit from two neighbouring digits of ``acc``.

    Parameters
    ----------
    bits : int
        Bits of a digit: 2, 4 or 8.

    Attributes
    ----------
    start : In, 1 bit
        Starts are at least as many cycles apart as a sum has digits.
    acc : In, 32 bits
        Valid in the cycle after ``start`` and while its digits are sent.
    left : In, 5 bits
        Valid with ``start`` and in the next cycle.
    digit : Out, ``bits`` bits
    below : Out, 1 bit
        The bit below ``digit``: the highest bit of the digit before, 0 below the first digit.
    """

    LATENCY = 2

    def __init__(self, *, bits):
        self.bits = bits
        super().__init__({
            "start": In(1), "acc": In(32), "left": In(5), "digit": Out(bits), "below": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        bits, fine_bits = self.bits, ceil_log2(self.bits)
        index = Signal(signed(6 - fine_bits))  # of the next digit of acc; below 0: a zero
        first = Signal()  # the next digit is the first one
        digit, before = Signal(bits), Signal(bits - 1)  # two neighbouring digits of acc
        fine = Signal(fine_bits)
        m.d.sync += [
            first.eq(self.start),
            index.eq(Mux(self.start, -self.left[fine_bits:], index + 1)),
            digit.eq(self.acc.word_select(index[:-1], bits)),
            before.eq(digit[1:]), self.below.eq(self.digit[-1]),
        ]
        with m.If(index[-1]):
            m.d.sync += digit.eq(0)
        with m.If(first):
            m.d.sync += [before.eq(0), self.below.eq(0), fine.eq(self.left)]
        m.d.comb += self.digit.eq(Cat(before, digit) >> ~fine)
        return m


_UPPER = 14  # bits of the upper half of a sum


class SerialProduct(wiring.Component):
    """``product = (sum of digit n * 2^(bits * n) * multiplier + 2^30) >> 31``.

    The digits form a signed number of 32 bits. Each pair of bits selects a multiple of the
    multiplier, -2 to 2 times (Booth, radix 4). The multiples of a digit are added in a tree. Their
    total is added to a sum that shifts right. The product is valid a cycle after the total of the
    last digit, for one cycle.

    A negative multiple is the complement; the 1 that is missing enters the next adder as a carry.

    Parameters
    ----------
    bits : int
        Bits of a digit: a power of two, 2 or more.
    short_chains : bool
        The sums have two halves: their carry chains are short, for a fast clock, and take more
        cells.

    Attributes
    ----------
    digit : In, ``bits`` bits
    below : In, 1 bit
        The bit below ``digit``.
    first : In, 1 bit
        The total of the first digit is valid: `latency` - 1 cycles after that digit.
    multiplier : In, 31 bits
        Valid from the cycle after the first digit to the cycle after the last one.
    product : Out, signed 32 bits
    """

    def __init__(self, *, bits, short_chains=True):
        self.bits, self.short_chains = bits, short_chains
        super().__init__({
            "digit": In(bits), "below": In(1), "first": In(1), "multiplier": In(31),
            "product": Out(signed(32)),
        })

    def latency(self):
        """Cycles from the last digit to the product."""
        return 3 + (self.bits // 2 - 1).bit_length()

    def elaborate(self, platform):
        m = Module()
        bits = Cat(self.below, self.digit)
        terms = [self._multiple(m, n, *bits[n : n + 3]) for n in range(0, self.bits, 2)]
        width = 2  # bits of the digit that a term stands for
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=True)
            terms = [self._added(m, n, width, *pair) for n, pair in enumerate(pairs)]
            width *= 2
        [(term, carry)] = terms
        start = Signal(signed(32 + self.bits))
        total = self._sum(m, start, term, carry, "total")
        m.d.comb += [
            start.eq(Mux(self.first, 1 << 30, total[self.bits :].as_signed())),
            self.product.eq(total[self.bits - 1 :]),
        ]
        return m

    def _multiple(self, m, n, below, low, high):
        """The multiple of the multiplier for two bits, and its carry."""
        zero, double, negative = (
            Signal(name=f"{name}_{n}") for name in ("zero", "double", "negative")
        )
        all_equal = (high == low) & (low == below)
        m.d.sync += [
            zero.eq(all_equal), double.eq(low == below), negative.eq(high & ~all_equal),
        ]
        multiple = Signal(signed(33), name=f"multiple_{n}", reset_less=True)
        chosen = Mux(double, Cat(0, self.multiplier), self.multiplier)
        m.d.sync += multiple.eq(Cat(chosen, 0) ^ negative.replicate(33))
        with m.If(zero):
            m.d.sync += multiple.eq(0)
        return multiple, pipeline(m, negative, 1, f"carry_{n}")

    def _added(self, m, n, width, low, high):
        """``low + (high << width)`` of two terms; the carry of ``high`` enters here."""
        (low, carry), (high, high_carry) = low, high
        upper = self._sum(m, high, low[width:].as_signed(), high_carry, f"term_{width}_{n}")
        return (
            Cat(pipeline(m, low[:width], 1, f"low_{width}_{n}"), upper).as_signed(),
            pipeline(m, carry, 1, f"carry_{width}_{n}"),
        )

    def _sum(self, m, a, b, carry, name):
        """``a + b + carry``, a cycle later, as wide as the wider one of ``a`` and ``b``.

        Of a sum with two halves, the upper half is added with and without a carry from the lower
        half; the carry selects one of both in the next cycle.
        """
        terms = [Signal(signed(max(len(a), len(b))), name=f"{name}_{part}") for part in "ab"]
        m.d.comb += [terms[0].eq(a), terms[1].eq(b)]
        a, b = terms
        if not self.short_chains:
            total = Signal(signed(len(a)), name=name, reset_less=True)
            m.d.sync += total.eq((Cat(1, a) + Cat(carry, b))[1:])
            return total
        half = len(a) - _UPPER
        lower = Signal(half, name=f"{name}_lower", reset_less=True)
        without_carry, with_carry = (
            Signal(_UPPER, name=f"{name}_{case}", reset_less=True)
            for case in ("without_carry", "with_carry")
        )
        # The inverter is the LUT that takes a carry into the cell of a register of an iCE40.
        no_carry = Signal(name=f"{name}_no_carry", reset_less=True)
        m.d.sync += [
            Cat(lower, no_carry).eq((Cat(1, a[:half]) + Cat(carry, b[:half]))[1:] ^ (1 << half)),
            without_carry.eq(a[half:] + b[half:]),
            with_carry.eq((Cat(1, a[half:]) + Cat(1, b[half:]))[1:]),
        ]
        return Cat(lower, Mux(no_carry, without_carry, with_carry)).as_signed()


class SerialShifter(wiring.Component):
    """``y = value >> right`` if ``fits``, valid ``31 // bits + 1`` cycles after ``start``.

    Before that a register shifts by ``bits`` bits a cycle; the rest of the shift is combinational.

    Parameters
    ----------
    bits : int
        Bits of a step: a power of two, 2 or more.

    Attributes
    ----------
    start : In, 1 bit
    value : In, signed 32 bits
        Valid with ``start``.
    right : In, 5 bits
        Valid with ``start``.
    y : Out, signed ``10 + bits`` bits
    fits : Out, 1 bit
        ``y`` has the whole value.
    negative : Out, 1 bit
        The value is negative.
    half : Out, 1 bit
        The highest bit that was shifted out.
    sticky : Out, 1 bit
        Another 1 was shifted out. All outputs are stable until the next start.
    """

    def __init__(self, *, bits):
        self.bits = bits
        super().__init__({
            "start": In(1), "value": In(signed(32)), "right": In(5),
            "y": Out(signed(10 + bits)), "fits": Out(1), "negative": Out(1), "half": Out(1),
            "sticky": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        fine_bits = ceil_log2(self.bits)
        shift = Signal(signed(33), reset_less=True)  # its bit 0 is the last one shifted out
        lost = Signal(reset_less=True)  # a 1 was shifted out of it
        steps, fine = Signal(5 - fine_bits, reset_less=True), Signal(fine_bits, reset_less=True)
        with m.If(self.start):
            m.d.sync += [
                shift.eq(Cat(0, self.value)), lost.eq(0), Cat(fine, steps).eq(self.right),
            ]
        with m.Elif(steps.any()):
            m.d.sync += [
                shift.eq(shift >> self.bits), lost.eq(lost | shift[: self.bits].any()),
                steps.eq(steps - 1),
            ]
        end = 10 + self.bits  # index of the sign of y
        sticky, window = lost, shift[: end + 1].as_signed()
        for power in reversed(range(fine_bits)):
            sticky |= fine[power] & window[: 1 << power].any()
            window = Mux(fine[power], window >> (1 << power), window)
        m.d.comb += [
            self.half.eq(window[0]), self.y.eq(window[1:].as_signed()), self.sticky.eq(sticky),
            self.fits.eq(shift[end:].all() | ~shift[end:].any()), self.negative.eq(shift[-1]),
        ]
        return m


class SerialScaler(wiring.Component):
    """``y = scale(acc)``, LATENCY cycles after ``start``, with the bits of a `TfliteScaler`.

    A result beyond -1023..1023 may be another one beyond, with its sign: a clamp to int8 treats all
    of them alike.

    Parameters
    ----------
    cycles : int
        4, 8, 16 or 32. Starts are at least so many cycles apart.
    short_chains : bool
        As of a `SerialProduct`.
    holds_multiplier : bool
        A register holds the multiplier. Otherwise the output of a memory does.

    Attributes
    ----------
    start : In, 1 bit
        The next sum follows.
    acc : In, signed 32 bits
        Valid from the cycle after ``start`` to the next ``start``.
    multiplier, shift : In, 32 bits, signed 8 bits
        Valid with ``start``, for HELD cycles; a multiplier that is not held comes a cycle after
        ``reads_multiplier``, and stays until the cycle of the next one.
    reads_multiplier : Out, 1 bit; only if the multiplier is not held
    y : Out, signed
        Valid for one cycle.
    """

    HELD = 3

    def __init__(self, *, cycles, short_chains=True, holds_multiplier=True):
        self.cycles, self.short_chains = cycles, short_chains
        self.holds_multiplier = holds_multiplier
        self.bits = 32 // serial_digits(cycles)
        self.LATENCY = serial_scaler(cycles)
        super().__init__({
            "start": In(1), "acc": In(signed(32)), "multiplier": In(32), "shift": In(signed(8)),
            **({} if holds_multiplier else {"reads_multiplier": Out(1)}),
            "y": Out(signed(11 + self.bits)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.digits = digits = DigitSource(bits=self.bits)
        m.submodules.product = product = SerialProduct(
            bits=self.bits, short_chains=self.short_chains
        )
        m.submodules.shifter = shifter = SerialShifter(bits=self.bits)
        times = serial_product(self.cycles)
        starts = [self.start]  # 0, 1, 2, ... cycles ago
        for _ in range(times):
            starts.append(pipeline(m, starts[-1], 1, f"start_{len(starts)}"))
        multiplier = self.multiplier[:31]
        if self.holds_multiplier:
            multiplier = Signal(31, reset_less=True)
        negative = self.shift < 0
        # A shift stays until the next sum needs it, a multiplier until the next digits.
        right = Mux(negative, -self.shift, 0)
        for number, start in enumerate(starts[:times:self.cycles]):
            shift, right = right, Signal(5, name=f"right_{number}", reset_less=True)
            with m.If(start):
                m.d.sync += right.eq(shift)
        takes = starts[DigitSource.LATENCY]
        if self.holds_multiplier:
            with m.If(takes):
                m.d.sync += multiplier.eq(self.multiplier)
        else:
            m.d.comb += self.reads_multiplier.eq(takes)
        first = DigitSource.LATENCY + product.latency() - 1
        m.d.comb += [
            digits.start.eq(self.start), digits.acc.eq(self.acc),
            digits.left.eq(Mux(negative, 0, self.shift)),
            product.digit.eq(digits.digit), product.below.eq(digits.below),
            product.first.eq(starts[first]), product.multiplier.eq(multiplier),
            shifter.start.eq(starts[times]), shifter.value.eq(product.product),
            shifter.right.eq(right),
        ]
        self._round(m, shifter)
        return m

    def _round(self, m, shifter):
        """A tie of a value below 0 is rounded down; what does not fit saturates."""
        stages = serial_fine_shift(self.cycles)
        y, fits, negative, half, sticky = (
            pipeline(m, getattr(shifter, name), stages, name)
            for name in ("y", "fits", "negative", "half", "sticky")
        )
        round_up = half & (~negative | sticky)
        most = (1 << len(y) - 1) - 1
        bound = Mux(negative, -most - 1, most)
        m.d.sync += self.y.eq(Mux(fits, y + round_up, bound))
