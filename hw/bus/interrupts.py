"""Interrupts: what has happened and is not yet cleared, and whether anybody is to hear of it."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Interrupts"]


class Interrupts(wiring.Component):
    """``status <= (status & ~cleared) | events``: what happens as it is cleared is not lost.

    Parameters
    ----------
    names : sequence of (str, int)
        Of each event, and its bit.

    Attributes
    ----------
    events : In
    data : In
        What is written: to ``status`` with ``clear``, to ``enable`` with ``set``.
    clear, set : In
    forget : In
        Pulse: nothing has happened.
    status, enable : Out
    irq : Out
        Something has happened that is enabled.
    """

    def __init__(self, *, width):
        super().__init__({
            "events": In(width), "data": In(width), "clear": In(1), "set": In(1), "forget": In(1),
            "status": Out(width), "enable": Out(width), "irq": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        cleared = Mux(self.clear, self.data, 0)
        m.d.sync += [
            self.status.eq((self.status & ~cleared) | self.events),
            self.irq.eq((self.status & self.enable).any()),
        ]
        with m.If(self.forget):
            m.d.sync += self.status.eq(0)
        with m.If(self.set):
            m.d.sync += self.enable.eq(self.data)
        return m
