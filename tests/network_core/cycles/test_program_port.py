"""The program memory in the cycle model of lists: cycles computed by hand."""

import pytest
from network_cores import PROGRAM

from weft.network_core.cycles import ProgramTiming, predict_list
from weft.network_core.cycles.memory import ProgramPortTimes
from weft.network_core.descriptors import ListEnd, split


def arrivals(port, reads, cycles=200):
    """The cycles in which the data of reads of one client arrive."""
    reads, found = list(reads), []
    for now in range(cycles):
        found += [now] * (port.arrival() is not None)
        if port.step(now, [reads[0] if reads else None]) is not None:
            reads.pop(0)
    return found


def test_a_read_by_hand():
    """Accepted in cycle 0; two registers; the beat is open in cycle 3, and its burst is offered in
    cycle 4. After the latency its beat is there, and the data are a cycle later.
    """
    port = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10))
    assert arrivals(port, [0]) == [4 + 10 + 1]
    assert port.idle


def test_a_burst_of_four_beats():
    port = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10))
    assert arrivals(port, [0, 2, 4, 6]) == [18, 19, 20, 21]
    slow = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10, period=3 * 256))
    assert arrivals(slow, [0, 2, 4, 6]) == [18, 21, 24, 27]


def test_reads_of_one_beat_share_it():
    port = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10, period=5 * 256))
    assert arrivals(port, [0, 1, 2, 3]) == [18, 19, 24, 25]


def test_a_burst_ends_at_its_boundary():
    """Beats 14 and 15 are one burst; beat 16 begins another one, a cycle later."""
    port = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10))
    assert arrivals(port, [28, 30, 32]) == [16, 17, 18]


def test_bursts_end_at_addresses_of_the_bus():
    """Beat 14 of a program memory that begins with beat 1 or 17 is the last one of its burst."""
    for first_beat in (1, 17):
        port = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10, first_beat=first_beat))
        assert arrivals(port, [26, 28, 30]) == [16, 17, 18]
    port = ProgramPortTimes(PROGRAM, ProgramTiming(latency=10, first_beat=2))
    assert arrivals(port, [26, 28, 30]) == [15, 17, 18]


def test_an_empty_list_by_hand():
    """Both heads read the same END: 16 reads of 8 bytes, in one burst.

    The first read is requested in cycle 3 and the last one in cycle 18. The burst is offered when
    all its beats are closed: in cycle 22. With a latency of 5, the last beat is there in cycle 42
    and its data in 43. The reader is done in 46. It reads for the jobs from cycle 47 on, and is
    done in 92; both heads have ended 4 cycles later, as for a memory on the chip.
    """
    found = predict_list(
        PROGRAM, [ListEnd()], split(0, PROGRAM.banks), split(640, PROGRAM.banks),
        timing=ProgramTiming(latency=5),
    )
    assert found.cycles == 92 + 4 + 7 + 1


@pytest.mark.parametrize("fields, text", [
    (dict(latency=0), "latency must be at least 1, not 0"),
    (dict(period=255), "period must be at least 256, not 255"),
    (dict(first_beat=-1), "first_beat must be at least 0, not -1"),
])
def test_wrong_timings(fields, text):
    with pytest.raises(ValueError, match=text):
        ProgramTiming(**fields)
