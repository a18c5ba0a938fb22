"""The ``weft`` command: one file per subcommand, which imports what it needs when it runs."""

import argparse
import errno
import inspect
import os
import sys
import traceback
import warnings

from weft.cli import (
    bench,
    boards,
    build,
    clean,
    compile,
    demo,
    devices,
    doctor,
    estimate,
    explore,
    gatesim,
    generate,
    info,
    monitor,
    new,
    program,
    quantize,
    regress,
    report,
    run,
    sdram,
    selftest,
    serve,
    sim,
    story,
)
from weft.cli.options import Parser, Version
from weft.hints import visible

__all__ = ["SUBCOMMANDS", "main", "run_program"]

# Each has the texts HELP and DESCRIPTION, and functions: add(parser) adds its arguments, run(args)
# returns the exit code.
SUBCOMMANDS = [
    demo, story, sim, new, generate, sdram, info, bench, boards, devices, build, estimate,
    explore, regress, gatesim, program, selftest, monitor, serve, report, run, compile, quantize,
    doctor, clean,
]

EPILOG = """\
exit codes: 0 success, 1 a check failed, 2 wrong input or a missing tool, 130 stopped by Ctrl-C
'weft COMMAND --help' describes each command.
"""


def main(argv=None) -> int:
    """Run one subcommand and return its exit code; errors that a user can fix are one line."""
    return _guarded("weft", lambda: _main(argv), _status)


def _main(argv):
    parser = Parser(
        prog="weft",
        description=(
            "Generate, simulate and drive INT8 and BF16 matrix-multiply accelerators for FPGAs."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, help="print the version and exit")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command"
    )
    for subcommand in SUBCOMMANDS:
        added = subparsers.add_parser(
            subcommand.__name__.rpartition(".")[2],
            help=subcommand.HELP, description=subcommand.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(run=subcommand.run)
        subcommand.add(added)
    args, rest = parser.parse_known_args(argv)
    if args.command is None and not rest:
        parser.print_help(sys.stderr)
        return 2
    if rest and args.command is None:
        parser.unknown(rest)
    if rest:
        subparsers.choices[args.command].unknown(rest)
    return args.run(args)


def run_program(main) -> int:
    """Call the ``main`` of a user's program with the words of its command; return the exit code.

    Errors end as those of ``weft`` do: in one line, with 2 for wrong input. A ValueError does so if
    Weft raised it. One that the program raised keeps its traceback.
    """
    name = os.path.basename(sys.argv[0])
    try:
        inspect.signature(main).bind(*sys.argv[1:])
    except TypeError as error:
        print(f"{name}: error: arguments of {name}: {error}", file=sys.stderr)
        return 2
    return _guarded(name, lambda: main(*sys.argv[1:]), _status_of_program)


def _guarded(name, call, status_of):
    """Return what ``call`` returns; an error that a user can fix is a line and its exit code."""
    try:
        status = call()
        if sys.stdout is not None:  # None if the shell closed it
            sys.stdout.flush()  # inside this block, which handles a broken pipe
        return status
    except KeyboardInterrupt:
        _ignore_unused_components()
        print(f"{name}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output has exited, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as error:
        hint = doctor.install_hint(error.name)
        if hint is None:
            raise
        print(f"{name}: error: {hint}", file=sys.stderr)
        return 2
    except Exception as error:
        _name_output(error)
        status = status_of(error)
        if status is None:
            raise
        _ignore_unused_components()
        print(f"{name}: error: {_text(error)}", file=sys.stderr)
        return status


def _name_output(error):
    """Name the standard output in an error of a full disk behind it."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        try:
            os.write(sys.stdout.fileno(), b"\n")
        except OSError:
            error.filename = "the standard output"
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _text(error):
    """The message of an error; an error of the operating system names its file first."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return visible(text, keep="\n")


def _ignore_unused_components():
    """Ignore Amaranth's warnings of components in a design that an exception left unfinished."""
    warnings.filterwarnings("ignore", message=".* created but never used$")


# The errors that a user can fix, by their modules. A module that no command has imported has raised
# none; importing it only to ask would take a second.
_USER_ERRORS = {
    "amaranth._toolchain.yosys": "YosysError", "weft.boards.board": "BoardError",
    "weft.boards.pll": "PllError", "weft.boards.toolchain": "ToolchainError",
    "weft.config": "ConfigError", "weft.design": "CoreKindError",
    "weft.explore.model": "TooFewPoints",
    "weft.host.accelerator": "AcceleratorError", "weft.host.transport": "TransportError",
    "weft.models.errors": "ModelError", "weft.project.create": "ProjectError",
    "weft.registry": "MissingLayerError", "weft.regress.case": "CaseError",
    "weft.sim.tools": "ToolError", "weft.tasks.engine": "EngineError",
}


def _status(error):
    """1 for a failed check, 2 for an error that the user can fix, None for a bug in Weft."""
    bench = sys.modules.get("weft.sim.runner")
    if bench is not None and isinstance(error, bench.BenchError):
        return 1
    kinds = [
        getattr(sys.modules[module], name)
        for module, name in _USER_ERRORS.items() if module in sys.modules
    ]
    return 2 if isinstance(error, (OSError, *kinds)) else None


def _status_of_program(error):
    """`_status`, and 2 for a ValueError of Weft, which tells of a value that it was given."""
    if isinstance(error, ValueError):
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] == "weft":
            return 2
    return _status(error)
