"""The options that choose the target of a network: a board, its core, or a file."""

from weft.cli.argument_types import integer, path

__all__ = ["DEFAULT_BOARD", "add_batch", "add_target", "batch_of", "target_named"]

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
        help="the board's network core: networks, or batch1 for fully connected layers; see"
             " weft boards",
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
