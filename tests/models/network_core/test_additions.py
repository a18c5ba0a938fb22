"""ADD with the scaler of the lanes: LiteRT's is exact for all scales."""

import pytest
from graphs import tensor
from rejects import rejects

from weft.models.ir import Host
from weft.models.network_core.layers import Refusal
from weft.models.network_core.operators.operands import addition

TENSORS = (tensor((1, 4, 4, 8)), tensor((1, 4, 4, 8)), tensor((1, 4, 4, 8)))


def node(multipliers, shift):
    return Host(
        operator="ADD", name="a", position=(0,), inputs=(0, 1), outputs=(2,), kernel="litert.add",
        attributes=dict(zeros=(5, -128), multipliers=multipliers, shift=shift, zero=-3, low=-128,
                        high=127),
        reason="",
    )


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("multipliers, shift", [
    ((1 << 20, 1 << 20), 21), ((1 << 21, 1), 22), ((1387245, -(1 << 20)), 20),
    ((2047, 2000001), 23), ((1234567, 1765432), 30),
])
def test_sums_of_litert_are_exact(multipliers, shift, own):
    """All pairs of bytes are compared with the kernel."""
    found = addition(node(multipliers, shift), own, TENSORS, "single")
    zero, other = (5, -128)[1 - own], multipliers[1 - own]
    assert found.table[0, [0, 1, 255]].tolist() == [v * other for v in (-zero, 1 - zero, -1 - zero)]


def test_refuses_another_rounding():
    with rejects(Refusal, "its results are not exact in mode tflite"):
        addition(node((1 << 20, 1 << 19), 21), 0, TENSORS, "tflite")
