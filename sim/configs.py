"""Random Configs, for the sweeps that look for designs that do not work."""

import dataclasses

from weft.config import Config, ConfigError

__all__ = ["random_config"]

MOST_SIZE = 8  # rows, cols, depth, hop and dsp_cols, at most: larger designs take minutes
MOST_WORDS = 512  # of a buffer, at most: exporting a memory takes seconds a Mbit

# With bytes_out so wide, any number of lanes is legal until bytes_out itself is drawn.
_UNDRAWN = {"bytes_out": 64}


def random_config(rng) -> Config:
    """A legal Config with every field drawn, one after another, from what the earlier ones leave.

    Choices are equally likely. Of numbers the smaller ones are likelier, the n-th with a weight of
    ``1 / n``: they are the corner cases, and cheap.

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
    """The values that a sweep gives to a field, whatever the others are."""
    rule = field.metadata
    if "choices" in rule:
        return rule["choices"]
    if "flag" in rule:
        return (False, True)
    low, high = rule["range"]
    if not rule.get("power"):
        # None lets the Config choose.
        return [*([None] if "open" in rule else []), *range(low, min(high, MOST_SIZE) + 1)]
    most = MOST_WORDS if field.name.endswith("_words") else high
    powers = [1 << n for n in range(most.bit_length()) if low <= 1 << n <= most]
    return [*([0] if rule["zero"] else []), *powers]


def _legal(values):
    try:
        Config(**{**_UNDRAWN, **values})
    except ConfigError:
        return False
    return True
