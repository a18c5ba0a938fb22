"""Values of flags: what argparse calls to read one, or to say what it must be."""

import argparse
import math
import re

__all__ = ["integer", "number", "path"]

_SHOWN = 40  # characters of a wrong value, at most


def integer(name: str, low: int, high: int | None = None):
    """A type for `argparse`: an integer from ``low`` on, up to ``high`` where that is said."""
    rule = f"an integer of {low} or more" if high is None else f"an integer in {low}..{high}"

    def read(text):
        try:
            value = int(text) if re.fullmatch(r"-?[0-9]+", text) else None
        except ValueError:  # thousands of digits
            value = None
        if value is None or value < low or high is not None and value > high:
            raise _wrong(name, rule, text)
        return value

    return read


def number(name: str, low: float, high: float):
    """A type for `argparse`: a number in ``low..high``, and neither infinite nor NaN."""

    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise _wrong(name, f"a number in {low:g}..{high:g}", text)
        return value

    return read


def path(name: str):
    """A type for `argparse`: a path, as text. An empty one would stand for the folder one is in."""

    def read(text):
        if not text:
            raise _wrong(name, "a path", text)
        return text

    return read


def _wrong(name, rule, text):
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return argparse.ArgumentTypeError(f"{name} must be {rule}, not {shown!r}")
