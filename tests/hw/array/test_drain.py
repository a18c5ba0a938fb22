"""The drain: when results are at the south edge, and which rows shift."""

import pytest

from verif.amaranth_bench import play
from weft.hw.array.edges import Drain


@pytest.mark.parametrize("rows, slots, delay", [
    (1, 1, 3), (2, 1, 5), (4, 1, 4), (3, 2, 6), (1, 3, 3), (3, 3, 7),
])
@pytest.mark.parametrize("gap", [0, 1, 5])
def test_results_move_after_each_start(rows, slots, delay, gap):
    cycles = rows * slots
    starts = [2, 2 + cycles + gap, 2 + 2 * cycles + gap, 2 + 3 * cycles + 2 * gap]
    script = [{"start": t in starts} for t in range(starts[-1] + delay + cycles + 3)]
    valid, shift = play(Drain(rows=rows, slots=slots, delay=delay), script, "valid", "shift")
    expected_valid, expected_shift = [0] * len(script), [0] * len(script)
    for start in starts:
        for n in range(cycles):
            expected_valid[start + delay + n] = 1
            expected_shift[start + delay + n] = sum(
                1 << p for p in range(rows) if n < (p + 1) * slots - 1
            )
    assert valid == expected_valid
    assert shift == expected_shift


@pytest.mark.parametrize("rows, chains, delay", [(4, 2, 4), (8, 2, 5), (2, 2, 3), (6, 3, 4)])
@pytest.mark.parametrize("gap", [0, 1, 5])
def test_rows_of_chains_leave_together(rows, chains, delay, gap):
    """Each row shifts until the rows above it, of its chain, have passed it."""
    cycles = rows // chains
    starts = [2, 2 + cycles + gap, 2 + 2 * cycles + gap]
    script = [{"start": t in starts} for t in range(starts[-1] + delay + cycles + 3)]
    dut = Drain(rows=rows, slots=1, delay=delay, chains=chains)
    valid, shift = play(dut, script, "valid", "shift")
    expected_valid, expected_shift = [0] * len(script), [0] * len(script)
    for start in starts:
        for n in range(cycles):
            expected_valid[start + delay + n] = 1
            expected_shift[start + delay + n] = sum(
                1 << p for p in range(rows) if n < p // chains
            )
    assert valid == expected_valid
    assert shift == expected_shift


FLUSHES = [set(), {0}, {1}, {0, 1}, {1, 2}, {3}]


@pytest.mark.parametrize("rows, delay", [(1, 3), (2, 5), (4, 4), (3, 7)])
@pytest.mark.parametrize("gap", [0, 1, 5])
@pytest.mark.parametrize("flushes", FLUSHES, ids=str)
def test_folded_sums_move_until_they_are_0(rows, delay, gap, flushes):
    # Row p shifts p + 1 times; `valid` stays 0 for sums that are flushed.
    starts = [2 + n * (rows + 1 + gap) for n in range(4)]
    script = [{} for _ in range(starts[-1] + delay + rows + 3)]
    for cycle in script:
        cycle |= {"start": 0, "flush": 0}
    for n, start in enumerate(starts):
        script[start] |= {"flush" if n in flushes else "start": 1}
    dut = Drain(rows=rows, slots=1, delay=delay, folded=True)
    valid, shift = play(dut, script, "valid", "shift")
    expected_valid, expected_shift = [0] * len(script), [0] * len(script)
    for number, start in enumerate(starts):
        for n in range(rows):
            expected_valid[start + delay + n] = int(number not in flushes)
            expected_shift[start + delay + n] = sum(1 << p for p in range(rows) if n < p + 1)
    assert valid == expected_valid
    assert shift == expected_shift
    for p in range(rows):
        assert sum(moves >> p & 1 for moves in shift) == 4 * (p + 1)


def test_a_row_of_one_result_does_not_shift():
    script = [{"start": t == 0} for t in range(20)]
    (shift,) = play(Drain(rows=4, slots=1, delay=3), script, "shift")
    assert not any(moves & 1 for moves in shift)
