"""The flow of the Gowin FPGAs: nextpnr-himbaechel-gowin, gowin_pack, and an rPLL."""

import re

from amaranth.hdl import Const, Instance
from amaranth.lib import io

from weft.boards import pll
from weft.boards.flows.flow import Flow

__all__ = ["GowinFlow"]


# Adders of at most 10 bits become LUTs. nextpnr puts a flip-flop beside the LUT before it, but not
# beside an ALU; so an array has half of the ALUs, and takes fewer places (docs/notes/gowin.md).
SHORT_ADDERS = "techmap -map +/techmap.v t:$alu r:Y_WIDTH<=10 %i"
# The option of nextpnr that names a die.
_FAMILY = "family="


class GowinFlow(Flow):
    """The GW2A-18C and the GW1N-9C.

    nextpnr has no delays of DSP blocks: a path that starts or ends in one counts as nothing. So
    Yosys infers no block. The MAC cells, which instantiate them, have a register before and after
    each block.

    Designs have no reset, as for the ECP5.

    Parameters
    ----------
    device : str
        A GW2AR-18C or a GW1NR-9C.
    die : str
        Its name in nextpnr and the packer.
    """

    name = "gowin"
    target_mhz = 100
    unconstrained = out_of_context = ()
    constraints_option, config_option, constraints = "--vopt=cst", "", "cst"
    missing_pin = re.compile(r"Invalid pin '?([^' ]*)'?")
    packer, bitstream = "gowin_pack", "fs"
    cells = {"LUT": "LUT4", "FF": "DFF", "DSP": "MULT9X9", "RAM": "BSRAM"}
    reset = False
    simulated_stage = "synthesized"
    shapes = ((4, 5, 8), (4, 4, 8), (4, 4, 4), (2, 4, 4), (2, 2, 4))

    def __init__(self, device="GW2AR-18C", die="GW2A-18C"):
        self.device = device
        synthesis = f"synth_gowin -family {die[:4].lower()} -nodsp"
        self.synthesis = "\n".join([
            f"{synthesis} -top top -run begin:map_gates", SHORT_ADDERS, "opt",
            f"{synthesis} -run map_gates:",
        ])
        self.packer_options = "-d", die

    def on(self, device):
        """The flow for ``device``."""
        (die,) = (each[len(_FAMILY):] for each in device.options if each.startswith(_FAMILY))
        return GowinFlow(device.name, die)

    @property
    def program(self):
        return "nextpnr-himbaechel-gowin"

    def pll(self, source, clock):
        return pll.gowin(source, clock, self.device)

    def add_pll(self, m, pin, settings, *, at_pad, clk, lock, shifted=None):
        m.submodules.pin = buffer = io.Buffer("i", pin)
        outputs = {"o_CLKOUT": clk} | ({} if shifted is None else {"o_CLKOUTP": shifted})
        m.submodules.pll = Instance(
            "rPLL", **{f"p_{name}": value for name, value in settings.parameters.items()},
            i_CLKIN=buffer.i, i_CLKFB=Const(0), i_RESET=Const(0), i_RESET_P=Const(0),
            i_FBDSEL=Const(0, 6), i_IDSEL=Const(0, 6), i_ODSEL=Const(0, 6),
            i_PSDA=Const(0, 4), i_DUTYDA=Const(0, 4), i_FDLY=Const(0, 4),
            o_LOCK=lock, **outputs,
        )
        # Not the pin: nextpnr takes one frequency for all clocks of a Gowin FPGA.
        return clk
