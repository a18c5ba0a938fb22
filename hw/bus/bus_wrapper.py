"""The shell: all of an IP core but the core, with the flat names that every engineer knows."""

from amaranth.hdl import Module, Mux, ResetInserter, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.bus import axi_lite, wishbone
from weft.hw.bus.crossing import AsyncCrossing, CoreInterface, SyncCrossing
from weft.hw.bus.csr_bank import ERRORS, CsrBank
from weft.hw.bus.descriptor_regs import DescriptorRegs
from weft.hw.bus.fifo_ports import RxFifo, TxFifo
from weft.hw.bus.packet_register import PacketRegister
from weft.hw.bus.soft_reset import SoftReset
from weft.hw.dma.axi import FIXED
from weft.hw.dma.engine import Dma
from weft.hw.stream.skid_buffer import SkidBuffer

__all__ = ["BusWrapper", "pins"]


def pins(ip):
    """The pins of an IP core but for clocks and resets, in order: names and members."""
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


def _master(size):
    """The pins of an AXI4 master of ``size`` bytes."""
    address = {
        "id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3,
        "qos": 4,
    }
    answer = {"id": 1, "resp": 2}
    channels = {
        "aw": (Out, address), "w": (Out, {"data": 8 * size, "strb": size, "last": 1}),
        "b": (In, answer), "ar": (Out, address),
        "r": (In, {"id": 1, "data": 8 * size, "resp": 2, "last": 1}),
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
        As the function says; ``docs/ip.md`` has what they do. Their domain is ``sync``.
    core : Out, `weft.hw.bus.crossing.CoreInterface`
        Of the domain ``core``; with two clocks there is ``far`` beside it, which the
        bus's reset resets and a soft reset does not.
    """

    def __init__(self, ip):
        self.ip = ip
        super().__init__({**pins(ip), "core": Out(CoreInterface(ip.config))})

    def elaborate(self, platform):
        m = Module()
        bus = self._bus(m)
        m.submodules.control = control = CsrBank(self.ip)
        m.submodules.restart = restart = SoftReset()
        kind = SyncCrossing if self.ip.clocks == 1 else AsyncCrossing
        m.submodules.crossing = crossing = kind(self.ip.config)
        connect(m, bus.port, control.port)
        connect(m, crossing.core, flipped(self.core))
        m.d.comb += [
            self.irq.eq(control.irq),
            crossing.asks.eq(control.asks), crossing.address.eq(control.address),
            control.told.eq(crossing.told), control.value.eq(crossing.value),
            crossing.abort.eq(control.abort),
            restart.start.eq(control.reset), restart.was_reset.eq(crossing.was_reset),
            crossing.reset.eq(restart.reset), crossing.holds.eq(restart.holds),
            control.reset_busy.eq(restart.reset_busy),
        ]
        connected = {"stream": self._streams, "dma": self._dma}.get(self.ip.bus, self._windows)
        connected(m, control, crossing, restart)
        return m

    def _bus(self, m):
        """The register bus, its members at the pins."""
        if self.ip.bus == "wishbone":
            prefix, bus = "wb", wishbone.Wishbone(pipelined=self.ip.pipelined)
        else:
            prefix, bus = "s_axil", axi_lite.AxiLite()
        m.submodules.bus = bus
        for name, member in bus.signature.members.items():
            if name != "port":
                here, there = getattr(self, f"{prefix}_{name}"), getattr(bus, name)
                m.d.comb += there.eq(here) if member.flow == In else here.eq(there)
        return bus

    def _windows(self, m, control, crossing, restart):
        c, within = self.ip.config, ResetInserter(restart.holds)
        commands = TxFifo(bytes_in=c.bytes_in, target=c.target)
        results = RxFifo(bytes_out=c.bytes_out, target=c.target)
        m.submodules.commands, m.submodules.results = within(commands), within(results)
        connect(m, control.commands, commands.i)
        connect(m, commands.commands, crossing.commands)
        connect(m, crossing.results, results.results)
        connect(m, results.o, control.results)
        m.d.comb += [
            control.room.eq(commands.room), control.level.eq(results.level),
            control.follows.eq(results.follows), control.ended.eq(results.ended),
            control.busy.eq(crossing.busy | commands.waiting),
        ]

    def _streams(self, m, control, crossing, restart):
        c = self.ip.config
        commands, packets = SkidBuffer(8 * c.bytes_in), PacketRegister(bytes_out=c.bytes_out)
        m.submodules.commands = ResetInserter(restart.holds)(commands)
        m.submodules.packets = packets
        connect(m, commands.o, crossing.commands)
        connect(m, crossing.results, packets.results)
        word = packets.packets.payload
        m.d.comb += [
            commands.i.valid.eq(self.s_axis_tvalid), commands.i.payload.eq(self.s_axis_tdata),
            self.s_axis_tready.eq(commands.i.ready),
            packets.reset.eq(restart.holds), control.ended.eq(packets.ended),
            self.m_axis_tvalid.eq(packets.packets.valid),
            packets.packets.ready.eq(self.m_axis_tready),
            self.m_axis_tdata.eq(word.data), self.m_axis_tlast.eq(word.last),
            self.m_axis_tid.eq(word.tag), self.m_axis_tuser.eq(word.status),
            control.busy.eq(crossing.busy | commands.o.valid),
        ]

    def _dma(self, m, control, crossing, restart):
        descriptors, dma = DescriptorRegs(), Dma(self.ip.config, window=self.ip.window)
        m.submodules.descriptors = ResetInserter(restart.holds)(descriptors)
        m.submodules.dma = dma
        connect(m, descriptors.o, dma.descriptors)
        connect(m, dma.commands, crossing.commands)
        connect(m, crossing.results, dma.results)
        written = control.descriptor
        m.d.comb += [
            descriptors.write.eq(written.write), descriptors.index.eq(written.index),
            descriptors.data.eq(written.data), descriptors.submit.eq(written.submit),
            control.descriptor_word.eq(descriptors.word), control.filing.eq(descriptors.filing),
            control.desc_free.eq(Mux(restart.reset_busy, 0, dma.room)),
            dma.stop.eq(restart.stop | restart.holds), restart.idle.eq(dma.idle),
            control.dma_busy.eq(dma.busy | descriptors.filing),
            control.busy.eq(crossing.busy),
            control.ended.valid.eq(dma.ended), control.ended.tag.eq(dma.tag),
            control.ended.status.eq(dma.status),
            *(control.errors[name].eq(getattr(dma, name)) for name in ERRORS),
            *(getattr(dma, name).eq(getattr(control, name))
              for name in ("base", "limit") if self.ip.window),
        ]
        for name, flow in (("aw", Out), ("w", Out), ("b", In), ("ar", Out), ("r", In)):
            self._channel(m, name, flow, getattr(dma.axi, name))

    def _channel(self, m, name, flow, inner):
        """The pins of a channel of the master; what is the same in every burst among them."""
        valid, ready = (getattr(self, f"m_axi_{name}{end}") for end in ("valid", "ready"))
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
