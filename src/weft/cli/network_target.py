"""The network of a command: the options for its file and its target, and its compilation."""

import argparse
import re

from weft.cli.arguments import integer, path
from weft.cli.progress import slow_task

__all__ = [
    "DEFAULT_BOARD", "add_batch", "add_network", "add_target", "batch_of", "compile_for",
    "compile_slowly", "load_network", "target_named",
]


def add_network(parser, files: str) -> None:
    """Add the argument ``network``, of these kinds of files, and ``--shape`` to ``parser``."""
    parser.add_argument("network", type=path("network"), help=f"a {files} file")
    parser.add_argument(
        "--shape", metavar="NAME=SIZES", action="append", default=[], type=_shape,
        help="shape of an input of an .onnx file that has sizes of any value: x=1,3,224,224;"
             " once for each such input",
    )


def load_network(args):
    """Read the file that the arguments name: return the network or None, the program or None.

    A .weft file has a program, any other file has a network.
    """
    import weft
    from weft.models.program import CompiledNetwork

    with slow_task(f"reading {args.network}"):
        found = weft.load(args.network, shapes=dict(args.shape))
    return (None, found) if isinstance(found, CompiledNetwork) else (found, None)


def _shape(text):
    name, _, sizes = text.rpartition("=")
    if not name or not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", sizes):
        raise argparse.ArgumentTypeError(
            f"shape must be a name and sizes, as in x=1,3,224,224, not {text[:40]!r}"
        )
    return name, tuple(map(int, sizes.split(",")))


DEFAULT_BOARD = "ulx3s-85f"


def add_target(parser, *, required: bool = False) -> None:
    """Add ``--board`` and ``--config``, of which at most one may be given, and ``--for``."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        "--board", metavar="NAME",
        help="a board, see weft boards; or a board file (.py)"
        + ("" if required else f"; default {DEFAULT_BOARD}"),
    )
    group.add_argument(
        "--config", metavar="FILE", type=path("config"),
        help="a TOML file of Config fields, for a core without a board; with a table"
             " [network_core]: a network core",
    )
    parser.add_argument(
        "--for", dest="purpose", metavar="PURPOSE",
        help="the board's network core: networks, batch1 for fully connected layers, or"
             " networks-onnx for ONNX files; see weft boards",
    )


def add_batch(parser) -> None:
    """Add ``--batch`` to ``parser``."""
    parser.add_argument(
        "--batch", metavar="INT", type=integer("batch", 1, 0xFFFF),
        help="inferences that a network core computes in each list, with maps of their own;"
             " default 1",
    )


def batch_of(args) -> int:
    """The inferences of a list."""
    return 1 if args.batch is None else args.batch


def target_named(args):
    """The NetworkTarget that the options name, or None."""
    from weft.models.errors import ModelError
    from weft.models.target import target_of, target_of_file

    if args.config is not None:
        if args.purpose is not None:
            raise ModelError("--for must be with --board, not with --config")
        return target_of_file(args.config)
    board = args.board or (None if args.purpose is None else DEFAULT_BOARD)
    return None if board is None else target_of(board, args.purpose)


_OTHER_KIND = (
    "a product core (no --for, no table [network_core]), which gets each product over the link,"
    " as this core does with 'weft run'"
)


def compile_for(args, network, target):
    """Compile a network for a target of `weft.models.target.target_of`.

    Raises UnfitError with the numbers, and with other cores that run the network, if it does not
    fit a network core.
    """
    from weft.models.errors import UnfitError
    from weft.models.target import target_of

    found = target_of(target)
    try:
        return compile_slowly(network, found, batch=batch_of(args))
    except UnfitError as error:
        ways = [_OTHER_KIND, *_larger(args, network, found)]
        raise UnfitError(f"{error}. What runs it: {'; '.join(ways)}") from error


def compile_slowly(network, target, **options):
    """Compile a network for a NetworkTarget, with the options of its ``compile``.

    It is shown on the standard error if it takes over 3 seconds, with the remaining time.
    """
    with slow_task(f"compiling {network.name} for {target.name}") as task:
        return network.compile(target, watch=task.watch, **options)


def _larger(args, network, target):
    """Yield the smallest core of a board with more memory, or another rounding, that it fits."""
    from weft.models.errors import ModelError
    from weft.models.target import board_cores

    for core in board_cores():
        same = core.array.requantize == target.array.requantize
        if same and core.config.memory_bytes <= target.config.memory_bytes:
            continue
        try:
            program = compile_slowly(network, core, batch=batch_of(args))
        except ModelError:
            continue
        yield (
            f"the core {core.name}: the network needs {program.memory_used:,} bytes of its"
            f" {core.config.memory_bytes:,}"
        )
        return
