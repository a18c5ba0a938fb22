"""``weft serve``: a board of this machine for clients on others."""

import argparse

from weft.cli.options import add_config, config_of
from weft.cli.transports import add_baud

__all__ = ["add"]

DESCRIPTION = """\
Pass bytes between a board and a TCP client, one at a time; others are refused until it leaves.
There is no password: whoever reaches the address has the board, so listen where none but friends
do. Ends with Ctrl-C, or with the board.

  weft serve /dev/ttyUSB1                         on this machine alone
  weft serve /dev/ttyUSB1 --host 0.0.0.0 --port 9337
  weft serve board --rows 2 --cols 2              a simulated board

BOARD is a serial port, or board for a simulated one of the design that the flags say.
"""
PORT = 9337


def add(subparsers):
    """Register ``weft serve``."""
    parser = subparsers.add_parser(
        "serve",
        help="give a board of this machine to clients on others",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("board", metavar="BOARD", help="a serial port, or board")
    parser.add_argument("--host", default="localhost", help="where to listen; default localhost")
    parser.add_argument(
        "--port", type=int, default=PORT, metavar="INT", help=f"default {PORT}; 0: any that is free"
    )
    add_baud(parser)
    add_config(parser)
    parser.set_defaults(run=_run)


def _run(args) -> int:
    import contextlib

    from weft.host.relay import Relay
    from weft.host.transport import TransportClosed

    def say(text):
        print(text, flush=True)

    with contextlib.ExitStack() as stack:
        if args.board == "board":
            from weft.sim.board import start

            process = stack.enter_context(start(config_of(args), say=say))
            stack.callback(process.terminate)
            ends = process.stdout, process.stdin
        else:
            from weft.host.serial_port import SerialPort, find

            if not (baud := args.baud):
                with contextlib.closing(find(args.board)) as found:
                    baud = found.baud
            port = SerialPort(args.board, baud)
            ends = port, port
        relay = Relay(*ends, host=args.host, port=args.port, say=say)
        stack.callback(relay.close)
        say(f"tcp://{args.host}:{relay.port} is {args.board}")
        relay.serve()
    raise TransportClosed(f"{args.board} must stay connected, not come to its end")
