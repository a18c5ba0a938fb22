"""The register block: what the hardware says of itself, and its counters."""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.registers import COUNTERS, REGISTERS, describe

__all__ = ["Registers"]


class Registers(wiring.Component):
    """Register ``address`` is in ``data``; 0 where there is none.

    It is there when the address has stayed for `weft.registers.LATENCY` cycles. A counter is then
    that of no more than as many cycles ago, and follows itself.

    The counters lie in a memory, and one adder goes round them: each has only so few bits of its
    own that they hold what it counts in a round.

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
        slots = len(COUNTERS)
        count = Signal(slots)
        m.d.sync += count.eq(self.count)
        slot = Signal(range(slots))
        known = Signal()  # what is in the memory is of no time before the last reset
        with m.If(slot == slots - 1):
            m.d.sync += [slot.eq(0), known.eq(1)]
        with m.Else():
            m.d.sync += slot.eq(slot + 1)

        # Of two rounds: in the one after a reset none is taken over.
        few = Array(Signal(range(2 * slots + 1), name=f"few_{n}") for n in range(slots))
        for n in range(slots):
            m.d.sync += few[n].eq(Mux(known & (slot == n), 0, few[n]) + count[n])
        m.submodules.counters = counters = Memory(shape=32, depth=slots, init=[])
        write, read = counters.write_port(), counters.read_port()
        r_slot, s_slot = Signal.like(slot), Signal.like(slot)  # read, summed up
        r_few, r_known = Signal.like(few[0]), Signal()
        total = Signal(32)
        m.d.comb += [
            read.addr.eq(slot), write.addr.eq(s_slot), write.data.eq(total), write.en.eq(1),
        ]
        m.d.sync += [
            r_slot.eq(slot), r_few.eq(few[slot]), r_known.eq(known),
            s_slot.eq(r_slot), total.eq(read.data + r_few),
        ]
        with m.If(~r_known):
            m.d.sync += total.eq(0)

        facts = Array(Const(word, 32) for word in describe(self.config))
        first = len(facts)  # of the counters
        fact, wanted = Signal(32), Signal.like(slot)
        is_fact, is_counter = Signal(), Signal()
        m.d.sync += [
            fact.eq(facts[self.address]),
            wanted.eq(self.address - first),
            is_fact.eq(self.address < first),
            is_counter.eq((self.address >= first) & (self.address < len(REGISTERS))),
        ]
        with m.If(~is_counter):
            m.d.sync += self.data.eq(Mux(is_fact, fact, 0))
        with m.Elif(s_slot == wanted):
            m.d.sync += self.data.eq(total)
        return m
