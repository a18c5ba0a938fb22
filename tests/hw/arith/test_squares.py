"""The multiplier with squares in block RAM: every product of its table, and broken parts."""

import numpy as np
import pytest
from amaranth.hdl import signed

from verif.primitives import cosimulate
from weft.hw.arith import ecp5
from weft.hw.arith.ecp5 import SquareMultiplier

NINE_BITS = np.arange(-256, 256)


def test_the_table_has_every_product_of_nine_bits():
    table = np.array(ecp5._TABLE)
    assert len(table) == 1024 and table.min() == 0 and table.max() < 1 << 18
    a, b = NINE_BITS[:, None], NINE_BITS[None, :]
    # The sum -512 and the difference 511 are in the table, too.
    assert np.array_equal(table[(a + b) % 1024] - table[(a - b) % 1024], a * b)


@pytest.mark.parametrize("bits", [
    (9, 9), *(pytest.param(bits, marks=pytest.mark.slow) for bits in ((8, 8), (2, 9))),
], ids=str)
def test_the_block_equals_the_twin(bits):
    assert cosimulate(multiplier(bits), cycles=2000) == "PASS"


def test_a_wrong_square_is_detected(monkeypatch):
    """One of 1,024 words is wrong."""
    wrong = [square ^ (n == 3) for n, square in enumerate(ecp5._TABLE)]
    monkeypatch.setattr(ecp5, "_TABLE", wrong)
    assert cosimulate(multiplier(), cycles=2000).startswith("FAIL")


def test_a_changed_chain_is_detected(monkeypatch):
    """The squares are added instead of subtracted."""
    monkeypatch.setattr(ecp5, "SUB_MASKED", ecp5.ADD)
    assert cosimulate(multiplier(), cycles=2000).startswith("FAIL")


def multiplier(bits=(9, 9)):
    a, b = bits
    return SquareMultiplier(a=signed(a), b=signed(b))
