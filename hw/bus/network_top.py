"""The top of an IP core for networks: flat ports, clock and reset around wrapper and core."""

from amaranth.hdl import DomainRenamer
from amaranth.lib.wiring import Out, connect, flipped

from weft.chip.ip import NetworkIp
from weft.hw.bus.network_wrapper import NetworkWrapper
from weft.hw.bus.top import IpTop, WrappedTop
from weft.hw.chip.core import NetworkCore
from weft.hw.chip.interface import NetworkInterface

__all__ = ["BareNetworkWrapper", "NetworkIpTop", "ip_top"]


def ip_top(ip):
    """The top of an Ip, or of a NetworkIp."""
    return NetworkIpTop(ip) if isinstance(ip, NetworkIp) else IpTop(ip)


class NetworkIpTop(WrappedTop):
    """An IP core for networks; ``docs/ip.md`` describes its ports.

    Parameters
    ----------
    ip : NetworkIp

    Attributes
    ----------
    clock, reset : In, 1 bit each
        Clock and reset, by the names in `weft.buses.bus.Bus`: ``aclk``, ``aresetn``.
    pins
        The pins of `weft.hw.bus.network_wrapper.NetworkWrapper`.
    """

    WRAPPER = NetworkWrapper

    def connect_core(self, m):
        """Add the core to ``m``."""
        core = NetworkCore(self.ip.chip)
        m.submodules.core = DomainRenamer("core")(core)
        connect(m, self.wrapper.core, core)


class BareNetworkWrapper(NetworkIpTop):
    """An IP core for networks without its core: the ports of the core are pins. For proofs.

    Attributes
    ----------
    core : Out, `weft.hw.chip.interface.NetworkInterface`
    core_reset : Out, 1 bit
        Reset of the core.
    others
        The ports of `NetworkIpTop`.
    """

    def __init__(self, ip):
        super().__init__(ip, core=Out(NetworkInterface(ip.chip)), core_reset=Out(1))

    def connect_core(self, m):
        """Connect the pins of the core."""
        connect(m, self.wrapper.core, flipped(self.core))
        m.d.comb += self.core_reset.eq(self.wrapper.core_reset)
