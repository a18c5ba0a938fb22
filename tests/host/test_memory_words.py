"""Words of B and parameter lines, by hand."""

import numpy as np
from network_cores import network_core_config

from weft.host.packing import COLUMN, dense_words, parameter_lines


def test_dense_words():
    """Two taps of 3 channels, 3 columns; 2 columns and 2 channels in a word."""
    config = network_core_config(2, 2, 2, 2, read_vectors=2)
    weights = np.arange(18, dtype=np.int8).reshape(2, 3, 3)  # tap, channel, column
    words, pairs = dense_words(weights, 2, 2, config)
    assert words.tolist() == [
        [[0, 3], [1, 4], [6, 0], [7, 0], [9, 12], [10, 13], [15, 0], [16, 0]],
        [[2, 5], [0, 0], [8, 0], [0, 0], [11, 14], [0, 0], [17, 0], [0, 0]],
    ]
    assert pairs.tolist() == [0 * 3 + 9 * 12, 1 * 4 + 10 * 13, 2 * 5 + 11 * 14]


def test_parameter_lines():
    config = network_core_config(2, 2, 8, 2, read_vectors=2)  # 18 bytes in 3 vectors, in reads of 2
    columns = np.array([(1, 2, 3), (-1, 1 << 30, -4), (5, 6, 7), (8, 9, 10)], COLUMN)
    lines = parameter_lines(columns, config)
    assert lines.shape == (2, 32)
    assert lines[0, :18].tolist() == [
        1, 0, 0, 0, 2, 0, 0, 0, 3, 255, 255, 255, 255, 0, 0, 0, 64, 252
    ]
    assert not lines[:, 18:].any()
