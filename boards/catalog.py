"""The boards that are known, and those that come in a file."""

import runpy
from pathlib import Path

from weft.boards import (
    colorlight_i5,
    colorlight_i9,
    ecpix5,
    ice40_hx8k_evn,
    icebreaker,
    icepi_zero,
    icesugar,
    icesugar_pro,
    ulx3s,
)
from weft.boards.board import Board, BoardError
from weft.hints import did_you_mean

__all__ = ["BOARDS", "find", "load"]

BOARDS = {
    board.name: board
    for module in (
        icebreaker, icesugar, ice40_hx8k_evn, ulx3s, colorlight_i5, colorlight_i9, ecpix5,
        icepi_zero, icesugar_pro,
    )
    for board in module.BOARDS
}


def find(name: str) -> Board:
    """The board of that name; BoardError, with the nearest one, where there is none."""
    if name in BOARDS:
        return BOARDS[name]
    near = did_you_mean(name.replace("_", "-"), BOARDS)
    raise BoardError(f"board must be one of {', '.join(BOARDS)}, not {name!r}{near}")


def load(path) -> Board:
    """``BOARD`` of a Python file, which is run; BoardError where there is none."""
    path = Path(path)
    if not path.is_file():
        raise BoardError(f"file of a board must be there, and {path} is not")
    try:
        found = runpy.run_path(str(path)).get("BOARD")
    except BoardError:
        raise
    except (Exception, SystemExit) as error:  # whatever it does
        raise BoardError(f"{path} must run, and ends with {error!r}") from error
    if not isinstance(found, Board):
        raise BoardError(f"{path} must set BOARD to a weft.boards.board.Board, not {found!r}")
    return found
