"""The bus wrapper of a network core: all of its IP core except the core itself."""

from amaranth.hdl import Cat, DomainRenamer, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from weft.hw.bus.bus_wrapper import connect_slave, slave_pins
from weft.hw.bus.crossing import RESET_CYCLES, Timer
from weft.hw.bus.fifo_ports import DEPTH
from weft.hw.bus.network_bank import NetworkBank
from weft.hw.bus.soft_reset import SoftReset
from weft.hw.dma.axi_pins import connect_master, master_pins
from weft.hw.network_core.host.memory_port import MemoryPort
from weft.hw.network_core.interface import NetworkInterface
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.network_core.state_registers import StateRegisters
from weft.hw.stream.fifo import Fifo
from weft.network_core.register_map import LATENCY

__all__ = ["NetworkWrapper"]


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
            core.base.eq(bank.base), core.limit.eq(bank.limit),
        ]
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
            port.read_valid.eq(core.read_valid), port.read_data.eq(core.read_data),
            port.write.eq(transfer.write), port.read.eq(transfer.read),
            port.count.eq(transfer.count), place.address.eq(self._address(transfer.address)),
            Cat(place.run, place.pitch, place.pixels).eq(transfer.layout),
            place.row_step.eq(self._address(transfer.row_step)),
            bank.memory_busy.eq(~port.idle), bank.write_free.eq(~to_write.level),
            bank.read_level.eq(was_read.level), bank.next_valid.eq(was_read.next_valid),
        ]
