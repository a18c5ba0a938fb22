"""Types of command-line arguments for argparse: numbers in a range, and paths."""

import argparse
import math
import re

__all__ = ["integer", "number", "path"]

_MAX_LENGTH = 40  # characters of a wrong value in a message


def integer(name: str, low: int, high: int | None = None):
    """A type for `argparse`: an integer of ``low`` or more, and at most ``high`` if given."""
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
    """A type for `argparse`: a number in ``low..high``, not infinite and not NaN."""

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
    """A type for `argparse`: a path. It must not be empty, which would mean the current folder."""

    def read(text):
        if not text:
            raise _wrong(name, "a path", text)
        return text

    return read


def _wrong(name, rule, text):
    shown = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "..."
    return argparse.ArgumentTypeError(f"{name} must be {rule}, not {shown!r}")
