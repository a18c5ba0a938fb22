"""Values of other types in a `Config`: integers are accepted, all others rejected in one line."""

import dataclasses
import enum

import numpy as np
import pytest
from rejects import refusal

from weft.config import Config

FIELDS = {f.name: f.metadata for f in dataclasses.fields(Config)}
NUMBERS = [name for name, rule in FIELDS.items() if "range" in rule]
BF16 = {"dtype": "bf16"}


def choices(name):
    return ", ".join(FIELDS[name]["choices"])


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.array])
def test_init_converts_numpy_integers(kind):
    values = {"rows": 4, "c_words": 32, "lanes": 2, "dsp_cols": 3, "target": "ecp5", **BF16}
    plain = Config(**values)
    config = Config(**{
        name: kind(value) if isinstance(value, int) else value for name, value in values.items()
    })
    assert (config, config.hash, repr(config)) == (plain, plain.hash, repr(plain))
    assert {type(getattr(config, name)) for name in ("rows", "c_words", "dsp_cols")} == {int}


def test_init_converts_an_int_enum():
    class Size(enum.IntEnum):
        FOUR = 4

    assert repr(Config(rows=Size.FOUR)) == repr(Config(rows=4))


@pytest.mark.parametrize("name", NUMBERS)
def test_rejects_an_array_as_an_integer(name):
    for value in (np.array([4, 4]), np.array(4.0), np.float64(4), np.True_):
        assert refusal(Config, **{name: value}) == f"{name} must be an integer, not {value!r}"


def test_reports_arrays_in_one_line_each_with_other_problems():
    square = np.zeros((2, 2), int)
    assert refusal(
        Config,
        rows=square, target=square, multiplier=square, dtype=square, requantize=square,
        flush_subnormals=square, cols=0,
    ) == "\n".join([
        "rows must be an integer, not array([[0, 0], [0, 0]])",
        "cols must be in 1..64, not 0",
        f"target must be one of {choices('target')}, not array([[0, 0], [0, 0]])",
        f"multiplier must be one of {choices('multiplier')}, not array([[0, 0], [0, 0]])",
        f"dtype must be one of {choices('dtype')}, not array([[0, 0], [0, 0]])",
        "flush_subnormals must be True or False, not array([[0, 0], [0, 0]])",
        f"requantize must be one of {choices('requantize')}, not array([[0, 0], [0, 0]])",
    ])


def test_rejects_a_long_value_in_a_short_line():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    text = "rows must be an integer, not "
    assert refusal(Config, rows="x" * 1000) == f"{text}'{'x' * 99}..."
    assert refusal(Config, rows=nested) == f"{text}a huge list"
    assert refusal(Config, rows=10**5000) == "rows must be in 1..64, not a huge int"
