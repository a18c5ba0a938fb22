"""Verilog of a design: plain Verilog-2005 that every tool reads, the same bytes every time."""

import contextlib
import gc

from amaranth._toolchain.yosys import find_yosys
from amaranth.back import rtlil

from weft.hw.top import Top

__all__ = ["to_verilog", "verilog"]

# `proc` makes always blocks on clock edges and assignments of processes: an `always @*` whose
# inputs never change would never run in Icarus, and its outputs stay X.
SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
hierarchy -top {name}
delete t:$meminit t:$meminit_v2
proc
memory_collect
opt_clean
write_verilog -noattr
"""


def verilog(config, *, mac=None) -> str:
    """The Verilog of a `Top`: module ``weft``, its ports, ``clk`` and ``rst``."""
    return to_verilog(Top(config, mac=mac), name="weft")


def to_verilog(component, *, name, platform=None) -> str:
    """The Verilog of any component, as module ``name``, with primitives for a ``platform``.

    Raises amaranth's ToolNotFound where no Yosys of 0.40 or newer is installed.
    """
    with _no_collection():
        source = rtlil.convert(component, platform=platform, name=name, emit_src=False)
    yosys = find_yosys(lambda version: version >= (0, 40))
    return yosys.run(["-q", "-"], SCRIPT.format(rtlil=source, name=name))


@contextlib.contextmanager
def _no_collection():
    """Without garbage collection, which finds nothing in a conversion and doubles its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
