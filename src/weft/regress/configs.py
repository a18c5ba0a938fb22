"""Random Configs for sweeps over all kinds of designs."""

import dataclasses

from weft.config import Config, ConfigError

__all__ = ["random_config"]

MAX_SIZE = 8  # limit of rows, cols, depth, hop and dsp_cols: larger designs take minutes
MAX_WORDS = 512  # limit of a buffer: the export of a memory takes seconds per Mbit

# With this bytes_out any number of lanes is legal until bytes_out itself is drawn.
_UNDRAWN = {"bytes_out": 64}


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
