"""``weft build``: a bitstream for a board, with a report that says what is in it."""

import argparse
import dataclasses
import os
import shutil
import sys
import time
from pathlib import Path

from weft.cli import bitstream_report
from weft.cli.argument_types import integer, path
from weft.cli.options import add_config, config_of
from weft.cli.output_paths import output_file, output_folder, part_of

__all__ = ["add", "add_board", "board_of", "clock_missed"]

DESCRIPTION = """\
Synthesize, place and route an accelerator with its serial port for a board, and make the bitstream,
with Yosys and nextpnr from PyPI, installed at first use. Leaves in the folder of the output: the
bitstream, report.md (resources by block, clock, critical path), report.json and floorplan.png.

  weft build icebreaker                  the board's own design, into out/icebreaker/
  weft build ulx3s-25f --rows 4 --cols 4 another one
  weft build ulx3s-85f --fit             the largest array that closes timing
  weft build --board ./myboard.py        a board of your own (docs/boards.md)
  weft build --list                      the boards there are

Exit code 1 where the design misses its clock or does not fit: then there is no bitstream.
"""
SEEDS = 3
# Seconds of place and route for each of synthesis, on any machine.
RATIO = {"ecp5": 6, "ice40": 6}


def add(subparsers):
    """Register ``weft build``."""
    parser = subparsers.add_parser(
        "build",
        help="make a bitstream for a board",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_board(parser)
    parser.add_argument("--list", action="store_true", help="say which boards there are, and end")
    parser.add_argument(
        "--seeds", metavar="INT", type=integer("seeds", 1, 999), default=SEEDS,
        help=f"of place and route to try, until one meets the clock; default {SEEDS}",
    )
    parser.add_argument(
        "--fit", action="store_true", help="the largest array that closes timing (long)"
    )
    parser.add_argument(
        "--clock", metavar="MHZ", type=float, help="of the accelerator; default the board's"
    )
    parser.add_argument("--baud", metavar="INT", type=int, help="default the board's")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=path("output"),
        help="folder of the results; default out/<board>",
    )
    add_config(parser)
    parser.set_defaults(run=_run)


def add_board(parser):
    """Give ``parser`` the two ways to say which board."""
    parser.add_argument("name", nargs="?", metavar="BOARD", help="see weft build --list")
    parser.add_argument(
        "--board", metavar="FILE", type=path("board"), help="a Python file that sets BOARD"
    )


def board_of(args):
    """The board that parsed arguments name; BoardError where there is none."""
    from weft.boards.board import BoardError
    from weft.boards.catalog import BOARDS, find, load

    if args.board and args.name:
        raise BoardError(f"board must be a name or a file, not both {args.name} and {args.board}")
    if args.board:
        return load(args.board)
    if not args.name:
        raise BoardError(f"board must be one of {', '.join(BOARDS)}, or --board FILE, not nothing")
    return find(args.name)


def _run(args) -> int:
    if args.list:
        from weft.boards.catalog import BOARDS

        for board in BOARDS.values():
            print(f"{board.name:16} {board.device.name:13} {board.clock:5g} MHz"
                  f" {board.baud:9,} baud  {board.config.name}")
        return 0
    board = board_of(args)
    chosen = {name: getattr(args, name) for name in ("clock", "baud")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    board = dataclasses.replace(board, config=_config(args, board), **chosen)
    folder = output_folder(args.output or Path("out") / board.name)
    kind = "bit" if board.device.family == "ecp5" else "bin"
    bitstream, *_ = (
        output_file(folder / name) for name in (f"{board.name}.{kind}", *bitstream_report.FILES)
    )
    return _build(board, args, bitstream)


def _config(args, board):
    """The board's Config with what was asked for, or that of a file."""
    from weft.boards.fit import replace
    from weft.config import Config

    if args.config is not None:
        args.target = args.target or board.device.target
        return config_of(args)
    given = {f.name: getattr(args, f.name) for f in dataclasses.fields(Config)}
    return replace(board.config, **{name: v for name, v in given.items() if v is not None})


def _build(board, args, bitstream):
    from weft.boards.fit import sizes
    from weft.boards.toolchain import Toolchain, ToolchainError
    from weft.cli.progress import progress
    from weft.sim.build import folder as builds

    place = output_folder(builds() / "boards")
    with progress() as show:
        tools = Toolchain(builds(), say=show.say)
        with show.task("getting the tools ready"):
            tools.set_up()
        configs = sizes(board) if args.fit else [board.config]
        for tried, config in enumerate(configs):
            if args.fit:
                show.say(f"{config.name}: {len(configs) - tried} arrays left, at most")
            try:
                design, netlist, seed, routed = _attempt(
                    tools, board, config, args, place, show
                )
                problem = clock_missed(routed, args.seeds)
            except ToolchainError as error:
                if not args.fit and not _overfull(error):
                    raise
                problem = f"{error}: lower --rows, --cols or --depth"
            if not problem:
                break
            show.say(f"{config.name}: {problem}")
    bitstream.unlink(missing_ok=True)  # that of another design must not stand for this one
    if problem:
        if args.fit:
            problem = "an array must fit the board and meet its clock, and none does"
        print(f"MISSED  {board.name}: {problem}", file=sys.stderr)
        return 1
    part = part_of(bitstream)
    shutil.copyfile(routed.bitstream, part)
    os.replace(part, bitstream)
    bitstream_report.write(bitstream.parent, design, netlist, seed, routed, bitstream)
    return 0


def _attempt(tools, board, config, args, place, show):
    """(design, netlist, seed, Routed) of one Config."""
    from weft.boards.bitstream import best_route, prepare, synthesize
    from weft.boards.fit import min_luts
    from weft.boards.toolchain import ToolchainError

    device = board.device
    with show.task(f"elaborating {config.name} for {board.name}"):
        design = prepare(board, config)
    start = time.monotonic()
    with show.task("synthesizing"):
        netlist = synthesize(tools, design, place)
    took = time.monotonic() - start
    if min_luts(netlist.cells) > device.capacity["LUT"]:
        raise ToolchainError(
            f"the design must fit the {device.name}, and takes LUT {min_luts(netlist.cells):,}"
            f" of {device.capacity['LUT']:,}"
        )

    def said(seed, routed):
        show.say(f"seed {seed}: {routed.pnr.fmax:.1f} MHz of {routed.clock:.1f}")

    with show.task("placing and routing"):
        if took > 1:
            show.say(
                f"some {_minutes(took * RATIO[device.family])} left with one seed, going by what"
                f" synthesis took; {args.seeds} at most"
            )
        seed, routed = best_route(tools, design, netlist, range(1, args.seeds + 1), said)
    return design, netlist, seed, routed


def _minutes(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _overfull(error):
    return "must fit the" in str(error)


def clock_missed(routed, seeds) -> str:
    """By how much a design misses its clock, and what to do; nothing where it does not."""
    fmax, clock = routed.pnr.fmax, routed.clock
    if fmax >= clock:
        return ""
    return (
        f"fmax must be {clock:.2f} MHz, not {fmax:.2f}, {1 - fmax / clock:.1%} less, with the best"
        f" of {seeds} seeds: lower --clock, or --rows, --cols or --depth, or try more --seeds;"
        f" slowest is {routed.pnr.critical_path}"
    )
