"""Estimates: what workloads cost on a Config that was never built."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from weft.boards.devices import Device
from weft.commands import JobFlag, epilogue_flags
from weft.config import Config
from weft.cycles.output import ResultKind
from weft.explore.model import AreaEstimate, FittedModel
from weft.explore.workload import WorkloadCost
from weft.timing import Latencies

__all__ = ["OBJECTIVES", "DesignEstimate", "Estimator", "Figures", "figures_of", "quick_cycles"]


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
    config : Config
    area : AreaEstimate
    costs : tuple of WorkloadCost
        Of each workload, in their order.
    """

    config: Config
    area: AreaEstimate
    costs: tuple[WorkloadCost, ...]

    @functools.cached_property
    def figures(self) -> Figures:
        return figures_of(self.costs, self.area.used, self.area.fmax)


class Estimator:
    """Estimates of Configs on a device for workloads.

    Parameters
    ----------
    device : Device
    workloads : sequence of MatrixWorkload or NetworkWorkload
    model : FittedModel
        Of the device's FPGA family.
    """

    def __init__(self, device: Device, workloads: Sequence, model: FittedModel):
        self.device = device
        self.workloads = tuple(workloads)
        self.model = model

    def area(self, config: Config) -> AreaEstimate:
        """Area and clock."""
        return self.model.estimate(config, self.device)

    def estimate(self, config: Config) -> DesignEstimate:
        """Area, clock, and the cost of all workloads. Cycles of a Config are computed once."""
        costs = tuple(workload.cost(config) for workload in self.workloads)
        return DesignEstimate(config, self.area(config), costs)

    def quick(self, config: Config) -> tuple[AreaEstimate, float]:
        """Area and clock, and microseconds of all workloads from `quick_cycles`; no cycle model."""
        area = self.area(config)
        cycles = sum(
            quick_cycles(config, *product)
            for workload in self.workloads for product in workload.products(config)
        )
        return area, cycles / area.fmax


def quick_cycles(config: Config, m: int, k: int, n: int, count: int = 1) -> float:
    """About the cycles of equal products: the longest of computing, draining, sending and loading.

    ``tiles * max(2, ceil(k / depth), rows, rows * chunks)``, as in ``docs/architecture.md``, but
    not less than each operand once on the command stream. It ranks Configs before the cycle model
    computes the best of them.
    """
    c = config
    tiles = -(-m // c.rows) * -(-n // c.cols)
    latencies = Latencies.of(c)
    flags = next(iter(epilogue_flags(c)), JobFlag(0))
    kind = ResultKind.of(latencies, flags)
    chunk = max(kind.words, c.scale_cycles if kind.epilogue else 1)
    compute, send = -(-k // c.depth), c.rows * latencies.row_chunks * chunk
    steps = max(2, compute + c.rows, send) if c.drain == "folded" else max(
        2, compute, c.rows, send
    )
    size = c.data_type.a.bytes
    load = (m * k + k * n) * size / c.bytes_in
    return count * max(tiles * steps * c.cell.slots, load)
