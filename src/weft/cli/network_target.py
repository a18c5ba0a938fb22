"""The options that choose the target of a network: ``--board NAME`` or ``--config FILE``."""

from weft.cli.argument_types import path

__all__ = ["DEFAULT_BOARD", "add_target", "target_named"]

DEFAULT_BOARD = "ulx3s-85f"


def add_target(parser, *, required: bool = False) -> None:
    """Add ``--board`` and ``--config``, of which at most one may be given, to ``parser``."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        "--board", metavar="NAME",
        help="a board, see weft build --list; or a board file (.py)"
        + ("" if required else f"; default {DEFAULT_BOARD}"),
    )
    group.add_argument(
        "--config", metavar="FILE", type=path("config"),
        help="a TOML file of Config fields, for a core without a board; with a table [chip]: a core"
             " for networks",
    )


def target_named(args):
    """The NetworkTarget that the options name, or None."""
    from weft.network.target import target_of, target_of_file

    if args.config is not None:
        return target_of_file(args.config)
    return None if args.board is None else target_of(args.board)
