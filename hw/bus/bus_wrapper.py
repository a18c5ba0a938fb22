"""The bus wrapper: all of an IP core except the core, behind flat pins with standard names.

Each kind of data path has a class: FIFO ports, AXI4-Streams, or the DMA engine.
"""

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.buses import DataPath
from weft.commands import Status
from weft.hw.bus.crossing import AsyncCrossing, SyncCrossing
from weft.hw.bus.csr_bank import DMA_ERRORS, CsrBank, DescriptorRegs
from weft.hw.bus.fifo_ports import JobDone, RxFifo, TxFifo
from weft.hw.bus.register_bank import SoftReset
from weft.hw.bus.slaves import SLAVES
from weft.hw.dma.axi import connect_master, master_pins
from weft.hw.dma.engine import Dma
from weft.hw.interface import CoreInterface
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import SkidBuffer

__all__ = [
    "BusWrapper", "DmaPath", "FifoPath", "PacketRegister", "StreamPath", "connect_slave",
    "slave_pins",
]


class PacketRegister(wiring.Component):
    """``packets`` are ``results``; a word that is offered stays, even in a soft reset.

    If a soft reset cuts a packet, a word of zeros with ``last``, the tag of the packet and the
    status ABORTED ends it. The data of words with a status other than 0 are zeros too.
    ``results.ready`` depends on no input except ``flush``. It is not a `SkidBuffer`: the output
    register survives a soft reset, and the skid register does not.

    Parameters
    ----------
    bytes_out : int
        Bytes of a stream word.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    flush : In, 1 bit
        Soft reset: drops the words that are not offered yet, and accepts none.
    packets : Out, stream of `weft.hw.output.stream_packer.Result`
    job_done : Out, `weft.hw.bus.fifo_ports.JobDone`
        The last word of a job was taken; not for a job from before a soft reset.
    """

    def __init__(self, *, bytes_out):
        word = Result(bytes_out=bytes_out)
        super().__init__({
            "results": In(stream.Signature(word)), "flush": In(1),
            "packets": Out(stream.Signature(word)), "job_done": Out(JobDone),
        })

    def elaborate(self, platform):
        m = Module()
        o = self.packets
        o_last = Signal(init=1)  # the newest word at `o` ended its packet
        o_current = Signal()  # that word is not from before a soft reset
        ready = Signal()
        skid_valid, skid = Signal(), Signal.like(o.payload, reset_less=True)
        i_word = Signal.like(o.payload)
        i_fire = self.results.valid & self.results.ready
        advance = ~o.valid | o.ready
        cut = (self.flush | ~o_current) & ~o_last
        m.d.comb += [
            self.results.ready.eq(ready & ~self.flush),
            i_word.eq(self.results.payload),
        ]
        with m.If(self.results.payload.status != 0):
            m.d.comb += i_word.data.eq(0)
        m.d.sync += ready.eq(
            Mux(advance, ~self.flush, ~skid_valid & ~i_fire & ~cut & ~self.flush)
        )
        with m.If(advance & cut):
            m.d.sync += [
                o.valid.eq(1), o_last.eq(1), o_current.eq(0),
                o.payload.data.eq(0), o.payload.status.eq(Status.ABORTED), o.payload.last.eq(1),
            ]
        with m.Elif(advance):
            m.d.sync += o.valid.eq(skid_valid | i_fire)
            with m.If(skid_valid | i_fire):
                word = data.View(
                    skid.shape(), Mux(skid_valid, skid.as_value(), i_word.as_value())
                )
                m.d.sync += [
                    o.payload.eq(word), o_last.eq(word.last), o_current.eq(1), skid_valid.eq(0),
                ]
        with m.Elif(i_fire):
            m.d.sync += [skid_valid.eq(1), skid.eq(i_word)]
        with m.If(self.flush):
            m.d.sync += [skid_valid.eq(0), o_current.eq(0)]
            with m.If(advance & ~cut):
                m.d.sync += o.valid.eq(0)
        m.d.sync += [
            self.job_done.valid.eq(o.valid & o.ready & o_last & o_current & ~self.flush),
            self.job_done.tag.eq(o.payload.tag), self.job_done.status.eq(o.payload.status),
        ]
        return m


class StreamPath:
    """Commands and results through AXI4-Stream."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return {
            "s_axis_tvalid": In(1), "s_axis_tready": Out(1),
            "s_axis_tdata": In(8 * config.bytes_in),
            "m_axis_tvalid": Out(1), "m_axis_tready": In(1),
            "m_axis_tdata": Out(8 * config.bytes_out), "m_axis_tlast": Out(1),
            "m_axis_tid": Out(16), "m_axis_tuser": Out(8),
        }

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its pins and its crossing."""
        c = wrapper.ip.array
        commands, results = SkidBuffer(8 * c.bytes_in), PacketRegister(bytes_out=c.bytes_out)
        m.submodules.commands = ResetInserter(soft_reset.flush)(commands)
        m.submodules.results = results
        connect(m, commands.o, crossing.commands)
        connect(m, crossing.results, results.results)
        word = results.packets.payload
        m.d.comb += [
            commands.i.valid.eq(wrapper.s_axis_tvalid),
            commands.i.payload.eq(wrapper.s_axis_tdata),
            wrapper.s_axis_tready.eq(commands.i.ready),
            results.flush.eq(soft_reset.flush), csr.job_done.eq(results.job_done),
            wrapper.m_axis_tvalid.eq(results.packets.valid),
            results.packets.ready.eq(wrapper.m_axis_tready),
            wrapper.m_axis_tdata.eq(word.data), wrapper.m_axis_tlast.eq(word.last),
            wrapper.m_axis_tid.eq(word.tag), wrapper.m_axis_tuser.eq(word.status),
            csr.busy.eq(crossing.busy | commands.o.valid),
        ]


class FifoPath:
    """Commands and results through the register space; it has no pins of its own."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return {}

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its registers and its crossing."""
        c, with_flush = wrapper.ip.array, ResetInserter(soft_reset.flush)
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


class DmaPath:
    """Commands and results through the DMA engine, an AXI4 master."""

    def pins(self, config):
        """The pins: members by name, in order."""
        return master_pins(config.bytes_in)

    def connect(self, m, wrapper, csr, crossing, soft_reset):
        """Add the data path of ``wrapper`` to ``m``, between its registers, pins and crossing."""
        ip = wrapper.ip
        descriptors, dma = DescriptorRegs(), Dma(ip.array, window=ip.window)
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
        if ip.window:
            m.d.comb += [
                dma.allowed.base.eq(csr.dma_base), dma.allowed.limit.eq(csr.dma_limit),
            ]
        connect_master(m, wrapper, dma.axi, ip.array.bytes_in)


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
