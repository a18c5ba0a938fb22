"""The bus wrapper of a network core, and its registers: all of its IP core except the core."""

from amaranth.hdl import Cat, DomainRenamer, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.bus.bus_wrapper import connect_slave, slave_pins
from weft.hw.bus.crossing import RESET_CYCLES, Timer
from weft.hw.bus.fifo_ports import CAPACITY, DEPTH
from weft.hw.bus.register_bank import RegisterBank, SoftReset
from weft.hw.dma.axi import connect_master, master_pins
from weft.hw.network_core.host.memory_port import MemoryPort
from weft.hw.network_core.interface import NetworkInterface, StateRegisters
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.stream.fifo import Fifo
from weft.network_core.descriptors import ON_CHIP, NetworkState
from weft.network_core.register_map import LATENCY

__all__ = ["MemoryTransfer", "NetworkBank", "NetworkWrapper"]


PROGRAM = "program_base", "program_limit"  # registers of a program memory


class MemoryTransfer(data.StructLayout):
    """A transfer: the pulses ``write`` or ``read``, and the registers that describe it."""

    def __init__(self):
        super().__init__({
            "write": 1, "read": 1, "count": 32, "address": 32, "layout": 32, "row_step": 32,
        })


class NetworkBank(RegisterBank):
    """The `RegisterBank` of a network core.

    A list starts when software writes CONTROL.start, unless another list runs, or the registers
    BASE and LIMIT are not ``BASE < LIMIT <= words``, or, with a program memory, PROGRAM_BASE is not
    the address of a beat or PROGRAM_LIMIT not in 1..program_words: then nothing happens, except
    that IRQ_STATUS.refused becomes 1. So does a transfer that starts while another one is in
    progress. After a reset, all bases and limits are 0. A word for WRITE_FIFO that no transfer
    expects is an overflow.

    Parameters
    ----------
    ip : NetworkIp

    Attributes
    ----------
    state : In, 8 bits
        The `weft.network_core.descriptors.NetworkState` of the core; valid with ``finished``.
    finished : In, 1 bit
        Pulse: a list has ended.
    start : Out, 1 bit
        Pulse of CONTROL; ``begin`` follows if the list is not refused.
    begin : Out, 1 bit
        Pulse: the list at ``list_address`` starts.
    refused : Out, 1 bit
        Pulse: a list or a transfer does not start.
    list_address, log_address, base, limit : Out, 32 bits each
        Registers. A soft reset does not change them.
    program_base, program_limit : Out, 32 bits each
        Registers; only with a program memory.
    transfer : Out, `MemoryTransfer`
    memory_busy : In, 1 bit
        A transfer is in progress.
    write_words : Out, stream of 32 bits
        Words written to WRITE_FIFO: at most as many as the transfer has.
    write_free : In, ``range(CAPACITY + 1)``
        Number of words that the FIFO of ``write_words`` has space for.
    read_words : In, stream of 32 bits; next_valid : In, 1 bit
        As in `weft.hw.stream.fifo.Fifo`: words for READ_FIFO.
    read_level : In, ``range(CAPACITY + 1)``
        Number of words in the FIFO of ``read_words``.
    others
        The ports of `RegisterBank`.
    """

    def __init__(self, ip):
        super().__init__(ip, {
            "state": In(8), "finished": In(1), "start": Out(1), "begin": Out(1),
            "refused": Out(1),
            "list_address": Out(32), "log_address": Out(32), "base": Out(32), "limit": Out(32),
            "transfer": Out(MemoryTransfer()), "memory_busy": In(1),
            "write_words": Out(stream.Signature(32)), "write_free": In(range(CAPACITY + 1)),
            "read_words": In(stream.Signature(32)), "next_valid": In(1),
            "read_level": In(range(CAPACITY + 1)),
            **dict.fromkeys(PROGRAM if ip.config.program_words else (), Out(32)),
        })
        self.started, self.running = Signal(), Signal()  # START of the cycle before; a list runs

    def stored(self):
        """The registers that only hold what software wrote, by name."""
        program = PROGRAM if self.ip.config.program_words else ()
        names = "list_address", "log_address", "base", "limit", *program
        return {
            **{name: getattr(self, name) for name in names},
            "memory_address": self.transfer.address, "memory_layout": self.transfer.layout,
            "memory_row_step": self.transfer.row_step,
        }

    def values(self, m, s):
        """The values of all fields of the other registers, by register and field."""
        return {
            "status": {
                "list_busy": self.started | self.running, "reset_busy": self.reset_busy,
                "memory_busy": self.memory_busy,
            },
            "write_fifo_free": {"value": Mux(self.reset_busy, 0, self.write_free)},
            "read_fifo_level": {"value": self.read_level},
        }

    def connect_ports(self, m, s, waits):
        """Registers that start something, and the FIFO ports."""
        self._start_list(m)
        self._start_transfer(m, s)
        words = stream.Signature(32).create()
        complete = self._count_words(m, words)
        m.d.comb += [
            self.write_words.valid.eq(words.valid & ~complete),
            self.write_words.payload.eq(words.payload),
            words.ready.eq(self.write_words.ready & ~complete),
        ]
        return self.connect_fifos(m, s, waits, words, self.read_words, self.read_level.any())

    def _start_list(self, m):
        """START -> ``begin`` a cycle later, or ``refused``; ``running`` until the list ends."""
        legal, right, config = Signal(), 1, self.ip.config
        if config.program_words:
            beat = self.program_base[: ceil_log2(config.beat_bytes)]
            right = ~beat.any() & self.program_limit.any()
            right &= self.program_limit <= config.program_words
        m.d.sync += [
            legal.eq((self.base < self.limit) & (self.limit <= config.words) & right),
            self.started.eq(self.start),
        ]
        stops = self.abort | self.reset | self.reset_busy
        m.d.comb += self.begin.eq(self.started & legal & ~self.running & ~stops)
        with m.If(self.finished | stops):
            m.d.sync += self.running.eq(0)
        with m.Elif(self.begin):
            m.d.sync += self.running.eq(1)

    def _start_transfer(self, m, s):
        """MEMORY_WRITE and MEMORY_READ -> ``transfer``, or ``refused``."""
        allowed = ~self.memory_busy & ~self.reset_busy
        write, read = (s.done & s.writes[name] for name in ("memory_write", "memory_read"))
        m.d.comb += [
            self.transfer.write.eq(write & allowed), self.transfer.read.eq(read & allowed),
            self.transfer.count.eq(s.data),
            self.refused.eq((self.started & ~self.begin) | ((write | read) & ~allowed)),
        ]

    def _count_words(self, m, words):
        """Whether the transfer has all of its words, or is none that writes."""
        left = Signal(signed(32), init=-1)  # words that have not come, less 1
        with m.If(self.reset | self.reset_busy):
            m.d.sync += left.eq(-1)
        with m.Elif(self.transfer.write):
            m.d.sync += left.eq((self.transfer.count - 1) >> 2)
        with m.Elif(self.write_words.valid & self.write_words.ready):
            m.d.sync += left.eq(left - 1)
        return left < 0

    def events(self, m, s):
        """The events of IRQ_STATUS that only this kind of core has, by name."""
        ended = self.running & (self.finished | self.abort)
        failed = self.abort | (self.state != NetworkState.DONE)
        return {"done": ended, "failed": ended & failed, "refused": self.refused}


