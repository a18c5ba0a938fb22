"""The processing element: a MAC leaf and its place in the chain that drains the column."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PeControl", "ProcessingElement"]


class PeControl(data.Struct):
    """What a PE is told beside its operands.

    ``clear`` comes when the leaf wants it, LATENCY - SLOTS cycles after its step, and ``capture``
    LATENCY cycles after.
    """

    en: 1
    clear: 1
    capture: 1


class ProcessingElement(wiring.Component):
    """A MAC whose finished sums wait in result registers while the next ones grow.

    ``chain`` is SLOTS registers of a column-long shift register that runs downwards. ``capture``
    shifts the MAC's sum in; ``shift`` shifts in what the PE above holds.

    Where the MAC is folded its sums are the shift register themselves, and while they move none
    grows. Then ``clear`` and ``capture`` mean nothing: PE p from the top is shifted p + 1 times, by
    which its sum is the 0 that has come in at the top.

    Parameters
    ----------
    mac : Mac
        The leaf.

    Attributes
    ----------
    a, b, control : In
        Operands and orders, as the leaf takes them.
    preload, init : In, where the leaf has a START
    shift : In
        Move the column's results by one.
    above : In, below : Out
        The column's chain.
    """

    def __init__(self, *, mac):
        self.mac = mac
        start = {} if mac.START is None else {"preload": In(1), "init": In(mac.START)}
        super().__init__({
            "a": In(mac.a.shape()),
            "b": In(mac.b.shape()),
            "control": In(PeControl),
            **start,
            "shift": In(1),
            "above": In(mac.ACC),
            "below": Out(mac.ACC),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self.mac
        m.d.comb += [mac.a.eq(self.a), mac.b.eq(self.b), mac.en.eq(self.control.en)]
        if mac.START is not None:
            m.d.comb += [mac.preload.eq(self.preload), mac.init.eq(self.init)]
        if mac.folded:
            m.d.comb += [
                mac.shift.eq(self.shift), mac.above.eq(self.above), self.below.eq(mac.sum),
            ]
            return m
        chain = [Signal(mac.ACC, name=f"chain_{slot}") for slot in range(mac.SLOTS)]
        m.d.comb += [mac.clear.eq(self.control.clear), self.below.eq(chain[-1])]
        with m.If(self.control.capture):
            m.d.sync += chain[0].eq(mac.sum)
        with m.Elif(self.shift):
            m.d.sync += chain[0].eq(self.above)
        with m.If(self.control.capture | self.shift):
            m.d.sync += [late.eq(early) for early, late in zip(chain[:-1], chain[1:], strict=True)]
        return m
