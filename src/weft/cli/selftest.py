"""``weft selftest``: whether a core, its memories and the way to it are right."""

import argparse
import time
from dataclasses import dataclass

from weft.cli.argument_types import integer
from weft.cli.transports import NAMES, add_transport, open_named

__all__ = ["add"]

DESCRIPTION = f"""\
Check a core and the way to it, part by part, against the golden model: what it says of itself, its
operand buffers page by page, the link at its full rate, then products of every class of shape.

  weft selftest /dev/ttyUSB1
  weft selftest board --rows 2 --cols 2 --a-words 64 --b-words 64

{NAMES}
Exit code 1 where anything is wrong.
"""
_TIMEOUT = 60.0  # seconds of silence, at most
_READS = 40  # of all registers, for the link towards the host


@dataclass(frozen=True)
class Check:
    """One line of the table: ``failure`` is None for a check that passed."""

    name: str
    what: str
    failure: str | None


def add(subparsers):
    """Register ``weft selftest``."""
    parser = subparsers.add_parser(
        "selftest",
        help="check a core, its memories and the way to it",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="decides what is multiplied; 0 or more, default 1",
    )
    add_transport(parser)
    parser.set_defaults(run=_run)


def _run(args) -> int:
    from weft.cli.progress import progress
    from weft.host import Accelerator

    with progress() as show:
        with show.task(f"opening {args.transport}"):
            transport, config = open_named(args, show)
        try:
            accelerator = Accelerator(transport, config, timeout=_TIMEOUT)
        except BaseException:
            transport.close()
            raise
        with accelerator:
            checks = []
            for check in _checks(accelerator, transport, args):
                checks.append(check)
                show.say(f"{check.name}: {'right' if check.failure is None else 'WRONG'}")
    return _print(checks)


def _print(checks):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("check", "what", "right"):
        table.add_column(name)
    for check in checks:
        good = check.failure is None
        outcome = Text("yes", "green") if good else Text("NO", "bold red")
        table.add_row(Text(check.name), Text(check.what), outcome)
    Console().print(table)
    wrong = [check for check in checks if check.failure is not None]
    for check in wrong:
        print(f"{check.name}: {check.failure}")
    return 1 if wrong else 0


def _checks(accelerator, transport, args):
    """All checks, one after another; none after the way to the core has gone."""
    from weft.cli.selftest_cases import memories, products
    from weft.host.transport import TransportClosed

    config = accelerator.config
    yield Check("identity", f"{config.name}, {config.peak} MAC/cycle, {config.hash:08x}", None)
    cases = [
        *memories(config, args.seed),
        ("link", lambda held: _link(held, transport)),
        *products(config, args.seed),
    ]
    for name, case in cases:
        try:
            what, failure = case(accelerator)
        except RuntimeError as error:  # AcceleratorError, TransportError
            yield Check(name, "", str(error))
            if isinstance(error, TransportClosed):
                return
        else:
            yield Check(name, what, failure)
    if hasattr(transport, "name"):
        yield Check("cost", _cost(accelerator, transport, args), None)


def _cost(accelerator, transport, args):
    """What all of it took of the wire and of the core, apart."""
    from weft.host.serial_port import RATES

    cycles = accelerator.counters()["busy"]
    baud = args.baud or getattr(transport, "baud", RATES[0])
    ways = (f"{count:,} bytes ({10 * count / baud:.3f} s at {baud} baud) {way} it"
            for count, way in ((transport.sent, "to"), (transport.received, "from")))
    text = f"{', '.join(ways)}; since its reset {cycles:,} cycles at work"
    if args.transport == "board":
        from weft.sim.board import DIVISOR

        clock = DIVISOR * baud
        text += f" ({cycles / clock:.3f} s at {clock / 1e6:g} MHz)"
    return text


def _link(accelerator, transport):
    """(bytes a second both ways, what was wrong): a buffer full of words, then registers."""
    import numpy as np

    from weft.geometry import operands
    from weft.registers import REGISTERS, describe

    config = accelerator.config
    if not hasattr(transport, "sent"):
        return "none: the core is in this process", None
    a, _ = operands(config)
    side = np.zeros((a.edge, a.words * a.depth), np.int8)
    if config.dtype == "bf16":
        from ml_dtypes import bfloat16

        side = side.astype(bfloat16)
    accelerator.load(side, "a").free()
    before = accelerator.counters()
    rates = []
    for count, act in (
        ("sent", lambda: accelerator.load(side, "a").free()),
        ("received", lambda: [transport.read(0, len(REGISTERS), _TIMEOUT) for _ in range(_READS)]),
    ):
        start, moved = time.perf_counter(), getattr(transport, count)
        said = act()
        moved = getattr(transport, count) - moved
        rates.append(f"{moved / (time.perf_counter() - start):,.0f}")
    wrong = [words for words in said if words[: len(describe(config))] != describe(config)]
    errors = accelerator.counters()["errors"] - before["errors"]
    failure = None
    if wrong or errors:
        failure = f"{len(wrong)} of {_READS} readings differ, {errors} headers were damaged"
    return f"{rates[0]} bytes/s to the core, {rates[1]} from it", failure
