"""The schedule of the serial requantizer: results at the least distance never share a part."""

import pytest

from weft.latencies import MEMORY_READ, SerialSchedule

SCHEDULES = pytest.mark.parametrize("schedule", [
    SerialSchedule(cycles, sum_latency)
    for cycles in (4, 8, 16, 32) for sum_latency in (1, 4, 7)
])


@SCHEDULES
def test_reads_of_a_memory_have_their_own_phases(schedule):
    s = schedule
    even = s.shift_read, s.bias_read, s.right_shift_read, s.zero_read
    odd = s.multiplier_read, s.limits_read, s.limits_read + 1
    for reads in (even, odd):
        assert len({s.phase(cycle) for cycle in reads}) == len(reads)


@SCHEDULES
def test_a_step_follows_the_steps_it_needs(schedule):
    s = schedule
    assert s.steps * s.bits == 32
    assert 1 <= s.shift_read < s.bias_read == s.join - MEMORY_READ
    assert s.join >= s.sum_latency
    assert s.shifted - s.product == s.cycles > 31 // s.bits
    # A value is kept until the next result replaces it, `cycles` cycles later.
    assert s.shifted < s.zero_read + MEMORY_READ <= s.shifted + s.cycles
    # The limits are registered: they are valid one cycle after the memory gives them.
    total, limits = s.zero_read + MEMORY_READ + 1, s.limits_read + MEMORY_READ + 1
    assert total <= limits and limits + 1 < total + s.cycles
    assert s.latency == limits + 2


def test_the_latency_by_hand():
    # Sums after 4 cycles; 8 digits; 4 registers and an adder level to the product; 8 cycles of
    # shifts; the zero point; two cycles for the limits.
    assert SerialSchedule(8, 4).product == 4 + 8 + 4 + 1
    assert SerialSchedule(8, 4).latency == 4 + 8 + 4 + 1 + 8 + 2 + 2
