"""Argument types: the value, or an error with the rule and the value."""

import argparse

import pytest
from rejects import rejects

from weft.cli.options import integer, number, path


@pytest.mark.parametrize("read, text, value", [
    (integer("seed", 0), "0", 0),
    (integer("seed", 0), "007", 7),
    (integer("port", 0, 9), "9", 9),
    (number("interval", 0, 2), "0", 0.0),
    (number("interval", 0, 2), "1.5e0", 1.5),
    (path("output"), "a b", "a b"),
])
def test_reads(read, text, value):
    assert read(text) == value


@pytest.mark.parametrize("read, text, said", [
    (integer("seed", 0), "-1", "seed must be an integer of 0 or more, not '-1'"),
    (integer("seed", 0), "1_0", "seed must be an integer of 0 or more, not '1_0'"),
    (integer("seed", 0), "", "seed must be an integer of 0 or more, not ''"),
    (integer("seed", 0), 5000 * "9", f"seed must be an integer of 0 or more, not '{40 * '9'}...'"),
    (integer("port", 0, 9), "10", "port must be an integer in 0..9, not '10'"),
    (number("interval", 0, 2), "nan", "interval must be a number in 0..2, not 'nan'"),
    (number("interval", 0, 2), "inf", "interval must be a number in 0..2, not 'inf'"),
    (number("interval", 0, 2), "-0.1", "interval must be a number in 0..2, not '-0.1'"),
    (number("interval", 0, 2), "x", "interval must be a number in 0..2, not 'x'"),
    (path("output"), "", "output must be a path, not ''"),
])
def test_rejects(read, text, said):
    with rejects(argparse.ArgumentTypeError, said):
        read(text)
