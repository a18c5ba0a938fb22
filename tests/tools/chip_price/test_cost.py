"""Cycles of layers: the core from the cycle model, loads of weights, ADD, the sum of a layer."""

import dataclasses

import pytest
from rejects import rejects

from tools.chip_price.cost import (
    LayerCost,
    core_cycles,
    load_cycles,
    network_cost,
    steps_of,
    weight_bytes,
)
from tools.chip_price.designs import DESIGNS
from tools.chip_price.layers import NO_PADDING, ChipLayer
from weft.network.ir import Window

DESIGN = DESIGNS["networks"]  # 8 x 8 x 8, 8 lanes, 32 bytes, B of 512 words


def layer(m=64, channels=64, columns=64, **fields):
    window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, (1, m), (1, m))
    return ChipLayer("layer", window, channels, columns, fields.pop("depthwise", False), 0, 1,
                     **fields)


def depthwise(kernel, size, channels, **fields):
    window = Window((kernel, kernel), (1, 1), (1, 1), (1, 1, 1, 1), (size, size), (size, size))
    return ChipLayer("depthwise", window, channels, channels, True, 0, 1, **fields)


def test_core_is_the_time_of_its_tiles():
    # 16 x 8 tiles of 9 steps each, and 8 x 1 tiles of 8 rows that drain longer than they compute.
    assert core_cycles(DESIGN.config, 125, 64, 72)[0] == 16 * 8 * 9
    assert core_cycles(DESIGN.config, 64, 8, 16)[0] == 8 * 8


def test_layer_is_its_slowest_part_and_its_latency():
    cost = LayerCost(layer(), core=512, fetch=128, read=131, write=512, fill=16, latency=60)
    assert (cost.cycles, cost.bound) == (588, "core")
    assert dataclasses.replace(cost, read=600).bound == "read"
    assert dataclasses.replace(cost, core=20, write=8, fetch=4, read=4).bound == "latency"


def test_pointwise_layer():
    # 8 x 8 tiles of 8 cycles; 64 * 64 / 32 reads of the map, 128 of weights, 3 of the descriptor.
    (cost,) = network_cost([layer()], DESIGN).layers
    assert (cost.core, cost.fetch, cost.read, cost.write, cost.fill) == (512, 128, 131, 512, 16)
    one = core_cycles(DESIGN.config, 64, 64, 64)[1]
    assert cost.latency == one - 8 + 12


def test_weights():
    config = DESIGN.config
    assert (steps_of(layer(), config), weight_bytes(layer(), config)) == (8, 64 * 64)
    assert weight_bytes(layer(columns=12), config) == 64 * 16  # two panels of 8 columns
    three = depthwise(3, 4, 64)
    assert (steps_of(three, config), weight_bytes(three, config)) == (9, 576)
    pool = depthwise(3, 4, 64, constant=True)
    assert weight_bytes(pool, config) == 0
    # 72 words of B take 72 cycles; their 576 bytes and 576 of parameters are 36 memory words.
    assert load_cycles(three, DESIGN, resident=False) == 72
    # 64 words of B have 4,096 bytes: 128 memory words, with parameters 146.
    assert load_cycles(layer(), DESIGN, resident=True) == 128
    assert load_cycles(layer(), DESIGN, resident=False) == 128 + 18


def test_weights_load_under_the_layer_before():
    small = dataclasses.replace(DESIGN, b_words=128)  # less than 3 layers of 64 words
    first, second, third = network_cost([layer()] * 3, small).layers
    assert network_cost([layer()] * 3, small).weights == "streamed"
    assert first.read == 128 + 128 + 3
    assert second.read == third.read == 128 + 3
    # No space for two layers: a load is in the time of its layer.
    tight = dataclasses.replace(DESIGN, b_words=100)
    assert [cost.read for cost in network_cost([layer()] * 2, tight).layers] == [259, 259]


def test_weights_that_nearly_fit_share_their_place():
    overlaid = dataclasses.replace(DESIGN, b_words=176)
    assert network_cost([layer()] * 3, overlaid).weights == "overlay"  # 192 words


def test_layer_of_more_words_than_b():
    # 4 slices of B. 2 panels of A fit their buffer, so the weights are loaded once.
    wide = layer(m=16, channels=256, columns=512)
    (cost,) = network_cost([wide], DESIGN).layers
    assert (cost.fetch, cost.read) == (128, 128 + 256 * 512 // 32 + 3)
    # 128 panels do not fit: A is fetched for each of 4 slices.
    tall = layer(m=1024, channels=256, columns=512)
    (cost,) = network_cost([tall], DESIGN).layers
    assert cost.fetch == 4 * 1024 * 256 // 32


def test_addition_passes_through_the_lanes_again():
    add = layer(residual=2)
    tiles = 8 * 8
    assert network_cost([add], DESIGN).layers[0].core == tiles * 4 * 8
    tables = dataclasses.replace(DESIGN, add_passes=2)
    assert network_cost([add], tables).layers[0].core == tiles * 2 * 8
    # Two more epilogues of 24 cycles follow each other, with tables one.
    plain = network_cost([layer()], DESIGN).layers[0].latency
    assert network_cost([add], DESIGN).layers[0].latency == plain + 2 * 24
    assert network_cost([add], tables).layers[0].latency == plain + 24
    # The read port also reads 8 vectors of each of 64 pixels.
    assert network_cost([add], DESIGN).layers[0].read == 131 + 512


def test_one_port_reads_and_writes_in_turn():
    one = dataclasses.replace(DESIGN, ports=1)
    (cost,) = network_cost([layer()], one).layers
    assert (cost.read, cost.write) == (131 + 512, 0)
    collected = dataclasses.replace(one, collects=True)
    assert network_cost([layer()], collected).layers[0].read == 131 + 64 * 64 // 32


def test_core_waits_for_a_panel_that_fills_its_buffer():
    # 24,576 channels: 3,072 vectors, pitch 3,073; 8 pixels and 8 are 24,592 in 9 banks.
    with rejects(ValueError, "a panel of layer must fit 512 words of a bank, not 2733"):
        network_cost([layer(m=16, channels=24576)], DESIGN)
    # 3,072 channels: 344 words, so there is space for one panel only.
    (cost,) = network_cost([layer(m=16, channels=3072, columns=8)], DESIGN).layers
    assert cost.core == 2 * 384 + cost.fetch


@pytest.mark.parametrize("channels, reads", [(64, 2 * 64), (512, 16 * 64)])
def test_depthwise_layer_in_parts(channels, reads):
    # A pool of 8 x 8: 64 pixels of all channels and 8 runs
    # of 8 more are 65 words of a bank; 512 channels are 464.
    pool = ChipLayer(
        "pool", Window((8, 8), (1, 1), (1, 1), NO_PADDING, (8, 8), (1, 1)), channels, channels,
        True, 0, 1, constant=True,
    )
    (cost,) = network_cost([pool], DESIGN).layers
    assert cost.read == reads + 3
    wide = dataclasses.replace(pool, channels=1024, columns=1024)
    (cost,) = network_cost([wide], DESIGN).layers  # two parts
    assert (cost.read, cost.fill) == (32 * 64 + 3, 16 * 64)
