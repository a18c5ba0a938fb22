"""Verilog of the core, and simulation models of the device primitives in it."""

import importlib.util
from pathlib import Path

from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.ip import Ip

__all__ = ["commented", "core", "primitives"]

_MODELS = {"ecp5": "ecp5.v", "ice40hx": "ice40.v", "ice40up": "ice40.v"}


def core(top: IpTop, *, head: list[str]) -> str:
    """Verilog-2005 of a core; with a target it instantiates the primitives of that device."""
    ip = top.ip
    platform = None if ip.config.target == "generic" else Primitives()
    return commented(head, "//") + to_verilog(top, name=ip.name, platform=platform)


def primitives(ip: Ip, *, head: list[str]) -> str | None:
    """Simulation models of the primitives in `core`; None for target ``generic``."""
    if ip.config.target == "generic":
        return None
    # Find the folder without an import: modules of weft.sim need packages that may be missing.
    [folder] = importlib.util.find_spec("weft.sim").submodule_search_locations
    models = Path(folder, "primitives", _MODELS[ip.config.target]).read_text(encoding="utf-8")
    return commented(head, "//") + models


def commented(head: list[str], mark: str) -> str:
    """The lines ``head`` as a comment, followed by an empty line."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in head) + "\n"
