"""``weft report``: where each layer of a network runs, the reason, its cost and its limit."""

import json
import os
import sys

from weft.cli import language
from weft.cli.network_inputs import (
    DEFAULT_BOARD,
    add_batch,
    add_network,
    add_target,
    compile_for,
    compile_slowly,
    load_network,
    network_target,
    target_named,
)
from weft.cli.options import path
from weft.cli.progress import slow_task
from weft.files import output_file, write_text

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "explain a network on an accelerator: placement, cycles, bytes"
DESCRIPTION = """\
Explain a network on an accelerator, without hardware: which operators run on Weft and which on the
host, and why; predicted cycles and milliseconds, bytes at each level, and what bounds each layer.

  weft report kws.tflite
  weft report kws.tflite --board icebreaker --html kws.html
  weft report kws.onnx --config my.toml --against ulx3s-85f
  weft report kws.tflite --board ulx3s-85f --for networks --against ulx3s-25f-networks
  weft report kws.weft --json                 a program file of weft compile
  weft report stories260K.gguf                a language model: sizes, and how close to float32
  weft report stories260K.gguf --board ulx3s-85f --for language      and its rate on a language core

The first line is the placement: operators on Weft, share of the MACs, and the runtime whose results
are equal. Time on the host is not predicted.
"""


def add(parser):
    """Add the arguments of ``weft report``."""
    add_network(parser, ".tflite, .onnx, .gguf, .bin, .npz or .weft")
    add_target(parser)
    add_batch(parser)
    language.add_weights(parser)
    parser.add_argument(
        "--against", metavar="TARGET", type=path("against"),
        help="a second board, or a TOML file, to compare with; BOARD-PURPOSE is a board's"
             " network core: ulx3s-85f-networks",
    )
    parser.add_argument(
        "--html", metavar="FILE", type=path("html"), help="also write a page with pictures"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(args) -> int:
    """Run the command; return its exit code."""
    # Before the compilation, which may take minutes.
    html = args.html and output_file(args.html, args.network)
    target = target_named(args)
    network, program = load_network(args)
    if language.is_language(network or program):
        return language.report(args, network or program)
    language.refuse_text(args)
    target = network_target(target)
    program, against = _programs(args, target, network, program)
    from weft.models.report import report

    with slow_task(f"making the report of {program.name}"):
        network_report = report(program, against)
        if html:
            write_text(html, network_report.page())
    if args.json:
        json.dump(network_report.to_json(), sys.stdout, indent=1)
        print()
        return 0
    _show(network_report)
    if html:
        print(f"page: {html}")
    return 0


def _programs(args, target, network, program):
    """The program of the network; and the program of the network for ``--against``, or None."""
    from weft.models.errors import ModelError

    if program is None:
        program = compile_for(args, network, target or DEFAULT_BOARD)
        return program, args.against and _against(network, args.against)
    options = {
        "board": args.board, "config": args.config, "for": args.purpose, "against": args.against,
        "batch": args.batch,
    }
    for name, value in options.items():
        if value is not None:
            raise ModelError(
                f"--{name} must not be given for {args.network}: the program is compiled for"
                f" {program.target.name}"
            )
    return program, None


def _against(network, name):
    from weft.models.target import target_of

    return compile_slowly(network, target_of(name))


def _show(network_report):
    from weft.models.report.interface import WIDTH, plain_console

    console = plain_console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = plain_console(width=WIDTH)
    network_report.show(console)
