"""``weft build``: makes a bitstream for a board, and a report about it."""

import dataclasses
import shutil
import sys
import time
from pathlib import Path

from weft.cli import bitstream_report
from weft.cli.options import (
    add_config,
    add_network_core_fields,
    changed_config,
    integer,
    number,
    path,
)
from weft.files import output_file, output_folder, written_whole

__all__ = [
    "DESCRIPTION", "HELP", "add", "add_board", "add_design", "board_of", "designed_board", "run",
]

HELP = "make a bitstream for a board"
DESCRIPTION = """\
Synthesize, place and route an accelerator with its link for a board, and make the bitstream, with
Yosys and nextpnr from PyPI, installed at first use. The output folder then holds the
bitstream, report.md (resources by block, clock, critical path), report.json and floorplan.png.

  weft build icebreaker                  the board's default design, into out/icebreaker/
  weft build ulx3s-25f --rows 4 --cols 4 another design
  weft build ulx3s-85f --fit             the largest array that closes timing
  weft build ulx3s-85f --for networks    a core that executes whole networks (docs/network-core.md)
  weft build ulx3s-85f --for networks-fast    one with less memory and a faster clock
  weft build ulx3s-85f --for networks-sdram   one for networks larger than the chip
  weft build ulx3s-85f --for batch1      one for fully connected layers, whose weights stay
  weft build ulx3s-85f --for language    one that writes text with a language model
  weft build ulx3s-85f --for language-sdram   one for models larger than the chip
  weft build icebreaker --for language   one that writes names with a microGPT
  weft build ulx3s-25f --config my.toml  the design of a file; with a table [network_core],
                                         for networks
  weft build ulx3s-85f --link usb        USB on the FPGA's own pins (docs/usb.md)
  weft build --board ./my_board.py       a board of your own (docs/boards.md)
  weft build ulx3s-85f --list            check the designs of a board; weft boards lists the boards

Exit code 1 if the design misses its clock or does not fit; no bitstream is written then.
"""
SEEDS = 3
# Seconds of place and route for each second of synthesis, as an estimate; full devices take more.
_ROUTE_SECONDS = 6


def add(parser):
    """Add the arguments of ``weft build``."""
    add_board(parser)
    parser.add_argument(
        "--list", action="store_true",
        help="list the designs of the board, with the options of the command line, check its"
        " resources and clock, and exit. It does not check that a pin exists in the package;"
        " nextpnr checks this after the synthesis.",
    )
    parser.add_argument(
        "--seeds", metavar="INT", type=integer("seeds", 1, 999), default=SEEDS,
        help=f"place and route with up to INT seeds, until one meets the clock; default {SEEDS}",
    )
    parser.add_argument(
        "--fit", action="store_true",
        help="build the largest array that closes timing (takes long)",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=path("output"),
        help="folder of the results; default out/<board>",
    )
    parser.add_argument(
        "--link", metavar="LINK",
        help="serial, usb for a USB connector at pins of the FPGA, or usb:NAME to give the device"
        " another serial number than the name of the board; default serial, if the board has a"
        " serial port",
    )
    parser.add_argument(
        "--sdram-phase", metavar="INT", type=integer("sdram-phase", 0, 359),
        help="degrees from an edge of the core's clock to that of its SDRAM; default: the board's",
    )
    add_design(parser)


def add_design(parser):
    """Add the arguments that change the design of the board."""
    parser.add_argument(
        "--clock", metavar="MHZ", type=number("clock", 0, 1e4),
        help="clock of the accelerator; default: the board's",
    )
    parser.add_argument(
        "--baud", metavar="INT", type=integer("baud"),
        help="baud rate of the serial port; default: the board's",
    )
    add_config(parser)
    add_network_core_fields(parser)


def add_board(parser):
    """Add the arguments that choose a board: its name, or ``--board FILE``."""
    parser.add_argument(
        "name", nargs="?", metavar="BOARD", help="name of a board; see weft boards"
    )
    parser.add_argument(
        "--board", metavar="FILE", type=path("board"),
        help="a Python file that sets BOARD, for a board of your own",
    )


def board_of(args):
    """The board that the arguments choose. Raises BoardError if they choose none or two."""
    from weft.boards.board import BoardError
    from weft.boards.catalog import BOARDS, find, load

    if args.board and args.name:
        raise BoardError(f"board must be a name or a file, not both {args.name} and {args.board}")
    if args.board:
        return load(args.board)
    if not args.name:
        raise BoardError(f"no board given; name one of {', '.join(BOARDS)}, or give --board FILE")
    return find(args.name)


def run(args) -> int:
    """Run the command; return its exit code."""
    if args.list:
        return _list(args)
    from weft.boards.board import check_bridge, check_pins
    from weft.boards.designs import configs_by_size

    board = designed_board(args)
    configs = configs_by_size(board) if args.fit else [board.config]
    check_bridge(board)
    check_pins(board)
    name = f"{board.name}-{args.purpose}" if args.purpose else board.name
    folder = output_folder(args.output or Path("out") / name)
    suffix = board.device.flow.bitstream
    bitstream = folder / f"{board.name}.{suffix}"
    for file in (bitstream, *(folder / name for name in bitstream_report.FILES)):
        output_file(file)  # a file that cannot be written is an error before the long work
    return _build(board, configs, args, bitstream)


