"""The flow of the ECP5: nextpnr-ecp5, and an EHXPLLL."""

import re

from amaranth.hdl import Instance, Signal
from amaranth.lib import io
from amaranth.utils import ceil_log2

from weft.boards import floorplan, language_floorplan, netlist_passes, pll
from weft.boards.flows.flow import Flow

__all__ = ["LOOP_FILTER", "Ecp5Flow"]

OTHER_DSP = 8  # MULT18X18D outside the array and the lanes
LANE_DSP = 4  # MULT18X18D of a lane
OTHER_RAM = 6  # DP16KD without PEs, lanes, operands of 512 words, and a result for each column
LANE_RAM = 4  # DP16KD of a lane, at most
# Loop filter of an EHXPLLL, as Lattice's own tool sets it for any frequency.
LOOP_FILTER = {
    "ICP_CURRENT": "12", "LPF_RESISTOR": "8", "MFG_ENABLE_FILTEROPAMP": "1", "MFG_GMCREF_SEL": "2",
}


class Ecp5Flow(Flow):
    """The ECP5.

    Designs have no reset: it would have no global net, and need ordinary routing to every slice.
    The registers start with the values in the bitstream.
    """

    name = "ecp5"
    # DSP blocks are instantiated, not inferred. No wide multiplexers, because the LUTs they cost
    # are worth more than the delay they save.
    synthesis = "synth_ecp5 -nowidelut"
    target_mhz = 200
    unconstrained = "--lpf-allow-unconstrained",
    out_of_context = "--out-of-context",
    constraints_option, config_option, constraints = "--lpf", "--textcfg", "lpf"
    missing_pin = re.compile(r"constrained to pin '(.*)', which does not exist for package")
    packer, packer_options, bitstream = "ecppack", ("--compress",), "bit"
    cells = {"LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "DSP": "MULT18X18D", "RAM": "DP16KD"}
    reset = False
    simulated_stage = "synthesized"
    shapes = (
        (8, 12, 8), (8, 10, 8), (8, 9, 8), (8, 8, 8), (6, 10, 8), (8, 7, 8), (8, 6, 8), (6, 7, 8),
        (6, 6, 8), (5, 6, 8), (4, 7, 8), (4, 6, 8), (4, 5, 8), (4, 4, 8), (4, 3, 8), (4, 4, 4),
        (2, 4, 4), (2, 2, 4),
    )

    def fit(self, shape, capacity):
        """As many columns as possible multiply in DSP blocks, then in block RAM.

        The lanes are as fast as the array in products with ``K = 256``.
        """
        fields, in_logic = super().fit(shape, capacity)
        rows, cols, depth = shape
        lanes = 1 << ceil_log2(-(-rows * cols * depth // 256))
        blocks = rows * depth // 2  # of a column
        dsp_cols = min(cols, (capacity["DSP"] - OTHER_DSP - LANE_DSP * lanes) // blocks)
        spare = capacity["RAM"] - (rows + cols) * depth // 4 - cols - OTHER_RAM - LANE_RAM * lanes
        ram_cols = min(cols - dsp_cols, max(0, spare) // blocks)
        fields |= dict(dsp_cols=dsp_cols, ram_cols=ram_cols, lanes=lanes)
        return fields, in_logic - rows * (dsp_cols + ram_cols) * depth

    def improve(self, netlist, device):
        netlist_passes.drop_unused_carries(netlist)
        floorplan.place_dsp_blocks(netlist, device)
        floorplan.place_squares(netlist, device)
        floorplan.place_scalers(netlist, device)
        regions = floorplan.place_memory(netlist, device)
        regions |= floorplan.operand_regions(netlist)
        floorplan.place_map_reader(netlist, device)
        regions |= language_floorplan.place_language_core(netlist, device)
        netlist_passes.copy_registers(netlist, regions)
        netlist_passes.copy_operands(netlist)

    def pll(self, source, clock):
        return pll.ecp5(source, clock)

    def add_pll(self, m, pin, settings, *, at_pad, clk, lock, shifted=None, step=None):
        m.submodules.pin = buffer = io.Buffer("i", pin)
        feedback = clk
        outputs = {"o_CLKOP": clk}
        if "CLKOS_DIV" in settings.parameters:
            feedback = Signal(name="pll_feedback")
            outputs = {"o_CLKOP": feedback, "o_CLKOS": clk}
        if shifted is not None:
            # PHASESEL 1 is CLKOS2, PHASEDIR 0 is later (Lattice FPGA-TN-02200, dynamic phase).
            outputs |= {
                "o_CLKOS2": shifted, "p_DPHASE_SOURCE": "ENABLED", "i_PHASESEL0": 1,
                "i_PHASESEL1": 0, "i_PHASEDIR": 0, "i_PHASESTEP": step, "i_PHASELOADREG": 0,
            }
        m.submodules.pll = Instance(
            "EHXPLLL", **{f"p_{name}": value for name, value in settings.parameters.items()},
            **{f"a_{name}": value for name, value in LOOP_FILTER.items()},
            i_CLKI=buffer.i, i_CLKFB=feedback, i_RST=0, i_STDBY=0, o_LOCK=lock, **outputs,
        )
        # Not clk: a clock with other loads cannot be routed to the gate.
        return buffer.i
