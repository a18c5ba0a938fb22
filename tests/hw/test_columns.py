"""The columns of an array multiply where the Config says, and shallow memories are LUT RAM."""

import re

import pytest
from network_cores import small_network_core

from weft.boards.toolchain import to_rtlil
from weft.config import Config
from weft.hw.core import Core
from weft.hw.network_core.core import NetworkCore

BLOCKS = {"dsp": "MULT18X18D", "ram": "DP16KD"}
FIELDS = {"target": "ecp5", "rows": 1, "cols": 5, "depth": 2, "dsp_cols": 1, "ram_cols": 2}


def modules(design):
    """The text of each module of a design, by name."""
    texts = re.split(r"\nmodule ", to_rtlil(design, reset=False))
    return {text.partition("\n")[0]: text for text in texts}


def kinds(design):
    """What the PEs of each column multiply in."""
    found = {}
    for name, text in modules(design).items():
        if match := re.search(r"\.pe_0_(\d+)\.mac\.product_0$", name):
            blocks = [kind for kind, block in BLOCKS.items() if f"\\{block}" in text]
            found[int(match[1])] = blocks[0] if blocks else "logic"
    return [kind for _, kind in sorted(found.items())]


def test_a_core_for_products():
    config = Config(**FIELDS, lanes=1, a_words=32, b_words=32, requantize="none", bytes_in=4)
    assert kinds(Core(config)) == [config.resource(col) for col in range(5)]
    assert set(kinds(Core(config))) == {"dsp", "ram", "logic"}


@pytest.mark.slow
def test_a_core_for_networks_has_its_columns_from_the_right_and_one_more():
    config = small_network_core(**FIELDS | {"cols": 4}, multiplier="fip", words=1024, b_words=32)
    expected = [config.array.resource(col) for col in reversed(range(4))]
    assert kinds(NetworkCore(config)) == ["logic", *expected]
    assert set(expected) == {"dsp", "ram", "logic"}


@pytest.mark.parametrize("words, in_blocks", [(512, False), (1024, True)])
def test_sums_of_few_pages_are_in_lut_ram(words, in_blocks):
    config = Config(
        target="ecp5", rows=1, cols=1, depth=2, dsp_cols=1, lanes=1, a_words=words, b_words=words,
        requantize="none", bytes_in=4,
    )
    (text,) = (
        text for name, text in modules(Core(config)).items() if name.endswith("pairs.memory_0")
    )
    assert ("distributed" in text) != in_blocks
