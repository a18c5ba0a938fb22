"""``weft gatesim``: simulates the netlist of a board cell by cell, at its serial port."""

import json
import re
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from weft.cli.build import add_board, add_design, designed_board
from weft.cli.options import integer, path
from weft.design import PerKind

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "simulate the netlist of a board, gate by gate"
DESCRIPTION = """\
Simulate the netlist of a board after synthesis, or after place and route: every LUT, flip-flop,
memory and DSP block; the PLL only passes its clock on. The test reads the Config over the pins of
the serial port at the board's baud rate, runs jobs, and compares the results with the golden model.

  weft gatesim icebreaker                     the routed netlist, as in the bitstream
  weft gatesim ulx3s-25f                      ECP5 and Gowin: the synthesized netlist
  weft gatesim ulx3s-25f --stage routed       the routed netlist (minutes more)
  weft gatesim ulx3s-25f --rows 1 --cols 2    another design, with the options of weft build
  weft gatesim --board ./my_board.py          a board of your own (docs/boards.md)
  weft gatesim ulx3s-25f --for networks --network kws.tflite
                                              one inference on the network core
  weft gatesim ulx3s-85f --for language --network tiny.weft
                                              a token of a small model on the language core

Installs Yosys and nextpnr from PyPI at first use. Exit code 1 if the Config or a result differs.
"""
_ROUTED = "ice40", "ecp5"  # families whose routed cells have models
SEEDS = 3  # maximum for place and route, until one meets the clock


