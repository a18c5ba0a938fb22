"""Options that the commands of explorations share: the engine, the limits, the store."""

from pathlib import Path

from weft.cli.argument_types import integer, number, path

__all__ = ["add_engine", "engine_of", "store_of"]


def add_engine(parser) -> None:
    """Add the options of the engine, of its limits and of the store."""
    group = parser.add_argument_group("the engine")
    group.add_argument(
        "--cluster", metavar="ADDRESS", type=path("cluster"),
        help="scheduler of dask.distributed: tcp://host:8786; default: workers on this machine",
    )
    group.add_argument(
        "--jobs", metavar="INT", type=integer("jobs", 1, 9999),
        help="tools that run at once on this machine; default as many as cores and memory allow",
    )
    group.add_argument(
        "--minutes", metavar="NUM", type=number("minutes", 0.01, 1e5), default=60.0,
        help="time limit of a synthesis, and of a place and route; default 60",
    )
    group.add_argument(
        "--memory", metavar="GIB", type=number("memory", 0.1, 1e4), default=4.0,
        help="memory limit of a tool in GiB; default 4",
    )
    add_store(group)


def add_store(parser) -> None:
    """Add ``--store``."""
    parser.add_argument(
        "--store", metavar="FILE", type=path("store"),
        help="the file that keeps all outcomes; default explore.sqlite in Weft's build folder",
    )


def store_of(args, say=print):
    """The store of the arguments."""
    from weft.explore.store import PointStore
    from weft.sim.cache import folder

    return PointStore(Path(args.store) if args.store else folder() / "explore.sqlite", say=say)


def engine_of(args, show):
    """The engine of the arguments, with its tools set up; says where it runs."""
    from weft.explore.engine import Engine
    from weft.explore.limits import RunLimits
    from weft.explore.steps import PointSteps

    steps = PointSteps(RunLimits(60 * args.minutes, int(args.memory * 2**30)))
    engine = Engine(args.cluster, workers=args.jobs, steps=steps)
    try:
        show.say(f"engine: {engine.workers} workers at {engine.address}; {engine.dashboard}")
        with show.task("preparing the tools"):
            engine.set_up()
    except BaseException:
        engine.close()
        raise
    return engine
