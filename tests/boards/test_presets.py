"""The designs of the performance table: each matches its device, and can be elaborated."""

import pytest

from weft.boards.presets import PRESETS, component
from weft.boards.toolchain import to_rtlil

all_of_them = pytest.mark.parametrize("entry", PRESETS.values(), ids=PRESETS)


@all_of_them
def test_target_is_that_of_the_device(entry):
    assert entry.config.target == entry.device.target
    assert sum(goal is not None for goal in (entry.goal, entry.clock, entry.luts)) == 1


@pytest.mark.parametrize(("name", "ports"), [
    pytest.param("array-4x4x4", {"a", "b", "south"}, marks=pytest.mark.slow),
    pytest.param("ice40hx8k", {"rx", "tx"}, marks=pytest.mark.long),
])
def test_is_an_array_or_an_accelerator_with_its_pins(name, ports):
    text = to_rtlil(component(PRESETS[name]))
    top = text[text.index("module \\top\n") :]
    assert {port for port in ports if f" \\{port}\n" in top} == ports
    assert ("\\rx\n" in top) == ("rx" in ports)


def test_goals():
    assert {
        (entry.device.name, entry.config.dtype): entry.goal
        for entry in PRESETS.values() if entry.goal
    } == {
        ("LFE5U-85F", "int8"): 100, ("LFE5U-85F", "bf16"): 6, ("LFE5U-25F", "int8"): 34,
        ("iCE40UP5K", "int8"): 1.2, ("iCE40HX8K", "int8"): 3,
    }
    assert {entry.config.peak: entry.clock for entry in PRESETS.values() if entry.clock} == {
        16: 150, 64: 165, 256: 145, 512: 120,
    }
    assert {
        (entry.config.depth, entry.config.dsp_cols, entry.config.drain): entry.luts
        for entry in PRESETS.values() if entry.config.rows == 1 and not entry.config.ram_cols
    } == {
        (2, 1, "overlapped"): 90, (2, 1, "folded"): 60, (8, 0, "overlapped"): 8 * 80,
        (2, 0, "folded"): 2 * 80,
    }
    assert PRESETS["pe-ram"].luts == 420 < PRESETS["pe-logic"].luts
