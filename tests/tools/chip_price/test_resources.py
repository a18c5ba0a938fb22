"""Block RAMs by shape, DSP blocks, addresses of maps, and bytes over the link."""

import dataclasses

import pytest

from tools.chip_price.cost import network_cost
from tools.chip_price.designs import DESIGNS
from tools.chip_price.layers import NO_PADDING, ChipLayer
from tools.chip_price.link import link_bytes
from tools.chip_price.memory import allocate, map_bytes
from tools.chip_price.resources import blocks, device_blocks, dsp_blocks, memory_need
from weft.boards.devices import DEVICES
from weft.network.ir import Window

ECP5, ICE40 = DEVICES["LFE5U-85F"], DEVICES["iCE40UP5K"]


@pytest.mark.parametrize("device, width, depth, count", [
    (ECP5, 36, 512, 1), (ECP5, 37, 512, 2), (ECP5, 18, 1024, 1), (ECP5, 1, 16384, 1),
    (ECP5, 512, 512, 15), (ECP5, 32, 1024, 2), (ECP5, 9, 2049, 2), (ICE40, 16, 256, 1),
    (ICE40, 64, 512, 8), (ICE40, 2, 2048, 1),
])
def test_blocks_by_shape(device, width, depth, count):
    assert blocks(device, width, depth) == count


def test_blocks_of_a_design():
    # A: 9 banks of 64 + 19 bits. B: 512 bits. Parameters: 8 lanes of 72 bits.
    design = DESIGNS["networks"]
    assert device_blocks(design, network_adds=True) == {
        "A": 27, "B": 15, "parameters": 16, "results": 0, "ADD": 0, "link": 2, "engine": 4,
    }
    # 2 columns of 32 bits; an iCE40 block is 16 bits wide.
    assert device_blocks(DESIGNS["ice40up5k"], network_adds=True) == {
        "A": 6, "B": 8, "parameters": 5, "results": 4, "ADD": 0, "link": 2, "engine": 4,
    }
    tables = dataclasses.replace(design, add_passes=2)
    assert device_blocks(tables, network_adds=True)["ADD"] == 16
    assert device_blocks(tables, network_adds=False)["ADD"] == 0
    assert dsp_blocks(design) == {"array": 96, "lanes": 32, "pair sums": 16}


def test_dsp_blocks_fit_the_devices():
    for design in DESIGNS.values():
        if design.config.family.name == "ecp5":
            assert sum(dsp_blocks(design).values()) <= design.device.capacity["DSP"]


def chain(*maps):
    """Layers of 1 x 1 convolutions; ``maps`` are pixels and channels."""
    for n, ((pixels, channels), (_, columns)) in enumerate(zip(maps, maps[1:], strict=False)):
        window = Window((1, 1), (1, 1), (1, 1), NO_PADDING, (1, pixels), (1, pixels))
        yield ChipLayer("layer", window, channels, columns, False, n, n + 1)


def test_maps_share_the_memory():
    # 36, 18, 18, 36 units: two neighbours live together, at most 54.
    sizes = {0: 36, 1: 18, 2: 18, 3: 36}
    lives = {0: (0, 0), 1: (0, 1), 2: (1, 2), 3: (2, 3)}
    assert allocate(sizes, lives, {}, 1) == 54
    assert allocate(sizes, lives, {}, 32) == 64 + 32


def test_sum_overwrites_the_map_that_is_added():
    first, second = chain((4, 32), (4, 32), (4, 32))
    assert map_bytes([first, second], 32) == 256
    added = dataclasses.replace(second, residual=0)
    assert map_bytes([first, added], 32) == 256  # the sum is in the place of map 0
    third = dataclasses.replace(second, x=2, y=3, residual=0)
    assert map_bytes([first, dataclasses.replace(second, y=2), third], 32) == 3 * 128


def test_memory_of_a_network():
    layers = list(chain((64, 64), (64, 64), (64, 64)))
    design = dataclasses.replace(DESIGNS["networks"], b_words=64)
    need = memory_need(layers, network_cost(layers, design), design)
    # Two maps, two layers of weights, four descriptors and two log entries: 16,784 bytes in
    # groups of 8 blocks, which hold 16,384.
    assert (need.maps, need.weights, need.jobs, need.parameters) == (8192, 8192, 400, 0)
    assert (need.memory, need.available, need.fits) == (16, 208, True)
    small = dataclasses.replace(design, device=DEVICES["LFE5U-25F"], entries=64)
    need = memory_need(layers, network_cost(layers, small), small)
    assert need.parameters == 128 * 9
    assert need.text.endswith(" of 56: does not fit**")


def test_resident_weights_take_no_memory():
    layers = list(chain((64, 64), (64, 64)))
    design = DESIGNS["networks"]
    assert memory_need(layers, network_cost(layers, design), design).weights == 0
    overlay = dataclasses.replace(design, b_words=60)
    cost = network_cost(layers, overlay)
    assert memory_need(layers, cost, overlay).weights == 2 * 4 * 64


def test_single_port_memory_is_a_word_wide():
    layers = list(chain((64, 64), (64, 64)))
    design = DESIGNS["ice40up5k"]
    need = memory_need(layers, network_cost(layers, design), design)
    assert (need.memory, need.spram) == (4, 4)
    assert need.text == "29 of 30, SPRAM 4 of 4"


def test_link():
    # 2,000 bytes in two WRITE frames of 16 bytes more, two ACKs of 12, START 20, DONE 20 + 10.
    assert link_bytes(2000, 10) == 2000 + 2 * 28 + 20 + 30
