"""A right shift by some bits a cycle, and the bits that its rounding needs."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["SerialShifter"]


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
