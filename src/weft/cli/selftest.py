"""``weft selftest``: tests a core, its memories and its link."""

import dataclasses
import time
from functools import partial

from weft.cli.options import NAMES, add_transport, any_config_of, integer, open_named
from weft.config import PAGE_WORDS
from weft.design import LANGUAGE, PerKind

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "test a core, its memories and its link"
DESCRIPTION = f"""\
Test a core and its link against the golden model: its identity registers, its operand buffers page
by page, the link at its full rate, and products of every class of shape. Of a network core its
whole memories are tested instead of the buffers. Of a language core its main memory is tested, and
its SDRAM if it has one; the model in them is lost, and the next 'weft run' sends it again.

  weft selftest /dev/ttyUSB1
  weft selftest board --rows 2 --cols 2 --a-words 64 --b-words 64
  weft selftest board --config my.toml       with a table [network_core]: a network core

{NAMES}
Exit code 1 if a check fails.
"""
_TIMEOUT = 60.0  # seconds without an answer
_READS = 40  # reads of all registers, to load the link towards the host
_PHASE = "program memory, phase of its clock"


def _emulated(config):
    """The Config with which a network core computes products."""
    from weft.host.emulated import product_config

    return product_config(config)


_EMULATED = PerKind(product=lambda config: config, network=_emulated)


@dataclasses.dataclass(frozen=True)
class Check:
    """One row of the table; ``failure`` is None if the check passed.

    A ``picture`` is printed below the table.
    """

    name: str
    details: str
    failure: str | None
    picture: str = ""


