"""The recorded points, the guide of the search, and what it found: designs, outcomes, boards."""

import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.boards.board import Board
from weft.boards.catalog import BOARDS
from weft.boards.designs import NETWORKS_25F, NETWORKS_HX8K, NETWORKS_UP5K
from weft.boards.devices import DEVICES, Device
from weft.boards.presets import PRESETS
from weft.config import Config
from weft.explore.candidates import estimates_of, front
from weft.explore.model import (
    LEAST,
    OBJECTIVES,
    DesignEstimate,
    Errors,
    Estimator,
    Figures,
    FittedModel,
    Record,
    TooFewPoints,
    family_of,
    figures_of,
    leave_one_out,
)
from weft.explore.points import PACKED, Point, PointOutcome
from weft.explore.space import draws, fields_of, network_draws
from weft.explore.workload import MatrixWorkload, NetworkWorkload, wire_bytes
from weft.files import write_text
from weft.models.errors import UnfitError
from weft.network_core.config import NetworkCoreConfig

__all__ = [
    "BoardCost", "FILE", "Findings", "Guide", "bench_points", "board_points", "families",
    "findings", "fitted", "of_board", "read", "recorded", "varied", "write",
]

SEEDED = 3  # of the best designs that get more seeds
PRIOR = 0.25  # weight of the estimate itself: an outcome with two other fields counts as much
_TOO_LARGE = "overfull", "unroutable", "time", "memory"  # failures of a design that is too large


class Guide:
    """Chooses points, and keeps their outcomes.

    Parameters
    ----------
    device : Device
    estimates : sequence of DesignEstimate
        The candidates.
    objective : str
        One of `weft.explore.model.OBJECTIVES`.
    rate : float
        Rounds of all workloads a second that a design must reach.
    designs : int
        Candidates that are begun here, before the best get more seeds.
    seeds : int
        Of a design, at most.
    """

    def __init__(
        self, device: Device, estimates: Sequence[DesignEstimate], objective: str, *,
        rate: float = 0.0, designs: int = 12, seeds: int = 8,
    ):
        self.device = device
        self.objective = objective
        self.rate = rate
        self._estimates = {estimate.config: estimate for estimate in estimates}
        self._fields = {config: tuple(fields_of(config).values()) for config in self._estimates}
        self._designs, self._seeds = designs, seeds
        self._begun: set[Config | NetworkCoreConfig] = set()
        self._chosen: set[tuple[Config | NetworkCoreConfig, int]] = set()
        self.outcomes: dict[tuple[Config | NetworkCoreConfig, int], PointOutcome] = {}
        self._ratios: dict[Config | NetworkCoreConfig, tuple[float, float]] = {}
        self._least_failed = math.inf  # estimated LUTs of the smallest design that is too large

    def next(self) -> Point | None:
        """The next point to run; None if all of them were given."""
        started = {config for config, _ in self._chosen}
        waiting = [config for config in self._estimates if config not in started]
        if waiting and len(self._begun) < self._designs:
            config = min(waiting, key=self._expected)
            self._begun.add(config)
            return self._choose(config, 1)
        for seed in range(2, self._seeds + 1):
            for config in self.ranking()[:SEEDED]:
                if (config, seed) not in self._chosen:
                    return self._choose(config, seed)
        return None

    def tell(self, point: Point, outcome: PointOutcome) -> None:
        """Take the outcome of a point, chosen here or known from before.

        A point of a design without an estimate is ignored: it has no figures.
        """
        estimate = self._estimates.get(point.config)
        if estimate is None:
            return
        self._chosen.add((point.config, point.seed))
        self.outcomes[point.config, point.seed] = outcome
        luts = estimate.area.used["LUT"]
        if outcome.done:
            self._ratios[point.config] = (
                math.log(outcome.used["LUT"] / luts), math.log(outcome.fmax / estimate.clock)
            )
        elif outcome.failure in _TOO_LARGE:
            self._least_failed = min(self._least_failed, luts)

    def ranking(self) -> list[Config | NetworkCoreConfig]:
        """The designs that were placed and routed and reach the rate, the best first."""
        figures = self.measured()
        return sorted(
            (config for config in figures if figures[config].rate >= self.rate),
            key=lambda config: [getattr(figures[config], name) for name in self._order()],
        )

    def measured(self) -> dict[Config | NetworkCoreConfig, Figures]:
        """The figures of each design that was placed and routed, with its best seed."""
        best: dict[Config | NetworkCoreConfig, PointOutcome] = {}
        for (config, _), outcome in self.outcomes.items():
            known = best.get(config)
            if outcome.done and (known is None or outcome.fmax > known.fmax):
                best[config] = outcome
        return {
            config: figures_of(self._estimates[config].costs, outcome.used, outcome.fmax)
            for config, outcome in best.items()
        }

    def front(self) -> list[Config | NetworkCoreConfig]:
        """The measured designs that no other one dominates."""
        return front(self.measured())

    def reason(
        self, config: Config | NetworkCoreConfig, winner: Config | NetworkCoreConfig
    ) -> str:
        """Why a design lost against the winner, in one line."""
        in_order = sorted(self.outcomes.items(), key=_seed)
        outcomes = [outcome for (each, _), outcome in in_order if each == config]
        done = [outcome for outcome in outcomes if outcome.done]
        if not done:
            return f"{outcomes[0].failure}: {outcomes[0].detail}"
        fastest = max(done, key=lambda outcome: outcome.fmax)
        figures, name = self.measured(), self.objective
        mine, best = figures[config], figures[winner]
        path = f"at {fastest.fmax:.1f} MHz; critical path: {fastest.path}"
        if mine.rate < self.rate:
            return f"too slow: {mine.rate:,.1f} of {self.rate:,.1f} a second, {path}"
        value, more = getattr(mine, name), getattr(mine, name) / getattr(best, name) - 1
        if name in ("latency", "throughput"):
            return f"slower: {value:,.2f} us, {more:.1%} more, {path}"
        unit = "LUTs" if name == "area" else "nJ"
        return f"more {name}: {value:,.0f} {unit}, {more:.1%} more"

    def _choose(self, config, seed):
        self._chosen.add((config, seed))
        return Point(self.device, config, seed)

    def _expected(self, config):
        """The corrected estimates, the objective first.

        Designs below the rate come last, and ones that are probably too large.
        """
        estimate, (area, clock) = self._estimates[config], self._correction(config)
        luts = estimate.area.used["LUT"]
        figures = figures_of(
            estimate.costs, estimate.area.used | {"LUT": luts * area}, estimate.clock * clock
        )
        unlikely = figures.rate < self.rate or luts >= self._least_failed
        return unlikely, *(getattr(figures, name) for name in self._order())

    def _correction(self, config):
        """Factors of the LUTs and of fmax, from the outcomes of similar Configs."""
        weights = [
            0.5 ** sum(map(operator.ne, self._fields[config], self._fields[other]))
            for other in self._ratios
        ]
        total = sum(weights) + PRIOR
        return [
            math.exp(sum(map(operator.mul, weights, column)) / total)
            for column in zip(*self._ratios.values(), strict=True)
        ] or [1.0, 1.0]

    def _order(self):
        return self.objective, *(name for name in OBJECTIVES if name != self.objective)


