"""The flow of the iCE40: nextpnr-ice40, and an SB_PLL40."""

import re

from amaranth.hdl import Instance
from amaranth.lib import io

from weft.boards import pll
from weft.boards.flows.flow import Flow

__all__ = ["Ice40HxFlow", "Ice40UpFlow"]


class Ice40HxFlow(Flow):
    """The iCE40HX, which has no DSP blocks."""

    name = "ice40"
    # The cells of a tile share one clock enable, so each enable of a few flip-flops blocks the
    # other flip-flops of its tile: in an almost full device, nextpnr hardly finds a placement.
    synthesis = "synth_ice40 -device hx -dffe_min_ce_use 5"
    target_mhz = 100
    unconstrained = out_of_context = ("--pcf-allow-unconstrained",)
    constraints_option, config_option, constraints = "--pcf", "--asc", "pcf"
    missing_pin = re.compile(r"package does not have a pin named '(.*)' ")
    packer, bitstream = "icepack", "bin"
    cells = {
        "LUT": "ICESTORM_LC", "DSP": "ICESTORM_DSP", "RAM": "ICESTORM_RAM",
        "SPRAM": "ICESTORM_SPRAM",
    }
    # A flip-flop shares a cell with a LUT, so flip-flops are counted in the netlist.
    flip_flops = re.compile(r"SB_DFF\w*")
    reset = True
    simulated_stage = "routed"
    shapes = ((4, 2, 4), (3, 2, 4), (2, 2, 4), (2, 2, 2), (1, 2, 2))

    def pll(self, source, clock):
        return pll.ice40(source, clock)

    def add_pll(self, m, pin, settings, *, at_pad, clk, lock):
        if at_pad:
            kind, reference = "PAD", {"i_PACKAGEPIN": pin.io}
        else:
            m.submodules.pin = buffer = io.Buffer("i", pin)
            kind, reference = "CORE", {"i_REFERENCECLK": buffer.i}
        m.submodules.pll = Instance(
            f"SB_PLL40_{kind}",
            **{f"p_{name}": value for name, value in settings.parameters.items()},
            i_RESETB=1, i_BYPASS=0, **reference, o_PLLOUTGLOBAL=clk, o_LOCK=lock,
        )
        return clk


class Ice40UpFlow(Ice40HxFlow):
    """The iCE40 UltraPlus; DSP blocks are instantiated, not inferred."""

    # A wire takes 2 ns, not 0.75 as Yosys assumes: a path has fewer LUTs, even if each is slower.
    synthesis = "scratchpad -set synth_ice40.abc9.W 2000\nsynth_ice40 -device u -dffe_min_ce_use 5"
    shapes = ((4, 1, 5), (4, 1, 4), (4, 1, 2), (2, 1, 2))

    def fit(self, shape, capacity):
        """DSP blocks multiply; logic computes the few products that have no block."""
        return super().fit(shape, capacity)[0], 0
