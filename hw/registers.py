"""The register block: what the hardware says of itself, and its counters."""

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.registers import COUNTERS, REGISTERS, describe

__all__ = ["Registers"]


class Registers(wiring.Component):
    """Register ``address`` is in ``data`` in the cycle after; 0 where there is none.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    count : In
        A bit for each counter: count this cycle.
    address : In, data : Out
    """

    def __init__(self, *, config):
        self.config = config
        super().__init__({
            "count": In(data.StructLayout(dict.fromkeys(COUNTERS, 1))),
            "address": In(8),
            "data": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        words = [Const(word, 32) for word in describe(self.config)]
        for name in COUNTERS:
            counter = Signal(32, name=name)
            with m.If(self.count[name]):
                m.d.sync += counter.eq(counter + 1)
            words.append(counter)
        m.d.sync += self.data.eq(0)
        with m.If(self.address < len(REGISTERS)):
            m.d.sync += self.data.eq(Array(words)[self.address])
        return m
