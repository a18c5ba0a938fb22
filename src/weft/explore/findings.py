"""What an exploration found, for its report: designs, outcomes, estimates, and other boards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.boards.board import Board
from weft.boards.catalog import BOARDS
from weft.config import Config
from weft.explore.estimate import DesignEstimate, Estimator
from weft.explore.guide import Guide
from weft.explore.model import Errors, Record, family_of, leave_one_out
from weft.explore.reasons import reason
from weft.explore.recorded import fitted, of_board, recorded
from weft.explore.workload import MatrixWorkload, NetworkWorkload

__all__ = ["BoardCost", "Findings", "findings"]


@dataclass(frozen=True)
class BoardCost:
    """The workloads on the default design of a board, at the board's clock.

    Attributes
    ----------
    board : Board
    core, wire : float
        Microseconds of the core; of the bytes on the serial port.
    """

    board: Board
    core: float
    wire: float


@dataclass(frozen=True)
class Findings:
    """The contents of a report.

    Attributes
    ----------
    board : Board
    workloads : tuple of str
        Names.
    guide : Guide
        With all outcomes on the board's FPGA.
    estimates : dict of DesignEstimate
        By Config, from a model without the outcomes of this exploration.
    errors : Errors
        Of the recorded points of the FPGA family.
    boards : tuple of BoardCost
    """

    board: Board
    workloads: tuple[str, ...]
    guide: Guide
    estimates: dict[Config, DesignEstimate]
    errors: Errors
    boards: tuple[BoardCost, ...]

    @property
    def designs(self) -> list[Config]:
        """All designs that were run: the ranking, then the others."""
        tried = [config for config, _ in self.guide.outcomes]
        return list(dict.fromkeys((*self.guide.ranking(), *tried)))

    def verdict(self, config: Config) -> str:
        """``winner``, or why the design lost."""
        ranking = self.guide.ranking()
        if not ranking:
            return "no design reaches the rate"
        return "winner" if config == ranking[0] else reason(self.guide, config, ranking[0])


def findings(
    board: Board, workloads: Sequence[MatrixWorkload | NetworkWorkload], records: list[Record],
    objective: str, rate: float, advance: Callable[[], None] = lambda: None,
) -> Findings:
    """Collect the findings from the outcomes of a store.

    ``advance`` is called after each design, whose cycles may take a second.
    """
    device = board.device
    estimator = Estimator(device, workloads, fitted(board.config), clock=board.clock)
    ours = of_board(records, board)
    estimates = {}
    for point, _ in ours:
        if point.config not in estimates:
            estimates[point.config] = estimator.estimate(point.config)
            advance()
    guide = Guide(device, list(estimates.values()), objective, rate=rate)
    for point, outcome in ours:
        guide.tell(point, outcome)
    done = [record for record in recorded(family_of(board.config)) if record[1].done]
    return Findings(
        board, tuple(workload.name for workload in workloads), guide, estimates,
        leave_one_out(done), tuple(_boards(workloads)),
    )


def _boards(workloads):
    """The cost on each kind of board: those of equal FPGA, design, clock and baud rate once."""
    seen = set()
    for board in BOARDS.values():
        kind = board.config, board.clock, board.baud
        if kind in seen or not isinstance(board.config, Config):
            continue
        seen.add(kind)
        costs = [workload.cost(board.config) for workload in workloads]
        wire = sum(max(cost.sent, cost.received) for cost in costs)
        yield BoardCost(
            board, sum(cost.cycles for cost in costs) / board.clock, 1e7 * wire / board.baud
        )
