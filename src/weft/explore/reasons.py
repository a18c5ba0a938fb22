"""Why the designs of an exploration lost."""

from weft.config import Config
from weft.explore.guide import Guide

__all__ = ["reason"]


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
