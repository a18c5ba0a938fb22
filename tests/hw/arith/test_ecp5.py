"""A leaf of the ECP5 that is made otherwise than its twin: seen."""

import pytest

from weft.hw.arith import ecp5
from weft.hw.arith.ecp5 import Ecp5FastInnerProductMac
from weft.sim.primitives import cosimulate


@pytest.mark.parametrize("name", ["_chained", "_registered"])
def test_a_leaf_of_other_function_is_seen(name, monkeypatch):
    """Where the primitives' sums lack their lowest bit, or terms are a cycle early."""
    broken = {"_chained": lambda m, x, y: (x + y) & ~1, "_registered": lambda m, value: value}[name]
    whole = getattr(ecp5, name)

    def elaborate(self, platform):
        monkeypatch.setattr(ecp5, name, whole if platform is None else broken)
        return original(self, platform)

    original = ecp5.Ecp5Mac.elaborate
    monkeypatch.setattr(ecp5.Ecp5Mac, "elaborate", elaborate)
    leaf = Ecp5FastInnerProductMac(depth=4, dsp=True)
    assert cosimulate(leaf, cycles=2000).startswith("FAIL")
