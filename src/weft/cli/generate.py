"""``weft generate``: the core of a Config as one Verilog file."""

import argparse
import os
from pathlib import Path

from weft.cli.options import add_config, config_of
from weft.cli.output import output_folder

__all__ = ["add"]

DESCRIPTION = """\
Write the core as Verilog-2005 that every tool reads: module weft, clock clk, synchronous reset
rst, streams cmd_* and res_*, registers reg_* (docs/interfaces.md says what they carry). The same
Config gives the same bytes on any machine.

  weft generate                                   the default design, into out/
  weft generate --rows 4 --cols 4 --depth 4 -o core.v
  weft generate --config my.toml
"""


def add(subparsers):
    """Register ``weft generate``."""
    parser = subparsers.add_parser(
        "generate",
        help="write the core as Verilog",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the Verilog file; default out/weft_<design>.v"
    )
    add_config(parser)
    parser.set_defaults(run=_run)


def _run(args) -> int:
    config = config_of(args)
    path = Path(args.output or f"out/weft_{config.name}.v")
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise OSError(f"output must be a file, and {path} is {kind}")
    output_folder(path.parent)
    from weft.cli.report import progress
    from weft.hw.export import verilog

    with progress() as show, show.task(f"generating {config.name}"):
        text = verilog(config)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    print(f"{path}: module weft, {len(text.splitlines()):,} lines, {config.peak} MAC/cycle")
    return 0