class NetworkWrapper(wiring.Component):
    """Turns the register bus of ``ip`` into the ports of a network core.

    Parameters
    ----------
    ip : NetworkIp

    Attributes
    ----------
    pins
        The pins of the register slave, with a program memory of its AXI4 master, and ``irq``, in
        domain ``sync``; ``docs/ip.md`` describes them.
    core : Out, `weft.hw.network_core.interface.NetworkInterface`
        In domain ``core``, which has the same clock.
    core_reset : Out, 1 bit
        Reset of domain ``core``.
    """

    def __init__(self, ip):
        self.ip = ip
        super().__init__({
            **self.pins(ip), "core": Out(NetworkInterface(ip.config)), "core_reset": Out(1),
        })

    @staticmethod
    def pins(ip):
        """The pins without clocks and resets: members by name, in order."""
        program = master_pins(ip.config.beat_bytes) if ip.config.program_words else {}
        return {**slave_pins(ip), **program, "irq": Out(1)}

    def elaborate(self, platform):
        m = Module()
        core = self.core
        m.submodules.bus = bus = connect_slave(m, self)
        m.submodules.bank = bank = NetworkBank(self.ip)
        connect(m, bus.bus, bank.bus)
        m.d.comb += [
            self.irq.eq(bank.irq), bank.state.eq(core.status.state),
            bank.finished.eq(core.finished),
            core.begin.valid.eq(bank.begin),
            core.begin.list.eq(self._address(bank.list_address)),
            core.begin.log.eq(self._address(bank.log_address)),
            core.window.base.eq(bank.base), core.window.limit.eq(bank.limit),
        ]
        if self.ip.config.program_words:
            m.d.comb += core.begin.on_chip.eq(bank.list_address[ON_CHIP.bit_length() - 1])
        self._registers(m, bank)
        soft_reset = self._reset(m, bank)
        if self.ip.config.program_words:
            self._program(m, bank, soft_reset)
        else:
            m.d.comb += core.abort.eq(bank.abort)
        self._memory(m, bank)
        return m

    def _address(self, value):
        return Cat(*VectorAddress(self.ip.config).from_list(value).values())

    def _registers(self, m, bank):
        """The registers of the core."""
        m.submodules.registers = registers = StateRegisters(self.ip.config)
        m.submodules.timer = timer = Timer(LATENCY)
        status = Signal.like(self.core.status)
        m.d.sync += status.eq(self.core.status)
        m.d.comb += [
            registers.address.eq(bank.reg_address), registers.status.eq(status),
            timer.run.eq(bank.reg_req), bank.reg_ack.eq(timer.done),
            bank.reg_data.eq(registers.value),
        ]

    def _reset(self, m, bank):
        """A soft reset of the core, of the memory port and of the FIFOs."""
        m.submodules.soft_reset = soft_reset = SoftReset()
        m.submodules.reset_timer = timer = Timer(RESET_CYCLES)
        m.d.comb += [
            soft_reset.start.eq(bank.reset), bank.reset_busy.eq(soft_reset.reset_busy),
            timer.run.eq(soft_reset.reset), soft_reset.reset_ack.eq(timer.done),
            self.core_reset.eq(soft_reset.reset),
        ]
        return soft_reset

    def _program(self, m, bank, soft_reset):
        """The master of the program memory; a soft reset waits until it has no transaction."""
        core, config = self.core, self.ip.config
        m.d.comb += [
            core.program_base.eq(bank.program_base), core.program_limit.eq(bank.program_limit),
            core.abort.eq(bank.abort | soft_reset.stop),
            soft_reset.idle.eq(core.program_idle),
        ]
        connect_master(m, self, core.axi, config.beat_bytes)

    def _memory(self, m, bank):
        """Transfers between the FIFO ports and the memory."""
        config, core, transfer = self.ip.config, self.core, bank.transfer
        in_core = DomainRenamer("core")
        port = MemoryPort(config)
        to_write, was_read = (
            Fifo(32, depth=DEPTH, target=config.target, counted=True) for _ in range(2)
        )
        m.submodules.memory_port = in_core(port)
        m.submodules.write_fifo, m.submodules.read_fifo = in_core(to_write), in_core(was_read)
        connect(m, bank.write_words, to_write.i)
        connect(m, to_write.o, port.written)
        connect(m, port.found, was_read.i)
        connect(m, was_read.o, bank.read_words)
        connect(m, port.writes, flipped(core.writes))
        connect(m, port.reads, flipped(core.reads))
        place = port.placement
        m.d.comb += [
            port.write.eq(transfer.write), port.read.eq(transfer.read),
            port.count.eq(transfer.count), place.address.eq(self._address(transfer.address)),
            Cat(place.run, place.pitch, place.pixels).eq(transfer.layout),
            place.row_step.eq(self._address(transfer.row_step)),
            bank.memory_busy.eq(~port.idle), bank.write_free.eq(~to_write.level),
            bank.read_level.eq(was_read.level), bank.next_valid.eq(was_read.next_valid),
        ]
