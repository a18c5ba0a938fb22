"""The features count what the hardware of a Config has."""

import dataclasses

import pytest
from amaranth.hdl import Fragment

from weft.config import Config
from weft.explore.features import (
    array_features,
    features,
    pending_tiles,
    ram_blocks_by_part,
)
from weft.hw import core

ECP5 = Config(target="ecp5", rows=2, cols=4, depth=4, activation="none")
ICE40 = Config(target="ice40up", rows=1, cols=2, depth=2, multiplier="plain", activation="none",
               drain="folded", a_words=512, b_words=512, lanes=1, scale_cycles=8, bytes_in=8,
               bytes_out=1, jobs=2)


@pytest.mark.parametrize("config", [
    ECP5, ICE40, dataclasses.replace(ECP5, activation="table", rows=5, jobs=2, a_words=1024),
    dataclasses.replace(ECP5, requantize="none", drain="folded", lanes=2),
])
def test_pending_tiles_have_the_size_of_their_memory(config, monkeypatch):
    made = []

    class PendingTiles(core.PendingTiles):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            made.append((self.Tile.size, self.depth - 1))  # an output register has one word

    monkeypatch.setattr(core, "PendingTiles", PendingTiles)
    Fragment.get(core.Core(config), None)
    assert made == [pending_tiles(config)]


def test_small_memories_of_an_ice40_are_in_flip_flops():
    found = features(ICE40)
    assert (found["pending bits"], found["pending cells"]) == (34 * 5, 0)
    assert (found["shallow buffer bits"], found["buffered columns"]) == (2 * 4 * 32, 0)
    wide = features(dataclasses.replace(ICE40, b_words=256))  # 32 bits fill two block RAMs
    assert wide["pending bits"] == 0
    deep = features(dataclasses.replace(ICE40, cols=1, dsp_cols=1))
    assert (deep["shallow buffer bits"], deep["buffered columns"]) == (0, 1)


def test_many_pending_tiles_of_an_ecp5_are_in_block_ram():
    config = Config(target="ecp5", rows=1, cols=1, depth=8, drain="folded", activation="none",
                    a_words=2048, b_words=128, lanes=1, scale_cycles=2, bytes_out=8, jobs=2)
    assert pending_tiles(config) == (33, 33)  # 9 x 3 cells
    assert features(config)["pending cells"] == 0
    fewer = dataclasses.replace(config, a_words=1024)  # 8 x 3 cells
    assert features(fewer)["pending cells"] == 24
    results = [ram_blocks_by_part(each)["results"] for each in (config, fewer)]
    assert results == [2, 1]


def test_a_lane_without_a_column_has_results_of_an_epilogue_only():
    narrow = dataclasses.replace(ECP5, cols=1, dsp_cols=1, lanes=4)
    assert features(narrow)["lanes"] == 4
    assert features(dataclasses.replace(narrow, requantize="none"))["lanes"] == 1


def test_tables_of_few_words_are_in_lut_ram():
    base = dataclasses.replace(ECP5, activation="table", lanes=2)
    for bytes_in, shallow in ((4, False), (8, True), (16, True)):
        found = features(dataclasses.replace(base, bytes_in=bytes_in))
        assert found["tables in LUT RAM"] == 2 * shallow
        assert found["tables in block RAM"] == 2 * (not shallow)
    assert features(ECP5)["tables in LUT RAM"] == features(ECP5)["tables in block RAM"] == 0


@pytest.mark.parametrize(("rows", "depth", "in_dsp", "sums"), [
    (1, 1, 2, 0),  # two PEs: a product and its sum in a block
    (2, 4, 16, 4),  # four PEs of two blocks, each for two products
    (3, 4, 12, 6),  # six PEs of one block
    (4, 2, 16, 8),
])
def test_products_in_dsp_blocks_of_an_ice40(rows, depth, in_dsp, sums):
    config = dataclasses.replace(ICE40, rows=rows, depth=depth)
    found = array_features(config, 2, 8)
    assert found["MACs in DSP, plain"] == in_dsp
    assert found["MACs in logic, plain"] == config.peak - in_dsp
    assert found["sums in logic"] == sums


def test_pes_without_a_dsp_block_are_in_logic():
    config = dataclasses.replace(ICE40, rows=3, cols=3, depth=1, dsp_cols=3)
    found = array_features(config, 3, 8)
    assert (found["MACs in DSP, plain"], found["MACs in logic, plain"]) == (0, 9)
    assert found["sums in logic"] == 9


def test_macs_of_the_three_kinds_of_columns():
    found = array_features(dataclasses.replace(ECP5, dsp_cols=1, ram_cols=2), 4, 8)
    kinds = "MACs in DSP, fip", "MACs in block RAM", "MACs in logic, fip"
    assert [found[kind] for kind in kinds] == [8, 16, 8]
