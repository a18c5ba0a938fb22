"""``weft bench``: the performance table, from synthesis, place and route, and simulation."""

import argparse
import contextlib
import dataclasses
import os
import re
import sys
import time

from weft.cli.argument_types import integer, path
from weft.cli.output_paths import output_folder

__all__ = ["add"]

DESCRIPTION = """\
Measure whole accelerators: link, buffers, tiler, array and post-processing, each synthesized,
placed and routed for its device with several seeds. The rate is that of equal products with INT8
results, back to back, loading included: peak * utilization * fmax, with cycles of the cycle model
that the simulated hardware must take too. What was measured before is not measured again, as long
as sources and tools are the same.

  weft bench                       all of the table
  weft bench ecp5-25f ice40up5k    some of it
  weft bench --list                what there is

Installs Yosys and nextpnr from PyPI at first use. Exit code 1 where a figure misses its goal or is
over 3 % worse than the one recorded, which then stays.
"""
WIDE = 200  # columns of a table that goes to no terminal


def add(subparsers):
    """Register ``weft bench``."""
    parser = subparsers.add_parser(
        "bench",
        help="measure what designs reach on their devices",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("entry", nargs="*", metavar="ENTRY", help="what to measure; default all")
    parser.add_argument(
        "--seeds", metavar="INT,...", type=_seeds, default=[1, 2, 3],
        help="of place and route; default 1,2,3",
    )
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    parser.add_argument(
        "--no-simulation", action="store_true", help="trust the cycle model for the cycles"
    )
    parser.add_argument(
        "--jobs", metavar="INT", type=integer("jobs", 1, 9999), default=os.cpu_count() or 1,
        help="tools that run at a time; default one for each core of this machine",
    )
    parser.add_argument(
        "--docs", metavar="DIR", default="docs", type=path("docs"),
        help="where page, picture and records (performance.*) are; default docs",
    )
    parser.set_defaults(run=_run)


def _seeds(text):
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise argparse.ArgumentTypeError(f"seeds must be integers of 0 or more, not {text!r}")
    return list(dict.fromkeys(map(int, text.split(","))))


def _run(args) -> int:
    from weft.boards.presets import PRESETS

    unknown = [name for name in args.entry if name not in PRESETS]
    if unknown:
        known = ", ".join(PRESETS)
        print(f"weft: error: an entry must be one of {known}, not {unknown[0]!r}", file=sys.stderr)
        return 2
    entries = [PRESETS[name] for name in dict.fromkeys(args.entry or PRESETS)]
    if args.list:
        for entry in entries:
            print(f"{entry.name:16} {entry.device.name:10} {entry.config.name}"
                  f"{', the array array_only' if entry.array_only else ''}")
        return 0
    return _measure(entries, args)


def _measure(entries, args):
    from weft.boards.benchmark import measure
    from weft.boards.presets import PRESETS
    from weft.boards.toolchain import Toolchain, ToolchainError
    from weft.cli.performance import Records, problems, regressions
    from weft.cli.progress import progress
    from weft.cli.steady_state import ResultMismatch
    from weft.sim.build import folder
    from weft.sim.tools import ToolError

    book = Records(output_folder(args.docs))
    place = output_folder(folder() / "bench")
    failures = []
    with progress() as show:
        tools = Toolchain(folder(), say=show.say)
        with show.task("getting the tools ready"):
            tools.set_up()
        steps = len(entries) * (1 + len(args.seeds))
        with show.task("placing and routing", total=steps) as advance:
            found = measure(
                tools, entries, args.seeds, folder=place, jobs=args.jobs,
                said=_told(show, advance, steps),
            )
        for entry in entries:
            measured = found[entry.name]
            if isinstance(measured, ToolchainError):
                failures.append(f"{entry.name}: {measured}")
                continue
            try:
                cycles = _cycles(entry, place, not args.no_simulation, show)
            except (ToolError, ResultMismatch) as error:
                failures.append(f"{entry.name}: {error}")
                continue
            record = _record(entry, measured, cycles)
            before = book.records.get(entry.name)
            failures += problems(record, before)
            if not regressions(record, before):
                book.add(record)
    book.save(PRESETS)
    _show([book.records[entry.name] for entry in entries if entry.name in book.records])
    for failure in failures:
        print(f"MISSED  {failure}")
    return 1 if failures else 0


def _told(show, advance, steps):
    """Says each step that took a while, and how long the rest takes if it is like those so far."""
    start = last = time.monotonic()
    done = 0

    def told(entry, what, left):
        nonlocal last, done
        advance(steps - left - done)
        now, done = time.monotonic(), steps - left
        if now - last > 1:
            rest = (now - start) / done * left / 60
            show.say(f"{entry.name}: {what}")
            show.say(f"{left} steps left; {rest:.0f} min, should they be like those before")
        last = now

    return told


def _cycles(entry, place, simulate, show):
    """(size, cycles from one product to the next, whether simulated); Nones of an array alone."""
    if entry.array_only:
        return None, None, False
    from weft.boards.benchmark import ResultCache, source_digest
    from weft.boards.toolchain import digest
    from weft.cli.steady_state import ResultMismatch, predict_interval, simulate_interval

    cache, made = ResultCache(place / "results"), source_digest()
    with show.task(f"counting cycles of {entry.name}"):
        size, interval = cache.get(digest("model", made, entry.config),
                                   lambda: predict_interval(entry.config))
        if not simulate:
            return size, interval, False
        counted = cache.get(digest("simulation", made, entry.config, size),
                            lambda: simulate_interval(entry.config, size, show.say))
    if counted != interval:
        raise ResultMismatch(
            f"{size}^3 must take {interval:,.10g} cycles in simulation as in the cycle model,"
            f" not {counted:,.10g}"
        )
    return size, interval, True


def _asked(config):
    """The fields that make ``config``: the others follow from them."""
    from weft.config import Config, ConfigError

    asked = dataclasses.asdict(config)
    for name in list(asked):
        rest = {other: value for other, value in asked.items() if other != name}
        with contextlib.suppress(ConfigError):
            asked = rest if Config.from_dict(rest) == config else asked
    return asked


def _record(entry, measured, cycles):
    from datetime import UTC, datetime

    from weft.cli.performance import Measurement

    size, interval, simulated = cycles
    best = measured.best
    return Measurement(
        name=entry.name, device=entry.device.name, array_only=entry.array_only, goal=entry.goal,
        clock=entry.clock, luts=entry.luts, used=best.used, path=str(best.critical_path), size=size,
        interval=interval,
        config=_asked(entry.config),
        fmax={str(seed): round(one.fmax, 2) for seed, one in sorted(measured.by_seed.items())},
        simulated=simulated, design=measured.design, date=datetime.now(UTC).date().isoformat(),
    )


def _show(records):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from weft.cli.performance import COLUMNS, rows

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in COLUMNS[:2] else "right")
    for row in rows(records):
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:  # a file is as wide as what is in it
        console = Console(width=WIDE)
    console.print(table)
