"""The model of area and clock: fitted to recorded points, by block of the design.

Area: each part takes ``sum(coefficient * feature)`` cells, with coefficients of 0 or more
(`weft.explore.features.FeatureSet`). Some resources are counted. Clock: the logarithm of the
period is a sum of features; without enough points that were placed, it is not known. Each kind of
core has coefficients of its own on each FPGA family. The error of the model is the one of points
that it was not fitted to (`leave_one_out`).
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.boards.devices import Device
from weft.config import Config
from weft.design import PerKind
from weft.explore.features import PRODUCTS, FeatureSet
from weft.explore.network_features import NETWORKS, SINGLE_PORT
from weft.explore.points import Point, PointOutcome
from weft.explore.workload import WorkloadCost
from weft.network_core.config import NetworkCoreConfig, has_single_port

__all__ = [
    "AreaEstimate", "DesignEstimate", "Errors", "Estimator", "Figures", "FittedModel", "OBJECTIVES",
    "TooFewPoints", "family_of", "feature_set", "figures_of", "leave_one_out", "non_negative",
    "ridge",
]

LEAST = 8  # points of a family that a model is fitted to
STRENGTH = 1.0  # of the ridge regression of the period

Record = tuple[Point, PointOutcome]


class TooFewPoints(ValueError):
    """There are too few recorded points, or a Config of another kind than they are."""


@dataclass(frozen=True)
class AreaEstimate:
    """The estimated area and clock of a Config on a device.

    Attributes
    ----------
    used : dict of int
        Cells of each of `weft.boards.devices.RESOURCES` that the device has.
    fmax : float or None
        MHz; None if the model does not know the clock.
    outside : tuple of str
        Features beyond the range of the recorded points; empty inside.
    """

    used: dict[str, int]
    fmax: float | None
    outside: tuple[str, ...]

    def exceeds(self, device: Device) -> dict[str, tuple[int, int]]:
        """Resources that the device lacks: needed and available."""
        return {
            name: (count, device.capacity.get(name, 0)) for name, count in self.used.items()
            if count > device.capacity.get(name, 0)
        }


@dataclass(frozen=True)
class Errors:
    """Relative errors of points that the model was not fitted to; of DSP and RAM in blocks.

    A point with the cells of its blocks counts for the area, a point that was placed for the clock.

    Attributes
    ----------
    points : tuple of Record
    estimates : tuple of AreaEstimate
    """

    points: tuple[Record, ...]
    estimates: tuple[AreaEstimate, ...]

    def pairs(self, name: str) -> list[tuple[float, float]]:
        """Measured and estimated value of each point, for ``fmax`` or a resource.

        For ``fmax`` the result is empty if the model does not know the clock.
        """
        both = zip(self.points, self.estimates, strict=True)
        if name == "fmax":
            return [
                (outcome.fmax, estimate.fmax) for (_, outcome), estimate in both
                if estimate.fmax and outcome.fmax
            ]
        return [
            (outcome.used.get(name, 0), estimate.used.get(name, 0))
            for (_, outcome), estimate in both if outcome.blocks
        ]

    def of(self, name: str) -> np.ndarray:
        """``estimate / measured - 1`` of each point, for ``fmax``, ``LUT`` or ``FF``."""
        return np.array([estimate / measured - 1 for measured, estimate in self.pairs(name)])

    def blocks_of(self, name: str) -> np.ndarray:
        """``estimate - measured`` of each point, in DSP blocks or block RAMs."""
        return np.array([estimate - measured for measured, estimate in self.pairs(name)])

    def typical(self, name: str) -> float:
        """The root mean square of the relative errors."""
        return float(np.sqrt(np.mean(self.of(name) ** 2)))


def feature_set(config: Config | NetworkCoreConfig) -> FeatureSet:
    """The features of a Config's kind of core."""
    return _FEATURE_SETS.of(config)(config)


_FEATURE_SETS = PerKind(
    product=lambda config: PRODUCTS,
    network=lambda config: SINGLE_PORT if has_single_port(config.array) else NETWORKS,
)


def family_of(config: Config | NetworkCoreConfig) -> str:
    """The name of the points that share a model: kind of core, and FPGA family.

    The points of both iCE40 families share one.
    """
    target = "ice40" if config.target.startswith("ice40") else config.target
    return target + feature_set(config).suffix


