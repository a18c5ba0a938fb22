"""The window fetch: cycles and reads, computed by hand."""

import pytest
from rejects import rejects

from tools.chip_price.fetch import FetchCost, WindowBuffer, fetch
from weft.network.ir import Window

STRIP = WindowBuffer(rows=8, depth=8, port=32, sub=0)


def window(kernel, size, *, stride=1, border=0, output=None):
    return Window(
        (kernel, kernel), (stride, stride), (1, 1), (border,) * 4, size, output or size
    )


def pointwise(pixels):
    return Window((1, 1), (1, 1), (1, 1), (0,) * 4, (1, pixels), (1, pixels))


def test_pointwise_layer():
    # Two panels of 8 pixels of 64 bytes: 16 words of 32 bytes each; 64 vectors and at
    # most 8 before the first one, in 9 banks.
    assert fetch(pointwise(16), 64, STRIP) == FetchCost(32, 32, 16, 2, 8)


def test_copies_take_as_many_cycles_as_a_bank_gets_vectors():
    # The four vectors of a word belong to one pixel, so to one row of the array.
    for sub, cycles in (1, 128), (2, 64), (4, 32):
        buffer = WindowBuffer(rows=8, depth=8, port=32, sub=sub)
        assert fetch(pointwise(16), 64, buffer) == FetchCost(cycles, 32, cycles // 2, 2, 8 // sub)


def test_depthwise_layer_with_a_border():
    # 4 x 4 pixels of 8 bytes, one panel for each row. A row of the map is one word. Each of its two
    # outside columns takes a cycle. A row outside the map is 6 vectors in 5 banks: 2 cycles.
    # Panels: 2 + 3 + 3, 3 + 3 + 3 twice, 3 + 3 + 2; 3 runs of 6 + 4 vectors in 5 banks.
    buffer = WindowBuffer(rows=4, depth=8, port=32, sub=0)
    assert buffer.banks == 5
    assert fetch(window(3, (4, 4), border=1), 8, buffer) == FetchCost(34, 10, 8, 4, 6)


def test_panel_across_rows_of_the_map():
    # 2 x 6 pixels of 32 bytes without a border, kernel 3: 2 x 4 outputs, one panel of 8 pixels in
    # two segments. Each reads 3 runs of 6 pixels; 2 * 3 * (6 * 4 + 8) = 192 vectors in 9.
    assert fetch(window(3, (4, 6), output=(2, 4)), 32, STRIP) == FetchCost(36, 36, 36, 1, 22)


def test_copies_of_a_stride():
    # Outputs 0 and 1 read columns 0..2 and 2..4: column 2 goes to both rows in one cycle.
    buffer = WindowBuffer(rows=2, depth=8, port=8, sub=1)
    size = Window((1, 3), (1, 2), (1, 1), (0,) * 4, (1, 5), (1, 2))
    assert fetch(size, 8, buffer) == FetchCost(5, 5, 5, 1, 3)


def test_part_of_the_channels():
    # 8 of 64 channels: a word for each of 16 pixels.
    assert fetch(pointwise(16), 64, STRIP, 8) == FetchCost(16, 16, 8, 2, 2)


def test_repeated():
    assert FetchCost(34, 10, 8, 4, 4).times(3) == FetchCost(102, 30, 8, 4, 4)


@pytest.mark.parametrize("groups, stride, pitch", [(1, 1, 1), (8, 2, 8), (3, 1, 4), (9, 2, 10)])
def test_pitch_has_no_factor_of_the_banks(groups, stride, pitch):
    assert STRIP.banks == 9
    assert STRIP.pitch(groups, stride) == pitch


def test_one_row_has_no_conflicts():
    buffer = WindowBuffer(rows=1, depth=16, port=32, sub=0)
    assert (buffer.banks, buffer.pitch(2, 2)) == (2, 2)


def test_rejects_a_stride_that_no_pitch_helps():
    with rejects(ValueError, "stride must have no factor of 9 banks, not 3"):
        STRIP.pitch(1, 3)


def test_words_of_several_pixels_go_to_different_banks():
    # A word has two pixels of two vectors: numbers 0 to 3. 4 words for each of two panels.
    assert fetch(pointwise(16), 16, STRIP).cycles == 8
    # Copies: taps 0 and 1 of a row are words 0 to 3 of its 4 banks. Two outputs, a word each.
    buffer = WindowBuffer(rows=2, depth=8, port=32, sub=4)
    size = Window((1, 2), (1, 2), (1, 1), (0,) * 4, (1, 4), (1, 2))
    assert fetch(size, 16, buffer) == FetchCost(2, 2, 2, 1, 1)


def test_rows_of_a_map_start_within_words():
    # Rows of 24 bytes at 0, 24 and 48 of words of 32: 1, 2 and 2 words.
    assert fetch(window(3, (3, 3), output=(1, 1)), 8, STRIP).reads == 5


@pytest.mark.parametrize("rows, groups, stride, width", [
    (8, 8, 1, 5), (8, 1, 2, 48), (8, 2, 2, 6), (8, 3, 1, 7), (4, 2, 3, 5), (2, 9, 2, 3),
])
def test_rows_of_the_array_read_different_banks(rows, groups, stride, width):
    buffer = WindowBuffer(rows=rows, depth=8, port=8, sub=0)
    pitch, banks = buffer.pitch(groups, stride), buffer.banks
    for first in range(width):  # column of the first pixel of the panel
        begin, columns, used = 0, [], set()
        for p in range(rows):
            if p and (first + p) % width == 0:  # a segment, in the bank to which the last one leads
                begin = max(columns[-1] + 3 * pitch, max(used) + 1)
                begin += (columns[0] + p * stride * pitch - begin) % banks
                columns.append(begin)
            else:
                columns.append(columns[-1] + stride * pitch if p else 0)
            used.update(columns[-1] + n for n in range(3 * pitch))
        for step in range(3 * pitch):  # taps of a row of the kernel, and channels
            assert len({(number + step) % banks for number in columns}) == rows
