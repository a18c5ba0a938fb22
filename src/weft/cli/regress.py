"""``weft regress``: the verification matrix, Configs x seeds x simulators, on an engine."""

import dataclasses
import json
import shlex
import time
import zlib
from collections import Counter
from pathlib import Path

from weft.cli.options import add_engine, check_cluster, duration, integer, limits_of, path, started
from weft.cli.progress import progress
from weft.config import Config
from weft.files import output_file, write_bytes, write_text

__all__ = ["DESCRIPTION", "HELP", "Regression", "add", "repeat_command", "run"]

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
    from weft.regress.case import GIVEN, case_of, drawn, matrix

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
    from weft.regress.check import CaseStore, CaseWork
    from weft.sim.cache import folder
    from weft.tasks.store import run_items

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


def repeat_command(case, file: str | None) -> str:
    """The command that repeats a case alone; ``file`` has the Config if it is not drawn."""
    words = ["weft", "regress", "--only", str(case)]
    if file is not None:
        words += ["--config", file]
    if case.tests:
        words += ["--tests", *case.tests]
    return shlex.join(words)


class Regression:
    """The outcomes of cases, as they arrive.

    Parameters
    ----------
    cases : list of Case
    file : str, optional
        Has the Config of the cases if it is not drawn.

    Attributes
    ----------
    status : int
        Exit code: 1 if a case failed, none was finished, or one did not run that no other process
        is known to run.
    """

    def __init__(self, cases, file: str | None = None):
        self._cases, self._file = cases, file
        self._found = {}  # case -> outcome, whether the store had it
        self._left = {}  # case -> the process that claims it
        self._logs = {}

    def add(self, case, outcome, known: bool, log: bytes | None) -> None:
        """Keep the outcome of a case, and its compressed log."""
        self._found[case] = outcome, known
        if log is not None:
            self._logs[case] = log

    def leave(self, case, other) -> None:
        """Keep the process that a case is left to, a `weft.tasks.store.Claimant`."""
        self._left[case] = other.describe(), other.alive

    @property
    def status(self) -> int:
        unknown = [case for case in self._not_run() if not self._left.get(case, ("", False))[1]]
        return int(not self._found or bool(self._failures()) or bool(unknown))

    def save_logs(self, say) -> None:
        """Write the logs of failed cases into Weft's build folder."""
        from weft.sim.cache import folder

        for case, log in self._logs.items():
            path = folder() / "regress" / f"{str(case).replace('/', '-')}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, zlib.decompress(log))
            say(f"{case}: test.log is {path}")

    def write(self, path: Path) -> None:
        """Write all cases as JSON."""
        from weft.regress.case import versions

        counts = Counter(self._state(case) for case in self._cases)
        values = {
            "versions": versions(),
            **{name: counts[name] for name in ("passed", "failed", "not run")},
            "cases": [self._values(case) for case in self._cases],
        }
        write_text(path, json.dumps(values, indent=1) + "\n")

    def print(self) -> None:
        """Print the failures and the table."""
        for case, outcome in self._failures().items():
            print(f"\nFAILED  {case}  {outcome.failure}\n{case.config}\n{outcome.detail}")
            print(f"repeat: {repeat_command(case, self._file)}")
        self._table()
        reasons = Counter(map(self._reason, self._not_run()))
        for reason, count in reasons.items():
            print(f"{count} of {len(self._cases)} cases did not run: {reason}")
        if reasons:
            print("the same command continues")

    def _failures(self):
        return {case: found for case, (found, _) in self._found.items() if not found.done}

    def _not_run(self):
        return [case for case in self._cases if case not in self._found]

    def _reason(self, case):
        """Why a case did not run."""
        return self._left.get(case, ("the command ended before their start",))[0]

    def _state(self, case):
        if case not in self._found:
            return "not run"
        return "passed" if self._found[case][0].done else "failed"

    def _values(self, case):
        values = {
            "case": str(case), **case.to_json(), "result": self._state(case),
            "repeat": repeat_command(case, self._file),
        }
        if case in self._found:
            outcome, known = self._found[case]
            return values | {"outcome": dataclasses.asdict(outcome), "known": known}
        return values | {"reason": self._reason(case)}

    def _table(self):
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        columns = "check", "cases", "passed", "failed", "not run", "known", "tests", "cycles", "s"
        for name in columns:
            table.add_column(name, justify="left" if name == "check" else "right")
        for check in dict.fromkeys(case.check for case in self._cases):
            cases = [case for case in self._cases if case.check == check]
            states = Counter(map(self._state, cases))
            found = [self._found[case] for case in cases if case in self._found]
            table.add_row(
                check, str(len(cases)),
                *(str(states[name]) for name in ("passed", "failed", "not run")),
                str(sum(known for _, known in found)),
                *(f"{sum(getattr(one, name) for one, _ in found):,.0f}"
                  for name in ("tests", "cycles", "seconds")),
            )
        Console().print(table)
