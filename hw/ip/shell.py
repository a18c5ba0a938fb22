"""The shell: all of an IP core but the core, with the flat names that every engineer knows."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.ip import axi_lite, wishbone
from weft.hw.ip.control import Control
from weft.hw.ip.crossing import Core, Far, Near
from weft.hw.ip.packets import Packets
from weft.hw.ip.restart import Restart
from weft.hw.ip.skid import Skid
from weft.hw.ip.windows import CommandWindow, ResultWindow

__all__ = ["Shell", "pins"]


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
    return {**bus, "irq": Out(1)}


class Shell(wiring.Component):
    """Turns the buses of ``ip`` into the streams and registers of a core.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    pins
        As the function says; ``docs/ip.md`` has what they do. Their domain is ``sync``.
    core : Out, `weft.hw.ip.crossing.Core`
        Of the domain ``core``; with two clocks there is ``far`` beside it, which the
        bus's reset resets and a soft reset does not.
    """

    def __init__(self, ip):
        self.ip = ip
        super().__init__({**pins(ip), "core": Out(Core(ip.config))})

    def elaborate(self, platform):
        m = Module()
        bus = self._bus(m)
        m.submodules.control = control = Control(self.ip)
        m.submodules.restart = restart = Restart()
        kind = Near if self.ip.clocks == 1 else Far
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
            control.resetting.eq(restart.resetting),
        ]
        connected = {"stream": self._streams}.get(self.ip.bus, self._windows)
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
        commands = CommandWindow(bytes_in=c.bytes_in, target=c.target)
        results = ResultWindow(bytes_out=c.bytes_out, target=c.target)
        m.submodules.commands, m.submodules.results = within(commands), within(results)
        connect(m, control.commands, commands.i)
        connect(m, commands.commands, crossing.commands)
        connect(m, crossing.results, results.results)
        connect(m, results.o, control.results)
        m.d.comb += [
            control.room.eq(commands.room), control.level.eq(results.level),
            control.ended.eq(results.ended),
            control.busy.eq(crossing.busy | commands.waiting),
        ]

    def _streams(self, m, control, crossing, restart):
        c = self.ip.config
        commands, packets = Skid(8 * c.bytes_in), Packets(bytes_out=c.bytes_out)
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
