"""The interrupt registers: events that happened, and which of them raise the interrupt."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Interrupts"]


class Interrupts(wiring.Component):
    """``status <= (status & ~cleared) | events``; an event in the cycle of its clear is kept.

    Parameters
    ----------
    width : int
        Number of events.

    Attributes
    ----------
    events : In, ``width`` bits
        Pulses.
    data : In, ``width`` bits; valid with ``clear`` or ``set``
    clear : In, 1 bit
        Clears the bits of ``status`` that are 1 in ``data``.
    set : In, 1 bit
        Writes ``data`` to ``enable``.
    clear_all : In, 1 bit
        Clears ``status``, and drops the events of this cycle.
    status, enable : Out, ``width`` bits each
    irq : Out, 1 bit
        An enabled bit of ``status`` was set in the cycle before.
    """

    def __init__(self, *, width):
        super().__init__({
            "events": In(width), "data": In(width),
            "clear": In(1), "set": In(1), "clear_all": In(1),
            "status": Out(width), "enable": Out(width), "irq": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        cleared = Mux(self.clear, self.data, 0)
        m.d.sync += [
            self.status.eq((self.status & ~cleared) | self.events),
            self.irq.eq((self.status & self.enable).any()),
        ]
        with m.If(self.clear_all):
            m.d.sync += self.status.eq(0)
        with m.If(self.set):
            m.d.sync += self.enable.eq(self.data)
        return m
