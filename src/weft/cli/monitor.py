"""``weft monitor``: prints a core's performance counters."""

import time

from weft.cli.options import NAMES, add_transport, given_config, integer, number, open_named

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "print a core's performance counters"
DESCRIPTION = f"""\
Print a core's performance counters, one line per interval, until Ctrl-C. Of the cycles in which the
core was busy: the share in which the array took operands (active), in which a job waited for
operands (starved) or for space for its results (stalled); words in and out, jobs, and errors.
The command only reads registers. A board takes one program at a time, on a serial port and over
'weft serve': while another program works, this command stops with an error, and that program
can read the counters itself between its products (Accelerator.counters in Python). An IP core
(uio:, mem:) can be watched while it works.

  weft monitor /dev/ttyUSB1
  weft monitor /dev/ttyUSB1 --count 10 --interval 0.5

{NAMES}"""
HEAD = (
    f"{'busy cycles':>17}{'active':>8}{'starved':>8}{'stalled':>8}{'words in':>13}"
    f"{'words out':>13}{'jobs':>10}{'errors':>7}"
)
DAY = 24 * 60 * 60  # seconds
_TIMEOUT = 10.0  # seconds for an answer


def add(parser):
    """Add the arguments of ``weft monitor``."""
    parser.add_argument(
        "--count", metavar="INT", type=integer("count", 1),
        help="number of lines to print; default no limit",
    )
    parser.add_argument(
        "--interval", metavar="SECONDS", type=number("interval", 0, DAY), default=1.0,
        help="time between two lines; default 1",
    )
    add_transport(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.cli.progress import progress
    from weft.host.core_session import CoreSession
    from weft.host.transport import TransportBusy

    try:
        with progress() as show, show.task(f"opening {args.transport}"):
            transport, config = _open(args, show)
    except TransportBusy as error:
        raise TransportBusy(
            f"{error}. A board takes one program at a time: run weft monitor before or after that"
            " program, or read the counters in it (Accelerator.counters)"
        ) from error
    try:
        core = CoreSession(transport, config, _TIMEOUT)
        print(f"{core.config.name}, {core.config.peak} MAC/cycle", flush=True)
        print(HEAD)
        before = core.counters()
        count = 0
        while args.count is None or count < args.count:
            time.sleep(args.interval)
            after = core.counters()
            print(_line(before, after), flush=True)
            before, count = after, count + 1
    finally:
        transport.close()
    return 0


def _open(args, show):
    """The transport and the Config of the arguments; an IP core goes on with its work."""
    from weft.host.mmio import RegisterReader
    from weft.host.opening import open_registers

    if registers := open_registers(args.transport):
        return RegisterReader(registers), given_config(args)
    return open_named(args, show)


def _line(before, after):
    delta = {name: (after[name] - before[name]) % (1 << 32) for name in after}
    busy = max(1, delta["busy"])
    shares = "".join(f"{delta[name] / busy:8.1%}" for name in ("active", "starved", "stalled"))
    return (
        f"{delta['busy']:>17,}{shares}{delta['words_in']:>13,}{delta['words_out']:>13,}"
        f"{delta['finished']:>10,}{delta['errors']:>7,}"
    )
