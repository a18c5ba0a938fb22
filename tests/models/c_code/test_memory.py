"""Places of activations in one static array."""

from weft.models.c_code.tensors import Interval, places


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
