"""Search for the largest array that fits a board: the Configs to try, and quick size estimates."""

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
_OTHER_DSP = 12  # MULT18X18D outside the array, with one lane
_MIN_MAC_LUTS = 50  # lower bound of the LUTs of a MAC in logic


def sizes(board: Board) -> list[Config]:
    """The board's Config with arrays of other sizes, largest first.

    Arrays that cannot fit by their DSP blocks and their MACs in logic are left out.
    """
    device, configs = board.device, []
    for rows, cols, depth in _SHAPES[device.target]:
        shape = dict(rows=rows, cols=cols, depth=depth)
        in_logic = rows * cols * depth
        if device.target == "ecp5":
            dsp_cols = min(cols, (device.capacity["DSP"] - _OTHER_DSP) // (rows * depth // 2))
            shape |= dict(dsp_cols=dsp_cols, lanes=1)
            in_logic -= rows * dsp_cols * depth
        elif device.target == "ice40up":
            in_logic = 0
        if _MIN_MAC_LUTS * in_logic <= device.capacity["LUT"]:
            with contextlib.suppress(ConfigError):
                configs.append(replace(board.config, **shape))
    return sorted(configs, key=lambda config: -config.peak)


def replace(config: Config, **fields) -> Config:
    """``config`` with other values for some fields.

    Fields of ``config`` that have their default value follow from the new values.
    """
    chosen = dataclasses.asdict(config)
    for name in list(chosen):
        rest = {other: value for other, value in chosen.items() if other != name}
        with contextlib.suppress(ConfigError):
            chosen = rest if Config.from_dict(rest) == config else chosen
    return Config.from_dict(chosen | fields)


def min_luts(cells: dict[str, int]) -> int:
    """Lower bound of the LUTs of a netlist, from its number of cells by type."""
    luts = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4, "SB_LUT4": 1}
    return sum(luts.get(cell, 0) * count for cell, count in cells.items())
