"""The top of an IP core: flat ports, clocks and resets around the bus wrapper and the core."""

from amaranth.hdl import ClockDomain, DomainRenamer, Module
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, connect, flipped

from weft.design import PerKind
from weft.hw.bus.bus_wrapper import BusWrapper
from weft.hw.bus.network_wrapper import NetworkWrapper
from weft.hw.core import Core
from weft.hw.network_core.core import network_core

__all__ = ["BareWrapper", "IpTop"]

_WRAPPERS = PerKind(product=BusWrapper, network=NetworkWrapper)
_CORES = PerKind(product=Core, network=network_core)


class IpTop(wiring.Component):
    """An IP core of either kind; ``docs/ip.md`` describes its ports.

    Parameters
    ----------
    ip : Ip or NetworkIp

    Attributes
    ----------
    clock, reset : In, 1 bit each
        Clock and reset of the bus, by the names in `weft.buses.Bus`: ``aclk``, ``aresetn``.
    core_clk : In, 1 bit
        Clock of the core; only with two clocks.
    pins
        The pins of `weft.hw.bus.bus_wrapper.BusWrapper`, or of
        `weft.hw.bus.network_wrapper.NetworkWrapper`.
    """

    def __init__(self, ip):
        self.ip = ip
        self.wrapper = _WRAPPERS.of(ip)(ip)
        clocks = (ip.protocol.clock, ip.protocol.reset, *["core_clk"] * (ip.clocks - 1))
        super().__init__({
            **dict.fromkeys(clocks, In(1)), **self.wrapper.pins(ip), **self.core_members(),
        })

    def core_members(self):
        """Ports of the core that are pins: none."""
        return {}

    def elaborate(self, platform):
        m = Module()
        m.submodules.wrapper = wrapper = self.wrapper
        self._clocks(m)
        for name, member in wrapper.pins(self.ip).items():
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
        core = _CORES.of(self.ip)(self.ip.config)
        m.submodules.core = DomainRenamer("core")(core)
        connect(m, self.wrapper.core, core)


class BareWrapper(IpTop):
    """An IP core without its core: the ports of the core are pins. For area and proofs.

    Attributes
    ----------
    core : Out
        As of the wrapper.
    core_reset : Out, 1 bit
        Reset of the core.
    others
        The ports of `IpTop`.
    """

    def core_members(self):
        """The ports of the core."""
        members = self.wrapper.signature.members
        return {name: members[name] for name in ("core", "core_reset")}

    def connect_core(self, m):
        """Connect the pins of the core."""
        connect(m, self.wrapper.core, flipped(self.core))
        m.d.comb += self.core_reset.eq(self.wrapper.core_reset)
