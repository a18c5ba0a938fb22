"""Transports by name for commands: those of `weft.host.opening`, and simulated ones."""

from weft.cli.argument_types import integer
from weft.cli.options import add_config, config_of

__all__ = ["NAMES", "add_baud", "add_transport", "open_named"]

NAMES = """\
TRANSPORT is
  /dev/ttyUSB1, COM3       a board on a serial port
  tcp://host:port          a board that 'weft serve' has
  board                    a simulated board, at the pins of its serial port
  sim                      a simulated core, at its streams
  golden                   a core of numpy

The last three are of the design that the flags say; the others must be of it where one is said.
"""
_SIMULATED = "sim", "board", "golden"


def add_transport(parser):
    """Give ``parser`` the argument TRANSPORT, ``--baud``, and a design."""
    parser.add_argument("transport", metavar="TRANSPORT", help="the way to the core: see above")
    add_baud(parser)
    add_config(parser)


def add_baud(parser):
    """Give ``parser`` the flag ``--baud``."""
    parser.add_argument(
        "--baud", type=integer("baud", 1), metavar="INT",
        help="of a serial port; default that at which a board answers",
    )


def said_config(args):
    """The Config that the flags say; None where none says anything."""
    import dataclasses

    from weft.config import Config

    named = [getattr(args, f.name) for f in dataclasses.fields(Config)]
    silent = args.config is None and all(value is None for value in named)
    return None if silent and args.transport not in _SIMULATED else config_of(args)


def open_named(args, show):
    """(the transport of parsed arguments, the Config that it must be of, or None).

    ``show`` is told what takes long. ConfigError, TransportError or ToolError where there is none.
    """
    from weft.host.opening import open_transport
    from weft.host.transport import TransportError

    config = said_config(args)
    if args.transport == "sim":
        from weft.sim.transport import SimTransport

        return SimTransport(config, say=show.say), config
    if args.transport == "board":
        from weft.sim.board import SimBoardTransport

        return SimBoardTransport(config, say=show.say), config
    try:
        return open_transport(args.transport, config, baud=args.baud), config
    except ValueError as error:
        raise TransportError(f"{error}, or board or sim") from error
