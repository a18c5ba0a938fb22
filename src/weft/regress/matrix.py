"""The cases of a regression: random Configs, their checks, and the seeds of each."""

import dataclasses
import re
from collections.abc import Iterator, Sequence

import numpy as np

from weft.config import Config, ConfigError
from weft.regress.case import CHECKS, Case

__all__ = ["CaseError", "GIVEN", "case_of", "drawn", "matrix", "random_config"]

GIVEN = "design"  # name of a Config that is not drawn
_NAME = re.compile(rf"(?:(\d{{1,18}})\.(\d{{1,9}})|{GIVEN})/({'|'.join(CHECKS)})(?:/(\d{{1,9}}))?")
MAX_SIZE = 8  # limit of rows, cols, depth, hop and dsp_cols: larger designs take minutes
MAX_WORDS = 512  # limit of a buffer: the export of a memory takes seconds per Mbit

# With this bytes_out any number of lanes is legal until bytes_out itself is drawn.
_UNDRAWN = {"bytes_out": 64}


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


def random_config(rng) -> Config:
    """A legal Config. Each field is drawn from the values that the fields drawn before allow.

    Choices are equally likely. The n-th smallest number has the weight ``1 / n``: small numbers are
    corner cases and simulate fast.

    Parameters
    ----------
    rng : numpy.random.Generator
    """
    drawn = {}
    # dtype comes first: the defaults and the rules of other fields depend on it.
    for field in sorted(dataclasses.fields(Config), key=lambda field: field.name != "dtype"):
        legal = [value for value in _values(field) if _legal({**drawn, field.name: value})]
        number = "range" in field.metadata
        weights = [1 / (n + 1) if number else 1 for n in range(len(legal))]
        index = rng.choice(len(legal), p=[weight / sum(weights) for weight in weights])
        drawn[field.name] = legal[index]
    return Config(**drawn)


def _values(field):
    """The values of a field in a sweep, without regard to other fields."""
    rule = field.metadata
    if "choices" in rule:
        return rule["choices"]
    if "flag" in rule:
        return (False, True)
    low, high = rule["range"]
    if not rule.get("power"):
        # None selects the default of the Config.
        return [*([None] if "open" in rule else []), *range(low, min(high, MAX_SIZE) + 1)]
    limit = MAX_WORDS if field.name.endswith("_words") else high
    powers = [1 << n for n in range(limit.bit_length()) if low <= 1 << n <= limit]
    return [*([0] if rule["zero"] else []), *powers]


def _legal(values):
    try:
        Config(**{**_UNDRAWN, **values})
    except ConfigError:
        return False
    return True
