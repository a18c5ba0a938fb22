"""The top of an IP core: flat ports, clocks and resets, and between them the shell and the core."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw import core
from weft.hw.bus.bus_wrapper import BusWrapper, pins
from weft.hw.bus.crossing import CoreInterface

__all__ = ["BareWrapper", "IpTop"]


class IpTop(wiring.Component):
    """An IP core. ``docs/ip.md`` says what its ports do.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    aclk, aresetn : In
        Clock, and reset of that clock, active low; with Wishbone ``wb_clk_i`` and ``wb_rst_i``,
        active high.
    core_clk : In
        Of an Ip with two clocks.
    pins
        As of `weft.hw.bus.bus_wrapper.pins`.
    """

    def __init__(self, ip, **more):
        self.ip = ip
        self.shell = BusWrapper(ip)
        self.wishbone = ip.bus == "wishbone"
        clocks = ("wb_clk_i", "wb_rst_i") if self.wishbone else ("aclk", "aresetn")
        clocks += ("core_clk",) * (ip.clocks - 1)
        super().__init__({**dict.fromkeys(clocks, In(1)), **pins(ip), **more})

    def elaborate(self, platform):
        m = Module()
        m.submodules.shell = shell = self.shell
        self._clocks(m)
        for name, member in pins(self.ip).items():
            outer, inner = getattr(self, name), getattr(shell, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        self._core(m, shell.core)
        return m

    def _clocks(self, m):
        """Domains whose clocks are the ports themselves.

        What passes between two that have one clock must find it in one instant of a simulation.
        """
        m.domains.sync = sync = ClockDomain("sync")
        m.domains.core = inner = ClockDomain("core")
        sync.clk = self.wb_clk_i if self.wishbone else self.aclk
        inner.clk = self.core_clk if self.ip.clocks == 2 else sync.clk
        if self.ip.clocks == 2:
            m.domains.far = far = ClockDomain("far")
            far.clk = self.core_clk
            m.submodules.reset = FFSynchronizer(sync.rst, far.rst, o_domain="far", init=1)
        m.d.comb += [
            sync.rst.eq(self.wb_rst_i if self.wishbone else ~self.aresetn),
            inner.rst.eq(self.shell.core.reset),
        ]

    def _core(self, m, pins):
        inside = core.Core(self.ip.config)
        m.submodules.core = DomainRenamer("core")(inside)
        m.d.comb += [
            inside.commands.valid.eq(pins.commands.valid),
            inside.commands.payload.eq(pins.commands.payload),
            pins.commands.ready.eq(inside.commands.ready),
            pins.results.valid.eq(inside.results.valid),
            pins.results.payload.eq(inside.results.payload),
            inside.results.ready.eq(pins.results.ready),
            inside.abort.eq(pins.abort), inside.address.eq(pins.address),
            pins.data.eq(inside.data), pins.busy.eq(inside.activity.busy),
        ]


class BareWrapper(IpTop):
    """An IP core without its core, the ports of which are pins: to be measured alone.

    Attributes
    ----------
    core : Out, `weft.hw.bus.crossing.CoreInterface`
        Beside all of `IpTop`.
    """

    def __init__(self, ip):
        super().__init__(ip, core=Out(CoreInterface(ip.config)))

    def _core(self, m, pins):
        connect(m, pins, flipped(self.core))
