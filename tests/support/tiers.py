"""Marks the slow cases of a test, and the long ones; docs/testing.md has the three tiers."""

from collections.abc import Collection

import pytest

__all__ = ["quick", "seeds", "tiers"]


def tiers(cases: dict, *quick: str, long: Collection[str] = ()) -> list:
    """Parameters named by the keys of ``cases``, each with the mark of its tier.

    Parameters
    ----------
    cases : dict
        Name -> parameter.
    quick : str
        Names of the quick cases, without a mark.
    long : collection of str
        Names of the cases that are marked long. The others are marked slow.
    """
    unknown = {*quick, *long} - set(cases)
    if unknown:
        raise ValueError(f"cases must be some of {', '.join(cases)}, not {sorted(unknown)}")
    marks = dict.fromkeys(cases, pytest.mark.slow) | dict.fromkeys(long, pytest.mark.long)
    return [
        pytest.param(case, id=name, marks=() if name in quick else marks[name])
        for name, case in cases.items()
    ]


def quick(count: int, cases: list) -> list:
    """``cases``, each a value or a tuple of values: all but the first ``count`` ones are slow."""
    return [
        case if number < count else pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow
        )
        for number, case in enumerate(cases)
    ]


def seeds(quick: int, slow: int, count: int) -> list:
    """The numbers below ``count``: from ``quick`` on they are slow, and from ``slow`` on long."""
    cases = {str(seed): seed for seed in range(count)}
    return tiers(cases, *[*cases][:quick], long=[*cases][slow:])
