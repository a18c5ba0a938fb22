"""Which cases of a test are quick: run by `make test`, the others by `make test-all` alone."""

import pytest

__all__ = ["tiers"]


def tiers(cases: dict, *quick: str) -> list:
    """Parameters named after the keys of ``cases``; all but ``quick`` are marked slow.

    Parameters
    ----------
    cases : dict
        Name -> parameter.
    quick : str
        Names of the quick ones.
    """
    unknown = set(quick) - set(cases)
    if unknown:
        raise ValueError(f"quick cases must be some of {', '.join(cases)}, not {sorted(unknown)}")
    return [
        pytest.param(case, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, case in cases.items()
    ]
