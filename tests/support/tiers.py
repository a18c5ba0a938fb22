"""Marks the slow cases of a test, which run only in `make test-all`."""

import pytest

__all__ = ["tiers"]


def tiers(cases: dict, *quick: str) -> list:
    """Parameters named by the keys of ``cases``; all except ``quick`` are marked slow.

    Parameters
    ----------
    cases : dict
        Name -> parameter.
    quick : str
        Names of the quick cases.
    """
    unknown = set(quick) - set(cases)
    if unknown:
        raise ValueError(f"quick cases must be some of {', '.join(cases)}, not {sorted(unknown)}")
    return [
        pytest.param(case, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, case in cases.items()
    ]
