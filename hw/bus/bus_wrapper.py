"""The bus wrapper: all of an IP core except the core, behind flat pins with standard names."""

from amaranth.hdl import Module, Mux, ResetInserter, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.bus import axi_lite, wishbone
from weft.hw.bus.crossing import AsyncCrossing, SyncCrossing
from weft.hw.bus.csr_bank import DMA_ERRORS, CsrBank
from weft.hw.bus.descriptor_regs import DescriptorRegs
from weft.hw.bus.fifo_ports import RxFifo, TxFifo
from weft.hw.bus.packet_register import PacketRegister
from weft.hw.bus.soft_reset import SoftReset
from weft.hw.dma.axi import FIXED
from weft.hw.dma.engine import Dma
from weft.hw.interface import CoreInterface
from weft.hw.stream.skid_buffer import SkidBuffer

__all__ = ["BusWrapper", "pins"]


def pins(ip):
    """The pins of an IP core without clocks and resets: members by name, in order."""
    if ip.bus == "wishbone":
        bus = {f"wb_{name}": member for name, member in wishbone.pins(ip.pipelined).items()}
    else:
        bus = {f"s_axil_{name}": member for name, member in axi_lite.PINS.items()}
    if ip.bus == "stream":
        bus |= {
            "s_axis_tvalid": In(1), "s_axis_tready": Out(1),
            "s_axis_tdata": In(8 * ip.config.bytes_in),
            "m_axis_tvalid": Out(1), "m_axis_tready": In(1),
            "m_axis_tdata": Out(8 * ip.config.bytes_out), "m_axis_tlast": Out(1),
            "m_axis_tid": Out(16), "m_axis_tuser": Out(8),
        }
    if ip.bus == "dma":
        bus |= {f"m_axi_{name}": member for name, member in _master(ip.config.bytes_in).items()}
    return {**bus, "irq": Out(1)}


def _master(data_bytes):
    """The pins of an AXI4 master whose data has ``data_bytes`` bytes."""
    address = {
        "id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3,
        "qos": 4,
    }
    response = {"id": 1, "resp": 2}
    channels = {
        "aw": (Out, address), "w": (Out, {"data": 8 * data_bytes, "strb": data_bytes, "last": 1}),
        "b": (In, response), "ar": (Out, address),
        "r": (In, {"id": 1, "data": 8 * data_bytes, "resp": 2, "last": 1}),
    }
    found = {}
    for channel, (flow, payload) in channels.items():
        found |= {f"{channel}{name}": flow(width) for name, width in payload.items()}
        found[f"{channel}valid"] = flow(1)
        found[f"{channel}ready"] = In(1) if flow == Out else Out(1)
    return found


