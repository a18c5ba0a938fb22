"""A scaler in few logic cells: the product and its shift take several cycles."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.output.digit_source import DigitSource
from weft.hw.output.serial_product import SerialProduct
from weft.hw.output.serial_shifter import SerialShifter
from weft.latencies import serial_digits, serial_product, serial_scaler

__all__ = ["SerialScaler"]


class SerialScaler(wiring.Component):
    """``y = scale(acc)``, LATENCY cycles after ``start``, with the bits of a `TfliteScaler`.

    A result beyond -1023..1023 may be another one beyond, with its sign: a clamp to int8 treats all
    of them alike.

    Parameters
    ----------
    cycles : int
        8, 16 or 32. Starts are at least so many cycles apart.

    Attributes
    ----------
    start : In, 1 bit
        The next sum follows.
    acc : In, signed 32 bits
        Valid from the cycle after ``start`` to the next ``start``.
    multiplier, shift : In, 32 bits, signed 8 bits
        Valid with ``start``, for HELD cycles.
    y : Out, signed
        Valid for one cycle.
    """

    HELD = 3

    def __init__(self, *, cycles):
        self.cycles = cycles
        self.bits = 32 // serial_digits(cycles)
        self.LATENCY = serial_scaler(cycles)
        super().__init__({
            "start": In(1), "acc": In(signed(32)), "multiplier": In(32), "shift": In(signed(8)),
            "y": Out(signed(11 + self.bits)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.digits = digits = DigitSource(bits=self.bits)
        m.submodules.product = product = SerialProduct(bits=self.bits)
        m.submodules.shifter = shifter = SerialShifter(bits=self.bits)
        times = serial_product(self.cycles)
        starts = [self.start]  # 0, 1, 2, ... cycles ago
        for _ in range(times):
            starts.append(pipeline(m, starts[-1], 1, f"start_{len(starts)}"))
        right, next_right = Signal(5, reset_less=True), Signal(5, reset_less=True)
        multiplier = Signal(31, reset_less=True)
        negative = self.shift < 0
        with m.If(self.start):
            m.d.sync += next_right.eq(Mux(negative, -self.shift, 0))
        # A shift stays until the next sum needs it, a multiplier until the next digits.
        with m.If(starts[min(self.cycles, times) - 1]):
            m.d.sync += right.eq(next_right)
        with m.If(starts[DigitSource.LATENCY]):
            m.d.sync += multiplier.eq(self.multiplier)
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
        round_up = shifter.half & (~shifter.negative | shifter.sticky)
        most = (1 << len(shifter.y) - 1) - 1
        bound = Mux(shifter.negative, -most - 1, most)
        m.d.sync += self.y.eq(Mux(shifter.fits, shifter.y + round_up, bound))