def add(parser):
    """Add the arguments of ``weft selftest``."""
    parser.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1,
        help="seed of the operands; 0 or more, default 1",
    )
    add_transport(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.cli.progress import progress
    from weft.host import Accelerator
    from weft.host.core_session import product_transport

    with progress() as show:
        with show.task(f"opening {args.transport}"):
            transport, design = open_named(args, show, partial(any_config_of, language=True))
        try:
            is_language = _is_language(transport)
        except BaseException:
            transport.close()
            raise
        if is_language:
            return _print(_language_checks(transport, design, args, show))
        config = design and _EMULATED.of(design)(design)
        try:
            for_products = product_transport(transport, _TIMEOUT)
            accelerator = Accelerator(for_products, config, timeout=_TIMEOUT)
        except BaseException:
            transport.close()
            raise
        with accelerator:
            checks = []
            for check in _checks(accelerator, transport, for_products, args):
                checks.append(check)
                show.say(f"{check.name}: {'passed' if check.failure is None else 'FAILED'}")
    return _print(checks)


def _is_language(transport):
    ask = getattr(transport, "kind_of_core", None)
    return ask is not None and ask(_TIMEOUT) == LANGUAGE


def _language_checks(transport, design, args, show):
    """The checks of a language core; the transport is closed after them."""
    from weft.host.language_driver import LanguageDriver
    from weft.host.memory_test import sweep_phases_of_words, test_of_words
    from weft.language_core.config import WORD_BYTES

    try:
        driver = LanguageDriver(transport, design, timeout=_TIMEOUT)
    except BaseException:
        transport.close()
        raise
    with driver:
        core = driver.config
        checks = [Check("identity", f"{core.name}, {core.peak} MAC/cycle, {core.hash:08x}", None)]
        cases = [("memory", lambda: _memory(
            WORD_BYTES * core.words, driver.write_main, driver.read_main, args.seed
        ))]
        if core.program_words:
            cases += [
                (_PHASE, lambda: _phases(sweep_phases_of_words(driver))),
                *((f"program memory, {name}", case)
                  for name, case in test_of_words(driver, args.seed)),
            ]
        for name, case in cases:
            try:
                if (found := case()) is None:
                    continue
                check = Check(name, *found)
            except RuntimeError as error:  # AcceleratorError, TransportError
                check = Check(name, "", str(error))
            checks.append(check)
            show.say(f"{name}: {'passed' if check.failure is None else 'FAILED'}")
    return checks


def _print(checks):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("check", "details", "passed"):
        table.add_column(name)
    for check in checks:
        passed = check.failure is None
        outcome = Text("yes", "green") if passed else Text("NO", "bold red")
        table.add_row(Text(check.name), Text(check.details), outcome)
    Console().print(table)
    for check in checks:
        if check.picture:
            print(check.picture, end="\n\n")
    failed = [check for check in checks if check.failure is not None]
    for check in failed:
        print(f"{check.name}: {check.failure}")
    return 1 if failed else 0


def _cases(config, transport, for_products, seed):
    """The core, and the checks of its memories, its link and its products: [(name, check)]."""
    from weft.cli.selftest_cases import memories, products
    from weft.host.emulated import ListTransport

    if not isinstance(for_products, ListTransport):
        return config, [
            *memories(config, seed), ("link", lambda core: _link(core, transport)),
            *products(config, seed),
        ]
    driver = for_products.products.runner
    # Shapes for the buffer of the core, not for the ones that the driver emulates.
    words = max(2 * PAGE_WORDS, 1 << driver.config.b_words.bit_length() - 1)
    sizes = dataclasses.replace(config, a_words=words, b_words=words)
    bytes_of = driver.config.memory_bytes
    cases = [("memory", lambda _: _memory(bytes_of, driver.write, driver.read, seed))]
    if driver.config.program_words:
        cases += _program_memory(driver, seed)
    return driver.config, [*cases, *products(sizes, seed)]


def _program_memory(driver, seed):
    """The checks of the program memory."""
    from weft.host.memory_test import full_test, sweep_phases

    return [
        (_PHASE, lambda _: _phases(sweep_phases(driver))),
        *((f"program memory, {name}", lambda _, check=check: check())
          for name, check in full_test(driver, seed)),
    ]


def _phases(sweep):
    """(details, failure, picture) of a `weft.host.memory_test.PhaseSweep`; None without one."""
    return sweep and (sweep.details, sweep.failure, sweep.picture)


def _checks(accelerator, transport, for_products, args):
    """All checks, one after another; stops if the link to the core is closed."""
    from weft.host.transport import TransportClosed

    config = accelerator.config
    core, cases = _cases(config, transport, for_products, args.seed)
    yield Check("identity", f"{core.name}, {core.peak} MAC/cycle, {core.hash:08x}", None)
    for name, case in cases:
        try:
            if (found := case(accelerator)) is not None:
                yield Check(name, *found)
        except RuntimeError as error:  # AcceleratorError, TransportError
            yield Check(name, "", str(error))
            if isinstance(error, TransportClosed):
                return
    if hasattr(transport, "name"):
        yield Check("usage", _usage(accelerator, transport, args), None)


def _usage(accelerator, transport, args):
    """The bytes over the link and the busy cycles of the core, with the time of each."""
    from weft.host.serial_port import RATES

    cycles = accelerator.counters()["busy"]
    baud = args.baud or getattr(transport, "baud", RATES[0])
    traffic = (f"{count:,} bytes {direction}"
               f"{baud and f' ({10 * count / baud:.3f} s at {baud} baud)' or ''}"
               for count, direction in ((transport.sent, "sent"),
                                        (transport.received, "received")))
    text = f"{', '.join(traffic)}; {cycles:,} busy cycles since the core's reset"
    if args.transport == "board":
        from weft.sim.transport import DIVISOR

        clock = DIVISOR * baud
        text += f" ({cycles / clock:.3f} s at {clock / 1e6:g} MHz)"
    return text


def _memory(size, write, read, seed):
    """(bytes/s in both directions, failure): a memory of a network core, and its link."""
    import numpy as np

    wrong, seconds = 0, [0.0, 0.0]
    noise = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    for values in (noise, ~noise):
        times = [time.perf_counter()]
        write(0, values.tobytes())
        times.append(time.perf_counter())
        found = np.frombuffer(read(0, size), np.uint8)
        times.append(time.perf_counter())
        wrong += int((found != values).sum())
        seconds = [total + after - before for total, before, after in zip(
            seconds, times, times[1:], strict=False
        )]
    rates = [f"{2 * size / total:,.0f}" for total in seconds]
    text = f"{size:,} bytes; {rates[0]} bytes/s to the core, {rates[1]} bytes/s from it"
    return text, f"{wrong} of {2 * size:,} bytes are wrong" if wrong else None


def _link(accelerator, transport):
    """(bytes/s in both directions, failure): loads a full buffer, then reads registers."""
    from weft.cli.selftest_cases import CASES
    from weft.geometry import operands
    from weft.registers import REGISTERS, describe

    config = accelerator.config
    if not hasattr(transport, "sent"):
        return "no link: the core is in this process", None
    a, _ = operands(config)
    operand = CASES[config.dtype](config, seed=0).filled(0, a.edge, a.words * a.depth)
    accelerator.load(operand, "a").free()
    before = accelerator.counters()
    rates = []
    for counter, transfer in (
        ("sent", lambda: accelerator.load(operand, "a").free()),
        ("received", lambda: [transport.read(0, len(REGISTERS), _TIMEOUT) for _ in range(_READS)]),
    ):
        start, count = time.perf_counter(), getattr(transport, counter)
        readings = transfer()
        count = getattr(transport, counter) - count
        rates.append(f"{count / (time.perf_counter() - start):,.0f}")
    wrong = [words for words in readings if words[: len(describe(config))] != describe(config)]
    errors = accelerator.counters()["errors"] - before["errors"]
    failure = None
    if wrong or errors:
        failure = (
            f"{len(wrong)} of {_READS} register reads are wrong,"
            f" {errors} command headers were rejected"
        )
    return f"{rates[0]} bytes/s to the core, {rates[1]} bytes/s from it", failure
