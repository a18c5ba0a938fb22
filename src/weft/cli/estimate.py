"""``weft estimate``: area, clock, time and energy of a design, without tools."""

from collections.abc import Callable
from typing import NamedTuple

from weft.cli.options import add_config, add_network_core_fields, changed_config, path
from weft.cli.progress import slow_task
from weft.design import PerKind

__all__ = ["DESCRIPTION", "HELP", "add", "run"]

HELP = "estimate area, clock and time of a design for a workload"
DESCRIPTION = """\
Estimate a design on a board, without synthesis: cycles of a network (.tflite, .onnx) or of a matrix
product (MxKxN) from the exact cycle model; area and clock from a model that is fitted to recorded
results of place and route. The error beside a number is the typical one of recorded designs that
the model was not fitted to ('weft explore model'). Fields that are not given are the board's.

  weft estimate --board ulx3s-85f --workload kws.tflite --rows 8 --cols 8
  weft estimate --board icebreaker --workload 64x64x64 --workload 1x640x128
  weft estimate --board ulx3s-25f --for networks --workload kws.tflite --hop 4 --words 4096

With --for it is a network core (docs/network-core.md), and the memory that each network takes is
printed, too. Exit code 1 if the design does not fit the board by its estimate.
"""


def add(parser):
    """Add the arguments of ``weft estimate``."""
    parser.add_argument(
        "--board", metavar="NAME", required=True, help="a board, or a board file (.py)"
    )
    parser.add_argument(
        "--workload", metavar="WORKLOAD", nargs="+", action="extend", required=True,
        type=path("workload"), help="networks (.tflite, .onnx) or products (MxKxN)",
    )
    add_config(parser)
    add_network_core_fields(parser)


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.cli.explore_result import named_board
    from weft.explore.findings import fitted, recorded
    from weft.explore.model import Estimator, family_of, leave_one_out
    from weft.explore.workload import workload_of

    board = named_board(args.board, args.purpose)
    config = changed_config(args, board.config)
    with slow_task(f"estimating a design for {board.name}"):
        workloads = [workload_of(word) for word in args.workload]
        estimator = Estimator(board.device, workloads, fitted(config), clock=board.clock)
        estimate = estimator.estimate(config)
    done = [record for record in recorded(family_of(config)) if record[1].done]
    _show(board, workloads, estimate, leave_one_out(done))
    lacking = estimate.area.exceeds(board.device)
    for name, (needed, available) in lacking.items():
        print(f"MISSED  {board.name} has {available:,} {name}; the estimate is {needed:,}")
    return 1 if lacking else 0


def _show(board, workloads, estimate, errors):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console, area = Console(), estimate.area
    console.print(f"[bold]{estimate.config.name}[/] on {board.name} ({board.device.name}):"
                  f" {estimate.config.peak} MAC/cycle", highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("", "estimate", "of", "error"):
        table.add_column(name, justify="left" if not name else "right")
    for name, count in area.used.items():
        if name in ("LUT", "FF"):
            error = f"{errors.typical(name):.1%}"
        else:
            error = f"{abs(errors.blocks_of(name)).max()} blocks at most"
        table.add_row(name, f"{count:,}", f"{board.device.capacity.get(name, 0):,}", error)
    if area.fmax is None:
        table.add_row("clock", f"{estimate.clock:.1f} MHz", "", "not known: the board's goal")
    else:
        table.add_row("fmax", f"{area.fmax:.1f} MHz", "", f"{errors.typical('fmax'):.1%}")
    console.print(table)
    if area.outside:
        console.print(
            f"Outside the recorded range, so the errors may be larger: {', '.join(area.outside)}",
            highlight=False,
        )
    console.print(_costs(board, workloads, estimate))
    if area.fmax is None:
        text = (
            "Cycles are exact. Too few recorded designs were placed to estimate a clock:"
            " microseconds are at the clock that the board's own core has."
        )
    else:
        text = "Cycles are exact. Microseconds have the error of fmax."
        text += _COLUMNS.of(estimate.config).note
    console.print(text, highlight=False)


def _costs(board, workloads, estimate):
    """The table of what each workload costs."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from weft.explore.workload import wire_bytes

    column = _COLUMNS.of(estimate.config)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("workload", "cycles", "in steady state", "us", "bytes sent", "received",
                 "us on the wire", column.name):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for workload, cost in zip(workloads, estimate.costs, strict=True):
        table.add_row(
            workload.name, f"{cost.cycles:,}", f"{cost.interval:,.0f}",
            f"{cost.cycles / estimate.clock:,.2f}", f"{cost.sent:,}", f"{cost.received:,}",
            f"{1e7 * wire_bytes(estimate.config, cost) / board.baud:,.0f}" if board.baud else "-",
            column.text(estimate.config, cost),
        )
    return table


class _Column(NamedTuple):
    """The last column of the table, and what the text below says of it."""

    name: str
    text: Callable
    note: str


_COLUMNS = PerKind(
    product=_Column(
        "nJ", lambda config, cost: f"{cost.energy:,.1f}",
        " The energy compares designs; it predicts no board.",
    ),
    network=_Column(
        "memory", lambda config, cost: f"{cost.memory:,} of {config.memory_bytes:,}", "",
    ),
)
