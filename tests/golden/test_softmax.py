"""The golden model of SOFTMAX against the kernel that equals TensorFlow Lite Micro."""

import numpy as np
import pytest
from network_core_softmax import SCALES, softmax_rows

from weft.golden.network_core.job import softmax


@pytest.mark.parametrize("columns", [1, 2, 10, 255, 1000, 4095])
def test_rows(columns):
    rng = np.random.default_rng(columns)
    x = rng.integers(-128, 128, (1, 16, columns)).astype(np.int8)
    x[0, 0], x[0, 1], x[0, 2] = 5, -128, 127  # all equal
    x[0, 3:5] = -128
    x[0, 3, 0] = 127  # one is much larger
    x[0, 5] = 127
    x[0, 5, -1] = -128  # one is much smaller
    for scale in SCALES:
        rows = softmax_rows(x, scale)
        assert softmax(x[0], rows.table).tolist() == rows.y[0].tolist()


@pytest.mark.parametrize("word, value, text", [
    (0, 0, r"exponentials\[0\] must be 2147483647, not 0"),
    (0, (1 << 31) - 2, r"exponentials\[0\] must be 2147483647, not 2147483646"),
    (7, -1, "exponentials must be 0 or more, not -1"),
])
def test_rejects_other_tables(word, value, text):
    table = softmax_rows(np.zeros((1, 1, 1), np.int8), 0.1).table
    table[word] = value
    with pytest.raises(ValueError, match=text):
        softmax(np.zeros((1, 1), np.int8), table)
