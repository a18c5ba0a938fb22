"""The arguments that name a network: its file, and the shapes of its inputs."""

import argparse
import re

from weft.cli.argument_types import path
from weft.cli.progress import slow_task

__all__ = ["add_network", "load_network"]


def add_network(parser, files: str) -> None:
    """Add the argument ``network``, of these kinds of files, and ``--shape`` to ``parser``."""
    parser.add_argument("network", type=path("network"), help=f"a {files} file")
    parser.add_argument(
        "--shape", metavar="NAME=SIZES", action="append", default=[], type=_shape,
        help="shape of an input of an .onnx file that has sizes of any value: x=1,3,224,224;"
             " once for each such input",
    )


def load_network(args):
    """Read the file that the arguments name: return the network or None, the program or None."""
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
