"""The section "Area and clock" of the data sheet: a core on a device, from Yosys and nextpnr."""

from pathlib import Path

from weft.boards.devices import DEVICES, Device
from weft.boards.toolchain import Toolchain, ToolchainError, to_rtlil
from weft.hw.bus.top import IpTop
from weft.ip import Ip
from weft.kit.table import table
from weft.network_core.ip import NetworkIp

__all__ = ["device", "measure"]


def device(name: str, ip: Ip | NetworkIp) -> Device:
    """The device called ``name``.

    Raises ToolchainError if the name is unknown, or ``ip`` is for a device of another target.
    """
    part = DEVICES.get(name)
    if part is None:
        raise ToolchainError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")
    # Only a core with primitives, whose models a simulation needs, is for one family of devices.
    if ip.array.family.models and ip.array.target != part.target:
        raise ToolchainError(
            f"device must have target {ip.array.target!r}, not {part.target!r} as {name!r} has"
        )
    return part


def measure(ip: Ip | NetworkIp, part: Device, tools: Toolchain, *, folder: Path, seed: int) -> str:
    """The section "Area and clock" of the data sheet, for ``ip`` on ``part``.

    The core is placed alone: its ports are not connected to pins.

    Raises ToolchainError if it does not fit, or a tool fails.
    """
    netlist = tools.synthesize(to_rtlil(IpTop(ip)), part, folder)
    placed = tools.place(netlist, part, seed, out_of_context=True)
    rows = [
        (name, f"{used:,}", f"{part.capacity[name]:,}", f"{used / part.capacity[name]:.1%}")
        for name, used in placed.used.items() if part.capacity[name]
    ]
    # MHz times MAC a cycle, divided by 1000, are GMAC/s.
    return (
        f"The core alone on {part.name}, from Yosys and nextpnr, seed {seed}:"
        f" **{placed.fmax:.1f} MHz** (critical path: {placed.critical_path}), or"
        f" {placed.fmax * ip.peak / 1000:.2f} GMAC/s peak.\n\n"
        + table(("resource", "used", "available", "share"), rows)
    )