def _seed(item):
    (_, seed), _ = item
    return seed


# The recorded points: what place and route gave for the designs that the estimates come from.
#
# ``points.json`` beside this file has one point in each line. ``weft explore record`` writes it.

FILE = Path(__file__).with_name("points.json")
# By FPGA family, the MAC/cycle of random points.
PEAK = {"ecp5": (4, 95), "ice40up": (1, 16), "ice40hx": (1, 16)}
# By FPGA family, the network core whose other fields random ones have.
NETWORKS = {
    "ecp5": NETWORKS_25F.config, "ice40up": NETWORKS_UP5K.config, "ice40hx": NETWORKS_HX8K.config,
}


def recorded(family: str | None = None) -> list[Record]:
    """The recorded points of a family (`weft.explore.model.family_of`), or all."""
    found = read(FILE)
    return [
        (point, outcome) for point, outcome in found
        if family in (None, family_of(point.config))
    ]


def fitted(config: Config | NetworkCoreConfig, more: Sequence[Record] = ()) -> FittedModel:
    """The model of a Config's family, from the recorded points and ``more`` of other runs.

    Raises TooFewPoints if there are too few.
    """
    family = family_of(config)
    if config.target not in PEAK:
        raise TooFewPoints(
            f"estimates need recorded points, and {config.target} has none: weft build tells what"
            " a design reaches"
        )
    known = {point.key for point, _ in more}
    done = [record for record in recorded(family) if record[0].key not in known]
    done += [record for record in more if family_of(record[0].config) == family]
    done = [record for record in done if record[1].done]
    if len(done) < LEAST:
        raise TooFewPoints(
            f"estimates for {config.name} need {LEAST} recorded points of {family}, not"
            f" {len(done)}; 'weft explore record' makes them"
        )
    return FittedModel(done)


