"""The latencies of a core for networks: figures computed by hand, and the slots of ADD."""

import pytest

from weft.chip.latencies import AddSlots, add_slots, join, read_delay, rescale, sum_latency
from weft.config import Config


def core(mode="tflite", cycles=1, **more):
    return Config(requantize=mode, scale_cycles=cycles, activation="none", **more)


def test_stages_of_a_chunk():
    """With LFE5U: 4 cycles to the sums, 1 corrects; bias 1, scaler 11, clamp 5."""
    ecp5 = core(target="ecp5", depth=4, multiplier="fip")
    assert (sum_latency(ecp5), join(ecp5), read_delay(ecp5), rescale(ecp5)) == (5, 5, 0, 22)
    # The sums are read 3 cycles after the request; the parameters take 4 cycles.
    assert (sum_latency(core()), join(core()), read_delay(core()), rescale(core())) == (1, 4, 3, 21)


def test_slots_of_add():
    """Scaled 12 after the join, clamped 17; a value follows 2 cycles later, or in its phase."""
    assert add_slots(core()) == AddSlots(added=18, result=19, total=33)
    assert rescale(core(), add=True) == 33 + rescale(core())


@pytest.mark.parametrize("mode", ["tflite", "single"])
@pytest.mark.parametrize("cycles", [1, 2, 4, 8, 16, 32])
def test_no_slot_has_two_values(mode, cycles):
    slots = add_slots(core(mode, cycles))
    values = 0, slots.added, slots.result, slots.total
    assert list(values) == sorted(values)
    for periods in range(20):
        taken = {slot % 4 for slot in values} | {(slot + 4 * periods) % 4 for slot in values}
        assert taken == {0, 1, 2, 3}
