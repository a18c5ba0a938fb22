"""The top of an IP core: flat ports, clocks and resets around the bus wrapper and the core."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw import core
from weft.hw.bus.bus_wrapper import BusWrapper
from weft.hw.interface import CoreInterface

__all__ = ["BareWrapper", "IpTop", "WrappedTop"]


class WrappedTop(wiring.Component):
    """Clocks, resets and a bus wrapper; a subclass adds the core.

    A subclass has the class of the wrapper as ``WRAPPER``, and defines ``connect_core``.

    Parameters
    ----------
    ip : Ip or NetworkIp
    more : members
        Further ports.

    Attributes
    ----------
    clock, reset : In, 1 bit each
        Clock and reset of the bus, by the names in `weft.buses.bus.Bus`: ``aclk``, ``aresetn``.
    core_clk : In, 1 bit
        Clock of the core; only with two clocks.
    pins
        The pins of the wrapper.
    """

    def __init__(self, ip, **more):
        self.ip = ip
        self.wrapper = self.WRAPPER(ip)
        clocks = (ip.protocol.clock, ip.protocol.reset, *["core_clk"] * (ip.clocks - 1))
        super().__init__({**dict.fromkeys(clocks, In(1)), **self.WRAPPER.pins(ip), **more})

    def elaborate(self, platform):
        m = Module()
        m.submodules.wrapper = wrapper = self.wrapper
        self._clocks(m)
        for name, member in self.WRAPPER.pins(self.ip).items():
            outer, inner = getattr(self, name), getattr(wrapper, name)
            m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        self.connect_core(m)
        return m

    def _clocks(self, m):
        """The clock domains; their clock signals are the ports themselves.

        With one clock, ``sync`` and ``core`` share one signal: a copy would change one simulation
        step later, and registers between the two domains would sample wrong values.
        """
        m.domains.sync = sync = ClockDomain("sync")
        m.domains.core = inner = ClockDomain("core")
        bus = self.ip.protocol
        reset = getattr(self, bus.reset)
        sync.clk = getattr(self, bus.clock)
        inner.clk = self.core_clk if self.ip.clocks == 2 else sync.clk
        if self.ip.clocks == 2:
            m.domains.core_clk = core_clk = ClockDomain("core_clk")
            core_clk.clk = self.core_clk
            m.submodules.reset_sync = FFSynchronizer(
                sync.rst, core_clk.rst, o_domain="core_clk", init=1
            )
        m.d.comb += [
            sync.rst.eq(reset if bus.reset_active else ~reset),
            inner.rst.eq(self.wrapper.core_reset),
        ]

    def connect_core(self, m):
        """Add the core to ``m``."""
        raise NotImplementedError


class IpTop(WrappedTop):
    """An IP core for matrix products; ``docs/ip.md`` describes its ports.

    Parameters
    ----------
    ip : Ip

    Attributes
    ----------
    pins
        The pins of `weft.hw.bus.bus_wrapper.BusWrapper`.
    others
        The ports of `WrappedTop`.
    """

    WRAPPER = BusWrapper

    def connect_core(self, m):
        """Add the core to ``m``."""
        inner = core.Core(self.ip.config)
        m.submodules.core = DomainRenamer("core")(inner)
        connect(m, self.wrapper.core, inner)


class BareWrapper(IpTop):
    """An IP core without its core: the ports of the core are pins. For area and proofs.

    Attributes
    ----------
    core : Out, `weft.hw.interface.CoreInterface`
    core_reset : Out, 1 bit
        Reset of the core.
    others
        The ports of `IpTop`.
    """

    def __init__(self, ip):
        super().__init__(ip, core=Out(CoreInterface(ip.config)), core_reset=Out(1))

    def connect_core(self, m):
        """Connect the pins of the core."""
        connect(m, self.wrapper.core, flipped(self.core))
        m.d.comb += self.core_reset.eq(self.wrapper.core_reset)
