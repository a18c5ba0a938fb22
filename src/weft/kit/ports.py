"""The ports of an IP core, from its signature, with their descriptions."""

from dataclasses import dataclass

from amaranth.lib.wiring import In

from weft.buses.bus import Interface
from weft.ip import BusCore

__all__ = ["Port", "interfaces", "ports"]


@dataclass(frozen=True)
class Port:
    """A port of the top module; ``out`` is true for an output, ``text`` describes the port."""

    name: str
    width: int
    out: bool
    text: str


def interfaces(ip: BusCore) -> tuple[Interface, ...]:
    """The interfaces of a core; the last one has all ports that belong to no other."""
    bus = ip.protocol
    active = "high" if bus.reset_active else "low"
    return *ip.interfaces, Interface("", "clocks, reset, interrupt", {
        bus.clock: "clock of all ports, and of the core if it has no core_clk",
        bus.reset: f"reset, active {active}, synchronous to {bus.clock}",
        "irq": "interrupt, level: high while an enabled bit of irq_status is set",
        "core_clk": "clock of the core",
    })


def ports(component, ip: BusCore) -> list[Port]:
    """All ports of a component whose signature is flat, in the signature's order.

    Raises ValueError for a port whose name has no description.
    """
    return [
        Port(str(path[0]), len(value), member.flow != In, _text(str(path[0]), ip))
        for path, member, value in component.signature.flatten(component)
    ]


def _text(name, ip):
    interface = next(i for i in interfaces(ip) if name.startswith(i.prefix))
    text = interface.ports.get(name.removeprefix(interface.prefix))
    if text is None:
        raise ValueError(f"port must have a known name, not {name!r}")
    return text
