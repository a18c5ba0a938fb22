"""The candidates of a search for a network core: near the front of latency and LUTs."""

from collections.abc import Callable, Iterable

from weft.explore.candidates import front, in_order, within
from weft.explore.estimate import DesignEstimate, Estimator
from weft.explore.space import grid, neighbours, with_words
from weft.models.errors import UnfitError
from weft.network_core.config import NetworkCoreConfig

__all__ = ["network_candidates"]

FINALISTS = 48  # Configs of the grid for which the cycle model computes the cycles
NEARBY, ROUNDS = 24, 3  # of the search from the front to its neighbours


def network_candidates(
    estimator: Estimator, base: NetworkCoreConfig, objective: str = "latency", *, rate: float = 0.0,
    known: Iterable[NetworkCoreConfig] = (), advance: Callable[[int], None] = lambda count: None,
) -> list[DesignEstimate]:
    """Cores for networks that fit by their estimates, with exact cycles, the best first.

    All Configs of the grid are ranked with rough cycles. The cycle model computes the ones on the
    front of time and LUTs, on the front of the others, and so on, up to `FINALISTS`. Then it
    computes neighbours of the front, as long as that helps.

    Parameters
    ----------
    estimator : Estimator
        Its workloads are networks.
    base : NetworkCoreConfig
        The first candidate, and the fields that no candidate changes.
    objective : str
        One of `weft.explore.estimate.OBJECTIVES`, which the order follows.
    rate : float
        Rounds of all networks a second that a candidate must reach.
    known : iterable of NetworkCoreConfig
        More candidates.
    advance : callable
        Called with the number of Configs that were looked at since the last call.
    """
    device, workloads = estimator.device, estimator.workloads
    tried: dict[NetworkCoreConfig, None] = {}
    found: dict[NetworkCoreConfig, DesignEstimate] = {}

    def least_memory(config):
        return max(workload.least_memory(config) for workload in workloads)

    def consider(chosen):
        before = len(found)
        for config in chosen:
            if config not in tried:
                tried[config] = None
                estimate = _settled(estimator, config)
                if estimate is not None and within(estimate, device):
                    found[estimate.config] = estimate
                advance(1)
        return len(found) > before

    consider((base, *known))
    consider(_layers(_rough(estimator, grid(device, base, least_memory), advance), FINALISTS))
    for _ in range(ROUNDS):
        best = front({config: estimate.figures for config, estimate in found.items()})
        near = {each for config in best for each in neighbours(config, device)} - tried.keys()
        sized = (with_words(each, least_memory(each)) for each in near)
        rough = _rough(estimator, sorted(filter(None, sized), key=lambda c: c.hash), advance)
        if not consider(_layers(rough, NEARBY)):
            break
    return in_order(found.values(), device, objective, rate)


def _rough(estimator, configs, advance):
    """Rough microseconds and LUTs of the Configs that fit by their estimated area."""
    rough = {}
    for config in configs:
        advance(1)
        if not estimator.area(config).exceeds(estimator.device):
            area, microseconds = estimator.quick(config)
            rough[config] = microseconds, area.used["LUT"]
    return rough


def _layers(rough, count):
    """The Configs of the front of time and LUTs, then of the front without them, and so on."""
    chosen, rest = [], sorted(rough, key=lambda config: (rough[config], config.hash))
    while rest and len(chosen) < count:
        least, front_of, others = float("inf"), [], []
        for config in rest:
            on_front = rough[config][1] < least
            least = min(least, rough[config][1])
            (front_of if on_front else others).append(config)
        chosen, rest = chosen + front_of, others
    return chosen[:count]


def _settled(estimator, config):
    """The estimate with as many words as the networks need, or None if they do not fit."""
    while config is not None and not estimator.area(config).exceeds(estimator.device):
        try:
            return estimator.estimate(config)
        except UnfitError:
            config = with_words(config, config.memory_bytes + 1)
    return None
