"""The bus wrapper: all of an IP core except the core, behind flat pins with standard names."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.buses import DataPath
from weft.hw.bus.crossing import AsyncCrossing, SyncCrossing
from weft.hw.bus.csr_bank import CsrBank
from weft.hw.bus.dma_path import DmaPath
from weft.hw.bus.fifo_path import FifoPath
from weft.hw.bus.slaves import SLAVES
from weft.hw.bus.soft_reset import SoftReset
from weft.hw.bus.stream_path import StreamPath
from weft.hw.interface import CoreInterface

__all__ = ["BusWrapper", "connect_slave", "slave_pins"]

# The data path between the registers and the crossing to the core.
DATA_PATHS = {
    DataPath.FIFO_PORTS: FifoPath(), DataPath.STREAMS: StreamPath(), DataPath.DMA: DmaPath(),
}


def slave_pins(ip):
    """The pins of the register slave of an IP core: members by name, in order."""
    slave = SLAVES[ip.protocol.register_slave]
    return {f"{slave.prefix}{name}": member for name, member in slave.pins(ip).items()}


def connect_slave(m, wrapper):
    """The slave of the registers, connected to the pins of a wrapper; `m` gets the statements."""
    slave = SLAVES[wrapper.ip.protocol.register_slave]
    bus = slave.component(wrapper.ip)
    for name, member in slave.pins(wrapper.ip).items():
        pin, port = getattr(wrapper, f"{slave.prefix}{name}"), getattr(bus, name)
        m.d.comb += port.eq(pin) if member.flow == In else pin.eq(port)
    return bus


class BusWrapper(wiring.Component):
    """Turns the buses of ``ip`` into the streams and registers of a core.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    pins
        Of the register slave and of the data path, and ``irq``, in domain ``sync``;
        ``docs/ip.md`` describes them.
    core : Out, `weft.hw.interface.CoreInterface`
        In domain ``core``. With two clocks the wrapper uses domain ``core_clk`` too, as in
        `weft.hw.bus.crossing.AsyncCrossing`.
    core_reset : Out, 1 bit
        Reset of domain ``core``.
    """

    def __init__(self, ip):
        self.ip = ip
        super().__init__({
            **self.pins(ip), "core": Out(CoreInterface(ip.array)), "core_reset": Out(1),
        })

    @staticmethod
    def pins(ip):
        """The pins without clocks and resets: members by name, in order."""
        return {
            **slave_pins(ip), **DATA_PATHS[ip.protocol.data_path].pins(ip.array), "irq": Out(1),
        }

    def elaborate(self, platform):
        m = Module()
        m.submodules.bus = bus = connect_slave(m, self)
        m.submodules.csr = csr = CsrBank(self.ip)
        m.submodules.soft_reset = soft_reset = SoftReset()
        kind = SyncCrossing if self.ip.clocks == 1 else AsyncCrossing
        m.submodules.crossing = crossing = kind(self.ip.array)
        connect(m, bus.bus, csr.bus)
        connect(m, crossing.core, flipped(self.core))
        m.d.comb += [
            self.irq.eq(csr.irq), self.core_reset.eq(crossing.core_reset),
            crossing.reg_req.eq(csr.reg_req), crossing.reg_address.eq(csr.reg_address),
            csr.reg_ack.eq(crossing.reg_ack), csr.reg_data.eq(crossing.reg_data),
            crossing.abort.eq(csr.abort),
            soft_reset.start.eq(csr.reset), soft_reset.reset_ack.eq(crossing.reset_ack),
            crossing.reset.eq(soft_reset.reset), crossing.flush.eq(soft_reset.flush),
            csr.reset_busy.eq(soft_reset.reset_busy),
        ]
        path = DATA_PATHS[self.ip.protocol.data_path]
        path.connect(m, self, csr, crossing, soft_reset)
        return m
