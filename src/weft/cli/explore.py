"""``weft explore``: searches for the best accelerator for workloads on a board."""

import time
from pathlib import Path

from weft.cli.explore_result import FAMILIES, STORE, Left, engine_of, named_board, store_of
from weft.cli.options import add_engine, check_cluster, duration, integer, number, path
from weft.cli.progress import progress
from weft.files import output_folder

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "search for the best accelerator for a network and a board"
DESCRIPTION = """\
Search for the accelerator that is best for workloads on a board: a network (.tflite, .onnx) or a
matrix product (MxKxN). Thousands of Configs are estimated; the most promising are synthesized,
placed and routed, until the budget ends; the best get more seeds. A store keeps each outcome, so
that the next exploration continues where this one stopped. docs/explore.md describes all of it.

  weft explore --board ulx3s-25f --workload kws.tflite --objective latency --budget 2h
  weft explore --board icebreaker --workload 64x64x64 --objective area --rate 100
  weft explore --board ulx3s-85f --workload kws.tflite vww.tflite --jobs 4
  weft explore --board ulx3s-25f --for networks --workload kws.tflite
  weft explore --board ulx3s-25f --for networks --workload kws.tflite --budget 0s
  weft explore report                 one offline page about the last exploration
  weft explore model                  the errors of the estimates, and their coefficients
  weft explore record --more 10       measure more points for the estimates
  weft explore record --family ice40-networks --device iCE40UP5K --more 10

The estimates come first: the designs that no other one beats in time and in LUTs, and which of them
beat the board's own. With a budget of 0s the command ends there, and needs no tools. With --for the
designs are network cores.

Exit code 1 if no design fits the board and reaches the rate, or a process has claimed a run and is
not known to be at work.
"""
ACTIONS = "search", "report", "model", "record"
OBJECTIVES = "latency", "throughput", "area", "energy"
BUDGET = 3600.0  # seconds


def add(parser):
    """Add the arguments of ``weft explore``."""
    parser.add_argument(
        "action", nargs="?", choices=ACTIONS, default="search", metavar="ACTION",
        help=f"one of {', '.join(ACTIONS)}; default search",
    )
    parser.add_argument("--board", metavar="NAME", help="a board, or a board file (.py)")
    parser.add_argument(
        "--workload", metavar="WORKLOAD", nargs="+", type=path("workload"),
        help="networks (.tflite, .onnx) or products (MxKxN), computed one after another",
    )
    parser.add_argument(
        "--for", dest="purpose", metavar="PURPOSE",
        help="explore network cores, beside the board's network core or batch1",
    )
    parser.add_argument(
        "--objective", choices=OBJECTIVES, default="latency",
        help="latency: time to the result; throughput: in steady state; area: LUTs;"
             " energy: an estimate that compares designs. Default latency",
    )
    parser.add_argument(
        "--rate", metavar="NUM", type=number("rate", 0, 1e12), default=0.0,
        help="rounds of all workloads a second that a design must reach on the core",
    )
    parser.add_argument(
        "--budget", metavar="TIME", type=duration,
        help="time in which runs start: 90s, 30m, 2h, 1d; default 1h; 0s: estimates only",
    )
    parser.add_argument(
        "--designs", metavar="INT", type=integer("designs", 1, 9999), default=12,
        help="further designs to place and route, before the best get more seeds; default 12",
    )
    parser.add_argument(
        "--seeds", metavar="INT", type=integer("seeds", 1, 999), default=8,
        help="seeds of each of the best designs; default 8",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=path("output"), default="out/explore",
        help="folder of the winner's TOML and of the report; default out/explore",
    )
    add_engine(parser, STORE)
    group = parser.add_argument_group("record")
    group.add_argument(
        "--more", metavar="INT", type=integer("more", 0, 9999), default=0,
        help="random points to measure, besides the recorded ones",
    )
    group.add_argument(
        "--boards", action="store_true",
        help="measure the product cores of all boards, too",
    )
    group.add_argument(
        "--family", choices=FAMILIES,
        help="measure only the points of one kind of core on one FPGA family; default all. With"
             " --more, the kind of the random points; default product cores",
    )
    group.add_argument(
        "--device", metavar="NAME", default="LFE5U-25F",
        help="FPGA of the random points; default LFE5U-25F",
    )
    group.add_argument(
        "--packed", action="store_true",
        help="only pack the points of --more and --boards: place and route takes long, and the"
             " clock is not needed",
    )
    group.add_argument(
        "--seed", metavar="INT", type=integer("seed", 0), default=1, help="seed of their choice"
    )
    group.add_argument(
        "--bench", metavar="FILE", type=path("bench"),
        help="also take the records of weft bench: results/performance.json",
    )
    group.add_argument(
        "--file", metavar="FILE", type=path("file"),
        help="the file of the recorded points; default the one of the package",
    )