class FittedModel:
    """The coefficients of one family.

    Parameters
    ----------
    records : sequence of (Point, PointOutcome)
        Points that are done. All have the same family (`family_of`).

    Attributes
    ----------
    family : str
    coefficients : dict
        By part of the design and resource, an array in the order of the part's features.
    clock : dict of float
        Coefficients of the logarithm of the period in ns, by feature; empty if there are too few
        points with a clock.

    Raises
    ------
    TooFewPoints
        For too few points.
    """

    def __init__(self, records: Sequence[Record]):
        self.family = family_of(records[0][0].config) if records else ""
        with_blocks = [record for record in records if record[1].blocks]
        if len(with_blocks) < LEAST:
            raise TooFewPoints(
                f"a model must have {LEAST} recorded points of its FPGA family or more, not"
                f" {len(with_blocks)}; 'weft explore record' makes them"
            )
        self.set = kind = feature_set(records[0][0].config)
        self._names = kind.names
        found = [kind.features(point.config) for point, _ in with_blocks]
        matrix = np.array([[each[name] for name in self._names] for each in found], float)
        self._low, self._high = matrix.min(axis=0), matrix.max(axis=0)
        weights = np.array([1 / outcome.used["LUT"] for _, outcome in with_blocks])
        self.coefficients = {}
        self._cells = np.zeros((len(kind.fitted), len(self._names)))
        for row, resource in enumerate(kind.fitted):
            self._fit_area(row, resource, [outcome for _, outcome in with_blocks], matrix, weights)
        self._fit_clock([record for record in records if record[1].fmax])

    def _fit_area(self, row, resource, outcomes, matrix, weights):
        """Fit the cells of each part, and of all parts together.

        Synthesis moves cells from a part to its neighbour, which their sum does not see.
        """
        places = {name: place for place, name in enumerate(self._names)}
        columns = [[places[name] for name in names] for names in self.set.blocks.values()]
        matrices = [matrix[:, each] * weights[:, None] for each in columns]
        cells = np.array([
            [sum(outcome.blocks.get(block, {}).get(resource, 0) for block in members)
             for outcome in outcomes]
            for members in (self.set.members[part] for part in self.set.blocks)
        ]) * weights
        parts = np.zeros((cells.size, sum(map(len, columns))))
        start = 0
        for number, part in enumerate(matrices):
            end = start + part.shape[1]
            parts[number * len(outcomes) : (number + 1) * len(outcomes), start:end] = part
            start = end
        fitted = non_negative(
            np.vstack([parts, np.hstack(matrices)]),
            np.concatenate([cells.ravel(), cells.sum(axis=0)]),
        )
        for part, each in zip(self.set.blocks, columns, strict=True):
            self.coefficients[part, resource], fitted = fitted[: len(each)], fitted[len(each) :]
            self._cells[row, each] += self.coefficients[part, resource]

    def _fit_clock(self, records):
        if len(records) < LEAST:
            self.clock = {}
            return
        found = [
            self.set.clock_features(point.config, _share(outcome.used["LUT"], point.device))
            for point, outcome in records
        ]
        matrix = np.array([list(each.values()) for each in found], float)
        periods = np.log([1000 / outcome.fmax for _, outcome in records])
        free = [list(found[0]).index(name) for name in self.set.clock_kinds]
        fitted = ridge(matrix, periods, STRENGTH, free)
        self.clock = dict(zip(found[0], fitted.tolist(), strict=True))
        self._clock = np.array(list(self.clock.values()))

    def estimate(self, config: Config | NetworkCoreConfig, device: Device) -> AreaEstimate:
        """The area and the clock of a Config on a device of the family."""
        found = self.set.features(config)
        values = np.array([found[name] for name in self._names], float)
        counts = (self._cells @ values).round().astype(int).tolist()
        used = dict(zip(self.set.fitted, counts, strict=True))
        used |= {name: count(config) for name, count in self.set.counted.items()}
        used = {name: count for name, count in used.items() if name in device.capacity}
        beyond = (values < self._low) | (values > self._high)
        outside = tuple(self._names[n] for n in np.flatnonzero(beyond))
        return AreaEstimate(used, self._fmax(config, _share(used["LUT"], device)), outside)

    def _fmax(self, config, share):
        """The clock in MHz, or None."""
        if not self.clock:
            return None
        features = self.set.clock_features(config, share)
        return 1000 / math.exp(self._clock @ np.array(list(features.values()), float))


def leave_one_out(records: Sequence[Record]) -> Errors:
    """The errors of the model: each point is estimated by a model fitted to all other Configs."""
    models = {
        config: FittedModel([other for other in records if other[0].config != config])
        for config in {point.config for point, _ in records}
    }
    estimates = tuple(
        models[point.config].estimate(point.config, point.device) for point, _ in records
    )
    return Errors(tuple(records), estimates)


def _share(luts, device):
    return luts / device.capacity["LUT"]


