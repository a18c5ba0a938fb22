"""Search for the largest array that fits a board: the Configs to try, and quick size estimates."""

import contextlib

from weft.boards.board import Board, BoardError
from weft.config import Config, ConfigError
from weft.design import PerKind
from weft.designs import replace

__all__ = ["configs_by_size", "min_luts"]

_MIN_MAC_LUTS = 50  # lower bound of the LUTs of a MAC in logic


def configs_by_size(board: Board) -> list[Config]:
    """The board's Config with arrays of other sizes, largest first.

    Arrays that cannot fit by their DSP blocks and their MACs in logic are left out. Raises
    BoardError for a board with a network core.
    """
    return _SIZES.of(board.config)(board)


def _sizes(board):
    device, configs = board.device, []
    for shape in device.flow.shapes:
        fields, in_logic = device.flow.fit(shape, device.capacity)
        if _MIN_MAC_LUTS * in_logic <= device.capacity["LUT"]:
            with contextlib.suppress(ConfigError):
                configs.append(replace(board.config, **fields))
    return sorted(configs, key=lambda config: -config.peak)


def _no_sizes(board):
    raise BoardError("--fit must be with a design for matrix products, not for networks")


_SIZES = PerKind(product=_sizes, network=_no_sizes)


def min_luts(cells: dict[str, int]) -> int:
    """Lower bound of the LUTs of a netlist, from its number of cells by type."""
    luts = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4, "SB_LUT4": 1}
    return sum(luts.get(cell, 0) * count for cell, count in cells.items())
