"""The register slaves: for each protocol of registers the component, its pins and their prefix."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.lib import wiring

from weft.hw.bus import apb, axi_lite, wishbone

__all__ = ["SLAVES", "RegisterSlave"]


@dataclass(frozen=True)
class RegisterSlave:
    """A component with the port ``bus``, a `weft.hw.bus.register_bank.RegisterBus`, and pins.

    Attributes
    ----------
    prefix : str
        Start of the pins' names in an IP core; "" for APB, whose own names begin with p.
    pins : callable
        The pins of an `weft.ip.Ip`: members of the component by name, in order. A pipelined
        Wishbone bus has other pins than a classic one.
    component : callable
        The component for an `weft.ip.Ip`.
    """

    prefix: str
    pins: Callable[..., dict]
    component: Callable[..., wiring.Component]


# A key is the `weft.buses.Bus.register_slave` of a bus.
SLAVES = {
    "apb": RegisterSlave("", lambda ip: apb.PINS, lambda ip: apb.Apb()),
    "axi_lite": RegisterSlave("s_axil_", lambda ip: axi_lite.PINS, lambda ip: axi_lite.AxiLite()),
    "wishbone": RegisterSlave(
        "wb_", lambda ip: wishbone.pins(ip.pipelined),
        lambda ip: wishbone.Wishbone(pipelined=ip.pipelined),
    ),
}
