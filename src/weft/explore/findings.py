"""What an exploration found, for its report: designs, outcomes, estimates, and other boards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.boards.board import Board
from weft.boards.catalog import BOARDS
from weft.config import Config
from weft.explore.candidates import estimates_of
from weft.explore.estimate import DesignEstimate, Estimator
from weft.explore.guide import Guide
from weft.explore.model import Errors, Record, family_of, leave_one_out
from weft.explore.recorded import fitted, of_board, recorded
from weft.explore.workload import MatrixWorkload, NetworkWorkload, wire_bytes
from weft.models.errors import UnfitError
from weft.network_core.config import NetworkCoreConfig

__all__ = ["BoardCost", "Findings", "findings"]


@dataclass(frozen=True)
class BoardCost:
    """The workloads on a board's own core, at its clock.

    Attributes
    ----------
    name : str
        Of the board, and of the purpose of a network core.
    clock : float
        MHz.
    core, wire : float
        Microseconds of the core; of the bytes on the serial port.
    """

    name: str
    clock: float
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
    estimates: dict[Config | NetworkCoreConfig, DesignEstimate]
    errors: Errors
    boards: tuple[BoardCost, ...]

    @property
    def has_energy(self) -> bool:
        """Whether the energy of the designs is known; it is not of network cores."""
        return any(each.energy for each in self.guide.measured().values())

    @property
    def designs(self) -> list[Config | NetworkCoreConfig]:
        """All designs that were run: the ranking, then the others."""
        tried = [config for config, _ in self.guide.outcomes]
        return list(dict.fromkeys((*self.guide.ranking(), *tried)))

    def verdict(self, config: Config | NetworkCoreConfig) -> str:
        """``winner``, or why the design lost."""
        ranking = self.guide.ranking()
        if not ranking:
            return "no design reaches the rate"
        return "winner" if config == ranking[0] else self.guide.reason(config, ranking[0])


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
    estimates = estimates_of(estimator, [point.config for point, _ in ours], advance)
    guide = Guide(device, estimates, objective, rate=rate)
    for point, outcome in ours:
        guide.tell(point, outcome)
    done = [record for record in recorded(family_of(board.config)) if record[1].done]
    return Findings(
        board, tuple(workload.name for workload in workloads), guide,
        {estimate.config: estimate for estimate in estimates}, leave_one_out(done),
        tuple(_boards(workloads, board.config.kind)),
    )


def _boards(workloads, kind):
    """The cost on the boards' own cores of a kind, once for equal core, clock and baud rate."""
    seen = set()
    for name, board in _named_boards():
        key = board.config, board.clock, board.baud
        if key in seen or board.config.kind != kind:
            continue
        seen.add(key)
        try:
            costs = [workload.cost(board.config) for workload in workloads]
        except UnfitError:
            continue
        wire = sum(wire_bytes(board.config, cost) for cost in costs)
        yield BoardCost(
            name, board.clock, sum(cost.cycles for cost in costs) / board.clock,
            1e7 * wire / board.baud,
        )


def _named_boards():
    """Yield all boards with their names, and with each of their network cores."""
    for board in BOARDS.values():
        yield board.name, board
        for purpose in board.networks:
            yield f"{board.name} --for {purpose}", board.built_for(purpose)
