"""Arrays and structs as C text."""

import numpy as np

from weft.models.c_code.tensors import Interval, array, numbers, places, struct


def test_numbers_are_decimal():
    assert numbers(np.array([[-128, 5]], np.int8)) == "-128, 5"
    assert numbers([-(1 << 31), 1 - (1 << 31)]) == "(-2147483647 - 1), -2147483647"


def test_lines_are_short():
    text = array("int8_t", "b0", np.full(100, -128))
    lines = text.splitlines()
    assert lines[0] == "static const int8_t b0[] NET_ALIGNED = {" and lines[-1] == "};"
    assert max(map(len, lines)) <= 100
    assert "".join(lines[1:-1]).count("-128") == 100


def test_a_struct_has_text_and_numbers():
    text = struct("net_layer", "layer3", (1, 2), "NULL", -4)
    assert text == "static const net_layer layer3 = {\n    1, 2, NULL, -4\n};"


def test_tensors_that_are_never_needed_together_share_memory():
    chain = {number: Interval(16, number, number + 1) for number in range(4)}
    offsets, total = places(chain)
    assert offsets == {0: 0, 1: 16, 2: 0, 3: 16}
    assert total == 32


def test_a_small_tensor_fills_a_gap():
    intervals = {
        1: Interval(64, 0, 1), 2: Interval(30, 0, 3), 3: Interval(40, 2, 3), 4: Interval(20, 2, 2),
    }
    # 2 follows 1; 3 takes the place of 1, and 4 the rest of it.
    assert places(intervals) == ({1: 0, 3: 0, 2: 64, 4: 40}, 96)


def test_offsets_are_multiples_of_8():
    assert places({0: Interval(3, 0, 1), 1: Interval(3, 0, 1)}) == ({0: 0, 1: 8}, 16)
    assert places({}) == ({}, 0)