def of_board(records: Iterable[Record], board: Board) -> list[Record]:
    """The records of a board's FPGA that were placed, of the board's kind of core."""
    return [
        (point, outcome) for point, outcome in records
        if point.device.options == board.device.options and point.seed != PACKED
        and point.config.kind == board.config.kind
    ]


def read(path) -> list[Record]:
    """The points of a file; none if it does not exist.

    Raises OSError if the file has other contents.
    """
    path = Path(path)
    if not path.exists():
        return []
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return [
            (Point.from_json(each["point"]), PointOutcome(**each["outcome"])) for each in values
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise OSError(f"{path} must hold points of weft explore record: {error!r}") from error


def write(path, records: list[Record]) -> None:
    """Write the points to a file, one in each line, sorted by family and size."""
    order = sorted(records, key=lambda record: (
        record[0].config.target, record[0].config.peak, record[0].config.name, record[0].key,
    ))
    lines = [json.dumps({"point": point.to_json(), "outcome": _fields(outcome)})
             for point, outcome in order]
    write_text(Path(path), "[\n" + ",\n".join(lines) + "\n]\n")


def bench_points(path) -> list[Record]:
    """The last records of ``weft bench`` (``results/performance.json``); they have no blocks."""
    latest = {record["name"]: record for record in json.loads(Path(path).read_text("utf-8"))}
    found = []
    for name, record in latest.items():
        if not record["array_only"] and name in PRESETS:
            config = Config.from_dict(record["config"])
            found += [
                (Point(DEVICES[record["device"]], config, int(seed)),
                 PointOutcome(used=record["used"], fmax=fmax, path=record["path"]))
                for seed, fmax in record["fmax"].items()
            ]
    return found


def board_points(*, packed: bool = False) -> Iterator[Point]:
    """The product cores of the boards whose family is recorded; equal dies share a point."""
    from weft.boards.catalog import BOARDS

    dies = {tuple(device.capacity.items()): device for device in DEVICES.values()}
    for board in (each for each in BOARDS.values() if each.config.target in PEAK):
        device = dies[tuple(board.device.capacity.items())]
        yield Point(device, board.config, PACKED if packed else 1)


def families(device: Device) -> list[str]:
    """The families of the points of a device; the one of network cores comes last."""
    found = [family_of(Config(target=device.target))]
    if device.target in NETWORKS:
        found.append(family_of(NETWORKS[device.target]))
    return found


def varied(
    device: Device, seed: int, *, networks: bool = False, packed: bool = False
) -> Iterator[Point]:
    """Yield random points of a device without end: Configs of the space, other modes too.

    With ``networks`` they are network cores. With ``packed`` they are only packed.
    """
    rng, run = np.random.default_rng(seed), PACKED if packed else 1
    if networks:
        for config in network_draws(device, NETWORKS[device.target], rng):
            yield Point(device, config, run)
    while True:
        base: dict[str, Any] = {"target": device.target, "activation": "none"}
        if device.target == "ecp5":
            kinds = [{}, {"activation": "table"}, {"requantize": "single"}, {"requantize": "none"}]
            base |= kinds[rng.choice(4, p=[0.6, 0.2, 0.1, 0.1])]
        drawn = draws(device, Config(**base), rng, peak=PEAK[device.target])
        yield Point(device, next(drawn), run)


def _fields(outcome):
    """The fields of an outcome that are not empty."""
    return {name: value for name, value in vars(outcome).items() if value}


@dataclass(frozen=True)
class BoardCost:
    """The workloads on a board's own core, at its clock.

    Attributes
    ----------
    name : str
        Of the board, and of the purpose of a network core.
    clock : float
        MHz.
    core : float
        Microseconds of the core.
    wire : float or None
        Microseconds of the bytes on the serial port; None without one.
    """

    name: str
    clock: float
    core: float
    wire: float | None


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
            1e7 * wire / board.baud if board.baud else None,
        )


def _named_boards():
    """Yield all boards with their names, and with each of their network cores."""
    for board in BOARDS.values():
        yield board.name, board
        for purpose in board.networks:
            yield f"{board.name} --for {purpose}", board.built_for(purpose)
