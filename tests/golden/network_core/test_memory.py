"""Loads of the golden model: words of B, diagonals, filled words, parameter lines."""

import numpy as np
import pytest
from network_cores import network_core_config

from weft.golden.network_core.memory import ListFault, MemoryArea, NetworkCoreBuffers
from weft.network_core.descriptors import ListError, ListLoad, LoadTarget, split


def setup(rows, cols, depth, lanes=2, **fields):
    config = network_core_config(rows, cols, depth, lanes, words=16, b_words=8, lines=4, **fields)
    memory = (np.arange(config.memory_bytes) % 97).astype(np.int8)
    return NetworkCoreBuffers(config), MemoryArea(config, memory, 0, 16), memory


def test_words_of_b():
    buffers, area, memory = setup(2, 2, 4, read_vectors=1)
    buffers.load(area, ListLoad(source=split(7, 3), first_word=3, words=2))
    assert buffers.b[3:5].tobytes() == memory[28:44].tobytes()
    assert not np.delete(buffers.b, [3, 4], 0).any()


def test_lines():
    buffers, area, memory = setup(2, 2, 4, read_vectors=1)  # 18 bytes: 5 vectors
    buffers.load(area, ListLoad(
        target=LoadTarget.PARAMETERS, diagonal=1, source=split(2, 3), first_word=1, words=2
    ))
    assert buffers.lines[1:3].tobytes() == memory[8:48].tobytes()


def test_diagonal_with_as_many_columns_as_bytes():
    buffers, area, _ = setup(2, 2, 2, read_vectors=1)
    buffers.load(area, ListLoad(diagonal=1, source=split(5, 3), first_word=1, words=2))
    assert buffers.b[1:3].tolist() == [[[10, 0], [0, 11]], [[12, 0], [0, 13]]]


def test_diagonal_with_fewer_columns():
    buffers, area, _ = setup(2, 2, 4, read_vectors=1)
    buffers.load(area, ListLoad(diagonal=1, source=split(5, 3), first_word=0, words=1))
    assert buffers.b[0].tolist() == [[20, 0, 22, 0], [0, 21, 0, 23]]


def test_diagonal_with_more_columns():
    """The position of the diagonal depends on the word of the load, not of the buffer."""
    buffers, area, _ = setup(2, 4, 2, read_vectors=1)
    buffers.load(area, ListLoad(diagonal=1, source=split(5, 3), first_word=3, words=2))
    assert buffers.b[3].tolist() == [[10, 0], [0, 11], [0, 0], [0, 0]]
    assert buffers.b[4].tolist() == [[0, 0], [0, 0], [12, 0], [0, 13]]


@pytest.mark.parametrize("diagonal, expected", [
    (0, [[-3, -3], [-3, -3]]), (1, [[-3, 0], [0, -3]]),
])
def test_fill_does_not_read(diagonal, expected):
    buffers, area, _ = setup(2, 2, 2, read_vectors=1)
    buffers.load(area, ListLoad(
        diagonal=diagonal, fill=1, fill_value=-3, source=split(-9, 3), first_word=7, words=1
    ))
    assert buffers.b[7].tolist() == expected


def test_a_source_outside_the_memory_is_refused():
    buffers, area, _ = setup(2, 2, 2, read_vectors=1)
    with pytest.raises(ListFault) as fault:
        buffers.load(area, ListLoad(source=split(3 * 16 - 3, 3), first_word=0, words=2))
    assert fault.value.error == ListError.ADDRESS
    assert not buffers.b.any()


def test_totals_of_two_words_of_the_table():
    """Sums wrap at 32 bits; factors are the lowest 16 bits, with their sign."""
    buffers, _, _ = setup(2, 2, 4, read_vectors=1, multiply_maps=True)
    words = np.zeros(512, "<i4")
    words[[3, 0xFF]], words[[256 + 7, 511]] = (0x7FFF_FFFF, -0x8000), (0x1234_8000, 5)
    buffers.table[:, :4] = words.view(np.int8).reshape(-1, 4)
    x, y = np.array([3, 3, -1, -1, 0], np.int8), np.array([7, -1, 7, -1, 7], np.int8)
    assert buffers.added(x, y).tolist() == [
        0x7FFF_FFFF + 0x1234_8000 - (1 << 32), 0x7FFF_FFFF + 5 - (1 << 32), 0x1234_0000, -0x7FFB,
        0x1234_8000,
    ]
    assert buffers.multiplied(x, y).tolist() == [0x8000, -5, 1 << 30, -5 * 0x8000, 0]


def test_parameters():
    buffers, area, _ = setup(2, 2, 4, read_vectors=1)
    buffers.lines[2, :18] = [-2, -1, -1, -1, 1, 0, 0, 64, -31, 0, 0, 0, -128, -1, -1, -1, 127, 31]
    bias, multiplier, shift = buffers.parameters(np.array([2, 2]), np.array([1, 0]))
    assert bias.tolist() == [-(1 << 31), -2]
    assert multiplier.tolist() == [(1 << 31) - 1, (1 << 30) + 1]
    assert shift.tolist() == [31, -31]
