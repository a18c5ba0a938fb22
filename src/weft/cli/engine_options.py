"""Options of the commands that run on an engine: the cluster, the limits of a run, the store."""

import argparse
import re

from weft.cli.argument_types import integer, number, path

__all__ = ["add_engine", "add_store", "add_workers", "duration", "limits_of", "started"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_engine(parser, store: str) -> None:
    """Add the options of the engine and of its limits, and ``--store`` with its default file."""
    group = parser.add_argument_group("the engine")
    add_workers(group)
    group.add_argument(
        "--minutes", metavar="NUM", type=number("minutes", 0.01, 1e5), default=60.0,
        help="time limit of a tool run; default 60",
    )
    group.add_argument(
        "--memory", metavar="GIB", type=number("memory", 0.1, 1e4), default=4.0,
        help="memory limit of a tool in GiB; default 4",
    )
    add_store(group, store)


def add_workers(parser) -> None:
    """Add ``--cluster`` and ``--jobs``."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", type=path("cluster"),
        help="scheduler of dask.distributed: tcp://host:8786; default: workers on this machine",
    )
    parser.add_argument(
        "--jobs", metavar="INT", type=integer("jobs", 1, 9999),
        help="tools that run at once on this machine; default as many as cores and memory allow",
    )


def add_store(parser, store: str) -> None:
    """Add ``--store``."""
    parser.add_argument(
        "--store", metavar="FILE", type=path("store"),
        help=f"the file that keeps all outcomes; default {store} in Weft's build folder",
    )


def duration(text: str) -> float:
    """Seconds of a budget: ``90s``, ``30m``, ``2h``, ``1d``."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smhd])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"budget must be a time as 90s, 30m or 2h, not {text!r}")
    return float(match[1]) * _UNITS[match[2]]


def limits_of(args):
    """The `RunLimits` of the arguments."""
    from weft.tasks.limits import RunLimits

    return RunLimits(60 * args.minutes, int(args.memory * 2**30))


def started(work, args, show):
    """The engine of the arguments, with every machine set up; says where it runs."""
    from weft.tasks.engine import Engine

    engine = Engine(work, args.cluster, workers=args.jobs)
    try:
        show.say(f"engine: {engine.workers} workers at {engine.address}; {engine.dashboard}")
        with show.task("preparing the tools"):
            engine.set_up()
    except BaseException:
        engine.close()
        raise
    return engine
