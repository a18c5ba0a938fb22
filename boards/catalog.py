"""The boards that Weft knows by name, and boards described in a file of the user."""

import runpy
from pathlib import Path

from weft.boards import (
    butterstick,
    colorlight,
    ecpix5,
    ice40_hx8k_evn,
    icebreaker,
    icepi_zero,
    icesugar,
    icesugar_pro,
    orangecrab,
    tang,
    ulx3s,
)
from weft.boards.board import Board, BoardError
from weft.hints import did_you_mean

__all__ = ["BOARDS", "find", "load"]

BOARDS = {
    board.name: board
    for module in (
        icebreaker, icesugar, ice40_hx8k_evn, ulx3s, colorlight, ecpix5,
        icepi_zero, icesugar_pro, orangecrab, butterstick, tang,
    )
    for board in module.BOARDS
}


def find(name: str) -> Board:
    """The board called ``name``.

    Raises BoardError, with the most similar name, if no board is called so.
    """
    if name in BOARDS:
        return BOARDS[name]
    suggestion = did_you_mean(name.replace("_", "-"), BOARDS)
    raise BoardError(f"board must be one of {', '.join(BOARDS)}, not {name!r}{suggestion}")


def load(path) -> Board:
    """Run a Python file and return the `Board` that it assigns to ``BOARD``.

    Raises BoardError if the file does not exist, fails, or sets no such name.
    """
    path = Path(path)
    if not path.is_file():
        raise BoardError(f"board file not found: {path}")
    try:
        board = runpy.run_path(str(path)).get("BOARD")
    except BoardError:
        raise
    except (Exception, SystemExit) as error:  # the file may do anything
        raise BoardError(f"running the board file {path} failed: {error!r}") from error
    if not isinstance(board, Board):
        raise BoardError(f"{path} must set BOARD to a weft.boards.board.Board, not {board!r}")
    return board
