"""``weft serve``: shares a local board over TCP."""

import argparse

from weft.cli.options import (
    add_baud,
    add_config,
    any_config_of,
    check_connection,
    given_field,
    integer,
)

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "share a local board over TCP"
DESCRIPTION = """\
Share a local board over TCP: pass bytes between the board and one client at a time. Other clients
are refused while a client is connected. A client whose machine does not respond for 60 s is
disconnected. There is no password: anyone who can connect to the address can use the board, so
listen only on a trusted network. Stops with Ctrl-C, or when the board disconnects.

  weft serve /dev/ttyUSB1                         for this machine only
  weft serve /dev/ttyUSB1 --host 0.0.0.0 --port 9337
  weft serve /dev/ttyUSB1 --host ::1              over IPv6
  weft serve board --rows 2 --cols 2              a simulated board
  weft serve board --config network_core.toml             the same with a network core
  weft serve board --config language_core.toml            and with a language core

BOARD is a serial port, usb or usb:SERIAL for a board on USB, or the word board for a simulated
board with the given design. A file with a table [network_core] describes a network core, one with
a table [language_core] a language core.
"""
PORT = 9337


def add(parser):
    """Add the arguments of ``weft serve``."""
    parser.add_argument(
        "board", metavar="BOARD", help="a serial port, usb, or board for a simulated board"
    )
    parser.add_argument(
        "--host", type=_host, default="localhost",
        help="name, IPv4 or IPv6 address to listen at; default localhost",
    )
    parser.add_argument(
        "--port", type=integer("port", 0, 65535), default=PORT, metavar="INT",
        help=f"port to listen at; 0 for any free port; default {PORT}",
    )
    add_baud(parser)
    add_config(parser)


def _host(text):
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not host:  # a socket would listen at every address of the machine
        raise argparse.ArgumentTypeError(f"host must be a name or an address, not {text!r}")
    return host


def run(args) -> int:
    """Run the command; return its exit code."""
    import contextlib

    from weft.host.tcp import TcpServer, address, listen
    from weft.host.transport import TransportClosed

    def say(text):
        with contextlib.suppress(BrokenPipeError):  # keep serving if the output is closed
            print(text, flush=True)

    config = _config(args)
    check_connection(args.board, args.baud)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen(args.host, args.port))  # fails before a long build
        if args.board == "board":
            from weft.sim.transport import ACK_TIMEOUT as timeout
            from weft.sim.transport import start

            process = stack.enter_context(start(config, say=say))
            stack.callback(process.terminate)
            streams = process.stdout, process.stdin
        else:
            from weft.host.serial_port import SerialPort, find, usb_path

            on_usb = args.board.partition(":")[0] == "usb"
            path = usb_path(args.board) if on_usb else args.board
            if not (baud := args.baud):
                with contextlib.closing(find(path)) as board:
                    baud = board.baud
            port = SerialPort(path, baud)
            streams, timeout = (port, port), 0.5
        server = TcpServer(*streams, listener, say=say, timeout=timeout)
        stack.callback(server.close)
        say(f"tcp://{address(args.host, server.port)} is {args.board}")
        server.serve()
    raise TransportClosed(f"{args.board} was disconnected; reconnect it and start again")


def _config(args):
    """The design of a simulated board; None for a serial port, which has its own."""
    from weft.host.opening import is_board
    from weft.host.transport import TransportError

    if args.board == "board":
        return any_config_of(args, language=True)
    if not is_board(args.board):
        raise TransportError(
            f"BOARD must be a serial port, usb, or board for a simulated board, not {args.board}"
        )
    if given := given_field(args):
        raise TransportError(f"{given} must be for a simulated board (board), not {args.board}")
    return None
