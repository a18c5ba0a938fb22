"""Transports by name for the commands: the names of `weft.host.opening`, and simulated ones."""

from weft.cli.arguments import integer
from weft.cli.options import add_config, config_of

__all__ = [
    "NAMES", "add_baud", "add_transport", "check_baud", "given_config", "open_by_name",
    "open_named",
]

NAMES = """\
TRANSPORT is
  /dev/ttyUSB1, COM3       a board on a serial port
  tcp://host:port          a board shared by 'weft serve'
  uio:/dev/uio0            an IP core, through its registers in a UIO device
  mem:0x43c00000           an IP core, through its registers at a physical address
  board                    a simulated board, at the pins of its serial port
  sim                      a simulated core, at its streams
  golden                   the golden model in numpy, without hardware

The last three have the design given by the options. For the others, the options are a check: the
core must have this design.
"""
_SIMULATED = "sim", "board", "golden"


def add_transport(parser):
    """Add the argument TRANSPORT, ``--baud``, and the options of a design to ``parser``."""
    parser.add_argument(
        "transport", metavar="TRANSPORT", help="the connection to the core; see above"
    )
    add_baud(parser)
    add_config(parser)


def add_baud(parser):
    """Add the option ``--baud`` to ``parser``."""
    parser.add_argument(
        "--baud", type=integer("baud", 1), metavar="INT",
        help="baud rate of the serial port; by default, the common rates are tried",
    )


def check_baud(baud, name) -> None:
    """Raise TransportError for a baud rate of a transport that has none."""
    from weft.host.transport import TransportError

    if baud is not None and (name in _SIMULATED or "://" in name or name[:4] in ("uio:", "mem:")):
        raise TransportError(f"--baud must be for a serial port, not for {name}")


def given_config(args):
    """The Config of the options; None if no option is given and the transport needs none."""
    import dataclasses

    from weft.config import Config

    values = [getattr(args, f.name) for f in dataclasses.fields(Config)]
    empty = args.config is None and all(value is None for value in values)
    return None if empty and args.transport not in _SIMULATED else config_of(args)


def open_named(args, show):
    """Open the transport that the arguments name.

    Returns (transport, Config that the core must have or None). ``show`` reports steps that take
    long. Raises ConfigError, TransportError or ToolError.
    """
    check_baud(args.baud, args.transport)
    config = given_config(args)
    return open_by_name(args.transport, config, args.baud, show), config


def open_by_name(name, config, baud, show):
    """Open a transport; one of the simulated ones has ``config``. ``show`` as of `open_named`.

    Raises TransportError or ToolError.
    """
    from weft.host.opening import open_transport
    from weft.host.transport import TransportError

    if name == "sim":
        from weft.sim.transport import SimTransport

        return SimTransport(config, say=show.say)
    if name == "board":
        from weft.sim.board import SimBoardTransport

        return SimBoardTransport(config, say=show.say)
    try:
        return open_transport(name, config, baud=baud)
    except ValueError as error:
        raise TransportError(f"{error}; a simulated core is board or sim") from error
