"""The space: what it draws is legal, of the asked size, and different."""

import dataclasses
import itertools

import numpy as np
import pytest
from explore_points import network_core

from weft.boards.designs import NETWORKS_25F, NETWORKS_HX8K, NETWORKS_UP5K
from weft.boards.devices import DEVICES
from weft.config import Config
from weft.explore import network_features, space
from weft.explore.features import ram_blocks
from weft.explore.space import AXES, draws, grid, neighbours, network_draws, with_words

BASES = {
    "LFE5U-25F": Config(target="ecp5", activation="none"),
    "iCE40UP5K": Config(target="ice40up", activation="none", rows=2, cols=2),
    "iCE40HX8K": Config(target="ice40hx", activation="none", rows=2, cols=2),
}


@pytest.mark.parametrize("name", BASES)
def test_draws_are_of_the_space(name):
    device, base = DEVICES[name], BASES[name]
    axes = AXES[device.target]
    drawn = list(itertools.islice(
        draws(device, base, np.random.default_rng(1), peak=(2, 16)), 60
    ))
    for config in drawn:
        assert 2 <= config.peak <= 16
        assert config.activation == "none" and config.target == device.target
        for field, values in axes.items():
            rest = {"dsp_cols": config.cols, "ram_cols": config.cols - (config.dsp_cols or 0)}
            assert getattr(config, field) in {*values, rest.get(field, values[0])}
    assert len(set(drawn)) > 40
    assert any(config.ram_cols for config in drawn) == (device.target == "ecp5")


def test_draws_follow_their_seed():
    one, two, other = (
        list(itertools.islice(draws(
            DEVICES["LFE5U-25F"], BASES["LFE5U-25F"], np.random.default_rng(seed), peak=(1, 64)
        ), 5)) for seed in (1, 1, 2)
    )
    assert one == two != other


def test_neighbours_differ_by_a_step():
    config = Config(target="ecp5", rows=4, cols=4, depth=4, activation="none", dsp_cols=1,
                    a_words=512, b_words=512, lanes=2, jobs=4)
    near = list(neighbours(config, DEVICES["LFE5U-25F"]))
    for other in near:
        different = [
            field.name for field in dataclasses.fields(Config)
            if getattr(config, field.name) != getattr(other, field.name)
        ]
        assert len(different) == 1 or different == ["cols", "dsp_cols"]
        assert ram_blocks(other) <= DEVICES["LFE5U-25F"].capacity["RAM"]
    assert {other.rows for other in near} == {3, 4, 5}
    assert {other.drain for other in near} == {"overlapped", "folded"}
    assert {other.multiplier for other in near} == {"fip", "plain"}
    assert {other.ram_cols for other in near} == {0, 1}
    all_dsp = dataclasses.replace(config, rows=3, dsp_cols=4)
    assert {other.ram_cols for other in neighbours(all_dsp, DEVICES["LFE5U-25F"])} == {0}


def test_neighbours_have_no_more_columns_of_a_kind_than_columns():
    config = Config(target="ecp5", rows=2, cols=4, depth=2, dsp_cols=2, ram_cols=2, jobs=4,
                    activation="none", a_words=512, b_words=512, lanes=1)
    near = list(neighbours(config, DEVICES["LFE5U-25F"]))
    assert {(other.cols, other.ram_cols) for other in near if other.dsp_cols == 2} == {
        (4, 2), (3, 1), (5, 2), (4, 1),
    }
    assert {other.ram_cols for other in near if other.dsp_cols == 3} == {1}


def test_the_grid_has_all_cores_for_networks_that_the_device_has_blocks_for(monkeypatch):
    device = DEVICES["LFE5U-25F"]
    small = space.GRID | {
        "rows": (2, 8), "cols": (4,), "depth": (4,), "lanes": (2, 4, 8), "hop": (2,),
        "b_words": (512,), "lines": (512,), "read_vectors": (1, 2, 8),
    }
    monkeypatch.setattr(space, "GRID", small)
    found = list(grid(device, network_core(), lambda config: 9000))
    shapes = [(c.array.rows, c.array.lanes, c.read_vectors) for c in found]
    # 8 lanes are more than cols, and 8 vectors do not divide them.
    assert sorted(shapes) == list(itertools.product((2, 8), (2, 4), (1, 2)))
    for config in found:
        blocks = network_features.dsp_blocks(config)
        one_more = config.array.rows * config.array.depth // 2
        assert blocks <= 28 and (blocks + one_more > 28 or config.array.dsp_cols == 4)
        assert config.memory_bytes >= 9000 > config.memory_bytes // 2
    assert list(grid(device, network_core(), lambda config: 1 << 20)) == []


