"""Options of the commands that run on an engine: the cluster, the limits of a run, the store."""

import argparse
import re
import sys

from weft.cli.arguments import integer, number, path

__all__ = [
    "add_engine", "add_store", "add_workers", "check_cluster", "duration", "limits_of", "started",
]

_TLS = {
    "ca": "certificate of the authority", "cert": "certificate of this user",
    "key": "private key of this user",
}
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
    """Add ``--cluster``, its certificates, and ``--jobs``."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", type=_address,
        help="scheduler of dask.distributed: tls://host:8786, or tcp://host:8786 without a key;"
             " default: workers on this machine",
    )
    for name, text in _TLS.items():
        parser.add_argument(
            f"--tls-{name}", metavar="FILE", type=path(f"tls-{name}"),
            help=f"{text} of a cluster at tls://",
        )
    parser.add_argument(
        "--jobs", metavar="INT", type=integer("jobs", 1, 9999),
        help="tools that run at once on this machine; default as many as cores and memory allow",
    )


def _address(text):
    if not re.fullmatch(r"(tls|tcp)://(\[[^\[\]/]+\]|[^\[\]/:]+):\d{1,5}", text):
        raise argparse.ArgumentTypeError(
            f"cluster must be tls://host:port or tcp://host:port, not {text!r}"
        )
    return text


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
    from weft.tasks.program import RunLimits

    return RunLimits(60 * args.minutes, int(args.memory * 2**30))


def check_cluster(args) -> None:
    """Check the options of a cluster before any work; warn of one that needs no key.

    Raises EngineError or OSError, as the certificates are needed.
    """
    if _security(args) is None and args.cluster:
        print(
            f"weft: warning: {args.cluster} has no key: any host that reaches the scheduler can run"
            " code on it, on its workers and in this command; use tls:// (docs/explore.md)",
            file=sys.stderr, flush=True,
        )


def started(work, args, show):
    """The engine of the arguments, with every machine set up; says where it runs."""
    from weft.tasks.engine import Engine

    engine = Engine(work, args.cluster, workers=args.jobs, security=_security(args))
    try:
        place = f"at {engine.address}; {engine.dashboard}" if args.cluster else "in this process"
        show.say(f"engine: {engine.workers} workers {place}")
        with show.task("preparing the tools"):
            engine.set_up()
    except BaseException:
        engine.close()
        raise
    return engine


def _security(args):
    """The certificates of the arguments; None for an address that uses none."""
    files = {f"--tls-{name}": getattr(args, f"tls_{name}") for name in _TLS}
    given = [name for name, file in files.items() if file is not None]
    if not given and args.cluster is None:
        return None
    from weft.tasks.engine import EngineError, security_of

    if not (args.cluster or "").startswith("tls:"):
        if given:
            raise EngineError(f"{given[0]} must be with --cluster tls://host:port")
        return None
    missing = [name for name in files if name not in given]
    if missing:
        raise EngineError(f"{args.cluster} needs {', '.join(missing)} (docs/explore.md)")
    return security_of(*files.values())
