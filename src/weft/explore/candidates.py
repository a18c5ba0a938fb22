"""The candidates of a search: the best Designs of the space by their estimates.

Each kind of core has a search of its own (`candidates`). The space of product cores is sampled. The
one of network cores has a grid, all of which is ranked.
"""

import itertools
from collections.abc import Callable, Iterable

import numpy as np

from weft.boards.devices import Device
from weft.config import Config
from weft.design import PerKind
from weft.explore.model import DesignEstimate, Estimator
from weft.explore.space import draws, fields_of, grid, neighbours, with_words
from weft.models.errors import UnfitError
from weft.network_core.config import NetworkCoreConfig

__all__ = [
    "candidates", "estimates_of", "front", "in_order", "network_candidates", "product_candidates",
    "time_front", "within",
]

DRAWN = 3000  # Configs of the first screening
FINALISTS = 60  # of them, for which the cycle model computes the cycles
PARENTS, NEARBY, ROUNDS = 4, 30, 3  # of the search from Config to Config
NETWORK_FINALISTS = 48  # of the grid, for which the cycle model computes the cycles
NETWORK_NEARBY, NETWORK_ROUNDS = 24, 3  # of the search from the front to its neighbours
PEAK = 1, 1024  # MAC/cycle
MARGIN = 0.97  # share of a resource that an estimate may use


def within(estimate: DesignEstimate, device: Device, rate: float = 0.0) -> bool:
    """Whether an estimate fits the device and reaches ``rate`` rounds of the workloads a second."""
    fits = all(
        count <= MARGIN * device.capacity.get(name, 0) if name in ("LUT", "FF")
        else count <= device.capacity.get(name, 0)
        for name, count in estimate.area.used.items()
    )
    return fits and estimate.figures.rate >= rate


def candidates(
    estimator: Estimator, base: Config | NetworkCoreConfig, objective: str, *, rate: float = 0.0,
    known: Iterable[Config | NetworkCoreConfig] = (),
    advance: Callable[[int], None] = lambda count: None,
) -> list[DesignEstimate]:
    """The candidates of a search for a core of the kind of ``base``, the best first.

    `product_candidates` and `network_candidates` have the parameters.
    """
    return _SEARCHES.of(base)(estimator, base, objective, rate=rate, known=known, advance=advance)


def estimates_of(
    estimator: Estimator, configs: Iterable[Config | NetworkCoreConfig],
    advance: Callable[[], None] = lambda: None,
) -> list[DesignEstimate]:
    """The estimate of each Config once, without cores that do not hold the networks.

    ``advance`` is called after each estimate, whose cycles may take a second.
    """
    found = []
    for config in dict.fromkeys(configs):
        try:
            found.append(estimator.estimate(config))
        except UnfitError:
            continue
        finally:
            advance()
    return found


def in_order(
    estimates: Iterable[DesignEstimate], device: Device, objective: str, rate: float = 0.0
) -> list[DesignEstimate]:
    """The estimates that are `within` the device and the rate, the best by ``objective`` first."""
    usable = [each for each in estimates if within(each, device, rate)]
    return sorted(usable, key=lambda each: (
        getattr(each.figures, objective), each.figures.latency, each.figures.area,
    ))


def time_front(
    estimates: Iterable[DesignEstimate], own: Config | NetworkCoreConfig
) -> list[DesignEstimate]:
    """The front of latency and LUTs, the fastest first, with one design for equal figures.

    It is ``own`` if that is one of them, or else the one with the fewest block RAMs. Of designs
    that have equal block RAMs, too, it is the one with the smallest ``hop``.
    """
    best, least = [], float("inf")
    for each in sorted(estimates, key=lambda each: (
        each.figures.latency, each.figures.area, each.config != own, each.area.used["RAM"],
        fields_of(each.config)["hop"], each.config.hash,
    )):
        if each.figures.area < least:
            least = each.figures.area
            best.append(each)
    return best


def front(figures: dict) -> list:
    """The keys whose figures no other dominates, in their order."""
    return [
        key for key, value in figures.items()
        if not any(other.dominates(value) for other in figures.values())
    ]


