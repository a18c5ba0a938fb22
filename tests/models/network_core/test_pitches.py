"""Pitches of maps: the panels have no conflicts, and are as few as possible."""

import itertools

import numpy as np
import pytest

from weft.models.ir import Window
from weft.models.network_core.map_pitches import (
    MapPitches,
    MapReading,
    choose_pitches,
    panels_of,
)
from weft.models.network_core.pools import NO_PADDING


def window(output, stride=(1, 1)):
    return Window((3, 3), stride, (1, 1), NO_PADDING, (20, 20), output)


def conflicts(found, output, pixel, row, banks):
    """Whether two pixels of a panel are in the same bank, by enumeration."""
    pixels = [(y, x) for y in range(output[0]) for x in range(output[1])]
    lines = [pixels] if found.cross else [
        pixels[at : at + output[1]] for at in range(0, len(pixels), output[1])
    ]
    count = 0
    for line in lines:
        for at in range(0, len(line), found.rows):
            panel = [(y * row + x * pixel) % banks for y, x in line[at : at + found.rows]]
            count += 1
            if len(set(panel)) < len(panel):
                return True
    assert count == found.count
    return False


@pytest.mark.parametrize("banks, rows", [(9, 8), (5, 4), (5, 3)])
def test_panels(banks, rows):
    rng = np.random.default_rng(banks)
    for _ in range(150):
        output = tuple(int(n) for n in rng.integers(1, 9, 2))
        stride = tuple(int(n) for n in rng.integers(1, 4, 2))
        pitch, row_pitch = int(rng.integers(1, 12)), int(rng.integers(8, 99))
        found = panels_of(window(output, stride), MapPitches(pitch, row_pitch, 0), rows, banks)
        assert not conflicts(found, output, stride[1] * pitch, stride[0] * row_pitch, banks)
        assert found.rows <= rows


@pytest.mark.parametrize("size, vectors, readings", [
    ((32, 32), 2, [((32, 32), (1, 1))]),
    ((32, 32), 2, [((16, 16), (2, 2)), ((16, 16), (2, 2))]),
    ((25, 5), 8, [((25, 5), (1, 1))]),
    ((6, 6), 9, [((3, 3), (2, 2))]),
    ((1, 1), 80, [((1, 1), (1, 1))]),
])
def test_full_panels_where_possible(size, vectors, readings):
    given = [MapReading(window(output, stride), 10) for output, stride in readings]
    found = choose_pitches(size, vectors, given, 8, 9)
    for reading in given:
        panels = panels_of(reading.window, found, 8, 9)
        height, width = reading.window.output
        assert (panels.cross, panels.count) == (True, -(-height * width // 8))
    assert found.pitch >= vectors
    assert found.row_pitch >= (size[1] - 1) * found.pitch + vectors


def test_readers_that_differ_share_the_loss():
    """A stride of 1 and a stride of 2 want different row pitches: the one with more steps wins."""
    for heavy in (0, 1):
        readings = [
            MapReading(window((16, 16)), 1000 if heavy == 0 else 1),
            MapReading(window((8, 8), (2, 2)), 1000 if heavy == 1 else 1),
        ]
        found = choose_pitches((16, 16), 2, readings, 8, 9)
        panels = [panels_of(reading.window, found, 8, 9) for reading in readings]
        assert panels[heavy].count == (32, 8)[heavy]
        assert min(entry.rows for entry in panels) >= 2


def test_dense_maps_follow_each_other():
    found = choose_pitches((5, 7), 3, [MapReading(window((5, 7)), 1)], 8, 9, dense=True)
    assert (found.pitch, found.row_pitch, found.vectors) == (3, 21, 105)
    assert panels_of(window((5, 7)), found, 8, 9).rows < 8


def test_one_row_has_no_conflicts():
    for pitch, row in itertools.product((1, 2, 4), (4, 8)):
        found = panels_of(window((3, 3)), MapPitches(pitch, row, 0), 1, 4)
        assert (found.rows, found.count) == (1, 9)
