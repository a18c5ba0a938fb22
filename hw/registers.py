"""The register block: constants that describe the hardware, and event counters."""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.registers import COUNTERS, REGISTERS, describe

__all__ = ["Registers"]


class Registers(wiring.Component):
    """``data`` is register ``address``; 0 if no such register exists.

    ``data`` is valid when ``address`` has been stable for `weft.registers.LATENCY` cycles. The
    value of a counter is at most as many cycles old, and is updated while the address stays.

    The counters are words of one memory. One adder visits them in turn and adds the events since
    its last visit, for which each counter has a few bits of its own.

    Parameters
    ----------
    config : Config

    Attributes
    ----------
    count : In, 1 bit for each counter
        Count this cycle.
    address : In, 8 bits
    data : Out, 32 bits
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
        index, total = self._counters(m)
        self._read(m, index, total)
        return m

    def _counters(self, m):
        """The index and the value of the counter that is updated in this cycle.

        Three stages: read the memory, add (prefix ``r``), write the sum (prefix ``s``).
        """
        counters = len(COUNTERS)
        count = Signal(counters)
        m.d.sync += count.eq(self.count)
        index = Signal(range(counters))
        initialized = Signal()  # a round is complete since the reset: the memory is valid
        with m.If(index == counters - 1):
            m.d.sync += [index.eq(0), initialized.eq(1)]
        with m.Else():
            m.d.sync += index.eq(index + 1)

        # Events since the last visit. They hold two rounds: the first one after a reset only clears
        # the memory.
        recent = Array(
            Signal(range(2 * counters + 1), name=f"recent_{n}") for n in range(counters)
        )
        for n in range(counters):
            m.d.sync += recent[n].eq(Mux(initialized & (index == n), 0, recent[n]) + count[n])
        m.submodules.counters = memory = Memory(shape=32, depth=counters, init=[])
        write, read = memory.write_port(), memory.read_port()
        r_index, s_index = Signal.like(index), Signal.like(index)
        r_recent, r_initialized = Signal.like(recent[0]), Signal()
        s_total = Signal(32)
        m.d.comb += [
            read.addr.eq(index), write.addr.eq(s_index), write.data.eq(s_total), write.en.eq(1),
        ]
        m.d.sync += [
            r_index.eq(index), r_recent.eq(recent[index]), r_initialized.eq(initialized),
            s_index.eq(r_index), s_total.eq(read.data + r_recent),
        ]
        with m.If(~r_initialized):
            m.d.sync += s_total.eq(0)
        return s_index, s_total

    def _read(self, m, counter_index, counter_total):
        """The register at ``address``: a constant, or a counter when it is updated."""
        constants = describe(self.config)
        first_counter = len(constants)
        constant, index = Signal(32), Signal.like(counter_index)
        # Registers of their own for the address, because it goes to hundreds of LUTs. A bit of a
        # block of 16 constants is one LUT, so two more stages of registers read them.
        r_address = Signal.like(self.address)
        m.d.sync += r_address.eq(self.address)
        blocks = Array(Signal(32, name="block") for _ in constants[::16])
        for n, block in enumerate(blocks):
            words = Array(Const(word, 32) for word in constants[16 * n :][:16])
            m.d.sync += block.eq(words[r_address[:4]])
        is_constant, is_counter = Signal(), Signal()
        m.d.sync += [
            constant.eq(blocks[r_address[4:]]),
            index.eq(r_address - first_counter),
            is_constant.eq(r_address < first_counter),
            is_counter.eq((r_address >= first_counter) & (r_address < len(REGISTERS))),
        ]
        with m.If(~is_counter):
            m.d.sync += self.data.eq(Mux(is_constant, constant, 0))
        with m.Elif(counter_index == index):
            m.d.sync += self.data.eq(counter_total)