def designed_board(args):
    """The board as it is built: with ``--for``, and with the clock and design of the options."""
    from weft.boards.board import BoardError
    from weft.boards.memory import has_sdram

    board = board_of(args)
    if args.purpose:
        board = board.built_for(args.purpose)
    options = {name: getattr(args, name, None) for name in ("clock", "baud", "link")}
    options = {name: value for name, value in options.items() if value is not None}
    link = options.get("link", board.link)
    if args.baud is not None and link != "serial":
        raise BoardError(f"--baud must be for --link serial, not for --link {link}")
    board = dataclasses.replace(board, config=changed_config(args, board.config), **options)
    phase = getattr(args, "sdram_phase", None)
    if phase is None:
        return board
    if not has_sdram(board.config):
        raise BoardError(
            f"--sdram-phase must be for a core with program_words, not for {board.config.name}"
        )
    return dataclasses.replace(board, sdram=dataclasses.replace(board.sdram, phase=phase))


def _list(args) -> int:
    """Print the designs of a board, after a check of its pins."""
    from weft.boards.board import check_bridge, check_pins

    board = board_of(args)
    designs = {"": board} | {purpose: board.built_for(purpose) for purpose in board.others}
    designs[args.purpose or ""] = designed_board(args)
    for design in designs.values():
        check_bridge(design)
        check_pins(design)
    for purpose, design in designs.items():
        rate = f"{design.baud:9,} baud" if design.link == "serial" else f"{design.link:>14}"
        print(f"{design.name:16} {design.device.name:13} {design.clock:5g} MHz"
              f" {rate}  {design.config.name}"
              f"{purpose and f' --for {purpose}'}")
    return 0


def _build(board, configs, args, bitstream):
    """Build the first of ``configs`` that fits and meets its clock; return the exit code."""
    from weft.boards.toolchain import SeedError, Toolchain, ToolchainError
    from weft.cli.progress import progress
    from weft.sim.build import folder as cache_folder

    build_folder = output_folder(cache_folder() / "boards")
    with progress() as show:
        tools = Toolchain(cache_folder(), say=show.say)
        with show.task("preparing the tools"):
            tools.set_up(board.device.target)
        for tried, config in enumerate(configs):
            if args.fit:
                show.say(f"{config.name}: array {tried + 1} of at most {len(configs)}")
            try:
                design, seed, routed = _attempt(
                    tools, board, config, args, build_folder, show
                )
                problem = _clock_problem(routed, args.seeds)
            except ToolchainError as error:
                problem = f"{error}; lower --rows, --cols or --depth"
                if isinstance(error, SeedError):
                    problem += ", or try more --seeds"
                elif not _does_not_fit(error):
                    raise
            if not problem:
                break
            show.say(f"{config.name}: {problem}")
    bitstream.unlink(missing_ok=True)  # it may be the bitstream of another design
    if problem:
        if args.fit:
            problem = "no array fits the board and meets its clock; try a lower --clock"
        print(f"MISSED  {board.name}: {problem}", file=sys.stderr)
        return 1
    with written_whole(bitstream) as unfinished:
        shutil.copyfile(routed.bitstream, unfinished)
    bitstream_report.write(bitstream.parent, design, seed, routed, bitstream)
    return 0


def _attempt(tools, board, config, args, build_folder, show):
    """(design, seed, RoutedDesign) of one Config."""
    from weft.boards.bitstream import best_route, prepare, synthesize
    from weft.boards.designs import min_luts
    from weft.boards.toolchain import ToolchainError

    device = board.device
    with show.task(f"elaborating {config.name} for {board.name}"):
        design = prepare(board, config)
    start = time.monotonic()
    with show.task("synthesizing"):
        netlist = synthesize(tools, design, build_folder)
    seconds = time.monotonic() - start
    if min_luts(netlist.cells) > device.capacity["LUT"]:
        raise ToolchainError(
            f"the design does not fit the {device.name}: it needs LUT"
            f" {min_luts(netlist.cells):,} of {device.capacity['LUT']:,}"
        )

    with show.task("placing and routing"):
        if seconds > 1:
            show.say(
                f"estimate: {_duration(seconds * _ROUTE_SECONDS)} or more per seed,"
                f" at most {args.seeds} seeds"
            )
        seed, routed = best_route(tools, design, netlist, board.seeds(args.seeds), show.say)
    return design, seed, routed


def _duration(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _does_not_fit(error):
    return "does not fit the" in str(error)  # of nextpnr, and of `_attempt`


def _clock_problem(routed, seeds):
    """How much a design misses a clock by, and what to do; "" if it meets its clocks."""
    fmax, needed = routed.pnr.fmax, routed.needed
    if fmax >= needed:
        return "; ".join(
            f"{each.name} must have {each.required:.2f} MHz, not {each.fmax:.2f}; lower --rows,"
            " --cols or --depth, or try more --seeds" for each in routed.missed
        )
    times = "" if routed.spare == 1 else f", {routed.spare:g} times the clock"
    return (
        f"fmax must be {needed:.2f} MHz{times}, not {fmax:.2f} ({1 - fmax / needed:.1%} less, with"
        f" the best of {seeds} seeds); lower --clock, or --rows, --cols or --depth, or try more"
        f" --seeds; critical path: {routed.pnr.critical_path}"
    )
