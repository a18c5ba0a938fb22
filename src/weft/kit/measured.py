"""Area and clock of a core on a device, as the open tools place and route it."""

from pathlib import Path

from weft.boards.devices import DEVICES, Device
from weft.boards.toolchain import Toolchain, ToolchainError, to_rtlil
from weft.hw.bus.top import IpTop
from weft.ip import Ip

__all__ = ["device", "measure"]


def device(name: str, ip: Ip) -> Device:
    """The device of that name; ToolchainError where there is none, or ``ip`` is not for it."""
    found = DEVICES.get(name)
    if found is None:
        raise ToolchainError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")
    if ip.config.target not in ("generic", found.target):
        raise ToolchainError(
            f"device must be one of target {ip.config.target!r}, not {name!r} of {found.target!r}"
        )
    return found


def measure(ip: Ip, part: Device, tools: Toolchain, *, folder: Path, seed: int) -> str:
    """What the data sheet says of ``ip`` on ``part``: a table.

    The core's ports end nowhere, as those of a part of a larger design.

    Raises ToolchainError where it does not fit, or a tool fails.
    """
    netlist = tools.synthesize(to_rtlil(IpTop(ip)), part, folder)
    placed = tools.place(netlist, part, seed, out_of_context=True)
    rows = [
        (name, f"{used:,}", f"{part.capacity[name]:,}", f"{used / part.capacity[name]:.1%}")
        for name, used in placed.used.items() if part.capacity[name]
    ]
    lines = [
        (f"On {part.name}, the core alone, by Yosys and nextpnr, seed {seed}:"
        f" **{placed.fmax:.1f} MHz** (the critical path: {placed.critical_path}), which makes"
        f" {placed.fmax * ip.config.peak / 1000:.2f} GMAC/s at the peak."),
        "", "| resource | used | of | share |", "| --- | --- | --- | --- |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines)
