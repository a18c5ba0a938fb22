"""The micro engine: an accumulator, 256 registers, and a program of 512 instructions."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40 import LoadableCounter
from weft.hw.network_core.interface import MemoryWindow
from weft.network_core.microcode import Condition, Kind, MicroProgram, Op, Strobe, Wait
from weft.network_core.microcode import In as Source
from weft.network_core.microcode import Out as Target
from weft.network_core.microcode.instructions import HEAD_REGISTERS, PROGRAM_WORDS, REGISTERS

__all__ = ["MicroEngine"]


class _Decoded(data.Struct):
    """What an instruction is, decoded a cycle before it is executed."""

    inverts: 1  # the condition
    conditions: len(Condition)  # one of them is tested, or none
    jumps: 1
    adds: 1  # ADD and SUB
    subtracts: 1
    ands: 1
    takes: 1  # IN
    stores: 1  # ST, and ADD with a store
    stores_sum: 1
    changes: 1  # the accumulator
    outs: 1
    does: 1
    reads: 1  # waits for a vector
    waits: len(Wait)


class MicroEngine(wiring.Component):
    """Executes a `weft.network_core.microcode.MicroProgram`, an instruction a cycle.

    An instruction has three stages: it is fetched, its register is read, it is executed. A jump
    takes a cycle more. An instruction that waits holds all stages.

    Parameters
    ----------
    program : MicroProgram

    Attributes
    ----------
    halt : In, 1 bit
        Holds the engine before its first instruction.
    begin : In, 32 bits
        The memory data of the first instruction: taken while ``halt`` is 1.
    cycles : In, 32 bits
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    accumulator : Out, 16 bits
        The value of OUT.
    out : Out, 1 bit for each port
        OUT with a port; for all cycles in which it waits.
    strobe : Out, `Strobe`
        DO, likewise.
    ready : In, 1 bit for each `Wait`
        The instruction need not wait.
    write, write_high : Out, 1 bit each
        OUT with WRITE_LOW or WRITE_HIGH; it is WRITE_HIGH.
    read : Out, 1 bit
        Reads the vector at ``address``, until ``read_ready``.
    read_ready : In, 1 bit
    address : Out, 16 bits
        Of reads and writes of the engine, and of loads. It moves on a cycle after a read of the
        engine was served, and with ``next_address``.
    next_address : In, 1 bit
    data : In, 32 bits
        The vector, in the cycle after the one of ``read_ready``.
    """

    def __init__(self, program: MicroProgram):
        self.program = program
        super().__init__({
            "halt": In(1), "begin": In(32), "cycles": In(32), "window": In(MemoryWindow(16)),
            "accumulator": Out(16), "out": Out(len(Target)), "strobe": Out(8),
            "ready": In(len(Wait)), "write": Out(1), "write_high": Out(1), "read": Out(1),
            "read_ready": In(1), "address": Out(16), "next_address": In(1), "data": In(32),
        })

    def elaborate(self, platform):
        m = Module()
        go, jump, head = Signal(), Signal(), Signal()
        instruction, decoded = Signal(16), Signal(_Decoded)
        word, filled = self._fetch(m, go, jump, instruction)
        with m.If(go):
            m.d.sync += instruction.eq(word)
            self._decode(m, decoded, word, filled & ~jump)
        with m.If(self.halt):
            m.d.sync += decoded.eq(0)
        memory_data, loaded = self._memory(m, decoded, instruction)
        m.d.comb += go.eq(
            ~self.halt & (~decoded.reads | loaded) & ~(decoded.waits & ~self.ready).any()
        )
        operand = Signal(16)
        total, sum_, carry = self._sum(m, decoded, instruction, memory_data, operand)
        m.d.comb += operand.eq(self._registers(m, go, word, instruction, decoded, total, head))
        with m.If(go & decoded.changes):
            m.d.sync += self.accumulator.eq(sum_)
        with m.If(go & decoded.adds):
            m.d.sync += carry.eq(total[-1])
        m.d.comb += [
            self.out.eq(decoded.outs << instruction[:5]),
            self.strobe.eq(Mux(decoded.does, instruction[:8], 0)),
            self.write.eq(decoded.waits[Wait.WRITE]),
            self.write_high.eq(instruction[Target.WRITE_HIGH.bit_length() - 1]),
        ]
        self._test(m, go, jump, instruction, decoded, carry, memory_data, head)
        return m

    def _fetch(self, m, go, jump, instruction):
        """The word that was fetched, and whether it is one."""
        m.submodules.words = memory = Memory(
            shape=16, depth=PROGRAM_WORDS, init=self.program.words,
            attrs={"ram_style": "block", "rom_style": "block"},
        )
        read, counter, filled = memory.read_port(), Signal(range(PROGRAM_WORDS)), Signal()
        at = Signal.like(counter)
        m.d.comb += [
            at.eq(Mux(jump, instruction[: len(at)], counter)), read.addr.eq(at), read.en.eq(go),
        ]
        with m.If(go):
            m.d.sync += [counter.eq(at + 1), filled.eq(1)]
        with m.If(self.halt):
            m.d.sync += [counter.eq(0), filled.eq(0)]
        return read.data, filled

    def _decode(self, m, decoded, word, valid):
        """Decode the word that is executed in the next cycle."""
        op, tests = word[12:15], word[15]

        def is_(*ops):
            return valid & ~tests & Cat(op == each for each in ops).any()

        port, strobes = word[:5], word[:8]
        adds = is_(Op.ADD, Op.SUB)
        waits = {
            Wait.WRITE: is_(Op.OUT) & (port == Target.WRITE_HIGH)
            | is_(Op.OUT) & (port == Target.WRITE_LOW),
            Wait.OUTPUT: is_(Op.OUT) & (port == Target.OUTPUT),
            Wait.TILE: is_(Op.OUT) & ((port == Target.TILE) | (port == Target.X)),
            Wait.LOAD: is_(Op.DO) & _bit(strobes, Strobe.LOAD),
            Wait.DRAIN: is_(Op.DO) & _bit(strobes, Strobe.DRAIN),
        }
        m.d.sync += [
            decoded.inverts.eq(valid & tests & word[11]),
            decoded.jumps.eq(valid & tests & (word[9:11] == Kind.JUMP)), decoded.adds.eq(adds),
            *(
                decoded.conditions[condition].eq(valid & tests & (word[12:15] == condition))
                for condition in Condition
            ),
            decoded.subtracts.eq(is_(Op.SUB)), decoded.ands.eq(is_(Op.AND)),
            decoded.takes.eq(is_(Op.IN)), decoded.stores.eq(is_(Op.ST) | adds & word[8]),
            decoded.stores_sum.eq(adds),
            decoded.changes.eq(is_(Op.LD, Op.ADD, Op.SUB, Op.AND, Op.IN)),
            decoded.outs.eq(is_(Op.OUT)), decoded.does.eq(is_(Op.DO)),
            decoded.reads.eq(
                is_(Op.IN) & _bit(word, Source.READ) | is_(Op.DO) & _bit(strobes, Strobe.ZEROS)
            ),
            *(decoded.waits[wait].eq(value) for wait, value in waits.items()),
        ]

    def _memory(self, m, decoded, instruction):
        """The memory data, and whether they are new."""
        memory_data, reading, loaded = Signal(32), Signal(), Signal()
        m.d.comb += self.read.eq(decoded.reads & ~reading & ~loaded)
        m.d.sync += [reading.eq(self.read & self.read_ready), loaded.eq(reading)]
        with m.If(self.halt):
            m.d.sync += [memory_data.eq(self.begin), reading.eq(0), loaded.eq(0)]
        with m.Elif(reading):
            m.d.sync += memory_data.eq(self.data)
        with m.Elif(_bit(self.strobe, Strobe.CYCLES)):
            m.d.sync += memory_data.eq(self.cycles)
        m.submodules.address = counter = LoadableCounter(16)
        loads = self.out[Target.MEMORY]
        m.d.comb += [
            counter.en.eq(loads | reading | self.next_address), counter.load.eq(loads),
            counter.start.eq(self.accumulator), self.address.eq(counter.value),
        ]
        return memory_data, loaded

    def _sum(self, m, decoded, instruction, memory_data, operand):
        """The sum with its carry, the next accumulator, and the carry of the sum before."""
        sources = Array([
            memory_data[:16], memory_data[16:], memory_data[8:24], self.window.base,
            *[self.window.limit] * 4,
        ])
        total, sum_ = Signal(18), Signal(16)
        m.d.comb += [
            # LD passes the adder with an accumulator of 0. The lowest bit carries in.
            total.eq(
                Cat(decoded.subtracts, self.accumulator & decoded.adds.replicate(16))
                + Cat(decoded.subtracts, operand ^ decoded.subtracts.replicate(16))
            ),
            sum_.eq(Mux(
                decoded.takes, sources[instruction[:3]],
                Mux(decoded.ands, self.accumulator & operand, total[1:17]),
            )),
        ]
        return total, sum_, Signal(name="carry")

    def _registers(self, m, go, word, instruction, decoded, total, head):
        """The register of the instruction that is executed."""
        m.submodules.registers = memory = Memory(
            shape=16, depth=REGISTERS, init=self.program.registers,
            attrs={"ram_style": "block", "no_rw_check": 1},
        )
        write, read = memory.write_port(), memory.read_port()
        m.d.comb += [
            read.addr.eq(_own(word, head)), read.en.eq(go),
            write.addr.eq(_own(instruction, head)), write.en.eq(go & decoded.stores),
            write.data.eq(Mux(decoded.stores_sum, total[1:17], self.accumulator)),
        ]
        return read.data

    def _test(self, m, go, jump, instruction, decoded, carry, memory_data, head):
        """Jumps, and the faults of a descriptor."""
        bad, used, holds, taken = Signal(), Signal(), Signal(), Signal()
        values = Cat(1, ~self.accumulator.any(), carry, head, bad, used)  # as in Condition
        m.d.comb += holds.eq((values & decoded.conditions).any())
        kind, strobe = instruction[9:11], self.strobe
        is_address = instruction[:4] == Source.READ | Source.ADDRESS
        m.d.comb += [
            taken.eq(holds ^ decoded.inverts), jump.eq(taken & decoded.jumps),
        ]
        with m.If(
            taken & (kind == Kind.BAD) | go & decoded.takes & is_address & memory_data[:8].any()
        ):
            m.d.sync += bad.eq(1)
        with m.If(
            taken & (kind == Kind.USED) | go & _bit(strobe, Strobe.ZEROS) & memory_data.any()
        ):
            m.d.sync += used.eq(1)
        with m.If(_bit(strobe, Strobe.CLEAR)):
            m.d.sync += [bad.eq(0), used.eq(0)]
        for which, selected in ((Strobe.JOBS, 0), (Strobe.LOADS, 1)):
            with m.If(_bit(strobe, which)):
                m.d.sync += head.eq(selected)


def _bit(value, flag):
    """The bit of a flag."""
    return value[flag.bit_length() - 1]


def _own(word, head):
    """The number of a register: one of a head belongs to the selected head."""
    shared = word[4:8] == REGISTERS // HEAD_REGISTERS - 1
    return Cat(word[:3], word[3] | (shared & head), word[4:8])