def test_the_words_are_the_fewest_that_hold_a_network():
    config = network_core(rows=3, depth=4, read_vectors=1)  # 3 banks
    assert with_words(config, 3 * 4 * 512).words == 512
    assert with_words(config, 3 * 4 * 512 + 1).words == 1024
    assert with_words(config, 1 << 30) is None


def test_neighbours_of_a_core_for_networks_differ_by_a_step():
    near = list(neighbours(network_core(rows=3, lines=128), DEVICES["LFE5U-25F"]))
    assert {other.array.rows for other in near} == {2, 3, 4}
    assert {other.lines for other in near} == {64, 128, 256}
    assert {other.words for other in near} == {512, 1024, 2048}
    assert all(network_features.dsp_blocks(other) <= 28 for other in near)


def test_a_product_of_maps_takes_a_block_of_each_lane():
    config = network_core(rows=3)
    product = dataclasses.replace(config, multiply_maps=True)
    added = network_features.dsp_blocks(product) - network_features.dsp_blocks(config)
    assert added == config.array.lanes
    near = list(neighbours(product, DEVICES["LFE5U-25F"]))
    assert near and all(network_features.dsp_blocks(other) <= 28 for other in near)


UP5K, ONE_PORT = DEVICES["iCE40UP5K"], NETWORKS_UP5K.config


def test_the_grid_of_a_memory_with_one_port_has_all_buffers_that_fit():
    found = list(grid(UP5K, ONE_PORT, lambda config: 60_000))
    assert {config.array for config in found} == {ONE_PORT.array}
    assert {(config.words, config.b_words, config.lines) for config in found} == {
        (16384, b_words, lines) for b_words, lines in ((256, 256), (256, 512), (512, 256))
    }
    assert ONE_PORT in list(grid(UP5K, ONE_PORT, lambda config: 70_000))
    assert list(grid(UP5K, ONE_PORT, lambda config: 140_000)) == []


def test_a_memory_with_one_port_in_block_ram():
    """An iCE40HX8K has no DSP blocks, and 32 block RAMs."""
    device, config = DEVICES["iCE40HX8K"], NETWORKS_HX8K.config
    counted = network_features.SINGLE_PORT.counted
    assert {name: count(config) for name, count in counted.items()} == {
        "DSP": 0, "RAM": 30, "SPRAM": 0
    }
    assert counted["RAM"](dataclasses.replace(config, words=2048)) == 38
    found = list(grid(device, config, lambda config: 4096))
    assert found == [config]
    assert network_features.SINGLE_PORT.features(config)["MACs in logic"] == 16


def test_neighbours_of_a_memory_with_one_port_have_its_array():
    near = {(c.array, c.words, c.b_words, c.lines) for c in neighbours(ONE_PORT, UP5K)}
    assert near == {(ONE_PORT.array, 16384, 512, 256), (ONE_PORT.array, 32768, 256, 256)}


@pytest.mark.parametrize("device, base, features", [
    (UP5K, ONE_PORT, network_features.SINGLE_PORT),
    (DEVICES["LFE5U-25F"], NETWORKS_25F.config, network_features.NETWORKS),
])
def test_random_cores_for_networks_fit(device, base, features):
    def drawn(seed):
        return list(itertools.islice(network_draws(device, base, np.random.default_rng(seed)), 40))

    found = drawn(1)
    assert found == drawn(1) != drawn(2) and len(set(found)) > 5
    for config in found:
        assert features.counted["DSP"](config) <= device.capacity["DSP"]
        assert features.counted["RAM"](config) <= device.capacity["RAM"]
        assert config.peak <= device.capacity["LUT"] / 160
