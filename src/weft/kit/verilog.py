"""Verilog of the core, and simulation models of the device primitives in it."""

import importlib.util
from pathlib import Path

from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.ip import Ip
from weft.network_core.ip import NetworkIp

__all__ = ["commented", "core", "primitives"]


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
