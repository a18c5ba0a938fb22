"""The ``weft`` command: one file a subcommand, each importing what it needs only when it runs."""

import argparse
import contextlib
import os
import sys

from weft.cli import (
    bench,
    build,
    clean,
    doctor,
    gatesim,
    generate,
    info,
    monitor,
    program,
    selftest,
    serve,
    sim,
)
from weft.cli.parser import Parser, Version

__all__ = ["SUBCOMMANDS", "main"]

# Each has add(subparsers), which registers it, with set_defaults(run=function(args) -> exit code).
SUBCOMMANDS = [
    sim, generate, info, bench, build, gatesim, program, selftest, monitor, serve, doctor, clean,
]

EPILOG = """\
exit codes: 0 right, 1 a check failed, 2 wrong input or something missing, 130 stopped by Ctrl-C
'weft COMMAND --help' says more about each.
"""


def main(argv=None) -> int:
    """Run one subcommand and return its exit code; what users can mend is said in one line."""
    parser = Parser(
        prog="weft",
        description=(
            "Generate, simulate and drive INT8 and BF16 matrix-multiply accelerators for FPGAs."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, help="say the version, and end")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for subcommand in SUBCOMMANDS:
        subcommand.add(subparsers)
    args, rest = parser.parse_known_args(argv)
    if rest:
        subparsers.choices[args.command].unknown(rest)
    try:
        status = args.run(args)
        if sys.stdout is not None:  # it is where the shell closed it
            sys.stdout.flush()  # here, where a reader that left is still caught
        return status
    except KeyboardInterrupt:
        print("weft: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as error:
        mend = doctor.install_hint(error.name)
        if mend is None:
            raise
        print(f"weft: error: {mend}", file=sys.stderr)
        return 2
    except Exception as error:
        status = _status(error)
        if status is None:
            raise
        print(f"weft: error: {error}", file=sys.stderr)
        return status


def _status(error):
    """1 for a failed check, 2 for what the user can mend; None for a bug: show its traceback."""
    from weft.config import ConfigError
    from weft.demo import NetworkError
    from weft.host.accelerator import AcceleratorError
    from weft.host.transport import TransportError
    from weft.sim.runner import BenchError
    from weft.sim.tools import ToolError

    if isinstance(error, BenchError):
        return 1
    mendable = [AcceleratorError, ConfigError, NetworkError, OSError, ToolError, TransportError]
    with contextlib.suppress(ImportError):  # without it there is no Yosys to fail
        from amaranth._toolchain.yosys import YosysError

        from weft.boards.toolchain import ToolchainError

        mendable += [YosysError, ToolchainError]
    with contextlib.suppress(ImportError):
        from weft.boards.board import BoardError
        from weft.boards.pll import PllError

        mendable += [BoardError, PllError]
    return 2 if isinstance(error, tuple(mendable)) else None
