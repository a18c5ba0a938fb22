"""A search for either kind of core: its candidates, and the estimates of designs that are known."""

from collections.abc import Callable, Iterable

from weft.config import Config
from weft.explore.candidates import candidates
from weft.explore.estimate import DesignEstimate, Estimator
from weft.explore.network_candidates import network_candidates
from weft.models.errors import UnfitError
from weft.network_core.config import NetworkCoreConfig

__all__ = ["candidates_of", "estimates_of"]


def candidates_of(
    estimator: Estimator, base: Config | NetworkCoreConfig, objective: str, *, rate: float = 0.0,
    known: Iterable[Config | NetworkCoreConfig] = (),
    advance: Callable[[int], None] = lambda count: None,
) -> list[DesignEstimate]:
    """The candidates of a search for a core of the kind of ``base``, the best first.

    `weft.explore.candidates.candidates` has the parameters.
    """
    find = network_candidates if isinstance(base, NetworkCoreConfig) else candidates
    return find(estimator, base, objective, rate=rate, known=known, advance=advance)


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
