"""The cases of a regression: Configs, their checks, and the seeds of each."""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from weft.config import Config
from weft.regress.case import CHECKS, Case
from weft.regress.configs import random_config

__all__ = ["GIVEN", "CaseError", "case_of", "drawn", "matrix"]

GIVEN = "design"  # name of a Config that is not drawn
_NAME = re.compile(rf"(?:(\d{{1,18}})\.(\d{{1,9}})|{GIVEN})/({'|'.join(CHECKS)})(?:/(\d{{1,9}}))?")


class CaseError(ValueError):
    """A name is not the name of a case."""


def drawn(draw: int, number: int) -> Config:
    """Random Config ``number`` of a draw."""
    return random_config(np.random.default_rng([draw, number]))


def matrix(
    designs: Sequence[tuple[str, Config]], checks: Sequence[str], seeds: int,
    tests: tuple[str, ...] = (),
) -> Iterator[Case]:
    """Yield the cases of named Configs, one Config after another; seeds count from 1."""
    for name, config in designs:
        for check in checks:
            if check == "lint":
                yield Case(config, name, check)
                continue
            own = tests if check in ("icarus", "verilator") else ()
            for seed in range(1, seeds + 1):
                yield Case(config, name, check, seed, own)


def case_of(text: str, config: Config | None, tests: tuple[str, ...] = ()) -> Case:
    """The case of its name.

    Parameters
    ----------
    text : str
        ``DRAW.NUMBER/CHECK/SEED`` or ``design/CHECK/SEED``; a lint has no seed.
    config : Config or None
        Of the name ``design``.
    tests : tuple of str
        Names of cocotb tests, if not all of them run.

    Raises
    ------
    CaseError
        If it is not such a name.
    """
    match = _NAME.fullmatch(text)
    if match is None or (match[3] == "lint") != (match[4] is None):
        raise CaseError(
            f"only must be a case as 1.3/icarus/2, 1.3/lint or {GIVEN}/products/1, with a check of"
            f" {', '.join(CHECKS)}, not {text!r}"
        )
    draw, number, check, seed = match.groups()
    own = tests if check in ("icarus", "verilator") else ()
    if draw is None:
        if config is None:
            raise CaseError(f"the case {text} needs --config FILE, the design that it is of")
        return Case(config, GIVEN, check, int(seed or 0), own)
    found = drawn(int(draw), int(number))
    return Case(found, f"{int(draw)}.{int(number)}", check, int(seed or 0), own)
