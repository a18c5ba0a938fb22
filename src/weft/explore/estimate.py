"""Estimates: what workloads cost on a Config that was never built."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from weft.boards.devices import Device
from weft.config import Config
from weft.explore.model import AreaEstimate, FittedModel
from weft.explore.workload import WorkloadCost
from weft.network_core.config import NetworkCoreConfig

__all__ = ["OBJECTIVES", "DesignEstimate", "Estimator", "Figures", "figures_of"]


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
