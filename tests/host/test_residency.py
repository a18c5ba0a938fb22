"""Tests of the residency cache, page by page."""

import pytest

from weft.commands import Load, Region
from weft.config import Config
from weft.geometry import memories
from weft.host.plan import ResidencyCache

PANEL = 64  # bytes of a panel of parameters: 1 word of 4 entries


@pytest.fixture
def integers():
    return ResidencyCache(memories(Config(cols=4, bytes_in=16)))


@pytest.fixture
def floats():
    """Words of C have 8 bytes, and one stream word of 16 bytes each."""
    return ResidencyCache(memories(Config(dtype="bf16", cols=2, c_words=32, bytes_in=16)))


def parameters(page, panels=1, pitch=1):
    return Load(Region.PARAMETERS, page, pitch, panels, 1)


def c(page, words, panels=1):
    """A load of consecutive panels of C."""
    return Load(Region.C, page, words, panels, words)


def data(*numbers, size=16):
    return b"".join(bytes([n]) * size for n in numbers)


def test_needs_a_load_until_it_was_sent(integers):
    load, one, two = parameters(3), data(1, size=PANEL), data(2, size=PANEL)
    assert integers.needs(load, one)
    assert not integers.needs(load, one)
    assert integers.needs(load, two)
    assert integers.needs(load, one)
    assert integers.needs(parameters(4), one)
    integers.clear()
    assert integers.needs(load, one)


def test_tracks_each_panel(integers):
    three = data(1, 2, 3, size=PANEL)
    assert integers.needs(parameters(0, panels=3, pitch=2), three)
    assert not integers.needs(parameters(2), data(2, size=PANEL))
    assert not integers.needs(parameters(2, panels=2, pitch=2), data(2, 3, size=PANEL))
    assert integers.needs(parameters(2, panels=2, pitch=1), data(2, 3, size=PANEL))


def test_tracks_operands_separately(integers):
    assert integers.needs(parameters(0), data(1, size=PANEL))
    table = Load(Region.TABLE, 0, 1, 1, 256)
    assert integers.needs(table, data(1, size=256))
    assert not integers.needs(table, data(1, size=256))
    assert not integers.needs(parameters(0), data(1, size=PANEL))


def test_tracks_each_word_of_c(floats):
    assert floats.needs(c(0, words=1, panels=4), data(1, 2, 3, 4))  # a row for all
    assert not floats.needs(c(1, words=1, panels=2), data(2, 3))
    assert not floats.needs(c(0, words=2, panels=2), data(1, 2, 3, 4))  # the same words
    assert floats.needs(c(0, words=3), data(1, 9, 3))
    assert floats.needs(c(0, words=1, panels=4), data(1, 2, 3, 4))  # one of them was overwritten
    assert not floats.needs(c(3, words=1), data(4))
