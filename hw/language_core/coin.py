"""`Coin`: random numbers of a shift register, and the part of a total that each of them marks."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.language_core.descriptors import TOTAL_BITS
from weft.language_core.latencies import COIN_BITS

__all__ = ["Coin"]

TAPS = 0x80200003  # x**32 + x**22 + x**2 + x + 1


class Coin(wiring.Component):
    """``mark <= (coin * total) >> 32``, with the next 32 bits of the register as the coin.

    A cycle takes a bit, the lowest one of the register, and adds ``total`` to the upper part of the
    product if it is 1. A step of the register is ``state <= (state >> 1) ^ (TAPS if state[0] else
    0)``. The first bit is bit 0 of the coin. As the mark is less than the total in each cycle, it
    needs no bit more.

    Attributes
    ----------
    load : In, 1 bit
        Pulse, while no coin is thrown: the register becomes ``seed``.
    seed : In, 32 bits
        With 0 all coins are 0.
    start : In, 1 bit
        Pulse.
    total : In, 29 bits
        At least 1. Stable from the cycle after ``start`` to ``done``.
    done : Out, 1 bit
        Pulse, COIN_BITS cycles after ``start``.
    mark : Out, 29 bits
        From the cycle after ``done`` to the next start.
    """

    LATENCY = COIN_BITS

    def __init__(self):
        super().__init__({
            "load": In(1), "seed": In(COIN_BITS), "start": In(1), "total": In(TOTAL_BITS),
            "done": Out(1), "mark": Out(TOTAL_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        state = Signal(COIN_BITS, reset_less=True)
        busy, left = Signal(), Signal(range(COIN_BITS), reset_less=True)
        added = (self.mark + Mux(state[0], self.total, 0))[: TOTAL_BITS + 1]
        m.d.comb += self.done.eq(busy & (left == 0))
        # It does not depend on ``start``, which comes late and, as ``load``, never with ``busy``.
        with m.If(busy):
            m.d.sync += state.eq((state >> 1) ^ Mux(state[0], Const(TAPS), 0))
        with m.Elif(self.load):
            m.d.sync += state.eq(self.seed)
        with m.If(self.start):
            m.d.sync += [busy.eq(1), left.eq(COIN_BITS - 1), self.mark.eq(0)]
        with m.Elif(busy):
            m.d.sync += [
                busy.eq(left != 0), left.eq(left - 1), self.mark.eq(added >> 1),
            ]
        return m
