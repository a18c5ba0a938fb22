"""The latencies of a network core: figures computed by hand, and the slot of ADD."""

import pytest

from weft.config import Config
from weft.hw.network_core.array_section import ArraySection
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.latencies import (
    add_slot,
    added_take,
    array_write,
    join,
    map_read,
    read_delay,
    rescale,
    rescale_total,
    sum_latency,
    total_latency,
)

PLAIN = {"depth": 4, "multiplier": "plain"}


def core(mode="tflite", cycles=1, **more):
    return Config(requantize=mode, scale_cycles=cycles, activation="none", **more)


@pytest.mark.parametrize("lanes, stages", [(2, (5, 5, 0, 22)), (4, (4, 4, 0, 21))])
def test_stages_of_a_chunk(lanes, stages):
    """2 cycles read sums, 2 select lanes, or 1 waits, 1 corrects; bias 1, scaler 11, clamp 5."""
    ecp5 = core(target="ecp5", cols=4, lanes=lanes, depth=4, multiplier="fip")
    found = rescale(NetworkCoreConfig(array=ecp5, read_vectors=4))
    assert (sum_latency(ecp5), join(ecp5), read_delay(ecp5), found) == stages


def test_parameters_may_take_longer_than_sums():
    """The sums are read 2 cycles after the request; the parameters take 3 cycles."""
    array = core(**PLAIN)
    found = rescale(NetworkCoreConfig(array=array))
    assert (sum_latency(array), join(array), read_delay(array), found) == (1, 3, 2, 20)


def test_digits_take_two_cycles_more():
    """Sums of several columns before the scaler, limits behind it; with ADD the next odd slot."""
    config = NetworkCoreConfig(array=core(**PLAIN, cols=4, lanes=4), int16=True)
    assert (rescale(config), added_take(config), total_latency(config)) == (22, 23, 27)
    assert add_slot(config) == 25


def test_slot_of_add():
    """A result after 20 cycles, the word of the added byte 4 later, their sum 1 later, which meets
    its scale 3 after the slot: 22, and the next odd slot.
    """
    config = NetworkCoreConfig(array=core(**PLAIN))
    assert add_slot(config) == 23
    assert rescale_total(config) == 23 + rescale(config)


@pytest.mark.parametrize("mode, total, slot", [("tflite", 26, 23), ("single", 25, 23)])
def test_a_product_is_a_cycle_later_than_a_sum(mode, total, slot):
    """With a sum the slots are 23 and 21."""
    config = NetworkCoreConfig(array=core(mode, **PLAIN), multiply_maps=True)
    assert (total_latency(config), add_slot(config)) == (total, slot)


@pytest.mark.parametrize("multiplies", [False, True])
@pytest.mark.parametrize("mode", ["tflite", "single", "onnx"])
@pytest.mark.parametrize("cycles", [1, 2, 4, 8, 16, 32])
def test_the_slot_of_add_follows_the_total_and_is_odd(mode, cycles, multiplies):
    array = core(mode, cycles, **PLAIN)
    config = NetworkCoreConfig(array=array, multiply_maps=multiplies)
    late = join(array) + add_slot(config) * cycles - total_latency(config)
    assert add_slot(config) % 2 == 1 and 0 <= late < 2 * cycles


@pytest.mark.parametrize("config", [
    core(depth=4), core(target="ecp5", depth=4, multiplier="fip"),
    core(rows=8, cols=8, depth=8, hop=2, target="ecp5", multiplier="plain"),
    core(rows=3, cols=8, depth=4, lanes=4, multiplier="fip"),
    core(rows=2, depth=8, target="ice40up"),
])
def test_the_array_section_has_the_latency(config):
    for early in (False, True):
        of = NetworkCoreConfig(array=config, early=early)
        assert ArraySection.write_latency(of, map_read(of)) == array_write(of)


def test_an_array_by_hand():
    """From the memory 7, MAC cell 2, result register 1; rows and columns 4 to 7 are a hop later.

    Copies of the step and of the offset, and a register of the comparisons take 3, if jobs of 8
    rows start early.
    """
    for rows, early, read in ((8, False, 7), (8, True, 10), (7, True, 7)):
        array = core(rows=rows, cols=8, depth=4, multiplier="plain")
        config = NetworkCoreConfig(array=array, early=early)
        assert array_write(config) == read + 2 + 1 + 1 + 1
