"""``weft regress``: the verification matrix, Configs x seeds x simulators, on an engine."""

import time
from pathlib import Path

from weft.cli.argument_types import integer, path
from weft.cli.engine_options import add_engine, check_cluster, duration, limits_of, started
from weft.cli.output_paths import output_file
from weft.cli.progress import progress
from weft.config import Config

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "check many designs with many seeds on two simulators"
DESCRIPTION = """\
Check designs: random Configs, or the one in a TOML file. The checks are
lint (Verilator), products (random products on the simulated core, against the golden model and the
cycle model) and benches (the cocotb benches, on each simulator). A store keeps each outcome, so
that the same command continues where it stopped. Each failure is printed with the command that
repeats it. docs/testing.md describes the checks, docs/explore.md the engine and the cluster.

  weft regress                                     8 random Configs, all checks
  weft regress --configs 300 --checks lint         only lint
  weft regress --draw 7 --seeds 3 --budget 8h      other Configs, 3 seeds of each check
  weft regress --config my.toml --seeds 20         one design
  weft regress --jobs 4                            4 cases at once
  weft regress --only 1.3/icarus/2                 repeat one case

Exit code 1 if a case failed, none was finished, or one did not run, unless another process of this
machine runs it.
"""
STORE = "regress.sqlite"
CHECKS = "lint", "products", "benches"
SIMULATORS = "icarus", "verilator"


def add(parser):
    """Add the arguments of ``weft regress``."""
    parser.add_argument(
        "--configs", metavar="INT", type=integer("configs", 1, 99999), default=8,
        help="number of random Configs; default 8",
    )
    parser.add_argument(
        "--config", metavar="FILE", type=path("config"),
        help="one design instead of random ones: TOML file with lines of the form field = value",
    )
    parser.add_argument(
        "--draw", metavar="INT", type=integer("draw", 0, 10**18 - 1), default=1,
        help="seed of the random Configs: another number draws others; default 1",
    )
    parser.add_argument(
        "--seeds", metavar="INT", type=integer("seeds", 1, 99999), default=1,
        help="seeds of each check of a Config; default 1",
    )
    parser.add_argument(
        "--checks", nargs="+", choices=CHECKS, default=CHECKS, metavar="CHECK",
        help=f"some of {', '.join(CHECKS)}; default all",
    )
    parser.add_argument(
        "--simulators", nargs="+", choices=SIMULATORS, default=SIMULATORS, metavar="NAME",
        help=f"simulators of the benches, some of {', '.join(SIMULATORS)}; default both",
    )
    parser.add_argument(
        "--tests", nargs="+", metavar="NAME", default=[],
        help="names of cocotb tests; default all",
    )
    parser.add_argument(
        "--budget", metavar="TIME", type=duration, default=float("inf"),
        help="time in which cases start: 90s, 30m, 2h, 1d; default no limit",
    )
    parser.add_argument(
        "--only", metavar="CASE", help="run this case alone, also if the store has its outcome"
    )
    parser.add_argument(
        "--json", metavar="FILE", type=path("json"), help="write all outcomes as JSON"
    )
    add_engine(parser, STORE)


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.cli.regress_result import Regression
    from weft.regress.matrix import GIVEN, case_of, drawn, matrix

    check_cluster(args)
    file = args.json and output_file(args.json)
    given = None if args.config is None else Config.from_toml(args.config)
    tests = tuple(args.tests)
    if args.only is not None:
        cases = [case_of(args.only, given, tests)]
    else:
        designs = [(GIVEN, given)] if given else [
            (f"{args.draw}.{number}", drawn(args.draw, number)) for number in range(args.configs)
        ]
        cases = list(matrix(designs, _checks(args), args.seeds, tests))
        cases = list({case.key: case for case in cases}.values())  # a draw may repeat a Config
    found = Regression(cases, args.config)
    with progress() as show:
        try:
            _run(cases, args, show, found)
        finally:  # also after Ctrl-C, or without the scheduler
            found.save_logs(show.say)
            if file:
                found.write(file)
    found.print()
    return found.status


def _run(cases, args, show, found):
    from weft.regress.store import CaseStore
    from weft.regress.work import CaseWork
    from weft.sim.cache import folder
    from weft.tasks.session import run_items

    work = CaseWork(tuple(dict.fromkeys(case.check for case in cases)), limits_of(args))
    work.set_up()  # before the workers start
    waiting, end = iter(cases), time.monotonic() + args.budget

    def next_case():
        return next(waiting, None) if time.monotonic() < end else None

    store_file = Path(args.store) if args.store else folder() / STORE
    with (
        CaseStore(store_file, say=show.say) as store, started(work, args, show) as engine,
        show.task("checking", total=len(cases)) as advance,
    ):
        def arrived(case, outcome, known):
            advance()
            found.add(case, outcome, known, store.data(case))
            show.say(f"{case}  {case.config.name}: {outcome}{' (known)' if known else ''}")

        if args.only is None:
            run_items(
                next_case, engine, store, seconds=60 * args.minutes, on_outcome=arrived,
                on_left=found.leave,
            )
            return
        engine.submit(cases[0])
        for case, result in engine.results():
            if result.outcome.final:
                store.forget(case)
            arrived(case, store.keep(case, result), False)


def _checks(args):
    """The checks of the matrix; the benches are a check for each simulator."""
    checks = [check for check in CHECKS if check in args.checks]
    if "benches" in checks:
        checks.remove("benches")
        checks += [name for name in SIMULATORS if name in args.simulators]
    return checks