def run(args) -> int:
    """Run the command; return its exit code."""
    check_cluster(args)
    if args.action == "record":
        from weft.cli.explore_result import record

        return record(args)
    if args.action == "model":
        from weft.cli.explore_result import show_model

        return show_model()
    if args.action == "report":
        from weft.cli.explore_result import write_report

        return write_report(args)
    return _search(args)


def _search(args):
    from weft.boards.board import BoardError
    from weft.cli.explore_result import show_front, show_result
    from weft.explore.candidates import candidates, estimates_of
    from weft.explore.findings import Guide, fitted, of_board
    from weft.explore.model import Estimator
    from weft.explore.workload import workload_of

    for name in ("board", "workload"):
        if getattr(args, name) is None:
            raise BoardError(f"--{name} must be given; see weft explore --help")
    board = named_board(args.board, args.purpose)
    if args.purpose and args.objective == "energy":
        raise BoardError(
            "--objective must be latency, throughput or area for network cores, not energy"
        )
    workloads = [workload_of(word) for word in args.workload]
    folder = output_folder(args.output)
    with store_of(args) as store:
        known = of_board(store.all(), board)
        estimator = Estimator(
            board.device, workloads, fitted(board.config, known), clock=board.clock
        )
        configs = [point.config for point, _ in known]
        with progress() as show, show.task("estimating designs") as advance:
            found = candidates(
                estimator, board.config, args.objective, rate=args.rate, known=configs,
                advance=advance,
            )
            # Known designs that do not fit by their estimates have outcomes, too.
            estimates = [*found, *estimates_of(estimator, configs)]
        show_front(board, args.purpose, workloads, found, args.rate, len(known))
        guide = Guide(
            board.device, estimates, args.objective, rate=args.rate, designs=args.designs,
            seeds=args.seeds,
        )
        for point, outcome in known:
            guide.tell(point, outcome)
        store.begin({
            "board": args.board, "purpose": args.purpose, "workload": args.workload,
            "objective": args.objective, "rate": args.rate,
        })
        budget, lost = BUDGET if args.budget is None else args.budget, 0
        if budget and found:
            lost = _place(guide, store, args, budget)
    if not guide.outcomes and not (budget and found):
        return 0 if found else 1
    status = show_result(guide, board, args.purpose, args.workload, Path(folder))
    return status or int(lost > 0)


def _place(guide, store, args, budget):
    """Run the points of a guide until the budget ends; the number of those that nobody may run."""
    from weft.tasks.store import run_items

    end = time.monotonic() + budget

    def next_point():
        return guide.next() if time.monotonic() < end else None

    with progress() as show:

        def arrived(point, outcome, known):
            guide.tell(point, outcome)
            show.say(f"{point}: {outcome}{' (known)' if known else ''}")

        left = Left(show.say)
        with engine_of(args, show) as engine, show.task("placing and routing"):
            run_items(
                next_point, engine, store, seconds=60 * args.minutes, on_outcome=arrived,
                on_left=left,
            )
    return left.lost
