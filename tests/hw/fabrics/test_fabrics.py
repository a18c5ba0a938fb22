"""The building blocks that each FPGA family chooses."""

from weft.hw.arith.multiplier import HalvedMultiplier, Multiplier, PlainMultiplier
from weft.hw.fabrics import FABRICS
from weft.targets import TARGETS


def test_every_family_has_its_building_blocks():
    assert list(FABRICS) == list(TARGETS)


def test_only_the_ecp5_multiplies_in_dsp_blocks():
    assert {name for name in TARGETS if FABRICS[name].multiplier is Multiplier} == {"ecp5"}
    others = {name: FABRICS[name].multiplier for name in TARGETS if name != "ecp5"}
    assert others.pop("gowin") is HalvedMultiplier
    assert set(others.values()) == {PlainMultiplier}


def test_only_the_ice40_registers_the_address_of_a_memory():
    assert {name for name in TARGETS if FABRICS[name].registers_address} == {"ice40hx", "ice40up"}