def add(parser):
    """Add the arguments of ``weft gatesim``."""
    add_board(parser)
    parser.add_argument(
        "--stage", choices=("synthesized", "routed"),
        help="the netlist to simulate; default routed for an iCE40, else synthesized",
    )
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="seed of the operands and of undefined values at power-on; default 1",
    )
    parser.add_argument(
        "--network", metavar="FILE", type=path("network"),
        help="a .tflite or .onnx file; one inference runs on the network core. For a language core,"
        " a language model, which writes a token. A fast --baud needs fewer cycles to load it",
    )
    add_design(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.cli.progress import progress
    from weft.sim.gates import GateSim, GateSimError, UnsupportedCell, build_model, verilog

    board = _board(args)
    check = _check(args, board)
    stage = args.stage or board.device.flow.simulated_stage
    with progress() as show:
        netlist = _netlist(board, stage, show)
        try:
            text = verilog(netlist, board.device.flow.name, _pins(board, netlist), seed=args.seed)
        except UnsupportedCell as error:
            print(f"weft: error: {error}", file=sys.stderr)
            return 2
        with show.task(f"compiling the {stage} {board.name}"):
            program = build_model(f"{board.name}-{stage}", text, show.say)
        start, failure, passed = time.monotonic(), None, None
        with (
            show.task(f"simulating the {stage} {board.name}"),
            GateSim(program, divisor=board.divisor, seed=args.seed) as gates,
        ):
            try:
                passed = check(gates, seed=args.seed, say=show.say)
            except GateSimError as error:
                failure = error
    _show(board, stage, netlist, gates, passed, time.monotonic() - start)
    if failure:
        print(f"FAILED  {board.name}: {failure}")
    return 1 if failure else 0


def _board(args):
    """The board with the design of the arguments."""
    from weft.boards.board import BoardError, check_pins
    from weft.boards.memory import has_sdram

    board = designed_board(args)
    if _TESTS.of(board.config).has_network != bool(args.network):
        raise BoardError(
            "--network must be given with a network core or a language core (--for), and only"
            " with one"
        )
    if board.link != "serial":
        raise BoardError(
            f"weft gatesim must be for a board with a serial port; the link of {board.name} is USB"
        )
    if has_sdram(board.config):
        raise BoardError(
            f"the core of weft gatesim must have no SDRAM, and that of {board.name} has one"
        )
    check_pins(board)
    if args.stage == "routed" and board.device.flow.name not in _ROUTED:
        raise BoardError(
            f"--stage must be synthesized for {board.name}: routed cells of a {board.device.name}"
            " have no models"
        )
    return board


def _check(args, board):
    """The test of the gates: a function of a GateSim, a seed, and ``say``."""
    return _TESTS.of(board.config).check(args, board)


def _check_jobs(args, board):
    from weft.sim import gates

    return lambda sim, **options: gates.check_gates(sim, board.config, **options)


def _check_network(args, board):
    from weft.cli.network_inputs import compile_slowly
    from weft.models.loading import load, refuse_language
    from weft.models.target import target_of
    from weft.sim import gates

    network = load(args.network)
    refuse_language(network, args.network)
    program = compile_slowly(network, target_of(board.config))
    return lambda sim, **options: gates.check_network(sim, program, **options)


def _check_language(args, board):
    from weft.boards.board import BoardError
    from weft.cli.language import is_language
    from weft.models.errors import ModelError
    from weft.models.language.program import LanguageProgram
    from weft.models.loading import load
    from weft.sim import gates

    if board.config.microprogram:
        raise BoardError(
            "the language core of weft gatesim must have no microprogram, and that of"
            f" {board.name} has one"
        )
    found = load(args.network)
    if not is_language(found):
        raise ModelError(f"--network must be a language model for {board.name}: {args.network}")
    program = found if isinstance(found, LanguageProgram) else found.compile()
    return lambda sim, **options: gates.check_language(sim, program, board.config, **options)


class _Test(NamedTuple):
    """Whether the test runs a network, and how it is made from arguments and board."""

    has_network: bool
    check: Callable


_TESTS = PerKind(
    product=_Test(False, _check_jobs), network=_Test(True, _check_network),
    language=_Test(True, _check_language),
)


def _netlist(board, stage, show):
    """The netlist of ``board``, made by the same steps as its bitstream, and only once."""
    from weft.boards.bitstream import best_route, prepare, synthesize
    from weft.boards.toolchain import Toolchain
    from weft.files import output_folder
    from weft.sim.build import folder

    tools = Toolchain(folder(), say=show.say)
    with show.task("preparing the tools"):
        tools.set_up()
    with show.task(f"elaborating {board.config.name} for {board.name}"):
        design = prepare(board, board.config)
    with show.task("synthesizing"):
        netlist = synthesize(tools, design, output_folder(folder() / "boards"))
    if stage == "synthesized":
        return netlist.folder / "top.json"
    with show.task("placing and routing"):
        return best_route(tools, design, netlist, board.seeds(SEEDS))[1].layout


def _pins(board, netlist):
    """The names that the clock and the serial port have in the netlist."""
    ports = _module(netlist)["ports"]
    patterns = {
        "clk": rf"{board.platform.default_clk}_\d+__(io|p)",
        "rx": r"uart_\d+__rx__io", "tx": r"uart_\d+__tx__io",
    }
    return {
        pin: next(name for name in ports if re.fullmatch(pattern, name))
        for pin, pattern in patterns.items()
    }


def _module(netlist):
    return json.loads(netlist.read_text(encoding="utf-8"))["modules"]["top"]


def _show(board, stage, netlist, gates, passed, seconds):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    cells = sum(cell["type"] != "$scopeinfo" for cell in _module(netlist)["cells"].values())
    columns = {
        "board": board.name, "device": board.device.name, "Config": board.config.name,
        "netlist": stage, "cells": f"{cells:,}", "cycles per bit": f"{board.divisor}",
        "cycles": f"{gates.cycles:,}", "bytes in": f"{gates.sent:,}",
        "bytes out": f"{gates.received:,}", "jobs": f"{passed.jobs}" if passed else "-",
        "MACs": f"{passed.macs:,}" if passed else "-", "golden": "equal" if passed else "NO",
        "seconds": f"{seconds:.0f}",
    }
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in list(columns)[:4] else "right")
    table.add_row(*columns.values())
    console = Console()
    if not console.is_terminal:  # do not wrap the table in a file
        console = Console(width=160)
    console.print(table)
