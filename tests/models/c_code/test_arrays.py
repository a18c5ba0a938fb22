"""Arrays and structs as C text."""

import numpy as np

from weft.models.c_code.tensors import array, numbers, struct


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
