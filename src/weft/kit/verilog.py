"""The core itself: one Verilog file, and models of the primitives that it is built of."""

import contextlib
import gc
import importlib.util
from pathlib import Path

from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.ip import Ip

__all__ = ["commented", "core", "primitives"]

_MODELS = {"ecp5": "ecp5.v", "ice40hx": "ice40.v", "ice40up": "ice40.v"}


def core(top: IpTop, *, head: list[str]) -> str:
    """Verilog-2005 of a core: its device's primitives where it has a target."""
    ip = top.ip
    built = None if ip.config.target == "generic" else Primitives()
    with _uncollected():
        return commented(head, "//") + to_verilog(top, name=ip.name, platform=built)


@contextlib.contextmanager
def _uncollected():
    """Without the garbage collector: it would look again and again at millions of live objects."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def primitives(ip: Ip, *, head: list[str]) -> str | None:
    """Models to simulate what `core` instantiates; None where that is nothing."""
    if ip.config.target == "generic":
        return None
    # They belong to the simulations, whose modules want more than is needed to generate.
    [place] = importlib.util.find_spec("weft.sim").submodule_search_locations
    models = Path(place, "primitives", _MODELS[ip.config.target]).read_text(encoding="utf-8")
    return commented(head, "//") + models


def commented(head: list[str], mark: str) -> str:
    """Lines of a comment, and an empty one."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in head) + "\n"