def non_negative(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``x >= 0`` with the least ``|matrix @ x - values|``.

    The columns are scaled to length 1, so the units of a feature do not matter. Without this,
    rounding errors decide between similar columns.

    Source: C. Lawson and R. Hanson, "Solving Least Squares Problems", 1974, chapter 23.
    """
    lengths = np.linalg.norm(matrix, axis=0)
    lengths[lengths == 0] = 1
    matrix, count = matrix / lengths, matrix.shape[1]
    if len(matrix) > count:  # as many rows as columns have the same solution
        rotation, matrix = np.linalg.qr(matrix)
        values = rotation.T @ values
    x, passive = np.zeros(count), np.zeros(count, bool)
    tolerance = 1e-10 * max(1.0, float(np.abs(matrix.T @ values).max(initial=0)))
    for _ in range(3 * count):
        gradient = matrix.T @ (values - matrix @ x)
        gradient[passive] = -np.inf
        if passive.all() or gradient.max() <= tolerance:
            break
        passive[gradient.argmax()] = True
        while True:
            solution = np.zeros(count)
            solution[passive] = np.linalg.lstsq(matrix[:, passive], values, rcond=None)[0]
            wrong = passive & (solution <= 0)
            if not wrong.any():
                x = solution
                break
            step = np.min(x[wrong] / (x[wrong] - solution[wrong]))
            x = x + step * (solution - x)
            passive &= x > tolerance * 1e-6
            x[~passive] = 0
    return x / lengths


def ridge(
    matrix: np.ndarray, values: np.ndarray, strength: float, free: Sequence[int] = ()
) -> np.ndarray:
    """``x`` with the least ``|matrix @ x - values|^2 + strength * |s * x|^2``.

    ``s`` is the spread of each column, so that the units of a feature do not matter. A constant
    column, and the columns ``free``, are not held back.
    """
    spread = matrix.std(axis=0) * np.sqrt(len(matrix))
    spread[list(free)] = 0
    held = np.vstack([matrix, np.diag(np.sqrt(strength) * spread)])
    return np.linalg.lstsq(held, np.concatenate([values, np.zeros(len(spread))]), rcond=None)[0]


@dataclass(frozen=True)
class Figures:
    """What a search compares: all workloads together, one after another. Smaller is better.

    Attributes
    ----------
    latency : float
        Microseconds of the core until the last result of each workload.
    throughput : float
        Microseconds of the core from one round of all workloads to the next, in steady state.
    area : float
        LUTs; on an iCE40, logic cells.
    energy : float
        nJ, as of `WorkloadCost.energy`.
    """

    latency: float
    throughput: float
    area: float
    energy: float

    @property
    def rate(self) -> float:
        """Rounds of all workloads a second."""
        return 1e6 / self.throughput

    def dominates(self, other: "Figures") -> bool:
        """Whether no figure is worse than the other's, and one is better."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in OBJECTIVES]
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


OBJECTIVES = "latency", "throughput", "area", "energy"


def figures_of(costs: Sequence[WorkloadCost], used: dict[str, int], fmax: float) -> Figures:
    """The figures of workloads on a design of known area and clock."""
    return Figures(
        sum(cost.cycles for cost in costs) / fmax, sum(cost.interval for cost in costs) / fmax,
        used["LUT"], sum(cost.energy for cost in costs),
    )


@dataclass(frozen=True)
class DesignEstimate:
    """The estimate of a Config.

    Attributes
    ----------
    config : Config or NetworkCoreConfig
    area : AreaEstimate
    costs : tuple of WorkloadCost
        Of each workload, in their order.
    clock : float
        MHz: the estimated fmax, or the board's clock if fmax is not known.
    """

    config: Config | NetworkCoreConfig
    area: AreaEstimate
    costs: tuple[WorkloadCost, ...]
    clock: float

    @functools.cached_property
    def figures(self) -> Figures:
        return figures_of(self.costs, self.area.used, self.clock)


class Estimator:
    """Estimates of Configs on a device for workloads.

    Parameters
    ----------
    device : Device
    workloads : sequence of MatrixWorkload or NetworkWorkload
    model : FittedModel
        Of the device's FPGA family, and of the kind of core.
    clock : float
        MHz of the board, for designs whose fmax the model does not know.
    """

    def __init__(
        self, device: Device, workloads: Sequence, model: FittedModel, *, clock: float
    ):
        self.device = device
        self.workloads = tuple(workloads)
        self.model = model
        self.clock = clock

    def area(self, config: Config | NetworkCoreConfig) -> AreaEstimate:
        """Area and clock."""
        return self.model.estimate(config, self.device)

    def estimate(self, config: Config | NetworkCoreConfig) -> DesignEstimate:
        """Area, clock, and the cost of all workloads. Cycles of a Config are computed once.

        Raises weft.models.errors.UnfitError if a network does not fit a network core.
        """
        costs = tuple(workload.cost(config) for workload in self.workloads)
        area = self.area(config)
        return DesignEstimate(config, area, costs, area.fmax or self.clock)

    def quick(self, config: Config | NetworkCoreConfig) -> tuple[AreaEstimate, float]:
        """Area and clock, and microseconds of all workloads in rough cycles; no cycle model."""
        area = self.area(config)
        cycles = sum(workload.quick_cycles(config) for workload in self.workloads)
        return area, cycles / (area.fmax or self.clock)
