"""The guide: which point to place and route next, from the estimates and the outcomes so far.

First it runs the candidates, the best estimate first. Each outcome corrects the estimates of
similar Configs: their area and clock by its ratio of measured to estimated, with half the weight
for each field that differs. Designs as large as one that could not be placed come last. Then the
best designs get more seeds, until the budget ends.
"""

import math
import operator
from collections.abc import Sequence

from weft.boards.devices import Device
from weft.config import Config
from weft.explore.candidates import front
from weft.explore.estimate import OBJECTIVES, DesignEstimate, Figures, figures_of
from weft.explore.points import Point, PointOutcome
from weft.explore.space import fields_of
from weft.network_core.config import NetworkCoreConfig

__all__ = ["Guide"]

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
        One of `weft.explore.estimate.OBJECTIVES`.
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
