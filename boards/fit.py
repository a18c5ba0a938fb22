"""Which arrays a board may hold: Configs from the largest to the smallest."""

import contextlib
import dataclasses

from weft.boards.board import Board
from weft.config import Config, ConfigError

__all__ = ["min_luts", "replace", "sizes"]

# (rows, cols, depth) by target.
_SHAPES = {
    "ecp5": (
        (8, 10, 8), (8, 9, 8), (8, 8, 8), (8, 7, 8), (8, 6, 8), (6, 7, 8), (6, 6, 8), (5, 6, 8),
        (4, 6, 8), (4, 5, 8), (4, 4, 8), (4, 3, 8), (4, 4, 4), (2, 4, 4), (2, 2, 4),
    ),
    "ice40hx": ((4, 2, 4), (3, 2, 4), (2, 2, 4), (2, 2, 2), (1, 2, 2)),
    "ice40up": ((2, 2, 4), (2, 2, 2), (1, 2, 2)),
}
_OTHERS = 12  # MULT18X18D that are not in the array, with one lane
_FLOOR = 50   # LUTs, less than which no MAC in logic takes


def sizes(board: Board) -> list[Config]:
    """The board's Config with other arrays, as far as they could fit, the largest first."""
    device, found = board.device, []
    for rows, cols, depth in _SHAPES[device.target]:
        shape = dict(rows=rows, cols=cols, depth=depth)
        in_logic = rows * cols * depth
        if device.target == "ecp5":
            in_blocks = min(cols, (device.capacity["DSP"] - _OTHERS) // (rows * depth // 2))
            shape |= dict(dsp_cols=in_blocks, lanes=1)
            in_logic -= rows * in_blocks * depth
        elif device.target == "ice40up":
            in_logic = 0
        if _FLOOR * in_logic <= device.capacity["LUT"]:
            with contextlib.suppress(ConfigError):
                found.append(replace(board.config, **shape))
    return sorted(found, key=lambda one: -one.peak)


def replace(config: Config, **fields) -> Config:
    """``config`` with other fields; what was not chosen in it follows from them."""
    asked = dataclasses.asdict(config)
    for name in list(asked):
        rest = {other: value for other, value in asked.items() if other != name}
        with contextlib.suppress(ConfigError):
            asked = rest if Config.from_dict(rest) == config else asked
    return Config.from_dict(asked | fields)


def min_luts(cells: dict[str, int]) -> int:
    """LUTs that a netlist takes at least, by its cells."""
    each = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4, "SB_LUT4": 1}
    return sum(each.get(cell, 0) * count for cell, count in cells.items())
