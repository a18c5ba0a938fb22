"""The core as Verilog, its ports with their descriptions, and its VHDL package."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from amaranth.lib.wiring import In

from weft.buses import Interface
from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.ip import BusCore, Ip
from weft.network_core.ip import NetworkIp

__all__ = ["Port", "commented", "core", "interfaces", "package", "ports", "primitives"]


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


def core(top: IpTop, *, head: list[str]) -> str:
    """Verilog-2005 of a core, with the primitives of its FPGA family, if it has any."""
    ip = top.ip
    platform = Primitives() if ip.array.family.models else None
    return commented(head, "//") + to_verilog(top, name=ip.name, platform=platform)


def primitives(ip: Ip | NetworkIp, *, head: list[str]) -> str | None:
    """Simulation models of the primitives in `core`; None if `core` has no primitives."""
    file = ip.array.family.models
    if file is None:
        return None
    # Find the folder without an import: modules of weft.sim need packages that may be missing.
    [folder] = importlib.util.find_spec("weft.sim").submodule_search_locations
    models = Path(folder, "primitives", file).read_text(encoding="utf-8")
    return commented(head, "//") + models


def commented(head: list[str], mark: str) -> str:
    """The lines ``head`` as a comment, followed by an empty line."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in head) + "\n"


def package(name: str, ports: list[Port], *, head: list[str]) -> str:
    """A file with the package ``<name>_component``; ports are std_logic or std_logic_vector."""
    longest = max(len(port.name) for port in ports)
    lines = []
    for port in ports:
        kind = "std_logic" if port.width == 1 else f"std_logic_vector({port.width - 1} downto 0)"
        end = "" if port is ports[-1] else ";"
        lines.append(f"      {port.name:{longest}} : {'out' if port.out else 'in '} {kind}{end}")
    return "\n".join([
        *(f"-- {line}".rstrip() for line in head), "",
        "library ieee;", "use ieee.std_logic_1164.all;", "",
        f"package {name}_component is", "",
        f"  component {name} is", "    port (", *lines, "    );", "  end component;", "",
        f"end package {name}_component;", "",
    ])
