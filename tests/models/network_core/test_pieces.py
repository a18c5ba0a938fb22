"""Pieces of a layer: every pixel with every tap once, in words that follow each other."""

import numpy as np
import pytest

from weft.models.network_core.layers import Window
from weft.models.network_core.map_pitches import MapPitches, Panels, panels_of
from weft.models.network_core.pieces import Area, Shape, Taps, pieces_of
from weft.models.network_core.weights import LayerWords


def sizes(kernel, vectors, diagonal=False):
    return LayerWords(
        tiles=1, tile_words=kernel[0] * kernel[1] * vectors, tap_vectors=vectors, group_tiles=1,
        group_step=0, granule=1, diagonal=diagonal, filled=False, packed=False,
        row_lines=1,
    )


@pytest.mark.parametrize("words, expected", [
    (18, [Taps(0, 0, 0, 3, 3, 2)]),
    (17, [Taps(0, 0, 0, 1, 3, 2), Taps(1, 0, 0, 2, 3, 2)]),
    (6, [Taps(y, 0, 0, 1, 3, 2) for y in range(3)]),
    (5, [Taps(y, x, 0, 1, n, 2) for y in range(3) for x, n in ((0, 1), (1, 2))]),
    (1, [Taps(y, x, c, 1, 1, 1) for y in range(3) for x in range(3) for c in range(2)]),
])
def test_the_kernel_is_divided_at_rows_then_taps_then_vectors(words, expected):
    pieces = pieces_of(Shape((1, 1), (3, 3)), sizes((3, 3), 2), Panels(True, 4, 1), words)
    assert [piece.taps for piece in pieces] == expected
    assert [piece.partial for piece in pieces] == [True] * (len(expected) - 1) + [False]
    first = 0
    for piece in pieces:
        assert piece.first_word == first and piece.taps.words <= words
        first += piece.taps.words
    assert first == 18


def test_an_undivided_kernel_has_all_pixels():
    [piece] = pieces_of(Shape((9, 7), (1, 1)), sizes((1, 1), 5), Panels(True, 4, 16), 5)
    assert piece.area == Area(0, 0, 9, 7) and not piece.partial


@pytest.mark.parametrize("output, cross, areas", [
    ((3, 2), True, [(0, 0, 2, 2), (2, 0, 1, 2)]),
    ((3, 2), False, [(y, 0, 1, 2) for y in range(3)]),
    ((2, 5), True, [(y, x, 1, n) for y in range(2) for x, n in ((0, 4), (4, 1))]),
])
def test_areas_are_rows_or_a_part_of_a_row(output, cross, areas):
    pieces = pieces_of(Shape(output, (1, 1)), sizes((1, 1), 2), Panels(cross, 4, 9), 1)
    assert [piece.area for piece in pieces[::2]] == [Area(*area) for area in areas]
    assert [piece.area for piece in pieces[1::2]] == [piece.area for piece in pieces[::2]]


@pytest.mark.parametrize("seed", range(20))
def test_areas_have_no_conflicts_of_banks(seed):
    """For any pitches of the input map, and the panels that they allow."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        height, width = (int(n) for n in rng.integers(1, 9, 2))
        banks = int(rng.choice([3, 5, 7, 9]))
        rows = int(rng.integers(1, banks + 1))
        pitch, row_pitch = (int(n) for n in rng.integers(1, 40, 2))
        one, size = (1, 1), (height, width)
        window = Window(one, one, one, (0, 0, 0, 0), size, size)
        panels = panels_of(window, MapPitches(pitch, row_pitch, 0), rows, banks)
        done = np.zeros((height, width), int)
        for piece in pieces_of(Shape(size, one), sizes(one, 2), panels, 1)[::2]:
            area = piece.area
            y, x = np.mgrid[area.y : area.y + area.height, area.x : area.x + area.width]
            done[y, x] += 1
            read = ((y * row_pitch + x * pitch) % banks).reshape(-1)
            assert len(set(read.tolist())) == read.size <= panels.rows
        assert (done == 1).all()
