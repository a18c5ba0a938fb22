"""The selection of words of the memory's banks, for readers that each read another bank."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["BankSelect"]


class BankSelect(wiring.Component):
    """``selected[n] = words[bank]`` of the bank whose bit in ``select[n]`` is 1; 0 without a bit.

    Two banks share a LUT for each bit, and its register; an OR of these registers follows. So
    ``selected`` is combinational: a register should follow it. LATENCY cycles.

    Parameters
    ----------
    width, banks, readers : int

    Attributes
    ----------
    words : In, ``banks`` words of ``width`` bits
    select : In, 1 bit for each bank, for each of ``readers``
        One-hot, or 0.
    selected : Out, ``readers`` words
    """

    LATENCY = 1

    def __init__(self, *, width, banks, readers):
        self.width = width
        self.banks = banks
        super().__init__({
            "words": In(data.ArrayLayout(width, banks)),
            "select": In(data.ArrayLayout(banks, readers)),
            "selected": Out(data.ArrayLayout(width, readers)),
        })

    def elaborate(self, platform):
        m = Module()
        for reader, selected in enumerate(self.selected):
            select = self.select[reader]
            masked = [self.words[n] & select[n].replicate(self.width) for n in range(self.banks)]
            pairs = []
            for n in range(0, self.banks, 2):
                pairs.append(Signal(self.width, name=f"pair_{reader}_{n}", reset_less=True))
                m.d.sync += pairs[-1].eq(reduce(or_, masked[n : n + 2]))
            m.d.comb += selected.eq(reduce(or_, pairs))
        return m
