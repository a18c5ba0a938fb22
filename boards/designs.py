"""The default Config of each FPGA that the boards use."""

from weft.boards.presets import PRESETS
from weft.designs import replace

__all__ = ["ECP5_25F", "ECP5_45F", "ECP5_85F", "ICE40_HX8K", "ICE40_UP5K"]

# The arrays that were placed with the pins of the boards; the ones of the iCE40 presets are larger.
ICE40_UP5K = replace(PRESETS["ice40up5k"].config, depth=5)
ICE40_HX8K = replace(PRESETS["ice40hx8k"].config, rows=3, drain="folded")
ECP5_25F = PRESETS["ecp5-25f"].config
ECP5_45F = replace(ECP5_25F, rows=6, cols=10, hop=3, dsp_cols=2, ram_cols=2, lanes=2)
ECP5_85F = PRESETS["ecp5-85f"].config
