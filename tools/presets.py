"""Compare the cores of all boards with the designs that a search finds.

    WEFT_NETWORKS=folder python -m tools.presets

It runs no tool: cycles are exact, LUTs and clocks are estimates.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools import results
from tools.network_core_networks import RUNS
from tools.network_tables import networks_folder
from weft.boards.board import Board
from weft.boards.catalog import BOARDS
from weft.explore.candidates import candidates, time_front
from weft.explore.findings import fitted
from weft.explore.model import DesignEstimate, Estimator
from weft.explore.space import fields_of
from weft.explore.workload import workload_of

__all__ = ["Use", "cells", "uses"]

PRODUCTS = "64x64x64", "256x256x256"  # for which a product core is compared
_LEFT = "boards", "workload", "core", "fastest", "fastest in as many LUTs", "on the front"
HEADS = (
    "boards", "workload", "core", "LUT", "cycles", "us", "on the front", "fastest", "LUT", "us",
    "less time", "fastest in as many LUTs", "LUT", "us", "less time",
)


ABOUT = """\
The core of each board, and the designs that a search finds: for products of two sizes, or for the
networks that the core is meant for. Boards with equal cores and as large FPGAs share a line. The
table has the fastest design that fits, and the fastest one with no more LUTs than the board's core.
A star is behind a design that is beyond the range of the recorded points. Cycles are exact, LUTs
and clocks are estimates. So a design of this table is a candidate for place and route, and not yet
a better core."""


@dataclass(frozen=True)
class Use:
    """A core that boards share, and the workloads that it is compared for.

    Attributes
    ----------
    boards : list of str
        Boards with equal cores and as large FPGAs, as arguments of ``weft build``.
    board : Board
        One of them, built for the purpose.
    workloads : tuple of str
        As of `weft.explore.workload.workload_of`.
    """

    boards: list[str]
    board: Board
    workloads: tuple[str, ...]


def uses(folder: Path) -> Iterable[Use]:
    """All cores of all boards, with each of their workloads; ``folder`` has the networks.

    A core that no network of MLPerf Tiny fits is left out.
    """
    found: dict[tuple, Use] = {}
    for name, board, workloads in _cores(folder):
        size = tuple(board.device.capacity.items())
        use = found.setdefault((board.config, size, workloads), Use([], board, workloads))
        use.boards.append(name)
    return found.values()


def _cores(folder) -> Iterator[tuple[str, Board, tuple[str, ...]]]:
    for name, board in BOARDS.items():
        for product in PRODUCTS:
            yield name, board, (product,)
        for purpose in board.networks:
            built = board.built_for(purpose)
            files = [run.file for run in RUNS if run.design.config == built.config]
            if files:
                yield f"{name} --for {purpose}", built, tuple(
                    str(folder / f"{file}.tflite") for file in files
                )


def cells(own: DesignEstimate, found: Sequence[DesignEstimate]) -> list[str]:
    """The cells of a board's core, and of the best designs that a search found."""
    small = [each for each in found if each.figures.area <= own.figures.area]
    line = [
        f"{own.figures.area:,}", f"{sum(cost.cycles for cost in own.costs):,}",
        f"{own.figures.latency:,.1f}", "yes" if own in time_front(found, own.config) else "no",
    ]
    for designs in (found, small):
        best = min([own, *designs], key=lambda each: (each.figures.latency, each.figures.area))
        if best.figures.latency == own.figures.latency:
            line += ["the board's", "", "", ""]
            continue
        line += [
            _changes(own, best), f"{best.figures.area:,}", f"{best.figures.latency:,.1f}",
            f"{1 - best.figures.latency / own.figures.latency:.1%}",
        ]
    return line


def _changes(own, other):
    """The array of a design, and its fields that differ; a star beyond the recorded points."""
    mine, fields = fields_of(own.config), fields_of(other.config)
    array = " x ".join(str(fields.pop(name)) for name in ("rows", "cols", "depth"))
    changed = [f"`{name}` {value}" for name, value in fields.items() if value != mine[name]]
    return ", ".join([array, *changed]) + r" \*" * bool(other.area.outside)


def _line(use):
    board = use.board
    workloads = [workload_of(word) for word in use.workloads]
    estimator = Estimator(board.device, workloads, fitted(board.config), clock=board.clock)
    found = candidates(estimator, board.config, "latency")
    return [
        ", ".join(f"`{name}`" for name in use.boards),
        ", ".join(workload.name for workload in workloads), board.config.name,
        *cells(estimator.estimate(board.config), found),
    ]


def main() -> int:
    """Compare all cores; the exit code."""
    folder = networks_folder()
    if folder is None:
        return 2
    lines = [HEADS, ["---" if head in _LEFT else "---:" for head in HEADS]]
    for use in uses(folder):
        lines.append(_line(use))
        print(", ".join(use.boards), "for", lines[-1][1], flush=True)
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print(results.save(
        "presets", [results.table(table)], title="The cores of the boards beside a search",
        command="make presets", about=ABOUT,
        of=["weft.explore.model", "weft.explore.candidates", "weft.boards.catalog"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
