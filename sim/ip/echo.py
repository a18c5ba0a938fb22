"""A port that answers without a core behind it, for tests of register buses alone."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

__all__ = ["REFUSED", "Echo"]

REFUSED = 0x300  # words from here on


class Echo(wiring.Component):
    """A port that answers with three times the address; words of an odd one take ``cycles``."""

    def __init__(self, bus, cycles):
        self.bus, self.cycles = bus, cycles
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.bus = self.bus
        access, answer = self.bus.port.access, self.bus.port.answer
        left, word = Signal(8), Signal(10)
        done = left == 1
        m.d.comb += [
            access.ready.eq((left == 0) | done),
            answer.valid.eq(done), answer.p.data.eq(word * 3), answer.p.refused.eq(word >= REFUSED),
        ]
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(access.valid & access.ready):
            m.d.sync += [left.eq(1), word.eq(access.p.address)]
            with m.If(access.p.address[0]):
                m.d.sync += left.eq(self.cycles)
        return m