def product_candidates(
    estimator: Estimator, base: Config, objective: str, *, rate: float = 0.0, seed: int = 1,
    known: Iterable[Config] = (), advance: Callable[[int], None] = lambda count: None,
) -> list[DesignEstimate]:
    """Configs of the space that fit by their estimates, the best by ``objective`` first.

    The space is sampled and screened with rough cycles, the best are computed with the cycle model,
    then their neighbours in the space are, as long as that helps.

    Parameters
    ----------
    base : Config
        What the workload needs, and the first candidate.
    rate : float
        Rounds of all workloads a second that a candidate must reach.
    known : iterable of Config
        More candidates, such as presets of boards.
    advance : callable
        Called with the number of Configs that were looked at since the last call.
    """
    device, rng = estimator.device, np.random.default_rng(seed)
    drawn = itertools.islice(draws(device, base, rng, peak=PEAK), DRAWN)
    configs = dict.fromkeys((base, *known, *drawn))
    found: dict[Config, DesignEstimate] = {}

    def consider(chosen):
        new = [config for config in chosen if config not in found]
        for config in new:
            found[config] = estimator.estimate(config)
            advance(1)
        return new

    consider((base, *known))
    consider(_screened(estimator, configs, objective, rate, advance))
    for _ in range(ROUNDS):
        best = in_order(found.values(), device, objective, rate)[:PARENTS]
        if not consider(_nearby(estimator, best, objective)):
            break
    return in_order(found.values(), device, objective, rate)


def _screened(estimator, configs, objective, rate, advance):
    """The finalists: best by the objective with rough cycles, and others on the rough front."""
    rough = []
    for config in configs:
        area, microseconds = estimator.quick(config)
        advance(1)
        if not area.exceeds(estimator.device) and 1e6 / microseconds >= rate / 1.5:
            rough.append((microseconds, area.used["LUT"], config))
    value = (lambda each: each[1]) if objective == "area" else (lambda each: each[0])
    best = sorted(rough, key=value)[: FINALISTS * 2 // 3]
    thin, least = [], float("inf")
    for each in sorted(rough, key=lambda each: each[:2]):
        if each[1] < least:
            least = each[1]
            thin.append(each)
    chosen = [each[2] for each in best] + [each[2] for each in thin[: FINALISTS // 3]]
    return list(dict.fromkeys(chosen))


def _nearby(estimator, best, objective):
    """Neighbours of the best: those that fit, the most promising with rough cycles."""
    rough = {}
    for config in {near for parent in best for near in neighbours(parent.config, estimator.device)}:
        area, microseconds = estimator.quick(config)
        if not area.exceeds(estimator.device):
            rough[config] = area.used["LUT"] if objective == "area" else microseconds
    return sorted(rough, key=lambda config: (rough[config], config.hash))[:NEARBY]


def network_candidates(
    estimator: Estimator, base: NetworkCoreConfig, objective: str, *, rate: float = 0.0,
    known: Iterable[NetworkCoreConfig] = (), advance: Callable[[int], None] = lambda count: None,
) -> list[DesignEstimate]:
    """Cores for networks that fit by their estimates, with exact cycles, the best first.

    All Configs of the grid are ranked with rough cycles. The cycle model computes the ones on the
    front of time and LUTs, on the front of the others, and so on, up to `NETWORK_FINALISTS`. Then
    it computes neighbours of the front, as long as that helps.

    Parameters
    ----------
    estimator : Estimator
        Its workloads are networks.
    base : NetworkCoreConfig
        The first candidate, and the fields that no candidate changes.
    objective : str
        One of `weft.explore.model.OBJECTIVES`, which the order follows.
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
    rough = _rough_of(estimator, grid(device, base, least_memory), advance)
    consider(_layers(rough, NETWORK_FINALISTS))
    for _ in range(NETWORK_ROUNDS):
        best = front({config: estimate.figures for config, estimate in found.items()})
        near = {each for config in best for each in neighbours(config, device)} - tried.keys()
        sized = (with_words(each, least_memory(each)) for each in near)
        rough = _rough_of(estimator, sorted(filter(None, sized), key=lambda c: c.hash), advance)
        if not consider(_layers(rough, NETWORK_NEARBY)):
            break
    return in_order(found.values(), device, objective, rate)


def _rough_of(estimator, configs, advance):
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


_SEARCHES = PerKind(product=product_candidates, network=network_candidates)
