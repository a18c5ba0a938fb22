"""The arrays that --fit tries, and Configs with replaced fields."""

import dataclasses

import pytest
from rejects import rejects

from weft.boards.catalog import BOARDS
from weft.boards.designs import configs_by_size, min_luts
from weft.config import Config, ConfigError
from weft.designs import replace
from weft.explore.features import ram_blocks


@pytest.mark.parametrize("name", BOARDS)
def test_sizes_decrease_and_contain_the_default(name):
    board = BOARDS[name]
    configs = configs_by_size(board)
    found = [config.peak for config in configs]
    assert found == sorted(found, reverse=True) and len(set(found)) > 2
    assert board.config in configs


def test_sizes_use_at_most_the_available_dsp_blocks():
    for name in ("ulx3s-12f", "ulx3s-45f", "ulx3s-85f"):
        board = BOARDS[name]
        for config in configs_by_size(board):
            blocks = config.rows * config.dsp_cols * config.depth // 2
            assert 0 < blocks + 8 + 4 * config.lanes <= board.device.capacity["DSP"]


def test_lanes_are_as_fast_as_the_array_if_k_is_256():
    for board in BOARDS.values():
        if board.config.target == "ecp5":
            for config in configs_by_size(board):
                steps = 256 // config.depth  # of a tile
                rates = [config.rows * config.cols / n for n in (config.lanes, config.lanes / 2)]
                assert rates[0] <= steps and (rates[1] > steps or config.lanes == 1)


def test_sizes_use_at_most_the_available_block_rams():
    for name in ("ulx3s-12f", "ulx3s-45f", "ulx3s-85f"):
        board = BOARDS[name]
        found = configs_by_size(board)
        assert all(ram_blocks(config) <= board.device.capacity["RAM"] for config in found)
        assert any(config.ram_cols for config in found)


def test_sizes_keep_the_rest_of_the_config():
    board = BOARDS["ulx3s-25f"]
    asked = dataclasses.replace(board, config=replace(board.config, jobs=2))
    assert {config.jobs for config in configs_by_size(asked)} == {2}


def test_derived_fields_follow_from_the_new_values():
    config = Config(rows=4, cols=4)
    assert replace(config, rows=8) == Config(rows=8, cols=4)
    assert replace(config) == config


def test_min_luts_counts_luts_and_carry_chains():
    cells = {"LUT4": 10, "CCU2C": 3, "TRELLIS_DPR16X4": 2, "TRELLIS_FF": 99}
    assert min_luts(cells) == 10 + 6 + 8
    assert min_luts({"SB_LUT4": 7, "SB_CARRY": 5}) == 7


@pytest.mark.parametrize("fields, dsp_cols, ram_cols", [
    ({}, 4, 4), ({"cols": 7}, 4, 3), ({"cols": 4}, 4, 0), ({"cols": 2}, 2, 0),
    ({"cols": 6, "dsp_cols": 1}, 1, 4), ({"cols": 6, "ram_cols": 1}, 4, 1),
    ({"dsp_cols": 11}, 11, 1),
])
def test_fewer_columns_use_fewer_blocks(fields, dsp_cols, ram_cols):
    config = Config(target="ecp5", rows=8, cols=12, depth=8, dsp_cols=4, ram_cols=4)
    found = replace(config, **fields)
    assert (found.dsp_cols, found.ram_cols) == (dsp_cols, ram_cols)


def test_columns_that_are_asked_for_must_exist():
    config = Config(target="ecp5", rows=8, cols=12, depth=8, dsp_cols=4, ram_cols=4)
    with rejects(ConfigError, (
        "ram_cols must be at most 2 with 6 columns, of which 4 use DSP blocks, not 3"
    )):
        replace(config, cols=6, ram_cols=3)
