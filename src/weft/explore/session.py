"""An exploration: points are placed and routed one after another, and the store keeps each."""

from collections.abc import Callable

from weft.config import Config
from weft.explore.engine import Engine
from weft.explore.guide import Guide
from weft.explore.points import Point, PointOutcome
from weft.explore.store import PointStore

__all__ = ["reason", "run_points"]

CLAIM = 4  # time limits of a step: synthesis, place and route, and a retry of both


def run_points(
    next_point: Callable[[], Point | None], engine: Engine, store: PointStore, *, seconds: float,
    on_outcome: Callable[[Point, PointOutcome, bool], None],
) -> None:
    """Run points until there are none left, as many at once as the engine has workers.

    A point that the store has is not run again. One that another exploration runs is left to it.

    Parameters
    ----------
    next_point : callable
        The next point to run; None if there is none now. It is asked again after each outcome.
    seconds : float
        Time limit of a step, after which another exploration may take over a lost point.
    on_outcome : callable
        Called with each point, its outcome, and whether the store had it.
    """
    def submit():
        while engine.pending < engine.workers:
            point = next_point()
            if point is None:
                return
            outcome = store.get(point)
            if outcome is not None:
                on_outcome(point, outcome, True)
            elif store.claim(point, CLAIM * seconds):
                engine.submit(point)

    submit()
    for point, result in engine.results():
        store.record(point, result.outcome, result.files.get("layout.json"))
        on_outcome(point, result.outcome, False)
        submit()


def reason(guide: Guide, config: Config, winner: Config) -> str:
    """Why a design of ``guide`` lost against the winner, in one line."""
    outcomes = [o for (each, _), o in sorted(guide.outcomes.items(), key=_seed) if each == config]
    done = [outcome for outcome in outcomes if outcome.done]
    if not done:
        return f"{outcomes[0].failure}: {outcomes[0].detail}"
    fastest = max(done, key=lambda outcome: outcome.fmax)
    figures, name = guide.measured(), guide.objective
    mine, best = figures[config], figures[winner]
    path = f"at {fastest.fmax:.1f} MHz; critical path: {fastest.path}"
    if mine.rate < guide.rate:
        return f"too slow: {mine.rate:,.1f} of {guide.rate:,.1f} a second, {path}"
    value, more = getattr(mine, name), getattr(mine, name) / getattr(best, name) - 1
    if name in ("latency", "throughput"):
        return f"slower: {value:,.2f} us, {more:.1%} more, {path}"
    unit = "LUTs" if name == "area" else "nJ"
    return f"more {name}: {value:,.0f} {unit}, {more:.1%} more"


def _seed(item):
    (_, seed), _ = item
    return seed
