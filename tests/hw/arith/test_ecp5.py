"""Errors in an ECP5 MAC cell are detected by comparison with its twin."""

import pytest

from verif.primitives import cosimulate
from weft.hw.arith import ecp5
from weft.hw.arith.ecp5 import Ecp5FastInnerProductMac


@pytest.mark.parametrize("name", ["_chained", "_registered"])
def test_a_changed_cell_is_detected(name, monkeypatch):
    """Sums without their lowest bit, and terms one cycle early."""
    broken = {"_chained": lambda m, x, y: (x + y) & ~1, "_registered": lambda m, value: value}[name]
    correct = getattr(ecp5, name)

    def elaborate(self, platform):
        monkeypatch.setattr(ecp5, name, correct if platform is None else broken)
        return original(self, platform)

    original = ecp5.Ecp5Mac.elaborate
    monkeypatch.setattr(ecp5.Ecp5Mac, "elaborate", elaborate)
    cell = Ecp5FastInnerProductMac(depth=4, resource="dsp")
    assert cosimulate(cell, cycles=2000).startswith("FAIL")
