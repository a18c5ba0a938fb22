"""The default Config of each FPGA that the boards use."""

from weft.boards.fit import replace
from weft.boards.presets import PRESETS

__all__ = ["ECP5_25F", "ECP5_45F", "ECP5_85F", "ICE40_HX8K", "ICE40_UP5K"]

ICE40_UP5K = PRESETS["ice40up5k"].config
ICE40_HX8K = PRESETS["ice40hx8k"].config
ECP5_25F = PRESETS["ecp5-25f"].config
ECP5_45F = replace(ECP5_25F, rows=6, cols=6, dsp_cols=2)
ECP5_85F = PRESETS["ecp5-85f"].config
