"""The size of a number format."""

import pytest

from weft.commands import Number


@pytest.mark.parametrize("bits, size", [(8, 1), (16, 2), (32, 4)])
def test_bytes_follow_from_bits(bits, size):
    assert Number("x", bits).bytes == size