class BusWrapper(wiring.Component):
    """Turns the buses of ``ip`` into the streams and registers of a core.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    pins
        The pins of the function `pins`, in domain ``sync``; ``docs/ip.md`` describes them.
    core : Out, `weft.hw.interface.CoreInterface`
        In domain ``core``. With two clocks the wrapper uses domain ``core_clk`` too, as in
        `weft.hw.bus.crossing.AsyncCrossing`.
    core_reset : Out, 1 bit
        Reset of domain ``core``.
    """

    def __init__(self, ip):
        self.ip = ip
        super().__init__({
            **pins(ip), "core": Out(CoreInterface(ip.config)), "core_reset": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        bus = self._register_bus(m)
        m.submodules.csr = csr = CsrBank(self.ip)
        m.submodules.soft_reset = soft_reset = SoftReset()
        kind = SyncCrossing if self.ip.clocks == 1 else AsyncCrossing
        m.submodules.crossing = crossing = kind(self.ip.config)
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
        data_path = {"stream": self._streams, "dma": self._dma}.get(self.ip.bus, self._fifo_ports)
        data_path(m, csr, crossing, soft_reset)
        return m

    def _register_bus(self, m):
        """The bus of the registers, connected to its pins."""
        if self.ip.bus == "wishbone":
            prefix, bus = "wb", wishbone.Wishbone(pipelined=self.ip.pipelined)
        else:
            prefix, bus = "s_axil", axi_lite.AxiLite()
        m.submodules.bus = bus
        for name, member in bus.signature.members.items():
            if name != "bus":
                pin, port = getattr(self, f"{prefix}_{name}"), getattr(bus, name)
                m.d.comb += port.eq(pin) if member.flow == In else pin.eq(port)
        return bus

    def _fifo_ports(self, m, csr, crossing, soft_reset):
        """Commands and results through CMD_FIFO and RESULT_FIFO."""
        c, with_flush = self.ip.config, ResetInserter(soft_reset.flush)
        tx = TxFifo(bytes_in=c.bytes_in, target=c.target)
        rx = RxFifo(bytes_out=c.bytes_out, target=c.target)
        m.submodules.tx_fifo, m.submodules.rx_fifo = with_flush(tx), with_flush(rx)
        connect(m, csr.commands, tx.i)
        connect(m, tx.commands, crossing.commands)
        connect(m, crossing.results, rx.results)
        connect(m, rx.o, csr.results)
        m.d.comb += [
            csr.cmd_free.eq(tx.free), csr.level.eq(rx.level),
            csr.next_valid.eq(rx.next_valid), csr.job_done.eq(rx.job_done),
            csr.busy.eq(crossing.busy | tx.nonempty),
        ]

    def _streams(self, m, csr, crossing, soft_reset):
        """Commands and results through AXI4-Stream."""
        c = self.ip.config
        commands, results = SkidBuffer(8 * c.bytes_in), PacketRegister(bytes_out=c.bytes_out)
        m.submodules.commands = ResetInserter(soft_reset.flush)(commands)
        m.submodules.results = results
        connect(m, commands.o, crossing.commands)
        connect(m, crossing.results, results.results)
        word = results.packets.payload
        m.d.comb += [
            commands.i.valid.eq(self.s_axis_tvalid), commands.i.payload.eq(self.s_axis_tdata),
            self.s_axis_tready.eq(commands.i.ready),
            results.flush.eq(soft_reset.flush), csr.job_done.eq(results.job_done),
            self.m_axis_tvalid.eq(results.packets.valid),
            results.packets.ready.eq(self.m_axis_tready),
            self.m_axis_tdata.eq(word.data), self.m_axis_tlast.eq(word.last),
            self.m_axis_tid.eq(word.tag), self.m_axis_tuser.eq(word.status),
            csr.busy.eq(crossing.busy | commands.o.valid),
        ]

    def _dma(self, m, csr, crossing, soft_reset):
        """Commands and results through the DMA engine."""
        descriptors, dma = DescriptorRegs(), Dma(self.ip.config, window=self.ip.window)
        m.submodules.descriptors = ResetInserter(soft_reset.flush)(descriptors)
        m.submodules.dma = dma
        connect(m, descriptors.o, dma.descriptors)
        connect(m, dma.commands, crossing.commands)
        connect(m, crossing.results, dma.results)
        m.d.comb += [
            descriptors.write.eq(csr.descriptor.write), descriptors.index.eq(csr.descriptor.index),
            descriptors.data.eq(csr.descriptor.data),
            descriptors.submit.eq(csr.descriptor.submit),
            csr.descriptor_word.eq(descriptors.word), csr.submitting.eq(descriptors.submitting),
            csr.desc_free.eq(Mux(soft_reset.reset_busy, 0, dma.desc_free)),
            dma.stop.eq(soft_reset.stop | soft_reset.flush), soft_reset.idle.eq(dma.idle),
            csr.dma_busy.eq(dma.busy | descriptors.submitting),
            csr.busy.eq(crossing.busy),
            csr.job_done.valid.eq(dma.job_done), csr.job_done.tag.eq(dma.job_tag),
            csr.job_done.status.eq(dma.job_status),
            *(csr.errors[name].eq(getattr(dma, name)) for name in DMA_ERRORS),
        ]
        if self.ip.window:
            m.d.comb += [dma.base.eq(csr.dma_base), dma.limit.eq(csr.dma_limit)]
        for name, flow in (("aw", Out), ("w", Out), ("b", In), ("ar", Out), ("r", In)):
            self._axi_channel(m, name, flow, getattr(dma.axi, name))

    def _axi_channel(self, m, name, flow, inner):
        """Connects a channel of the AXI4 master to its pins, and drives the constant pins."""
        valid, ready = (getattr(self, f"m_axi_{name}{pin}") for pin in ("valid", "ready"))
        if flow == Out:
            m.d.comb += [valid.eq(inner.valid), inner.ready.eq(ready)]
        else:
            m.d.comb += [inner.valid.eq(valid), ready.eq(inner.ready)]
        for field in inner.payload.shape().members:
            pin, value = getattr(self, f"m_axi_{name}{field}"), inner.payload[field]
            m.d.comb += pin.eq(value) if flow == Out else Value.cast(value).eq(pin)
        if name in ("aw", "ar"):
            size = ceil_log2(self.ip.config.bytes_in)
            m.d.comb += [
                getattr(self, f"m_axi_{name}{field}").eq(value)
                for field, value in {**FIXED, "size": size}.items()
            ]
