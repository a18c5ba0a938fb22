"""Export of designs to plain Verilog-2005, with the same bytes every time."""

import contextlib
import gc

from amaranth._toolchain.yosys import find_yosys
from amaranth.back import rtlil

from weft.hw.top import Top

__all__ = ["to_verilog", "verilog"]

# `proc` turns processes into assignments and clocked always blocks: Icarus never runs an
# `always @*` whose inputs never change, so its outputs would stay X.
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
    """The Verilog of a `Top`: module ``weft`` with its ports, and ``clk`` and ``rst``."""
    return to_verilog(Top(config, mac=mac), name="weft")


def to_verilog(component, *, name, platform=None) -> str:
    """The Verilog of a component, as module ``name``, with the primitives of a ``platform``.

    Raises amaranth's ToolNotFound if Yosys 0.40 or newer is not installed.
    """
    with _no_garbage_collection():
        source = rtlil.convert(component, platform=platform, name=name, emit_src=False)
    yosys = find_yosys(lambda version: version >= (0, 40))
    return yosys.run(["-q", "-"], SCRIPT.format(rtlil=source, name=name))


@contextlib.contextmanager
def _no_garbage_collection():
    """Disables garbage collection, which doubles the time of a conversion and frees nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
